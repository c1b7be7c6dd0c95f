"""Finds the metrics that the rules provide from the series in Prometheus.

Each rule is looked up by itself, so that one that fails does not affect others. Rules with the same series query and
Prometheus share a look-up. New metrics replace the former ones. A metric whose series vanished stays for a while,
since a paused job is no reason to remove a metric from the API, and a rule that cannot be looked up keeps everything it
had. An answer that is known to be partial adds metrics, but neither removes nor changes any from a complete answer.

Answers are reduced to names and labels while they arrive, so the size of Prometheus decides how long a look-up takes,
but not how much memory it needs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from adapter.foundation.sources.prometheus.backends.backend import Backend, attributed
from adapter.foundation.sources.prometheus.errors import (
    ERRORS_OF_SERVER,
    AuthenticationRefusedError,
    PrometheusError,
    PrometheusUnreachableError,
    UnexpectedAnswerError,
    shortened,
)
from adapter.metrics.readings.catalogue.catalogue import same_rule
from adapter.metrics.readings.catalogue.discovered_rule import DiscoveredRule
from adapter.metrics.rulebook.provided_metrics import (
    SeriesShapes,
    metrics_by_name,
    namespace_labels,
    static_metrics,
    without_assumptions,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from adapter.foundation.sources.prometheus.queries.budget import Prometheus
    from adapter.foundation.time.pace import Pace
    from adapter.metrics.readings.catalogue.discovered_rule import MetricId
    from adapter.metrics.readings.reading_sources import ReadingSources
    from adapter.metrics.rulebook.model import Metric, Retained, Rule, Rulebook

_FIRST_PAUSE_SECONDS = 0.001
"""Pause between slices of a rule's first look-up; the rule's metrics are missing until it ends."""


class LookUpKey(NamedTuple):
    """Identifies a look-up of series, which all rules with the same key share."""

    series_query: str
    backend: Backend | None = None
    """The Prometheus that is asked; None for that of the flags."""


def look_up_key(rule: Rule) -> LookUpKey:
    """Return what is looked up for a rule."""
    return LookUpKey(rule.series_query, rule.backend)


@dataclass(frozen=True, slots=True)
class LookUpResult:
    """The result of a look-up: metrics by rule, the reason for having none, or both for a partial answer."""

    key: LookUpKey
    metrics: tuple[tuple[Rule, dict[MetricId, Metric]], ...] = ()
    failure: str | None = None
    """Why there may be more series, so that missing ones need not have vanished."""
    unreachable: bool = False
    """Whether nothing answered, or the credentials were refused, so that an early retry costs nothing."""
    of_source: bool = False
    """Whether Prometheus could not be asked, so that the rules need not be at fault."""
    answered_at: float | None = None
    """Unix seconds of the last answer that Prometheus gave before the look-up; None if it was away then."""
    series: int = 0
    """Number of series in the answer."""


def shapes_of_all(labels: Collection[str]) -> SeriesShapes:
    """Return the collector for the series of all namespaces; `labels` contain the namespace."""
    return SeriesShapes(namespace_labels=labels)


class SeriesDiscovery:
    """The state of all rules. `look_up` may run on any thread and changes nothing; the rest is under a lock."""

    def __init__(
        self, sources: ReadingSources, shapes: Callable[[Collection[str]], SeriesShapes] = shapes_of_all
    ) -> None:
        """`shapes` makes the collector for the series of one look-up, given the labels that contain their namespace."""
        self._new_shapes = shapes
        self._backends = sources.backends
        self._resolve = sources.objects.resource
        self._settings = sources.settings
        self._clock = sources.clock
        self.pace = sources.pace
        """The pace of all work on the results of look-ups."""
        self._first_pace = self.pace.with_pause(_FIRST_PAUSE_SECONDS)
        self._states: tuple[DiscoveredRule, ...] = ()

    @property
    def states(self) -> tuple[DiscoveredRule, ...]:
        """All rules in the order of the files."""
        return self._states

    def prepared(self, rulebook: Rulebook) -> tuple[DiscoveredRule, ...]:
        """Return the states for another rulebook: rules that did not change keep their metrics."""
        before = list(self._states)
        return tuple(self.prepare_rule(rule, before) for rule in rulebook.rules)

    def adopt(self, states: tuple[DiscoveredRule, ...]) -> None:
        """Replace the states of all rules."""
        self._states = states

    def look_up(self, key: LookUpKey, states: Iterable[DiscoveredRule], timeout_seconds: float) -> LookUpResult:
        """Ask for the series and return the metrics that each of these rules provides from them."""
        source = self._backends.of(key.backend)
        asking = tuple(states)
        pace = self.pace if all(state.looked_up for state in asking) else self._first_pace
        shapes = self._new_shapes(namespace_labels(state.rule for state in asking))
        unreachable = of_source = False
        answered_at = source.uptime.last_answer()
        began = self._clock.monotonic()
        try:
            failure = self._fold(source.prometheus, key.series_query, timeout_seconds, shapes, pace)
            source.uptime.answered()
        except PrometheusError as error:
            source.uptime.failed(error, began)
            failure, of_source = attributed(key.backend, str(error)), isinstance(error, ERRORS_OF_SERVER)
            unreachable = isinstance(error, PrometheusUnreachableError | AuthenticationRefusedError)
            if isinstance(error, UnexpectedAnswerError) or not shapes:
                return LookUpResult(key, (), failure, unreachable, of_source, answered_at)
        metrics = tuple((state.rule, self._metrics_of(state.rule, shapes, pace)) for state in asking)
        return LookUpResult(key, metrics, failure, unreachable, of_source, answered_at, shapes.series)

    def _fold(
        self, prometheus: Prometheus, series_query: str, timeout_seconds: float, shapes: SeriesShapes, pace: Pace
    ) -> str | None:
        """Put the series into the shapes; return why some may be missing. Raises PrometheusError."""
        start = self._clock.wall() - self._settings.metrics_max_age_seconds
        answer = prometheus.series(series_query, start=start, timeout_seconds=timeout_seconds)
        for series in answer.batches(pace):
            shapes.add(series)
        return what_is_missing(shapes, answer.warnings)

    def _metrics_of(self, rule: Rule, shapes: SeriesShapes, pace: Pace) -> dict[MetricId, Metric]:
        """Return the metrics that the rule provides from the series, made a few names at a time."""
        found: dict[MetricId, Metric] = {}
        for part in pace.timed(metrics_by_name(rule, shapes, self._resolve)):
            for metrics in part:
                found.update(_by_id(metrics))
        return found

    def take_in(
        self, result: LookUpResult, states: tuple[DiscoveredRule, ...]
    ) -> tuple[tuple[DiscoveredRule, ...], bool]:
        """Return the states with the result of a look-up, and whether that changes which metrics exist.

        The given states stay unchanged, since they describe what is served.
        """
        asked = result.key
        taken = tuple(self.taken(result, each) if look_up_key(each.rule) == asked else each for each in states)
        return taken, any(new.serves_others(old) for new, old in zip(taken, states, strict=True))

    def taken(self, result: LookUpResult, known: DiscoveredRule) -> DiscoveredRule:
        """Return the state of a rule with the result of a look-up of its series; the given state stays unchanged."""
        since = self._clock.wall() if known.unreachable_since is None else known.unreachable_since
        alone = known.fails_alone or (result.answered_at is not None and result.answered_at > since)
        state = replace(
            known,
            failure=result.failure,
            unreachable_since=since if result.of_source else None,
            fails_alone=result.of_source and alone,
            vanished_at=dict(known.vanished_at),
        )
        for rule, found in result.metrics:
            # A reload in between made another rule of the same query: the next look-up serves that one.
            if rule is state.rule:
                all_came = result.failure is None
                if all_came and not state.looked_up:
                    state.looked_up, state.static = True, without_assumptions(state.static)
                state.succeeded_at = self._clock.wall() if all_came else state.succeeded_at
                self._renew(state, found, all_came=all_came)
        return state

    def metrics(self, states: Sequence[DiscoveredRule], retained: Mapping[str, Retained]) -> Iterator[Metric]:
        """Yield all metrics in an order in which the last of several with the same name is the one to serve.

        Those whose series exist come after all that are only spelled out: a rule for future series does not take the
        name from one that has series. Among each kind, the last rule in the files wins, but a refused rule whose last
        good version is in use (`retained`, by id) leaves the name to any newer rule.
        """
        yield from _in_order(states, lambda state: state.static.values(), retained)
        yield from _in_order(states, DiscoveredRule.found_in_order, retained)

    def prepare_rule(self, rule: Rule, before: list[DiscoveredRule]) -> DiscoveredRule:
        """Return the state of a rule, with the metrics of an equal rule, which is removed from `before`."""
        for index, state in enumerate(before):
            if state.rule.series_query == rule.series_query and same_rule(state.rule, rule):
                # Each state is used once: two equal rules have one state each.
                del before[index]
                return replace(
                    state,
                    rule=rule,
                    static=self._move_metrics(state.static, rule),
                    found=self._move_metrics(state.found, rule),
                    vanished_at=dict(state.vanished_at),
                )
        spelled_out = static_metrics(rule, self._resolve) if self._settings.serves_unseen_series else ()
        return DiscoveredRule(rule, _by_id(spelled_out))

    def _move_metrics(self, metrics: dict[MetricId, Metric], rule: Rule) -> dict[MetricId, Metric]:
        moved: dict[MetricId, Metric] = {}
        for part in self.pace.timed((key, replace(metric, rule=rule)) for key, metric in metrics.items()):
            moved.update(part)
        return moved

    def _renew(self, state: DiscoveredRule, found: dict[MetricId, Metric], *, all_came: bool) -> None:
        """Replace the former metrics by the new ones, and keep what has not been missing for long.

        If that changes nothing, `found` stays the same object.
        """
        renewed: dict[MetricId, Metric] = {}
        last: dict[tuple[str, bool], MetricId] = {}
        changed = False
        # In a part of the series, another label may seem to contain the namespace, so it does not change a complete
        # result.
        came = _same_or_new(state, found, keeps_known=state.looked_up and not all_came)
        for part in self.pace.timed(chain(self._kept_metrics(state, found, all_came=all_came), came)):
            for key, metric in part:
                _put(renewed, last, key, metric)
            changed = changed or any(state.found.get(key) is not metric for key, metric in part)
        if changed or len(renewed) != len(state.found):
            state.found = renewed

    def _kept_metrics(
        self, state: DiscoveredRule, found: dict[MetricId, Metric], *, all_came: bool
    ) -> Iterator[tuple[MetricId, Metric]]:
        now, kept = self._clock.monotonic(), 0
        for key, metric in state.found.items():
            if key in found:
                state.vanished_at.pop(key, None)
            elif kept < self._settings.max_kept_metrics and (
                not all_came or now - state.vanished_at.setdefault(key, now) <= self._settings.metric_grace_seconds
            ):
                kept += 1
                yield key, metric
            else:
                # Names that change all the time must neither fill the memory nor take the place of others.
                state.vanished_at.pop(key, None)


def what_is_missing(shapes: SeriesShapes, warnings: Sequence[str]) -> str | None:
    """Return why there may be more series than those that were read; None if all arrived."""
    if shapes.left_out:
        return f"it has too many names or labels, {shapes.left_out:,} series are left out: narrow the query"
    return f"Prometheus warns: {shortened(warnings[0])}" if warnings else None


def _in_order(
    states: Sequence[DiscoveredRule],
    metrics_of: Callable[[DiscoveredRule], Iterable[Metric]],
    retained: Mapping[str, Retained],
) -> Iterator[Metric]:
    for state in states:
        held = retained.get(state.rule.id)
        taken: set[tuple[str, bool]] = set()
        if held is not None:
            newer = (metric for other in states if other.rule.id in held.newer for metric in metrics_of(other))
            taken = {(metric.qualified, metric.namespaced) for metric in newer}
        yield from (metric for metric in metrics_of(state) if (metric.qualified, metric.namespaced) not in taken)


def _put(
    metrics: dict[MetricId, Metric], last: dict[tuple[str, bool], MetricId], key: MetricId, metric: Metric
) -> None:
    """Add a metric; of several with the same name, that of the last series by name stays behind the others.

    Prometheus lists series in an order of its own, and all replicas of the adapter must serve the same one. `last` has
    that metric's key by name and scope.
    """
    qualified, series, namespaced = key
    metrics[key] = metric
    other = last.setdefault((qualified, namespaced), key)
    if series < other[1]:
        metrics[other] = metrics.pop(other)
    else:
        last[qualified, namespaced] = key


def _by_id(metrics: Iterable[Metric]) -> dict[MetricId, Metric]:
    return {(metric.qualified, metric.series, metric.namespaced): metric for metric in metrics}


def _same_or_new(
    state: DiscoveredRule, found: dict[MetricId, Metric], *, keeps_known: bool
) -> Iterator[tuple[MetricId, Metric]]:
    """Yield what was found; equal metrics stay the same objects, by which a request sees that nothing changed."""
    for key, metric in found.items():
        known = state.found.get(key)
        yield key, known if known is not None and (keeps_known or known == metric) else metric
