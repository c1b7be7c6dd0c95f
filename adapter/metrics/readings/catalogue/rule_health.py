"""Logs whether each rule works: one line per change, however many queries and clients the rule has.

A rule with an exact plan may have a thousand queries. Every few seconds all of them together decide whether it works,
and a rule whose state flaps is logged once a minute, with the number of changes. An outage of Prometheus, which stops
all rules at once, is not logged here.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from adapter.foundation.sources.prometheus.backends.backend import Backend, backend_text
from adapter.metrics.readings.errors import (
    ObjectsNotKnownError,
    PartialAnswerError,
    QueryRefusedByPrometheusError,
    ReadingError,
    SourceSlowError,
    UnanswerableSelectorError,
)
from adapter.metrics.rulebook.model import Api, Rule

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from adapter.metrics.readings.catalogue.discovered_rule import DiscoveredRule
    from adapter.metrics.readings.failure import Failure

_log = logging.getLogger(__name__)

_Identity: TypeAlias = "Rule | str"

SECONDS_BETWEEN_LINES = 60.0
_FAILURES_UNTIL_LOGGED = 3
"""Failures in a row until a log line: a failed look-up is retried within five seconds, so most are over by then."""
_MOST_REMARKS = 50
"""Limit on the distinct remarks that are logged about one rule."""

_REASONS: Mapping[type[ReadingError], str] = {
    QueryRefusedByPrometheusError: "refused",
    SourceSlowError: "slow",
    PartialAnswerError: "partial",
    ObjectsNotKnownError: "objects",
    UnanswerableSelectorError: "selector",
    ReadingError: "fault",
}
_SERIES = "series"
_UNANSWERED = frozenset({"slow", _SERIES})
"""Reasons that many rules have at once if Prometheus hangs."""
_MOST_APART = 3
"""How many rules that change for such a reason at the same time have a line each; more have one line together."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """A failure of a rule."""

    rule: Rule
    reasons: frozenset[str]
    """`refused`, `slow`, `partial`, `objects`, `selector`, `fault` for queries; `series` for the look-up."""
    message: str
    """The message of one of the failures."""
    queries: int = 0
    """How many queries fail; 0 if the look-up fails."""


@dataclass(slots=True)
class _LastLogged:
    """The last log line about a rule."""

    rule: Rule
    reasons: frozenset[str] = frozenset()
    """Why the rule fails; empty if it works."""
    at: float | None = None
    """Time of the log line in monotonic seconds; None if there was none."""
    latest: frozenset[str] = frozenset()
    changes: int = 0
    """The number of changes since then."""


_Change: TypeAlias = "tuple[_LastLogged, Trouble | None]"
"""What was last logged about a rule, and its trouble now; None if it works."""


class RuleHealthLog:
    """Remembers what was logged about each rule. Safe for any number of threads."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._last_logged: dict[_Identity, _LastLogged] = {}
        self._source_failed: Counter[Backend | None] = Counter()
        """Consecutive calls that reported a failure, by backend."""
        self._remarked: defaultdict[str, set[str]] = defaultdict(set)
        self.failing: frozenset[str] = frozenset()
        """Ids of the rules that failed at the last call of `report`."""

    def report(
        self, troubles: Iterable[Trouble], rules: Iterable[Rule], away: Collection[Backend | None] = frozenset()
    ) -> None:
        """Log what changed, each rule at most once a minute. `rules` are those in force.

        During an outage of a backend (`away`), it is not known whether a rule that failed before works again.
        """
        by_rule = _merge_troubles(troubles)
        changes: list[_Change] = []
        with self._lock:
            self.failing = frozenset(trouble.rule.id for trouble in by_rule.values())
            if self._last_logged:
                standing = {_identity(rule): rule for rule in rules}
                self._last_logged = {key: last for key, last in self._last_logged.items() if key in standing}
                for key, last in self._last_logged.items():
                    last.rule = standing[key]
            for key, trouble in by_rule.items():
                self._last_logged.setdefault(key, _LastLogged(trouble.rule))
            now = self._monotonic()
            for key, last in list(self._last_logged.items()):
                if key not in by_rule and last.rule.backend in away:
                    continue
                self._note_change(last, by_rule.get(key), now, changes)
                if not last.latest and not last.reasons and last.at is not None and not _is_recent(last, now):
                    del self._last_logged[key]
        # Written after the lock is released: others must not wait for a slow reader of the log.
        _log_states(changes, now)

    def report_source(self, failure: str | None, backend: Backend | None = None) -> None:
        """Log when several queries for series have failed in a row, and when they succeed again."""
        with self._lock:
            times = self._source_failed.pop(backend, 0)
            if failure is not None:
                self._source_failed[backend] = times + 1
        if failure is None and times >= _FAILURES_UNTIL_LOGGED:
            _log.info("queries to %s succeed again", backend_text(backend))
        if failure is not None and times + 1 == _FAILURES_UNTIL_LOGGED:
            what = "no series are looked up, and rules keep their metrics"
            _log.warning("queries to %s fail; %s: %s", backend_text(backend), what, failure)

    def remark(self, rule: Rule, kind: str, message: str, *arguments: object) -> None:
        """Log something about a rule once for each kind, and not again before the next reload."""
        with self._lock:
            remarked = self._remarked[rule.label_value]
            if kind in remarked or len(remarked) >= _MOST_REMARKS:
                return
            remarked.add(kind)
        _log.warning(message, *arguments, extra=_fields(rule))

    def forget_remarks(self) -> None:
        """Forget everything, as after a reload."""
        with self._lock:
            self._remarked.clear()

    @staticmethod
    def _note_change(last: _LastLogged, trouble: Trouble | None, now: float, changes: list[_Change]) -> None:
        reasons = trouble.reasons if trouble else frozenset[str]()
        if reasons != last.latest:
            last.latest = reasons
            last.changes += 1
        if not last.changes or _is_recent(last, now):
            return
        if reasons != last.reasons or last.changes > 1:
            changes.append((replace(last), trouble))
            last.reasons, last.at = reasons, now
        last.changes = 0


