"""Configuration files: each is one section, identified by its `apiVersion` and `kind`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from adapter.foundation.documents.load import load_documents
from adapter.foundation.documents.scalars import one_of
from adapter.foundation.documents.sections import Key, Section
from adapter.foundation.documents.shapes import Schema, read_each
from adapter.foundation.documents.tree import (
    DocumentError,
    DocumentProblem,
    MappingNode,
    ScalarNode,
    problems_within,
    shorten,
)

T = TypeVar("T")

API_VERSION: Final = "tidewatch.io/v1alpha1"
_DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"


def head(kind: str) -> tuple[Key, Key]:
    """Return the keys with which a file begins."""
    return (
        Key(
            "apiVersion", one_of((API_VERSION,), f"the apiVersion {API_VERSION}"), "API version.", API_VERSION, into=""
        ),
        Key("kind", one_of((kind,), f"the kind {kind}"), "What this file is.", kind, into=""),
    )


def read_file(
    content: str,
    file: str,
    section: Section[T],
    broken: Callable[[MappingNode], Iterable[DocumentProblem]] = problems_within,
) -> tuple[MappingNode, T]:
    """Return the mapping of a file, and the value made from it; `file` is its name in messages. Raises DocumentError.

    `broken` yields the problems of the YAML itself.
    """
    root = load_documents(content, file).root
    if root is None:
        begin = " and ".join(f"{each.key}: {each.example}" for each in section.keys if not each.attribute)
        raise DocumentError(DocumentProblem(file, 1, 1, "the file is empty", f"begin it with {begin}"))
    mapping = section.mapping(root)
    if (problem := _problem_of_kind(mapping, section)) is not None:
        # Every key of another kind would be wrong as well: the cause is said once.
        raise DocumentError(problem)
    values, problems = read_each([(mapping, section, "")])
    problems += broken(mapping)
    if problems:
        raise DocumentError(*problems)
    value: T = values[0]
    return mapping, value


def _problem_of_kind(mapping: MappingNode, section: Section[Any]) -> DocumentProblem | None:
    """Return what is wrong with the file's kind; None if it is the expected one, absent, or not a text."""
    expected = next((each.example for each in section.keys if each.key == "kind"), None)
    node = mapping.get("kind")
    if expected is None or not isinstance(node, ScalarNode) or node.value == expected:
        return None
    message = f"{shorten(node.value)!r} is not the kind {expected}"
    data = mapping.get("data")
    if node.value != "ConfigMap" or not isinstance(data, MappingNode) or not data.entries:
        return node.problem(message, f"write {expected}, or name another file")
    keys = shorten(", ".join(each.name for each in data.entries))
    return node.problem(message, f"save the value of its key ({keys}) to a file, and name that file")


def file_schema(title: str, section: Section[Any]) -> Schema:
    """Return the JSON Schema of a file, for editors."""
    return {"$schema": _DRAFT, "title": title, **section.schema}
