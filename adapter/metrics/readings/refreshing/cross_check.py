"""Compares plans with the exact queries that they replace, while the program runs.

A wider query is used only if its text proves that every answer stays the same. The proof may have a gap, or the server
may not be Prometheus (a store behind it may evaluate differently). So now and then both forms are queried for one
requester, at the same instant, and compared. The instant is a minute ago, for which no sample is still arriving. A
metric whose forms differ in three consecutive checks is queried exactly from then on, until the next reload.

Two Prometheus servers behind one address scrape at different moments, so each answers the same query with other values.
Therefore forms that differ are queried again in the same check, and any answer of one that equals any of the other ends
it.

The cost is bounded: one check at a time, at most two per second, and each metric at most once a minute.
"""

from __future__ import annotations

import logging
import math
import random
from collections import Counter
from itertools import product
from typing import TYPE_CHECKING, TypeAlias, cast

from adapter.foundation.sources.objects import ObjectsError
from adapter.metrics.readings.answers import ByName, BySelector
from adapter.metrics.readings.asking.queries import Query, Reading
from adapter.metrics.readings.asking.query_choice import query_key
from adapter.metrics.readings.errors import ObjectsNotKnownError, UnanswerableSelectorError
from adapter.metrics.readings.failure import Failure
from adapter.metrics.readings.samples.external_reading import ExternalReading
from adapter.metrics.readings.samples.object_reading import ROOT, ObjectReading
from adapter.metrics.rulebook.model import PlanKind
from adapter.metrics.rulebook.templates.matchers import RenderError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adapter.metrics.readings.asking.demand import DemandEntry
    from adapter.metrics.readings.asking.effects import Trial
    from adapter.metrics.readings.asking.query_scheduler import QueryScheduler
    from adapter.metrics.readings.reading_sources import ReadingSources
    from adapter.metrics.readings.readings_telemetry import ReadingsTelemetry
    from adapter.metrics.readings.refreshing.refreshers import Refreshers

_log = logging.getLogger(__name__)

_STEP_SECONDS = 0.5
_TOLERANCE_RATIO = 1e-9
_TOLERANCE = 1e-9
"""Smallest difference that a client can see: values are served in thousandths."""
_DIFFERENCES_IN_A_ROW = 3
_TURNS = (False, True, True, False)
"""Whether each attempt of a check swaps the order of both forms. Otherwise, a gateway that takes its servers in turn
would answer the same form from the same server each time."""

Values: TypeAlias = "Mapping[object, float | str]"
"""The value, or the reason for having none, by object or by labels."""


