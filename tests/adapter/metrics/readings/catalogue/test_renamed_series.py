"""Series that are renamed, as by an upgrade, while a rule gives the old and the new one the same name in the API."""

from __future__ import annotations

import pytest

from adapter.foundation.objects.selectors import EVERYTHING
from adapter.metrics.readings.answers import ByName
from adapter.metrics.readings.readings_settings import ReadingSettings
from tests.support.readings import Harness, Reply, ScriptedPrometheus, make_harness, reply

OLD, NEW = "http_requests", "http_requests_total"
RULES = """
rules:
- seriesQuery: '{__name__=~"^http_requests(_total)?$"}'
  name: {matches: "^(http_requests).*$", as: "$1"}
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})'
  onNoData: 0
"""


def value_of(harness: Harness) -> float:
    ((_, value),) = harness.readings.objects(harness.pods(OLD), "shop", ByName("web-0"), EVERYTHING).values
    return value


@pytest.mark.parametrize("during", [(OLD, NEW), (NEW, OLD)])
def test_a_vanished_series_does_not_keep_its_name_from_a_present_one(during: tuple[str, ...]) -> None:
    """The last one has the name; a metric whose series vanished stays only where nothing else has its name."""
    there = set(during)

    def answer(query: str) -> Reply:
        name = NEW if NEW in query else OLD
        return reply(({"namespace": "shop", "pod": "web-0"}, "80")) if name in there else reply()

    def series(selector: str) -> list[dict[str, str]]:
        assert selector
        return [{"__name__": name, "namespace": "shop", "pod": "web-0"} for name in during if name in there]

    harness = make_harness(ScriptedPrometheus(answer, series), rules=RULES, settings=ReadingSettings())
    harness.readings.run_due()
    assert value_of(harness) == 80.0

    for gone in (OLD, NEW, OLD):
        there.clear()
        there.add(OLD if gone == NEW else NEW)
        harness.pass_time(70)
        assert value_of(harness) == 80.0, f"{gone} is gone"

    there.clear()
    harness.pass_time(70)
    assert harness.pods(OLD).series in during, "a paused job does not take the metric from the API"


def test_a_vanished_series_does_not_keep_its_name_from_another_rule() -> None:
    """The last rule has the name only while it has series; with those of the first alone, the first has it."""
    rule = """
- seriesQuery: '{__name__=~"^%s$"}'
  name: {as: rps}
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})'
  onNoData: 0
"""
    there = {OLD, NEW}

    def answer(query: str) -> Reply:
        name = NEW if NEW in query else OLD
        return reply(({"namespace": "shop", "pod": "web-0"}, "80")) if name in there else reply()

    def series(selector: str) -> list[dict[str, str]]:
        return [{"__name__": name, "namespace": "shop", "pod": "web-0"} for name in there if f"^{name}$" in selector]

    prometheus = ScriptedPrometheus(answer, series)
    harness = make_harness(prometheus, rules=f"rules:{rule % NEW}{rule % OLD}", settings=ReadingSettings())
    harness.readings.run_due()
    assert harness.pods("rps").series == OLD

    there.remove(OLD)
    harness.pass_time(70)
    ((_, value),) = harness.readings.objects(harness.pods("rps"), "shop", ByName("web-0"), EVERYTHING).values
    assert (harness.pods("rps").series, value) == (NEW, 80.0)

    there.add(OLD)
    harness.pass_time(70)
    assert harness.pods("rps").series == OLD

    there.clear()
    harness.pass_time(70)
    assert harness.pods("rps").series == OLD, "while neither has series, the last rule has the name"


@pytest.mark.parametrize("listed", [(OLD, NEW), (NEW, OLD), (OLD, f"{OLD}_a", NEW), (NEW, f"{OLD}_a", OLD)])
def test_every_process_gives_the_name_to_the_same_series(listed: tuple[str, ...]) -> None:
    """Prometheus lists series in an order of its own, and the replicas of the adapter start at different times."""
    rules = RULES.replace("(_total)?$", ".*$")
    prometheus = ScriptedPrometheus(
        series_answer=lambda _: [{"__name__": name, "namespace": "shop", "pod": "web-0"} for name in listed]
    )
    harness = make_harness(prometheus, rules=rules, settings=ReadingSettings())
    harness.readings.run_due()

    assert harness.pods(OLD).series == NEW
