"""Rule files, each read by itself, so that a broken file does not affect the others."""

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
    """The usable part of some rule files."""

    documents: tuple[Document, ...]
    broken: tuple[Finding, ...]
    """One finding for each file that cannot be used, with the reason."""


def load_each(
    contents: Sequence[FileContent], instead: Callable[[Path], Iterable[Document]] = lambda _: ()
) -> RuleFiles:
    """Return the files as documents, with the documents that `instead` returns for broken files.

    Raises the first FilesError or DocumentError if all files are broken.
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
    """Return the files as documents; raises DocumentError if a file cannot be used."""
    return tuple(map(_document, contents))


def rule_files_of(paths: Sequence[Path]) -> tuple[FileContent, ...]:
    """Return the contents of files that are read once; raises FilesError for an empty folder."""
    contents = read_each(paths)
    for folder in empty_folders(paths, contents):
        raise FilesError(f"{folder}: {EMPTY_FOLDER}: name a file or another folder")
    return contents


def _document(content: FileContent) -> Document:
    """Return the file as a document; raises UnreadFileError, DocumentError.

    A file without keys is an error, since at a reload it would replace all rules by none.
    """
    if content.unread is not None:
        raise content.unread
    document = load_documents(content.text, str(content.path))
    root = document.root
    if root is not None and not isinstance(root, MappingNode):
        fix = "write the rules below `rules:` or `externalRules:`"
        raise DocumentError(root.problem(f"this file holds {root.kind} and nothing else", fix))
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
