"""Rule files, each by itself: what is broken in one of them takes nothing away from the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapter.documents.load import Document, DocumentError, MappingNode, load_documents
from adapter.rulebook.findings import Code
from adapter.rulebook.model import Finding, Severity
from adapter.timing.file_contents import FilesError, UnreadFileError, empty_folders, read_each

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from adapter.timing.file_contents import FileContent

EMPTY_FOLDER = "no *.yaml in this folder"


@dataclass(frozen=True, slots=True)
class RuleFiles:
    """What can be used of some files."""

    documents: tuple[Document, ...]
    broken: tuple[Finding, ...]
    """Why nothing of which file can be used."""


def load_each(
    contents: Sequence[FileContent], instead: Callable[[Path], Iterable[Document]] = lambda _: ()
) -> RuleFiles:
    """Return the files as documents, and what stands in for the broken ones.

    Raises FilesError or DocumentError, the first there is, where all files are broken and there are some.
    """
    documents: list[Document] = []
    errors: list[UnreadFileError | DocumentError] = []
    for content in contents:
        try:
            documents.append(_document(content))
        except (UnreadFileError, DocumentError) as e:
            errors.append(e)
            documents.extend(instead(content.path))
    if errors and len(errors) == len(contents):
        raise errors[0]
    return RuleFiles(tuple(documents), tuple(map(_finding, errors)))


def load_configuration(contents: Sequence[FileContent]) -> tuple[Document, ...]:
    """Return the files as documents; raises DocumentError where nothing of a file can be used."""
    return tuple(map(_document, contents))


def rule_files_of(paths: Sequence[Path]) -> tuple[FileContent, ...]:
    """Return the contents of files that are to be looked at once; raises FilesError for an empty folder."""
    contents = read_each(paths)
    for folder in empty_folders(paths, contents):
        raise FilesError(f"{folder}: {EMPTY_FOLDER}: name a file or another folder")
    return contents


def _document(content: FileContent) -> Document:
    """Return the file as a document; raises UnreadFileError, DocumentError.

    A file without keys is an error: at a reload it would put an empty rulebook in force.
    """
    if content.unread is not None:
        raise content.unread
    document = load_documents(content.text, str(content.path))
    root = document.root
    if root is not None and not isinstance(root, MappingNode):
        fix = "write the rules below `rules:` or `externalRules:`"
        raise DocumentError(root.problem(f"{root.kind} is all that stands in this file", fix))
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