def query_trouble(rule: Rule, failure: Failure) -> Trouble:
    """Return the problem of a rule with a query that fails."""
    reason = next((_REASONS[kind] for kind in failure.error.__mro__ if kind in _REASONS), "fault")
    return Trouble(rule, frozenset((reason,)), failure.message, 1)


def unreachable(states: Iterable[DiscoveredRule], answered_at: float) -> str | None:
    """Return why queries for series to Prometheus fail; None if they do not.

    `answered_at` is when it last answered anything, in Unix seconds.
    """
    return next(
        (
            state.failure
            for state in states
            if state.unreachable_since is not None and answered_at <= state.unreachable_since
        ),
        None,
    )


def look_up_troubles(states: Iterable[DiscoveredRule]) -> Iterator[Trouble]:
    """Yield the problems of rules whose series cannot be looked up although Prometheus answers others.

    After an outage, the queries succeed before the look-ups are repeated, so a failure from before that is no problem.
    """
    for state in states:
        if state.failure is not None and (state.unreachable_since is None or state.fails_alone):
            keeps = "its series cannot be looked up, or only in part, so it keeps the metrics that it has"
            yield Trouble(state.rule, frozenset((_SERIES,)), f"{keeps}: {state.failure}")


def _identity(rule: Rule) -> _Identity:
    """Return what identifies a rule after a reload has moved it: its content, or its name if it has one.

    A resource rule has two metrics, one of containers and one of nodes.
    """
    return rule.id if rule.api is Api.RESOURCE else rule.content


def _merge_troubles(troubles: Iterable[Trouble]) -> dict[_Identity, Trouble]:
    """Return the problems of each rule together."""
    by_id: dict[str, Trouble] = {}
    reasons: defaultdict[str, set[str]] = defaultdict(set)
    queries: Counter[str] = Counter()
    for trouble in troubles:
        rule_id = trouble.rule.id
        by_id.setdefault(rule_id, trouble)
        reasons[rule_id] |= trouble.reasons
        queries[rule_id] += trouble.queries
    return {
        _identity(first.rule): replace(first, reasons=frozenset(reasons[rule_id]), queries=queries[rule_id])
        for rule_id, first in by_id.items()
    }


def _is_recent(last: _LastLogged, now: float) -> bool:
    return last.at is not None and now - last.at < SECONDS_BETWEEN_LINES


def _log_states(changes: Iterable[_Change], now: float) -> None:
    """Write a line for each change, or one for many rules whose queries Prometheus no longer, or again, answers."""
    together: defaultdict[tuple[bool, frozenset[str]], list[_Change]] = defaultdict(list)
    for last, trouble in changes:
        together[trouble is None, trouble.reasons if trouble else last.reasons].append((last, trouble))
    for (works, reasons), alike in together.items():
        if len(alike) > _MOST_APART and reasons <= _UNANSWERED:
            _log_many(alike, reasons, works=works)
            continue
        for last, trouble in alike:
            _log_state(last, trouble, now)


def _log_many(alike: Sequence[_Change], reasons: frozenset[str], *, works: bool) -> None:
    """Write one line about several rules that have begun to fail, or work again, at the same time."""
    places = ", ".join(last.rule.place for last, _ in alike[:_MOST_APART])
    which = f"{places} and {len(alike) - _MOST_APART} more"
    if works:
        _log.info("%d rules work again: %s", len(alike), which, extra={"fields": {"state": "ok", "rules": len(alike)}})
        return
    about = {"state": "failing", "reason": ",".join(sorted(reasons)), "rules": len(alike)}
    message = next(trouble.message for _, trouble in alike if trouble)
    _log.warning("%d rules fail: %s; the first: %s", len(alike), which, message, extra={"fields": about})


def _log_state(last: _LastLogged, trouble: Trouble | None, now: float) -> None:
    rule = last.rule
    often = f", after {last.changes} changes in {now - last.at:.0f} s" if last.at and last.changes > 1 else ""
    place = rule.place
    if trouble is None:
        _log.info("%s works again%s", place, often, extra=_fields(rule, state="ok", changes=last.changes))
        return
    what = f"{trouble.queries} of its queries" if trouble.queries > 1 else "a query" if trouble.queries else "look-up"
    about = _fields(
        rule, state="failing", reason=",".join(sorted(trouble.reasons)), queries=trouble.queries, changes=last.changes
    )
    _log.warning("%s fails (%s)%s: %s", place, what, often, trouble.message, extra=about)


def _fields(rule: Rule, **more: object) -> dict[str, object]:
    """Return the `extra` of a log call about a rule."""
    return {"fields": {"rule": rule.id, "file": rule.file, "line": rule.line, **more}}
