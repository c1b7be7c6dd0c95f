"""Logs each recommendation when it changes, and each reason for having no new value once."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from adapter.foundation.service.runtime.logs import MOST_REASONS, fields, without_numbers
from recommender.decisions.record import Record, Status, TargetAction
from recommender.decisions.summary import by_name, summary_of
from recommender.decisions.texts.record_texts import log_fields
from recommender.kinds.table import kind_named

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_log = logging.getLogger(__name__)

_WITHOUT_VALUE: Final = frozenset({Status.ERROR, Status.STALE})


@dataclass(slots=True)
class _LoggedState:
    """The state of a recommendation as it was last logged."""

    facts: tuple[object, ...]
    reasons: set[str]
    """The reasons that were logged with these facts, without numbers."""


class RecommendationLog:
    """Remembers what was logged. Not thread-safe."""

    def __init__(self) -> None:
        self._last: dict[str, _LoggedState] = {}

    def changes(self, records: Sequence[Record]) -> None:
        """Log what is new in the records of a poll; all records of one `forEach` share one line."""
        for record in records:
            if record.each is None:
                kind = kind_named(record.type)
                logged = None if kind is None else kind.log_line(record)
                facts = _worth_a_line(record) if logged is None else (record.status, _refusals(record), *logged.facts)
                about = log_fields(record, {} if logged is None else logged.fields)
                is_fault = bool(_refusals(record)) or (logged is None and bool(_note_of(record)))
                reason = "" if record.status is Status.OK else without_numbers(record.message)
                self._log_change(record.name, facts, record.status, about, is_fault=is_fault, reason=reason)
        for name, group in by_name(record for record in records if record.each is not None).items():
            # Nobody would read lines for thousands of targets, so there is one for all of them when their problems
            # change.
            summary = summary_of(group)
            about = summary.log_fields(name)
            is_fault = summary.refused > 0
            self._log_change(f"{name}/forEach", summary.facts, summary.worst, about, is_fault=is_fault)
        names = {record.name for record in records}
        self._last = {key: last for key, last in self._last.items() if key.removesuffix("/forEach") in names}

    def _log_change(
        self,
        key: str,
        facts: tuple[object, ...],
        status: Status,
        about: Mapping[str, object],
        *,
        is_fault: bool = False,
        reason: str = "",
    ) -> None:
        last = self._last.get(key)
        if last is None or last.facts != facts:
            self._last[key] = _LoggedState(facts, {reason})
        elif reason in last.reasons or len(last.reasons) >= MOST_REASONS:
            return
        else:
            last.reasons.add(reason)
        level = logging.WARNING if is_fault or status in _WITHOUT_VALUE else logging.INFO
        _log.log(level, "recommendation", extra=fields(**about))

    def forget(self) -> None:
        """Log each recommendation again, because another process has led meanwhile."""
        self._last.clear()


def _refusals(record: Record) -> tuple[object, ...]:
    """Return the targets that do not get their sizes, with what else owns them, which nobody but a person ends."""
    return tuple((each.target, each.owner) for each in record.targets if each.action is TargetAction.REFUSED)


def _worth_a_line(record: Record) -> tuple[object, ...]:
    """Return the facts that are logged when they change.

    Ages, counts and the numbers of a note are left out, since they change with every poll.
    """
    own = tuple(each.recommended_replicas for each in record.targets)
    return record.status, record.replicas, own, record.binding, _refusals(record), without_numbers(_note_of(record))


def _note_of(record: Record) -> str:
    """Return the message of an `ok` record if it reports a fault, such as an unusable ConfigMap; else empty.

    The message of an `ok` record without a fault is the calculation of one of its steps.
    """
    explained = {f"{step.step}: {step.detail}" for step in record.steps}
    return record.message if record.status is Status.OK and record.message not in explained else ""
