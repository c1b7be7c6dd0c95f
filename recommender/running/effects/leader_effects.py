"""Carries out the decisions of the leader: scale calls, events, and the history that the page shows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from recommender.configuration.changes import unchanged_names
from recommender.decisions.object_names import object_namespace
from recommender.decisions.policy_settings import Output
from recommender.decisions.record import Record, TargetAction, TargetReference
from recommender.kinds.table import kind_named
from recommender.outputs.event_rules import events_of_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from recommender.configuration.recommender_configuration import Configuration
    from recommender.decisions.inputs import WriteRefusal
    from recommender.decisions.loop import Decision
    from recommender.decisions.memory import Memory
    from recommender.outputs.event_limits import EventLimits
    from recommender.outputs.event_rules import TargetEvent
    from recommender.outputs.events import EventWriter
    from recommender.outputs.scale_writer import ScaleWriter
    from recommender.running.effects.resize_effects import RequestWriters
    from recommender.running.inputs.own_writes import OwnWrites
    from recommender.running.sizes.size_writers import SizeWriters


KeepRecords: TypeAlias = "Callable[[float, Iterable[Record]], None]"
"""Keeps the records of a poll at a time, in Unix seconds, for the page. Never waits."""


@dataclass(frozen=True, slots=True)
class ResizeEffects:
    """The writer of container requests, and the results of its attempts."""

    writer: ScaleWriter
    requests: RequestWriters


@dataclass(slots=True)
class ClusterEffects:
    """Carries decisions out in a cluster. Not thread-safe."""

    writer: ScaleWriter
    events: EventWriter
    keep: KeepRecords
    size_writers: SizeWriters | None = None
    limits: EventLimits | None = None
    """Limits the events about objects of the kind Recommendation; None means no limits."""
    resizes: ResizeEffects | None = None
    own_writes: OwnWrites | None = None
    """The sizes that this process wrote last."""
    _before: dict[tuple[str, TargetReference | None], Record] = field(default_factory=dict)
    _acted: Configuration | None = None
    """The configuration of the decisions that are being carried out."""
    _current: Configuration | None = None
    """The configuration that is in force now; None if it has not changed since the start."""

    def act(self, configuration: Configuration, decisions: Sequence[Decision], now: float) -> None:
        """Begin to carry out the decisions; return at once."""
        self._acted = configuration
        records = [decision.record for decision in decisions]
        scaling = configuration.names_with(Output.SCALE)
        self.writer.retain(scaling)
        due: dict[str, list[tuple[Record, float]]] = {}
        for decision in decisions:
            if decision.record.name in scaling:
                due.setdefault(decision.record.name, []).extend(_records_with_limits(decision, now, configuration))
        for name, dated in due.items():
            self.writer.follow_decision(name, dated)
        if self.size_writers is not None:
            self.size_writers.act(configuration, decisions, now)
        if self.resizes is not None:
            self.resizes.requests.act(self.resizes.writer, configuration, decisions)
        if self._current is not None and self._current is not configuration:
            # The configuration has changed since the decisions were made, and `reconfigured` may have been called
            # before these calls were added.
            self._end_calls_of_changed()
        self._announce(records)
        self.keep(now, records_of_file(records))

    def reconfigured(self, configuration: Configuration) -> None:
        """Stop sending calls that were decided under other settings, without waiting for the next poll.

        May be called from any thread.
        """
        self._current = configuration
        if self.size_writers is not None:
            self.size_writers.reconfigured(configuration)
        self._end_calls_of_changed()

    def refusals(self) -> Mapping[tuple[str, TargetReference], WriteRefusal]:
        """Return why requests were not written, by recommendation and target."""
        return {} if self.resizes is None else self.resizes.requests.refusals()

    def settled(self) -> Mapping[tuple[str, TargetReference], object]:
        """Return the sizes that the last attempt found in place, by recommendation and target."""
        return {} if self.resizes is None else self.resizes.requests.settled()

    def stand_down(self) -> None:
        """Abandon everything that is under way: another process leads."""
        self.writer.clear()
        if self.own_writes is not None:
            self.own_writes.forget()
        if self.size_writers is not None:
            self.size_writers.clear()
        if self.resizes is not None:
            self.resizes.writer.clear()
            self.resizes.requests.forget()
        self._before.clear()

    def _end_calls_of_changed(self) -> None:
        """Drop the pending writes of changed recommendations: the next poll follows at once, and decides again."""
        acted, current = self._acted, self._current
        # Objects change at any time, and must not withdraw the pending writes of others.
        unchanged = (acted and current and unchanged_names(acted, current)) or frozenset[str]()
        self.writer.retain(unchanged)
        if self.size_writers is not None:
            self.size_writers.retain(unchanged)
        if self.resizes is not None:
            self.resizes.writer.retain(unchanged)

    def _announce(self, records: Sequence[Record]) -> None:
        before, self._before = self._before, {}
        for record in records:
            key = (record.name, record.each)
            last = before.get(key)
            # Nothing is kept about recommendations that are no longer configured: if one of them comes back, its former
            # state is unknown.
            self._before[key] = record
            if record.each is not None and not _is_news(last, record):
                continue
            kind = kind_named(record.type)
            for event in (*events_of_record(last, record), *(kind.events(last, record) if kind is not None else ())):
                if self.limits is None or self._is_permitted(self.limits, record.name, event):
                    self.events.add(event)

    def _is_permitted(self, limits: EventLimits, recommendation: str, event: TargetEvent) -> bool:
        return not self.events.suppresses(event) and limits.permits(recommendation)


def _records_with_limits(
    decision: Decision, now: float, configuration: Configuration
) -> Iterator[tuple[Record, float]]:
    """Yield the record and the time until which its calls may be sent; for several targets, that of each by itself.

    The limit follows from the age of the inputs: no call is based on data that is older than staleAfter, even if polls
    stop. Of several targets, one may have had no value for longer than that.
    """

    def until(memory: Memory) -> float:
        since = now if memory.last is None else min(now, memory.last.confirmed)
        return since + configuration.stale_after_seconds

    record, memory = decision.record, decision.memory
    if not memory.by_target:
        yield record, until(memory)
        return
    for outcome in record.targets:
        yield replace(record, targets=(outcome,)), until(memory.by_target.get(outcome.target, memory))


def records_of_file(records: Iterable[Record]) -> list[Record]:
    """Return the records of the configuration file, whose history is kept.

    Objects have no history here: they come and go, and their status shows their last change.
    """
    return [record for record in records if not object_namespace(record.name)]


def _is_news(before: Record | None, after: Record) -> bool:
    """Return whether a decision for one of many targets gets an event: only a new refusal does."""
    refused = _refused_targets(after)
    return bool(refused) and (before is None or _refused_targets(before) != refused)


def _refused_targets(record: Record) -> tuple[str, ...]:
    return tuple(each.message for each in record.targets if each.action is TargetAction.REFUSED)


class HistoryAlone:
    """The effects of a process that writes nothing to a cluster, as with `--objects` or `--dry-run`."""

    def __init__(self, keep: KeepRecords) -> None:
        self._keep = keep

    def act(self, configuration: Configuration, decisions: Sequence[Decision], now: float) -> None:  # noqa: ARG002 - as the protocol has it
        """Keep the records for the page."""
        self._keep(now, records_of_file([decision.record for decision in decisions]))

    def stand_down(self) -> None:
        """Do nothing: a process without a Lease always leads."""
