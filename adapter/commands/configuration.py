"""The rule files of a running process: read, watched, and made into the rulebook that is in force.

What holds is taken in. A file of which nothing can be used leaves everything as it was; a rule that a change broke goes
on as it last held (`rulebook/retaining`).
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, NamedTuple

from prometheus_client import Counter, Gauge

from adapter.rulebook.findings import Code
from adapter.rulebook.model import Rulebook, Severity
from adapter.rulebook.parse import parse_rulebook
from adapter.rulebook.retaining import lost_list, retained_in
from adapter.service.documents import DocumentError, Mapping, load_documents
from adapter.service.logs import fields
from adapter.service.watched import FilesError, WatchedFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from prometheus_client import CollectorRegistry

    from adapter.objects.resources import ResolveResource
    from adapter.rulebook.model import Finding
    from adapter.rulebook.retaining import Retention
    from adapter.service.documents import Document
    from adapter.service.watched import FileContent

_log = logging.getLogger(__name__)

RESOLVE_AGAIN_SECONDS = 15.0
"""How often a rule is tried again that names a kind of object which the cluster did not know."""
LOOKS_UNTIL_SETTLED = 2
"""Looks, a second apart, that must see the same: an editor may empty a file before it writes it."""
MOST_LOGGED = 500
"""Findings of one look at the files: a megabyte of rubbish may hold a hundred thousand rules."""
RESULTS = ("success", "partial", "failure")
"""All was taken in; what holds was taken in, and something was refused; nothing was taken in."""


class _Loaded(NamedTuple):
    """Rule files of which something can be used."""

    documents: tuple[Document, ...]
    parsed: Rulebook


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
            "Whether all that the rule files say now is in force; 0 while a file or a rule is refused.",
            registry=registry,
        )
        self._reloads = Counter(
            "tidewatch_adapter_config_reloads",
            "Changes of the rule files, by result: success, partial (a rule was refused), failure (nothing is new).",
            ["result"],
            registry=registry,
        )
        for result in RESULTS:
            self._reloads.labels(result)
        self.rulebook = Rulebook()
        """What is in force."""
        self._files = WatchedFiles(
            paths,
            self._load,
            settled_after=LOOKS_UNTIL_SETTLED,
            on_success=self._changed,
            on_failure=self._refused,
        )
        self._files_are_good = True
        self._resolved_at = time.monotonic()
        self._take_in(self._files.value.parsed)

    def on_change(self, apply: Callable[[Rulebook], None]) -> None:
        """Hand every further rulebook to this function."""
        self._apply = apply

    def check(self) -> None:
        """Look whether the files changed, or a kind of object that a rule waits for has come to be known."""
        self._files.check()
        now = time.monotonic()
        if now - self._resolved_at >= RESOLVE_AGAIN_SECONDS and _waits_for_a_kind(self.rulebook):
            self._resolved_at = now
            renewed = parse_rulebook(self._files.value.documents, self._resolve)
            if renewed.refused != self.rulebook.refused:
                self._take_in(renewed)
                self._tell("rules that waited for a kind of object are taken in")

    def _load(self, contents: Sequence[FileContent]) -> _Loaded:
        documents = load_configuration(contents)
        parsed = parse_rulebook(documents, self._resolve)
        lost = lost_list(parsed, self.rulebook)
        if lost is not None:
            raise FilesError(f"{lost}; all rules of one kind vanished from the file with it")
        return _Loaded(documents, parsed)

    def _changed(self, loaded: _Loaded) -> None:
        self._files_are_good = True
        self._take_in(loaded.parsed)
        self._reloads.labels("partial" if _has_errors(self.rulebook) else "success").inc()
        self._tell("changed rule files are taken in")

    def _refused(self, message: str) -> None:
        self._files_are_good = False
        self._well.set(0)
        self._reloads.labels("failure").inc()
        _log.error("%s; the last good rules stay in force", message)

    def _take_in(self, parsed: Rulebook) -> None:
        retention = retained_in(parsed, self.rulebook)
        self.rulebook = retention.rulebook
        self._well.set(self._files_are_good and not _has_errors(parsed))
        log_findings(parsed)
        _log_retention(retention)
        self._apply(self.rulebook)

    def _tell(self, what: str) -> None:
        rulebook = self.rulebook
        counts = fields(rules=len(rulebook.rules), refused=len(rulebook.refused), retained=len(rulebook.retained))
        _log.info(what, extra=counts)


def log_findings(rulebook: Rulebook) -> None:
    """Log each finding by itself: file, line, what is wrong, what to do; of very many the first ones."""
    for finding in rulebook.findings[:MOST_LOGGED]:
        about = fields(code=str(finding.code), rule=finding.rule or "", file=finding.file, line=finding.line)
        _log.log(_level(finding), "%s", finding, extra=about)
    left_out = len(rulebook.findings) - MOST_LOGGED
    if left_out > 0:
        _log.error("%d further findings are not logged: `tidewatch-adapter check` tells all of them", left_out)


def _log_retention(retention: Retention) -> None:
    """Log of each refused rule that had a last good version, or may have had one, whether that goes on."""
    for rule in retention.rulebook.refused[:MOST_LOGGED]:
        about = {"rule": rule.id, "file": rule.file, "line": rule.line}
        if rule.id in retention.rulebook.retained:
            message = "%s (%s:%d): what it says now is refused, so its last good version goes on serving"
            _log.warning(message, rule.id, rule.file, rule.line, extra=fields(**about, state="retained"))
        elif rule in retention.unsure:
            message = (
                "%s (%s:%d): refused, and which of the rules that are gone it has been cannot be told, so none of "
                "them goes on serving: change one rule at a time"
            )
            _log.error(message, rule.id, rule.file, rule.line, extra=fields(**about, state="refused"))


def _level(finding: Finding) -> int:
    return logging.ERROR if finding.severity is Severity.ERROR else logging.WARNING


def _has_errors(rulebook: Rulebook) -> bool:
    return any(finding.severity is Severity.ERROR for finding in rulebook.findings)


def _waits_for_a_kind(rulebook: Rulebook) -> bool:
    return any(finding.code == Code.UNKNOWN_RESOURCE for finding in rulebook.findings)
