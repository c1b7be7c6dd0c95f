"""Reads the rule files of a running process, follows their changes, and makes the rulebook that is in force.

Every valid rule takes effect. If a file cannot be used, its last good content stays in force, and if a change breaks a
rule, the last good version of the rule stays in force (`rulebook/reload/last_good`).
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from adapter.commands.program import PROGRAM
from adapter.commands.rule_files import EMPTY_FOLDER, load_each
from adapter.foundation.documents.tree import DocumentError
from adapter.foundation.files.file_contents import FileContent, FilesError, empty_folders
from adapter.foundation.service.runtime.followed_configuration import FollowedConfiguration, ReloadMetrics
from adapter.foundation.service.runtime.logs import fields
from adapter.metrics.rulebook.findings import Code, Finding, Severity
from adapter.metrics.rulebook.model import Rulebook
from adapter.metrics.rulebook.parsing.parse import parse_rulebook
from adapter.metrics.rulebook.reload.last_good import Retention, lost_list, retained_in

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from prometheus_client import CollectorRegistry

    from adapter.commands.trials.queries import QueryTrials
    from adapter.foundation.documents.load import Document
    from adapter.foundation.files.kept_contents import KeptContents
    from adapter.foundation.objects.resources import ResolveResource

_log = logging.getLogger(__name__)

RESOLVE_AGAIN_SECONDS = 15.0
"""The time between two attempts to use a rule that names a kind of object that the cluster does not know."""
MOST_LOGGED = 500
"""The maximum number of findings that one pass logs, since a megabyte of garbage may contain a hundred thousand
rules."""
_VANISHED = "all rules of one kind vanished from the file with it"


class _Loaded(NamedTuple):
    """Rule files, at least one of which can be used."""

    documents: tuple[Document, ...]
    """The documents; a broken file is represented by its last good content."""
    parsed: Rulebook
    broken: tuple[Finding, ...]
    empty: tuple[Path, ...]
    """Folders that contain no rule file."""


class RuleReloader:
    """The rulebook in force. `check` looks for changes and passes each new rulebook to `apply`."""

    def __init__(
        self,
        paths: Sequence[Path],
        resolve: ResolveResource,
        registry: CollectorRegistry,
        metrics_prefix: str,
        kept: KeptContents | None = None,
    ) -> None:
        """Read the files. Raises FilesError or DocumentError, since there is no last good content at the start.

        `kept` holds the contents that a former worker had in force, which replace files that cannot be used now.
        """
        self._resolve = resolve
        self._apply: Callable[[Rulebook], None] = lambda _: None
        self._metrics = ReloadMetrics(registry, metrics_prefix)
        self.rulebook = Rulebook()
        """The rulebook in force."""
        self._paths = tuple(paths)
        self._trials: QueryTrials | None = None
        self._documents: tuple[Document, ...] = ()
        self._broken: tuple[Finding, ...] = ()
        """One finding for each file that cannot be used now, with the reason."""
        self._followed = FollowedConfiguration(
            paths,
            self._load,
            self._apply_change,
            unusable=(FilesError, DocumentError, ValueError),
            metrics=self._metrics,
            consequence="the last good rules stay in force",
            kept=kept,
        )
        self._resolved_at = time.monotonic()
        self._put_in_force(self._followed.value)

    def on_change(self, apply: Callable[[Rulebook], None], trials: QueryTrials | None = None) -> None:
        """Pass every further rulebook to `apply`. With `trials`, unreadable queries are first tried on Prometheus."""
        self._apply = apply
        self._trials = trials

    def check(self) -> None:
        """Apply changes of the files, and rules that waited for a kind of object that has now become known."""
        self._followed.check()
        now = time.monotonic()
        if now - self._resolved_at >= RESOLVE_AGAIN_SECONDS and _waits_for_a_kind(self.rulebook):
            self._resolved_at = now
            judge = self._trials.last_refusal if self._trials else None
            renewed = parse_rulebook(self._documents, self._resolve, judge)
            if renewed.refused != self.rulebook.refused:
                self._take_in(renewed, files_are_good=not (self._broken or self._followed.is_refused))
                self._tell("rules that waited for a kind of object are in force")

    def _load(self, contents: Sequence[FileContent]) -> _Loaded:
        files = load_each(contents, self._last_good_documents)
        judge = self._trials.of_a_change(self.rulebook) if self._trials else None
        documents, broken = files.documents, files.broken
        parsed = parse_rulebook(documents, self._resolve, judge)
        lost = lost_list(parsed, self.rulebook)
        while lost is not None and all(lost.file != finding.file for finding in broken):
            if len(broken) + 1 == len(contents):
                raise FilesError(f"{lost}; {_VANISHED}")
            broken = (*broken, replace(lost, message=f"{lost.message}; {_VANISHED}"))
            documents = tuple(each for document in documents for each in self._last_good_if_lost(document, lost.file))
            parsed = parse_rulebook(documents, self._resolve, judge)
            lost = lost_list(parsed, self.rulebook)
        return _Loaded(documents, parsed, broken, empty_folders(self._paths, contents))

    def _last_good_documents(self, path: Path) -> tuple[Document, ...]:
        """Return the last good content of a file, or of all files of a folder, each once."""
        last = {Path(document.file): document for document in self._documents}
        return tuple(document for file, document in last.items() if path in (file, file.parent))

    def _last_good_if_lost(self, document: Document, file: str) -> tuple[Document, ...]:
        return self._last_good_documents(Path(file)) if document.file == file else (document,)

    def _apply_change(self, loaded: _Loaded) -> bool:
        self._put_in_force(loaded)
        self._tell("changed rule files are in force")
        return not loaded.broken and not _has_errors(self.rulebook)

    def _put_in_force(self, loaded: _Loaded) -> None:
        self._take_in(loaded.parsed, files_are_good=not loaded.broken)
        for finding in loaded.broken:
            if finding not in self._broken:
                _log_broken(finding, goes_on=bool(self._last_good_documents(Path(finding.file))))
        for folder in loaded.empty:
            _log.warning("%s: %s, so nothing is served from it", folder, EMPTY_FOLDER)
        self._documents, self._broken = loaded.documents, loaded.broken

    def _take_in(self, parsed: Rulebook, *, files_are_good: bool) -> None:
        retention = retained_in(parsed, self.rulebook)
        try:
            self._apply(retention.rulebook)
        except Exception:
            # The supervisor of tasks logs the error, and the next look tries again.
            self._metrics.state(is_whole=False)
            raise
        self.rulebook = retention.rulebook
        self._metrics.state(is_whole=files_are_good and not _has_errors(parsed))
        log_findings(parsed)
        _log_retention(retention)

    def _tell(self, what: str) -> None:
        rulebook = self.rulebook
        number = len(rulebook.rules) + len(rulebook.resource.rules)
        counts = fields(rules=number, refused=len(rulebook.refused), retained=len(rulebook.retained))
        _log.info(what, extra=counts)


def log_findings(rulebook: Rulebook) -> None:
    """Log each finding with file, line and fix, but no more than `MOST_LOGGED` findings."""
    for finding in rulebook.findings[:MOST_LOGGED]:
        about = fields(code=str(finding.code), rule=finding.rule or "", file=finding.file, line=finding.line)
        _log.log(logging.ERROR if finding.severity is Severity.ERROR else logging.WARNING, "%s", finding, extra=about)
    left_out = len(rulebook.findings) - MOST_LOGGED
    if left_out > 0:
        _log.error("further findings that are not logged: %d; run `%s check` to see all of them", left_out, PROGRAM)


def _log_broken(finding: Finding, *, goes_on: bool) -> None:
    """Log the problem of a whole file, and what is served instead."""
    about = fields(code=finding.code, file=finding.file, line=finding.line)
    what = "its last good rules stay in force" if goes_on else "nothing is served from it"
    _log.error("%s; %s", finding, what, extra=about)


def _log_retention(retention: Retention) -> None:
    """Log, for each refused rule that may have a last good version, whether that version stays in force."""
    unsure = {rule.id for rule in retention.unsure}
    for rule in retention.rulebook.refused[:MOST_LOGGED]:
        about = {"rule": rule.id, "file": rule.file, "line": rule.line}
        if rule.id in retention.rulebook.retained:
            message = "%s (%s:%d): its new version is refused, so its last good version stays in force"
            _log.warning(message, rule.id, rule.file, rule.line, extra=fields(**about, state="retained"))
        elif rule.id in unsure:
            message = (
                "%s (%s:%d): refused, and it is unclear which of the removed rules it was before, so none of them "
                "stays "
                "in force: change one rule at a time"
            )
            _log.error(message, rule.id, rule.file, rule.line, extra=fields(**about, state="refused"))


def _has_errors(rulebook: Rulebook) -> bool:
    return any(finding.severity is Severity.ERROR for finding in rulebook.findings)


def _waits_for_a_kind(rulebook: Rulebook) -> bool:
    return any(finding.code == Code.UNKNOWN_RESOURCE for finding in rulebook.findings)
