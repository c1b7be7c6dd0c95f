"""Metrics whose rule has several labels for one kind of object, while their series have not been looked up yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adapter.foundation.objects.selectors import EVERYTHING
from adapter.foundation.sources.prometheus.errors import QueryRefusedError
from adapter.metrics.readings.answers import ByName
from adapter.metrics.readings.errors import NoDataUncertainError
from tests.support.readings import Harness, Reply, ScriptedPrometheus, make_harness, reply

if TYPE_CHECKING:
    from collections.abc import Callable

SERIES = {"__name__": "load", "namespace": "shop", "pod": "web-0"}


def rules(query: str = "load") -> str:
    return f"""
rules:
- seriesQuery: '{query}'
  resources:
    overrides: {{namespace: {{resource: namespace}}, pod_name: {{resource: pod}}, pod: {{resource: pod}}}}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{{<<.LabelMatchers>>}})'
  onNoData: 0
externalRules:
- seriesQuery: '{query}'
  resources: {{overrides: {{ns: {{resource: namespace}}, namespace: {{resource: namespace}}}}}}
  metricsQuery: 'sum(<<.Series>>{{<<.LabelMatchers>>}})'
  onNoData: 0
"""


def busy(query: str) -> Reply:
    """Answer as a Prometheus whose series have the labels `namespace` and `pod`."""
    if "pod_name" in query or "ns=" in query or "ns!=" in query:
        return reply()
    return reply(({"namespace": "shop", "pod": "web-0"}, "80"))


def refused(selector: str) -> QueryRefusedError:
    return QueryRefusedError(selector, "execution", "too many series")


def pods(harness: Harness) -> float:
    ((_, value),) = harness.readings.objects(harness.pods("load"), "shop", ByName("web-0"), EVERYTHING).values
    return value


def external(harness: Harness) -> float:
    (row,) = harness.readings.external(harness.external("load"), "shop", EVERYTHING).rows
    return row.value


ASKING = pytest.mark.parametrize("ask", [pods, external])


@ASKING
def test_there_is_no_stand_in_before_the_labels_of_the_series_are_known(ask: Callable[[Harness], float]) -> None:
    prometheus = ScriptedPrometheus(busy, refused)
    harness = make_harness(prometheus, rules=rules())
    harness.readings.run_due()
    for _ in range(3):
        with pytest.raises(NoDataUncertainError, match="which of the rule's labels its series have"):
            ask(harness)
        harness.pass_time(30)

    prometheus.series_answer = lambda _: [SERIES]
    harness.pass_time(70)

    assert ask(harness) == 80.0


@ASKING
def test_the_value_stands_in_once_a_look_up_found_no_series(ask: Callable[[Harness], float]) -> None:
    harness = make_harness(ScriptedPrometheus(lambda _: reply()), rules=rules())
    harness.readings.run_due()

    assert ask(harness) == 0.0


def test_a_label_that_the_selector_requires_needs_no_look_up() -> None:
    harness = make_harness(ScriptedPrometheus(lambda _: reply(), refused), rules=rules('load{pod_name!=""}'))
    harness.readings.run_due()

    assert pods(harness) == 0.0
