"""Reads each rule file separately, so that a broken file does not affect the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapter.commands.chart_values import are_chart_values, rules_within
from adapter.foundation.documents.load import (
    Document,
    DocumentError,
    DocumentProblem,
    MappingNode,
    ScalarNode,
    load_documents,
)
from adapter.foundation.documents.tree import problem_lines, shorten
from adapter.foundation.files.file_contents import FilesError, UnreadFileError, empty_folders, read_each
from adapter.metrics.rulebook.findings import Code, Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from adapter.foundation.documents.load import Document, MappingEntry, Node
    from adapter.foundation.files.file_contents import FileContent

EMPTY_FOLDER = "no *.yaml in this folder"
_CONFIG_MAP = "ConfigMap"
_FIXES_OF_KINDS = {
    "RecommenderConfiguration": "`tidewatch-recommender run --config` reads it",
    "SchedulingConfiguration": "`tidewatch-adapter nodes --scheduling-config` reads it",
    "MetricRule": "apply it to the cluster, where `serve --metric-rules` reads it",
}
_MOUNT = "apply it to the cluster, mount the ConfigMap, and name the mounted file"
_INSTALL = (
    "install the chart with them; in a rule file, `custom` is called `rules`, `external` is `externalRules`, and "
    "`resource` is `resourceRules`"
)


@dataclass(frozen=True, slots=True)
class RuleFiles:
    """The documents of the usable rule files, and the findings about the broken ones."""

    documents: tuple[Document, ...]
    broken: tuple[Finding, ...]
    """One finding, with the reason, for each file that cannot be used."""


def load_each(
    contents: Sequence[FileContent],
    instead: Callable[[Path], Iterable[Document]] = lambda _: (),
    *,
    manifests: bool = False,
) -> RuleFiles:
    """Return the files as documents, with the documents that `instead` returns in place of broken files.

    With `manifests`, the rule files in the manifest of a ConfigMap and the rules in the values of a chart become
    documents as well; otherwise, such a file counts as broken. If all files are broken, raises an error that states the
    problem of each: UnreadFileError or DocumentError for a single file, and FilesError for several.
    """
    documents: list[Document] = []
    errors: list[UnreadFileError | DocumentError] = []
    for content in contents:
        try:
            documents.extend(_documents(content, manifests=manifests))
        except (UnreadFileError, DocumentError) as e:
            errors.append(e)
            documents.extend(instead(content.path))
    if errors and len(errors) == len(contents):
        raise errors[0] if len(errors) == 1 else FilesError("\n".join(problem_lines(errors)))
    return RuleFiles(tuple(documents), tuple(map(_finding, errors)))


def load_configuration(contents: Sequence[FileContent]) -> tuple[Document, ...]:
    """Return the files as documents, rule files in ConfigMaps and chart values included.

    Raises UnreadFileError or DocumentError for the first file that cannot be used.
    """
    return tuple(document for content in contents for document in _documents(content, manifests=True))


def rule_files_of(paths: Sequence[Path]) -> tuple[FileContent, ...]:
    """Return the contents of all rule files at these paths. Raises FilesError for a folder without rule files."""
    contents = read_each(paths)
    for folder in empty_folders(paths, contents):
        raise FilesError(f"{folder}: {EMPTY_FOLDER}: name a file or another folder")
    return contents


def _documents(content: FileContent, *, manifests: bool) -> tuple[Document, ...]:
    """Return the documents of the file. Raises UnreadFileError or DocumentError.

    Content that is not a mapping is an error, since at a reload it would replace all rules with none.
    """
    if content.unread is not None:
        raise content.unread
    document = load_documents(content.text, str(content.path))
    _refuse_other_kind(document)
    if is_config_map(document.root):
        if not manifests:
            problem = DocumentProblem(document.file, 1, 1, "this is a ConfigMap, not the rule file in it", _MOUNT)
            raise DocumentError(problem)
        return tuple(map(_rule_file_itself, rule_files_within(document, content.text)))
    if manifests and are_chart_values(document.root):
        return rules_within(document)
    return (_rule_file_itself(document),)


def _refuse_other_kind(document: Document) -> None:
    """Raise DocumentError for the manifest of another kind of object, in which all keys would be unknown."""
    kind = document.root.get("kind") if isinstance(document.root, MappingNode) else None
    if isinstance(kind, ScalarNode) and kind.value != _CONFIG_MAP:
        fix = _FIXES_OF_KINDS.get(kind.value, "name a file that has `rules` or `externalRules`")
        raise DocumentError(kind.problem(f"this is a {shorten(kind.value)}, not a rule file", fix))


def _rule_file_itself(document: Document) -> Document:
    """Return the document. Raises DocumentError if it is no mapping, or holds values of a chart instead of rules."""
    root = document.root
    if root is not None and not isinstance(root, MappingNode):
        fix = "write the rules below `rules:` or `externalRules:`"
        raise DocumentError(root.problem(f"this file holds {root.kind} and nothing else", fix))
    if root is not None and are_chart_values(root):
        raise DocumentError(root.problem("these are values of a chart, not a rule file", _INSTALL))
    return document


def _finding(error: UnreadFileError | DocumentError) -> Finding:
    severity, code = Severity.ERROR, Code.UNREADABLE_FILE.value
    if isinstance(error, UnreadFileError):
        return Finding(severity, code, str(error.path), 1, error.reason, error.fix)
    problem = error.problem
    return Finding(
        severity,
        code,
        problem.file,
        problem.line,
        problem.message.replace("\n", " "),
        problem.fix,
        None,
        problem.column,
    )


_ENDINGS = (".yaml", ".yml")


def is_config_map(root: Node | None) -> bool:
    """Return whether a file is the manifest of a ConfigMap."""
    kind = root.get("kind") if isinstance(root, MappingNode) else None
    return isinstance(kind, ScalarNode) and kind.value == _CONFIG_MAP


def rule_files_within(document: Document, text: str) -> tuple[Document, ...]:
    """Return the rule files in the manifest of a ConfigMap; `text` is the text of the manifest. Raises DocumentError.

    The lines of a rule file in a literal block (`config.yaml: |`) are lines of the manifest. Such a rule file is read
    with an empty line for each line of the manifest before it, so findings show the lines and columns of the manifest,
    and `check --fix` fixes the manifest itself.
    """
    assert isinstance(document.root, MappingNode), "the caller knows that it is a ConfigMap"
    entries = tuple(_entries(document.root))
    if not entries:
        fix = "name the ConfigMap with the rules"
        raise DocumentError(document.root.problem("this ConfigMap holds no *.yaml key", fix))
    return tuple(_rule_file(entry, text) for entry in entries)


def _entries(root: MappingNode) -> Iterator[MappingEntry]:
    data = root.get("data")
    if data is not None:
        yield from (entry for entry in data.mapping().entries if entry.name.endswith(_ENDINGS))


def _rule_file(entry: MappingEntry, text: str) -> Document:
    content, node = entry.value.text(), entry.value
    own = text.splitlines(keepends=True)[node.line : node.line + len(content.splitlines())]
    if [line.strip() for line in own] == [line.strip() for line in content.splitlines()]:
        return load_documents("\n" * node.line + "".join(own), node.file)
    # The rule file is quoted or folded, so its lines are not lines of the manifest.
    return load_documents(content, f"{node.file}:{entry.name}")
