"""Which metrics the rules give, told from the series that Prometheus has.

Each rule by itself: one that fails harms nobody else. Rules with the same series query share its look-up. What is
found replaces what was; a metric whose series vanished stays for a time, since a job that pauses is no reason to take
a metric from the API, and a rule that cannot be looked up keeps all it had.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from adapter.readings.catalogue import same_rule
from adapter.rulebook.discover import SeriesShapes, metrics_by_name, static_metrics
from adapter.sources.prometheus.errors import PrometheusError, PrometheusUnreachableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from adapter.objects.resources import ResolveResource
    from adapter.readings.refresher import Prometheus
    from adapter.readings.settings import Clock, ReadingSettings
    from adapter.rulebook.model import Metric, Rule, Rulebook
    from adapter.sources.pace import Pace

_log = logging.getLogger(__name__)

MetricId = tuple[str, str, bool]

_NAMES_A_SLICE = 20
"""Series names that a rule makes its metrics of in about half a millisecond, if it reads labels by a template."""


@dataclass(slots=True)
class RuleState:
    """What is known of one rule."""

    rule: Rule
    static: dict[MetricId, Metric]
    """Metrics that the rule spells out: served whether series exist or not."""
    found: dict[MetricId, Metric] = field(default_factory=dict)
    vanished_at: dict[MetricId, float] = field(default_factory=dict)
    """When the series of a metric in `found` were first missing, in monotonic seconds."""
    looked_up: bool = False
    failure: str | None = None
    succeeded_at: float | None = None
    """Unix seconds of the last look-up that succeeded."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a look-up brought: metrics by rule, or why it brought none."""

    series_query: str
    metrics: tuple[tuple[Rule, dict[MetricId, Metric]], ...] = ()
    failure: str | None = None
    partial: bool = False
    """There may be more: what is missing has not vanished."""
    unreachable: bool = False
    """Nothing answered, so that an early second try costs nobody anything."""


class Discovery:
    """The state of all rules. `look_up` may run on any thread and changes nothing; its owner locks around the rest."""

    def __init__(
        self, *, prometheus: Prometheus, resolve: ResolveResource, settings: ReadingSettings, clock: Clock, pace: Pace
    ) -> None:
        self._prometheus = prometheus
        self._resolve = resolve
        self._settings = settings
        self._clock = clock
        self._pace = pace
        self._states: tuple[RuleState, ...] = ()

    @property
    def states(self) -> tuple[RuleState, ...]:
        """All rules in the order of the files."""
        return self._states

    def prepared(self, rulebook: Rulebook) -> tuple[RuleState, ...]:
        """Return the states for another rulebook: rules that say what they said before keep what was found for them."""
        before = list(self._states)
        return tuple(self._prepared(rule, before) for rule in rulebook.rules)

    def adopt(self, states: tuple[RuleState, ...]) -> None:
        """Let these be the rules from now on."""
        self._states = states

    def look_up(self, series_query: str, rules: Iterable[Rule]) -> Finding:
        """Ask for the series and return the metrics that each of the rules makes of them."""
        start = self._clock.wall() - self._settings.metrics_max_age_seconds
        timeout = self._settings.discovery_deadline_seconds
        shapes = SeriesShapes()
        try:
            answer = self._prometheus.series(series_query, start=start, timeout_seconds=timeout)
            for series in answer.batches(self._pace):
                shapes.add(series)
        except PrometheusError as error:
            return Finding(series_query, failure=str(error), unreachable=isinstance(error, PrometheusUnreachableError))
        if shapes.left_out:
            _log.warning("%s: %d series are left out of the look-up: narrow the query", series_query, shapes.left_out)
        metrics = tuple((rule, self._metrics_of(rule, shapes)) for rule in rules)
        return Finding(series_query, metrics, partial=bool(answer.warnings or shapes.left_out))

    def _metrics_of(self, rule: Rule, shapes: SeriesShapes) -> dict[MetricId, Metric]:
        """Return what the rule makes of the series, a few names at a time."""
        found: dict[MetricId, Metric] = {}
        by_name = metrics_by_name(rule, shapes, self._resolve)
        for part in self._pace.slices(by_name, _NAMES_A_SLICE):
            for metrics in part:
                found.update(_by_id(metrics))
        return found

    def take_in(self, finding: Finding, states: Iterable[RuleState]) -> bool:
        """Enter what a look-up brought; return whether that changed which metrics there are."""
        changed = False
        for state in states:
            if state.rule.series_query != finding.series_query:
                continue
            _log_change(state, finding.failure)
            state.failure = finding.failure
            for rule, found in finding.metrics:
                # A reload in between made another rule of the same query: the next look-up serves that one.
                if rule is state.rule:
                    state.looked_up = True
                    state.succeeded_at = self._clock.wall()
                    changed |= self._renew(state, state.found | found if finding.partial else found)
        return changed

    def metrics(self) -> Iterator[Metric]:
        """Yield all metrics so that the last of several with one name is the one to serve.

        Those whose series exist come after all that are only spelled out: a rule for series yet to come does not take
        the name from one that has them. Among each kind the last rule in the files wins.
        """
        for state in self._states:
            yield from state.static.values()
        for state in self._states:
            yield from state.found.values()

    def _prepared(self, rule: Rule, before: list[RuleState]) -> RuleState:
        for index, state in enumerate(before):
            if same_rule(state.rule, rule):
                # Each state is used once: two equal rules have a state each.
                del before[index]
                return replace(
                    state,
                    rule=rule,
                    static=_moved(state.static, rule),
                    found=_moved(state.found, rule),
                    vanished_at=dict(state.vanished_at),
                )
        return RuleState(rule, _by_id(static_metrics(rule, self._resolve)))

    def _renew(self, state: RuleState, found: dict[MetricId, Metric]) -> bool:
        now = self._clock.monotonic()
        kept: dict[MetricId, Metric] = {}
        for key, metric in state.found.items():
            if key not in found:
                since = state.vanished_at.setdefault(key, now)
                if now - since <= self._settings.metric_grace_seconds:
                    kept[key] = metric
        state.vanished_at = {key: since for key, since in state.vanished_at.items() if key in kept}
        # Equal metrics stay the same objects, which is how a request sees at once that nothing has changed.
        renewed = kept | {key: _same_or_new(state.found.get(key), metric) for key, metric in found.items()}
        changed = renewed.keys() != state.found.keys() or any(state.found[key] is not renewed[key] for key in renewed)
        state.found = renewed
        return changed


def _moved(metrics: dict[MetricId, Metric], rule: Rule) -> dict[MetricId, Metric]:
    return {key: metric if metric.rule is rule else replace(metric, rule=rule) for key, metric in metrics.items()}


def _by_id(metrics: Iterable[Metric]) -> dict[MetricId, Metric]:
    return {(metric.qualified, metric.series, metric.namespaced): metric for metric in metrics}


def _same_or_new(known: Metric | None, metric: Metric) -> Metric:
    return known if known is not None and known == metric else metric


def _log_change(state: RuleState, failure: str | None) -> None:
    rule = state.rule
    if failure is not None and state.failure is None:
        _log.warning(
            "%s (%s:%d): cannot look up its series, keeps what it has: %s", rule.id, rule.file, rule.line, failure
        )
    elif failure is None and state.failure is not None:
        _log.info("%s (%s:%d): its series can be looked up again", rule.id, rule.file, rule.line)
