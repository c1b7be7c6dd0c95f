"""Queries that cannot be read here, tried on Prometheus when rules change: a newer one may know more, or it is a typo.

A typo that were taken in would end a metric that worked; refused, the rule's last good version goes on. Only a running
process asks, in the task that reads rule files: neither the start nor readiness may hang on Prometheus. Where it cannot
be asked in time the query is taken in, unless it was refused before.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from adapter.commands.trials.budget import Budgeted
from adapter.commands.trials.served import asked_of_nobody
from adapter.rulebook.lint.examples import example_of
from adapter.rulebook.model import ResourceRule
from adapter.rulebook.parsing.malformed import is_written_out
from adapter.rulebook.plans.tree import UnreadableQueryError, parse_query
from adapter.rulebook.reload.last_good import says
from adapter.rulebook.rendering.render import RenderError, exact_query
from adapter.sources.prometheus.errors import PrometheusError, QueryRefusedError

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from adapter.objects.resources import ResolveResource
    from adapter.readings.prometheus import Prometheus
    from adapter.rulebook.model import Rule, Rulebook
    from adapter.rulebook.parsing.query_check import Judge

TRIAL_SECONDS: Final = 5.0
"""For all queries of one change together: changes are to be in force within 15 seconds."""


class QueryTrials:
    """Asks Prometheus about rules that are new or otherwise than before, and remembers what it refused."""

    def __init__(self, prometheus: Prometheus, resolve: ResolveResource) -> None:
        self._prometheus = prometheus
        self._resolve = resolve
        self._refused: dict[Hashable, str] = {}

    def of_a_change(self, in_force: Rulebook) -> Judge:
        """Return what judges the rules of changed files; those in force are left alone, since they may work."""
        rules: tuple[Rule | ResourceRule, ...] = (*in_force.rules, *in_force.resource.rules)
        left_alone = set(map(_said, rules))
        return partial(self._judged, Budgeted(self._prometheus, TRIAL_SECONDS), left_alone)

    def remembered(self, rule: Rule | ResourceRule) -> str | None:
        """Return why Prometheus refused the rule when it was asked last."""
        return self._refused.get(_said(rule))

    def _judged(self, prometheus: Prometheus, left_alone: set[Hashable], rule: Rule | ResourceRule) -> str | None:
        said = _said(rule)
        if said in left_alone:
            return None
        try:
            for query in self._queries(rule):
                prometheus.instant(query, timeout_seconds=TRIAL_SECONDS)
        except QueryRefusedError as e:
            if e.error_type != "execution" and not e.error_type.startswith("http_"):
                self._refused[said] = e.message
        except (PrometheusError, RenderError):
            # Nobody can tell, so what was told before still holds.
            pass
        else:
            self._refused.pop(said, None)
        return self._refused.get(said)

    def _queries(self, rule: Rule | ResourceRule) -> Iterator[str]:
        """Yield what shows whether Prometheus can read the rule, and costs it nothing."""
        if isinstance(rule, ResourceRule):
            metrics = rule.metrics
        else:
            if not _is_readable(rule.series_query):
                yield f"absent({rule.series_query})"
            example = example_of(rule, self._resolve)
            metrics = () if example is None else (example,)
        for metric in metrics:
            if is_written_out(metric.rule.metrics_query.text):
                yield exact_query(metric, asked_of_nobody(metric))


def _is_readable(query: str) -> bool:
    try:
        parse_query(query)
    except UnreadableQueryError:
        return False
    return True


def _said(rule: Rule | ResourceRule) -> Hashable:
    """Return what the rule says, wherever it stands."""
    return tuple(says(metric.rule) for metric in rule.metrics) if isinstance(rule, ResourceRule) else says(rule)
