"""When rules change, tries queries on Prometheus that this program cannot parse: they may be newer PromQL, or typos.

If a typo were accepted, it would break a metric that worked; if it is refused, the last good version of the rule stays
in force. Only a running process tries queries, in the task that reads rule files, since neither the start nor readiness
may depend on Prometheus. A query that cannot be tried in time is accepted unless it was refused before.
"""

from __future__ import annotations

import time
from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, Final

from adapter.commands.trials.served import asked_of_nobody, asked_with_a_selector, is_readable
from adapter.foundation.sources.prometheus.errors import PrometheusError, PrometheusTimeoutError, QueryRefusedError
from adapter.metrics.rulebook.lint.examples import example_of
from adapter.metrics.rulebook.model import Metric, ResourceRule, Rule, Rulebook
from adapter.metrics.rulebook.query_rendering import RenderError, exact_query
from adapter.metrics.rulebook.templates.template import is_written_out

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from adapter.foundation.objects.resources import ResolveResource
    from adapter.foundation.sources.prometheus.backends.backend import Backend
    from adapter.foundation.sources.prometheus.queries.budget import Prometheus
    from adapter.metrics.rulebook.parsing.metrics_query_check import Judge

TRIAL_SECONDS: Final = 5.0
"""The time limit for all queries of one change to the same Prometheus."""
CHANGE_SECONDS: Final = 2 * TRIAL_SECONDS
"""The time limit for all queries of one change, since changes should be in force within 15 seconds."""
MOST_REFUSED: Final = 10_000
"""Limit of remembered refusals: each wrong attempt to correct a rule leaves one."""


class TrialBudget:
    """The time that the queries of one change may take.

    A query may take at most half of the time that is left, and a Prometheus that does not answer in time is not asked
    again. So even if many servers hang, the others get some time, and all queries take less than `CHANGE_SECONDS`.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Create a budget of which nothing has been spent; `monotonic` returns seconds."""
        self._monotonic = monotonic
        self._spent: defaultdict[Backend | None, float] = defaultdict(float)
        self._late: set[Backend | None] = set()

    def ask(self, prometheus: Prometheus, backend: Backend | None, query: str) -> None:
        """Send the query to a backend, with the time that is left as its limit.

        Raises PrometheusError if Prometheus refuses the query, cannot be asked, or if no time is left.
        """
        left = min(TRIAL_SECONDS - self._spent[backend], (CHANGE_SECONDS - sum(self._spent.values())) / 2)
        if backend in self._late or left <= 0:
            raise PrometheusTimeoutError(query, "not sent: the queries before it took too long")
        began = self._monotonic()
        try:
            prometheus.instant(query, timeout_seconds=left)
        except PrometheusTimeoutError:
            self._late.add(backend)
            raise
        finally:
            self._spent[backend] += self._monotonic() - began


class QueryTrials:
    """Tries new and changed rules on Prometheus, and remembers which rules Prometheus refused."""

    def __init__(self, prometheus_of: Callable[[Backend | None], Prometheus], resolve: ResolveResource) -> None:
        """`prometheus_of` returns the client of a backend; None means the Prometheus that the flags name."""
        self._prometheus_of = prometheus_of
        self._resolve = resolve
        self._refused: dict[Hashable, str] = {}
        """The reasons why rules were refused, by the rules' content; the latest refusal comes last."""

    def of_a_change(self, in_force: Rulebook) -> Judge:
        """Return a function that judges the rules of a change. Rules in force are not tried: they may work."""
        rules: tuple[Rule | ResourceRule, ...] = (*in_force.rules, *in_force.resource.rules)
        left_alone: set[Hashable] = {rule.content for rule in rules}
        return partial(self._refusal_of, TrialBudget(), left_alone)

    def last_refusal(self, rule: Rule | ResourceRule) -> str | None:
        """Return why Prometheus refused the rule when it was last tried; None if it did not."""
        return self._refused.get(rule.content)

    def _refusal_of(self, budget: TrialBudget, left_alone: set[Hashable], rule: Rule | ResourceRule) -> str | None:
        said = rule.content
        if said in left_alone:
            return None
        backend = rule.backend if isinstance(rule, Rule) else rule.metrics[0].rule.backend
        try:
            for query in self._queries(rule):
                budget.ask(self._prometheus_of(backend), backend, query)
        except QueryRefusedError as e:
            if e.is_of_text:
                self._refused.pop(said, None)
                self._refused[said] = e.said
                if len(self._refused) > MOST_REFUSED:
                    del self._refused[next(iter(self._refused))]
        except (PrometheusError, RenderError):
            # The trial gave no result, so the previous one still applies.
            pass
        else:
            self._refused.pop(said, None)
        return self._refused.get(said)

    def _queries(self, rule: Rule | ResourceRule) -> Iterator[str]:
        """Yield cheap queries that show whether Prometheus can parse the queries of the rule."""
        if isinstance(rule, ResourceRule):
            metrics = rule.metrics
        else:
            if not is_readable(rule.series_query):
                yield f"absent({rule.series_query})"
            example = example_of(rule, self._resolve)
            metrics = () if example is None else (example,)
        for metric in metrics:
            if is_written_out(metric.rule.metrics_query.text):
                yield _query_to_try(metric)


def _query_to_try(metric: Metric) -> str:
    """Return the query for an object that does not exist.

    `{<<.LabelMatchers>>,kind="a"}` is valid only with a selector if neither objects nor a namespace have a matcher.
    """
    query = exact_query(metric, asked_of_nobody(metric))
    if metric.needs_selector and not is_readable(query):
        return exact_query(metric, asked_with_a_selector(metric))
    return query