class CrossCheck:
    """Checks all metrics with a wider plan in turn. Only one thread at a time may call `step`."""

    def __init__(
        self,
        sources: ReadingSources,
        scheduler: QueryScheduler,
        refresher: Refreshers,
        telemetry: ReadingsTelemetry,
    ) -> None:
        self._scheduler = scheduler
        self._refresher = refresher
        self._objects = sources.objects
        self._settings = sources.settings
        self._clock = sources.clock
        self._pace = sources.pace
        self._telemetry = telemetry
        self._choice = random.Random()  # noqa: S311 - which requester is compared is no secret
        self._round: list[DemandEntry] = []
        self._next_round = self._clock.monotonic() + self._settings.cross_check_interval_seconds
        self._next_step = self._next_round
        self._differences: Counter[tuple[object, ...]] = Counter()

    @property
    def due(self) -> float:
        """When to call `step` next, in monotonic seconds."""
        return self._next_step

    def step(self) -> None:
        """Compare the plans of one metric, the next in the round; a new round begins once the interval is over."""
        now = self._clock.monotonic()
        if not self._round and now >= self._next_round:
            self._next_round = now + self._settings.cross_check_interval_seconds
            self._round = self._requesters()
        entry = self._round.pop() if self._round else None
        pause = (self._next_round - now) / (len(self._round) + 1)
        self._next_step = now + max(_STEP_SECONDS, pause)
        if entry is not None:
            self._check(entry)

    def try_wider(self, trial: Trial) -> None:
        """Try a refused plan again, and report to the scheduler whether it returns the same as the exact query.

        The wider form is sent first: if it is still refused, nothing else is sent.
        """
        failure: str | None = "internal error, see the adapter's log"
        lasting = False
        try:
            failure, lasting = self._try_plan(trial)
        finally:
            self._scheduler.record_trial(trial, failure, lasting=lasting)

    def _try_plan(self, trial: Trial) -> tuple[str | None, bool]:
        """Return why the plan must not be used yet, or None if it may be, and whether that is permanent."""
        rule = trial.entry.metric.rule.label_value
        second = float(math.floor(self._clock.wall() - self._settings.trial_delay_seconds))
        difference = self._difference(trial.entry, trial.wider, second, wider_first=True)
        if isinstance(difference, Failure):
            self._telemetry.count_cross_check(rule, "failed")
            return difference.message, difference.lasting
        self._telemetry.count_cross_check(rule, "equal" if difference is None else "different")
        return difference, False

    def _requesters(self) -> list[DemandEntry]:
        """Return one request for each group with a wider plan, a different one each time."""
        entries = self._scheduler.state.demand.entries()
        start = self._choice.randrange(len(entries)) if entries else 0
        chosen: dict[tuple[object, ...], DemandEntry] = {}
        for part in self._pace.slices(entries[start:] + entries[:start]):
            for entry in part:
                if entry.scope.group.kind is not PlanKind.EXACT:
                    chosen.setdefault(entry.scope.group.key, entry)
        # Clients choose the selectors of groups, so the counts of a group are removed with its last request.
        self._differences = Counter({key: count for key, count in self._differences.items() if key in chosen})
        return list(chosen.values())

    def _check(self, entry: DemandEntry) -> None:
        group, wider = entry.scope.group, entry.scope.query
        if group.retired or group.kind is PlanKind.EXACT or wider.kind is PlanKind.EXACT:
            return
        if wider.failure is not None:
            # A hanging Prometheus must not delay the checks of rules that query another one.
            return
        rule = entry.metric.rule.label_value
        second = float(math.floor(self._clock.wall() - self._settings.cross_check_delay_seconds))
        difference = self._difference(entry, wider, second, wider_first=False)
        if isinstance(difference, Failure):
            self._telemetry.count_cross_check(rule, "failed")
            _log.debug("%s (%s): its plan cannot be checked: %s", entry.metric.qualified, rule, difference.message)
            return
        self._telemetry.count_cross_check(rule, "equal" if difference is None else "different")
        if difference is None:
            del self._differences[group.key]
            return
        self._differences[group.key] += 1
        if self._differences[group.key] >= _DIFFERENCES_IN_A_ROW:
            del self._differences[group.key]
            self._scheduler.distrust(
                group, f"at {second:.0f} in {entry.request.namespace or 'no namespace'}: {difference}"
            )

    def _difference(
        self, entry: DemandEntry, wider: Query, second: float, *, wider_first: bool
    ) -> str | Failure | None:
        """Return one place in which the requester's answers from both forms differ; None if two of them are equal."""
        exact_answers: list[Values] = []
        wider_answers: list[Values] = []
        differences: list[str | None] = []
        for is_turned in _TURNS:
            found = self._both(entry, wider, second, wider_first=wider_first is not is_turned)
            if isinstance(found, Failure):
                return found
            exact_answers.append(found[0])
            wider_answers.append(found[1])
            differences = [difference_of(*pair) for pair in product(exact_answers, wider_answers)]
            if None in differences:
                return None
        return differences[0]

    def _both(
        self, entry: DemandEntry, wider: Query, second: float, *, wider_first: bool
    ) -> tuple[Values, Values] | Failure:
        """Return the requester's answers from the exact query and from the wider one."""
        try:
            names = self._names(entry)
            if entry.metric.resource is not None and not names:
                return Failure(ObjectsNotKnownError, "none of the objects exists")
            key = query_key(PlanKind.EXACT, entry.metric, entry.request, names)
        except ObjectsError as error:
            return Failure(ObjectsNotKnownError, str(error))
        except RenderError as error:
            return Failure(UnanswerableSelectorError, str(error))
        exact = Query(key, entry.metric, entry.request.selector, 0.0)
        values: dict[Query, Values] = {}
        for query in (wider, exact) if wider_first else (exact, wider):
            reading = self._refresher.ask(query, second)
            if isinstance(reading, Failure):
                return reading
            values[query] = values_for(entry, names, reading)
            # The other answer is read without this one in memory, which may be as large as an answer may be.
            del reading
        return values[exact], values[wider]

    def _names(self, entry: DemandEntry) -> tuple[str, ...]:
        which, resource = entry.request.which, entry.metric.resource
        if isinstance(which, BySelector) and resource is not None:
            return tuple(self._objects.names(resource, entry.request.namespace, which.selector))
        return (which.name,) if isinstance(which, ByName) else ()


def values_for(entry: DemandEntry, names: Iterable[str], reading: Reading) -> Values:
    """Return a reading's values for a requester, including those that are not finite."""
    namespace, selector = entry.request.namespace, entry.request.selector
    if isinstance(reading, ExternalReading):
        ages = {"age of its samples": reading.sample_age(namespace, selector)} if reading.times else {}
        found: Values = {frozenset(row.labels.items()): row.value for row in reading.rows(namespace, selector)}
    else:
        ages = {f"age of the samples of {name}": reading.sample_age(namespace, name) for name in names if reading.times}
        found = _by_name(namespace, names, reading)
    return {**found, **{name: age for name, age in ages.items() if age is not None}}


def difference_of(exact: Values, wider: Values) -> str | None:
    """Return one place in which two answers differ, in words; None if they are equal.

    Numbers count as equal within a billionth, since sums are computed in another order. NaN equals NaN.
    """
    for key in sorted(exact.keys() | wider.keys(), key=str):
        one, other = exact.get(key), wider.get(key)
        if not _equal(one, other):
            name = key if isinstance(key, str) else dict(cast("frozenset[tuple[str, str]]", key))
            return f"{name!r} is {_value_text(one)} when queried alone and {_value_text(other)} by the wider query"
    return None


def _equal(one: float | str | None, other: float | str | None) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        both_nan = math.isnan(one) and math.isnan(other)
        return both_nan or math.isclose(one, other, rel_tol=_TOLERANCE_RATIO, abs_tol=_TOLERANCE)
    return one == other


def _value_text(value: float | str | None) -> str:
    return "absent" if value is None else f"{value}"


def _by_name(namespace: str | None, names: Iterable[str], reading: ObjectReading) -> Values:
    values = reading.values.get(namespace or ROOT, {})
    faults = reading.faults.get(namespace or ROOT, {})
    found: dict[object, float | str] = {}
    for name in (key for asked in names for key in reading.keys(namespace, asked)):
        if name in values:
            found[name] = values[name]
        elif name in faults:
            found[name] = "ambiguous" if faults[name].ambiguous else faults[name].reason
        elif reading.foreign_of(namespace, name) is not None:
            found[name] = "of another namespace"
    return found
