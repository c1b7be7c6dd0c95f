"""Keeps the metrics of all rules, and brings them up to date with what look-ups of their series found.

New metrics replace the former ones. A metric whose series vanished stays for a while, since a paused job is no reason
to remove a metric from the API, and a rule that cannot be looked up keeps everything it had. An answer that is known to
be partial adds metrics, but neither removes nor changes any from a complete answer.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from adapter.metrics.readings.catalogue.discovered_rule import DiscoveredRule, by_id
from adapter.metrics.readings.catalogue.series_look_ups import LookUpResult, look_up_key
from adapter.metrics.rulebook.provided_metrics import static_metrics, without_assumptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from adapter.metrics.readings.catalogue.discovered_rule import MetricId
    from adapter.metrics.readings.reading_sources import ReadingSources
    from adapter.metrics.rulebook.model import Metric, Rule, Rulebook


class SeriesDiscovery:
    """Makes the states of rules from what look-ups found; keeps none of them."""

    def __init__(self, sources: ReadingSources) -> None:
        self._resolve = sources.objects.resource
        self._settings = sources.settings
        self._clock = sources.clock
        self.pace = sources.pace
        """The pace of all work on the results of look-ups."""

    def carry_over(self, rulebook: Rulebook, states: Iterable[DiscoveredRule]) -> tuple[DiscoveredRule, ...]:
        """Return the states for another rulebook: rules that did not change keep their metrics."""
        before = list(states)
        return tuple(self.prepare_rule(rule, before) for rule in rulebook.rules)

    def update_rules(
        self, result: LookUpResult, states: tuple[DiscoveredRule, ...]
    ) -> tuple[tuple[DiscoveredRule, ...], bool]:
        """Return the states with the result of a look-up, and whether that changes which metrics exist.

        The given states stay unchanged, since they describe what is served.
        """
        asked = result.key
        taken = tuple(self.update_rule(result, each) if look_up_key(each.rule) == asked else each for each in states)
        return taken, any(new.serves_others(old) for new, old in zip(taken, states, strict=True))

    def update_rule(self, result: LookUpResult, known: DiscoveredRule) -> DiscoveredRule:
        """Return the state of a rule with the result of a look-up of its series; the given state stays unchanged."""
        since = self._clock.wall() if known.unreachable_since is None else known.unreachable_since
        alone = known.fails_alone or (result.answered_at is not None and result.answered_at > since)
        state = replace(
            known,
            failure=result.failure,
            public_failure=result.public_failure,
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

    def metrics(self, states: Sequence[DiscoveredRule], retained: Mapping[str, frozenset[str]]) -> Iterator[Metric]:
        """Yield all metrics in an order in which the last of several with the same name is the one to serve.

        Those whose series exist come after all whose series vanished, and these after all that are only spelled out: a
        rule for future or former series does not take the name from one that has series. Among each kind, the last rule
        in the files wins, but a refused rule whose last good version is in use (`retained`, by id) leaves the name to
        any newer rule.
        """
        yield from _in_order(states, lambda state: state.static.values(), retained)
        yield from _in_order(states, DiscoveredRule.vanished_metrics, retained)
        yield from _in_order(states, DiscoveredRule.present, retained)

    def prepare_rule(self, rule: Rule, before: list[DiscoveredRule]) -> DiscoveredRule:
        """Return the state of a rule, with the metrics of an equal rule, which is removed from `before`."""
        for index, state in enumerate(before):
            if state.rule.series_query == rule.series_query and state.rule.content == rule.content:
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
        return DiscoveredRule(rule, by_id(spelled_out))

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


def _in_order(
    states: Sequence[DiscoveredRule],
    metrics_of: Callable[[DiscoveredRule], Iterable[Metric]],
    retained: Mapping[str, frozenset[str]],
) -> Iterator[Metric]:
    for state in states:
        ids = retained.get(state.rule.id)
        newer = [other for other in states if other.rule.id in ids] if ids else []
        taken = {(metric.qualified, metric.namespaced) for other in newer for metric in metrics_of(other)}
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


def _same_or_new(
    state: DiscoveredRule, found: dict[MetricId, Metric], *, keeps_known: bool
) -> Iterator[tuple[MetricId, Metric]]:
    """Yield what was found; equal metrics stay the same objects, by which a request sees that nothing changed."""
    for key, metric in found.items():
        known = state.found.get(key)
        yield key, known if known is not None and (keeps_known or known == metric) else metric
