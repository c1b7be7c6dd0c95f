"""The guards that the page on rules shows do in a real Prometheus what the page says of them."""

from __future__ import annotations

import math
import re
import time
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.objects.selectors import EVERYTHING
from adapter.metrics.readings.errors import SampleTooOldError
from adapter.metrics.rulebook.query_rendering import exact_query
from adapter.metrics.rulebook.requests import Asked
from tests.support.checkout import CHECKOUT
from tests.support.plan_trials import external_metric
from tests.support.readings import FakeClock, MadeUpObjects, RealAnswers, make_harness, rulebook_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.prometheus import ScrapedPrometheus

PAGE = CHECKOUT / "docs" / "rules.md"
STEP = 15
GUARDED = """
externalRules:
- seriesQuery: 'queue_depth{namespace!=""}'
  resources: {overrides: {namespace: {resource: namespace}}}
  metricsQuery: sum(queue_depth{<<.LabelMatchers>>})
  maxSampleAge: 40s
"""
SERIES = 'queue_depth{{namespace="{}",shard="{}"}} 38 {}'


def guard(namespace: str, function: str = "present_over_time") -> str:
    """Return the query of the page's rule that has this function, as it is asked for a namespace."""
    (text,) = re.findall(rf"```yaml\n(externalRules:[^`]*?\b{function}\b[^`]*)```", PAGE.read_text())
    (rule,) = rulebook_of(text).rules
    metric = external_metric(rule.metrics_query.text)
    return exact_query(metric, Asked(namespace, (), EVERYTHING))


@pytest.fixture(scope="module")
def silent_at() -> int:
    """Return the time of the last sample of one of three shards, in the past."""
    now = math.floor(time.time())
    return now - now % STEP - 1500


@pytest.fixture(scope="module")
def prometheus(start_prometheus: Callable[..., ScrapedPrometheus], silent_at: int) -> ScrapedPrometheus:
    """Yield shards that fall silent at once: for good in `shop`, for 400 s in `bank`; then one appears in `lab`."""
    lines = []
    for moment in range(silent_at - 900, silent_at + 1200, STEP):
        for namespace in ("shop", "bank", "lab"):
            shards = ["0", "1", "2"]
            if moment > silent_at and (namespace == "shop" or (namespace == "bank" and moment < silent_at + 400)):
                shards.remove("2")
            if moment > silent_at and namespace == "lab":
                shards.append("3")
            lines += [SERIES.format(namespace, shard, moment) for shard in shards]
        # Of `post`, nothing is scraped in an outage of 600 s, and then one shard later than the other.
        away = silent_at < moment < silent_at + 600
        late = silent_at < moment < silent_at + 600 + 3 * STEP
        lines += [] if away else [f'up{{job="prometheus"}} 1 {moment}', SERIES.format("post", "0", moment)]
        lines += [] if late else [SERIES.format("post", "1", moment)]
    return start_prometheus(history="\n".join([*sorted(lines), "# EOF", ""]), interval="1s")


@pytest.mark.parametrize(
    ("namespace", "after", "value"),
    [
        ("shop", -60, 114),
        ("shop", 290, 114),
        ("shop", 310, None),
        ("shop", 590, None),
        ("shop", 616, 76),
        ("bank", 310, None),
        ("bank", 430, 114),
        ("lab", 30, 152),
        ("nobody", 30, None),
    ],
)
def test_there_is_no_value_while_a_series_is_missing(
    prometheus: ScrapedPrometheus, silent_at: int, namespace: str, after: int, value: float | None
) -> None:
    found = [float(one["value"][1]) for one in prometheus.query(guard(namespace), at=silent_at + after)]
    assert found == ([] if value is None else [value])


@pytest.mark.parametrize(
    ("after", "guarded", "unguarded"),
    [(-1, 76, 76), (310, None, None), (601, None, 38), (646, None, 76), (689, None, 76), (691, 76, 76)],
)
def test_after_an_outage_there_is_no_value_until_all_targets_were_scraped(
    prometheus: ScrapedPrometheus, silent_at: int, after: int, guarded: float | None, unguarded: float | None
) -> None:
    plain = 'sum(queue_depth{namespace="post"})'
    for query, value in ((guard("post", "count_over_time"), guarded), (plain, unguarded)):
        found = [float(one["value"][1]) for one in prometheus.query(query, at=silent_at + after)]
        assert found == ([] if value is None else [value])


def test_with_a_limit_in_the_rule_the_adapter_misses_the_silent_series_by_itself(
    prometheus: ScrapedPrometheus, silent_at: int
) -> None:
    """The adapter is asked every ten seconds for twenty minutes around the last sample of the silent shard."""
    clock = FakeClock(wall_offset=silent_at - 30 - 1000.0)
    rows = RealAnswers(lambda query, at: [(one["metric"], one["value"][1]) for one in prometheus.query(query, at=at)])
    harness = make_harness(rows, rules=GUARDED, objects=MadeUpObjects(), clock=clock)

    def answers(namespace: str) -> float | str:
        try:
            found = harness.readings.external(harness.external("queue_depth"), namespace, EVERYTHING)
        except SampleTooOldError:
            return "too old"
        return sum(row.value for row in found.rows)

    seen: dict[str, list[float | str]] = {"shop": [], "bank": [], "lab": []}
    for _ in range(90):
        for namespace, given in seen.items():
            answer = answers(namespace)
            if given[-1:] != [answer]:
                given.append(answer)
        harness.pass_time(10, step=10)
    assert seen == {"shop": [114, "too old"], "bank": [114, "too old", 114], "lab": [114, 152]}


def test_a_series_that_ended_as_it_should_stops_the_guarded_value(prometheus: ScrapedPrometheus) -> None:
    def text(shards: str) -> str:
        return "".join(f'queue_depth{{namespace="live",shard="{shard}"}} 38\n' for shard in shards)

    prometheus.publish(text("012"), seen='count(queue_depth{namespace="live"}) == 3')
    assert [one["value"][1] for one in prometheus.query(guard("live"))] == ["114"]
    prometheus.publish(text("01"), seen='count(queue_depth{namespace="live"}) == 2')
    assert prometheus.query(guard("live")) == []
