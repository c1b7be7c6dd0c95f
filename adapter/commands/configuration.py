"""The rule files of a running process: read, watched, and made into the rulebook that is in force."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from prometheus_client import Counter, Gauge

from adapter.rulebook.findings import Code
from adapter.rulebook.model import Severity
from adapter.rulebook.parse import parse_rulebook
from adapter.service.documents import DocumentError, Mapping, load_documents
from adapter.service.logs import fields
from adapter.service.watched import WatchedFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from prometheus_client import CollectorRegistry

    from adapter.objects.resources import ResolveResource
    from adapter.rulebook.model import Finding, Rulebook
    from adapter.service.documents import Document
    from adapter.service.watched import FileContent

_log = logging.getLogger(__name__)

RESOLVE_AGAIN_SECONDS = 15.0
"""How often a rule is tried again that names a kind of object which the cluster did not know."""


def load_configuration(contents: Sequence[FileContent]) -> tuple[Document, ...]:
    """Return the files as documents; raises DocumentError where nothing of a file can be used."""
    documents = tuple(load_documents(content.text, str(content.path)) for content in contents)
    for document in documents:
        _refuse_bare_rules(document)
    return documents


def _refuse_bare_rules(document: Document) -> None:
    """Raise DocumentError for a file without keys: at a reload it would put an empty rulebook in force."""
    root = document.root
    if root is not None and not isinstance(root, Mapping):
        fix = "write the rules below `rules:` or `externalRules:`"
        raise DocumentError(root.problem(f"{root.kind} is all that stands in this file", fix))


class Configuration:
    """The rulebook in force. `check` looks for changes and hands each new rulebook to `apply`."""

    def __init__(self, paths: Sequence[Path], resolve: ResolveResource, registry: CollectorRegistry) -> None:
        """Read the files; raises FilesError or DocumentError: at the start there is no last good value."""
        self._resolve = resolve
        self._apply: Callable[[Rulebook], None] = lambda _: None
        self._well = Gauge(
            "tidewatch_adapter_config_last_reload_successful",
            "Whether the rule files could be taken in when they last changed.",
            registry=registry,
        )
        self._reloads = Counter(
            "tidewatch_adapter_config_reloads", "Changes of the rule files, by result.", ["result"], registry=registry
        )
        self._files = WatchedFiles(paths, load_configuration, on_success=self._changed, on_failure=self._refused)
        self.rulebook = parse_rulebook(self._files.value, resolve)
        """All that the files say."""
        self._resolved_at = time.monotonic()
        self._well.set(1)
        log_findings(self.rulebook)

    def on_change(self, apply: Callable[[Rulebook], None]) -> None:
        """Hand every further rulebook to this function."""
        self._apply = apply

    def check(self) -> None:
        """Look whether the files changed, or a kind of object that a rule waits for has come to be known."""
        self._files.check()
        now = time.monotonic()
        if now - self._resolved_at >= RESOLVE_AGAIN_SECONDS and _waits_for_a_kind(self.rulebook):
            self._resolved_at = now
            renewed = parse_rulebook(self._files.value, self._resolve)
            if renewed.refused != self.rulebook.refused:
                self._take_in(renewed, "rules that waited for a kind of object are taken in")

    def _changed(self, documents: Sequence[Document]) -> None:
        self._reloads.labels("success").inc()
        self._well.set(1)
        self._take_in(parse_rulebook(documents, self._resolve), "changed rule files are taken in")

    def _refused(self, message: str) -> None:
        self._reloads.labels("failure").inc()
        self._well.set(0)
        _log.error("%s; the last good rules stay in force", message)

    def _take_in(self, rulebook: Rulebook, what: str) -> None:
        self.rulebook = rulebook
        log_findings(rulebook)
        self._apply(rulebook)
        _log.info(what, extra=fields(rules=len(rulebook.rules), refused=len(rulebook.refused)))


def log_findings(rulebook: Rulebook) -> None:
    """Log each finding by itself: file, line, what is wrong, what to do."""
    for finding in rulebook.findings:
        _log.log(_level(finding), "%s", finding, extra=fields(code=str(finding.code), rule=finding.rule or ""))


def _level(finding: Finding) -> int:
    return logging.ERROR if finding.severity is Severity.ERROR else logging.WARNING


def _waits_for_a_kind(rulebook: Rulebook) -> bool:
    return any(finding.code == Code.UNKNOWN_RESOURCE for finding in rulebook.findings)
