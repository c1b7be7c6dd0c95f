"""A query has all of its series if there were some before, and no selector has fewer now."""

from __future__ import annotations

import math
import socket
import time
from typing import TYPE_CHECKING, Any

import pytest

from adapter.foundation.cluster.values.state import Observed
from adapter.foundation.sources.prometheus.answers.decoding import Sample
from adapter.foundation.sources.prometheus.errors import PrometheusTimeoutError
from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from adapter.foundation.time.pace import UNPACED
from recommender.running.queries.query_values import QueryValues
from recommender.running.queries.series_counts import series_query, whole_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from adapter.foundation.sources.prometheus.answers.decoding import InstantAnswer
    from tests.support.prometheus import ScrapedPrometheus

FOUND = Observed(3.0, 1_800_000_000.0)
"""What another server has answered."""


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            'sum(rate(x{a="b"}[1m])) + sum(x{a="b"})',
            (
                'label_replace(count(x{a="b"}), "tidewatch_now", "0", "", "") or '
                'label_replace(count(x{a="b"} offset 300000ms), "tidewatch_earlier", "0", "", "") or '
                'label_replace(count(rate(x{a="b"}[60000ms])), "tidewatch_now", "1", "", "") or '
                'label_replace(count(rate(x{a="b"}[60000ms] offset 300000ms))'
                ' or count(x{a="b"} offset 300000ms), "tidewatch_earlier", "1", "", "")'
            ),
        ),
        (
            "sum(increase(x[10m])) + sum(sum_over_time(x[30d]))",
            (
                'label_replace(count(x), "tidewatch_now", "0", "", "") or '
                'label_replace(count(x offset 300000ms), "tidewatch_earlier", "0", "", "")'
            ),
        ),
        (
            "max(max_over_time(x[1m] offset 30s))",
            (
                'label_replace(count(x offset 30000ms), "tidewatch_now", "0", "", "") or '
                'label_replace(count(x offset 330000ms), "tidewatch_earlier", "0", "", "") or '
                'label_replace(count(last_over_time(x[60000ms] offset 30000ms)), "tidewatch_now", "1", "", "") or '
                "label_replace(count(last_over_time(x[60000ms] offset 330000ms))"
                ' or count(x offset 330000ms), "tidewatch_earlier", "1", "", "")'
            ),
        ),
        (
            "sum(x offset 30s)",
            (
                'label_replace(count(x offset 30000ms), "tidewatch_now", "0", "", "") or '
                'label_replace(count(x offset 330000ms), "tidewatch_earlier", "0", "", "")'
            ),
        ),
        ("vector(3)", ""),
        ("sum(x offset 1d)", ""),
        ("not ( promql", ""),
    ],
)
def test_the_series_of_each_selector_are_counted(query: str, expected: str) -> None:
    value = f'label_replace(({query}\n), "tidewatch_value", "0", "", "") or '
    assert series_query(query, 300.0) == (value + expected if expected else "")


def counts(*numbers: tuple[float, float]) -> list[Sample]:
    """Return the answer for a value of 7, and selectors with these numbers of series, earlier and now.

    A number of 0 leads to no row.
    """
    found = [Sample({"tidewatch_value": "0"}, 7.0, 1.0)]
    for part, both in enumerate(numbers):
        labels = ("tidewatch_earlier", "tidewatch_now")
        found += [Sample({label: str(part)}, number, 1.0) for label, number in zip(labels, both, strict=True) if number]
    return found


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([(4, 4)], True),
        ([(4, 5)], True),
        ([(4, 2)], False),
        ([(4, 0)], False),
        ([(0, 4)], False),
        ([(0, 0)], False),
        ([(4, 4), (2, 1)], False),
        ([(4, 4), (0, 1)], True),
        ([(4, 4), (0, 0)], True),
    ],
)
def test_no_selector_has_fewer_series_than_before(numbers: list[tuple[float, float]], *, expected: bool) -> None:
    assert whole_value(counts(*numbers)) == (7.0 if expected else None)


@pytest.mark.parametrize("values", [(), (7.0, 7.0), (math.nan,), (math.inf,)])
def test_a_query_without_a_single_number_has_no_value(values: tuple[float, ...]) -> None:
    _, *numbers = counts((4, 4))
    assert whole_value([*(Sample({"tidewatch_value": "0"}, value, 1.0) for value in values), *numbers]) is None


@pytest.fixture
def hanging_server() -> Iterator[str]:
    """Yield the URL of a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture(scope="module")
def prometheus(start_prometheus: Callable[..., ScrapedPrometheus]) -> ScrapedPrometheus:
    now = time.time()
    lines = ["# TYPE load gauge"]
    # The last sample is in the future, so that the series outlast the tests of this module.
    for name, oldest, newest in (("kept", 3600, -600), ("new", 100, -600), ("lost", 3600, 400)):
        lines += [f'load{{name="{name}"}} 20 {now - ago}' for ago in range(oldest, newest - 15, -15)]
    # It ended an hour and four minutes ago, and has left a range of an hour since.
    lines += [f'load{{name="ended"}} 20 {now - ago}' for ago in range(5400, 3840, -15)]
    # While the server was down, for two minutes or for six, no series became stale. `late` and `far` lack a second
    # sample since then, which a rate needs.
    for name, down, other in (("soon", 150, "late"), ("long", 400, "far")):
        lines += [f'load{{name="{name}"}} 20 {now - ago}' for ago in (*range(3600, down, -15), *range(30, -600, -15))]
        lines += [f'load{{name="{other}"}} 20 {now - ago}' for ago in (*range(3600, down, -15), 10)]
    return start_prometheus(history="\n".join([*lines, "# EOF", ""]))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('sum(load{name="kept"})', 20.0),
        ('load{name="kept"} # the only one', 20.0),
        ('2 * scalar(load{name="kept"})', 40.0),
        ('sum(load{name=~"kept|new"})', 40.0),
        ('sum(load{name="new"})', None),
        ('sum(load{name=~"kept|lost"})', None),
        ('sum(load{name="lost"}) or vector(0)', None),
        ('sum(load{name="kept"}) or sum(load{name="never"})', 20.0),
        ("vector(3)", FOUND.value),
        ('sum(rate(load{name="kept"}[1m])) + max(max_over_time(load{name="kept"}[1m]))', 20.0),
        ('sum(rate(load{name=~"soon|late"}[1m]))', None),
        ('sum(rate(load{name=~"long|far"}[1m]))', None),
        ('sum(max_over_time(load{name=~"soon|late"}[1m]))', 40.0),
        ('sum(max_over_time(load{name="lost"}[1m]))', None),
        ('sum(increase(load{name=~"kept|ended"}[1h]))', 0.0),
    ],
)
def test_a_prometheus_states_the_value_together_with_the_numbers(
    prometheus: ScrapedPrometheus, query: str, expected: float | None
) -> None:
    client = PrometheusClient(PrometheusSettings(prometheus.url))
    values = QueryValues(client, UNPACED, 5.0)
    try:
        found = values.whole_value(query, FOUND, 300.0, 0.0)
        assert found == (None if expected is None else Observed(expected, FOUND.time))
    finally:
        values.close()


def test_a_prometheus_that_does_not_answer_proves_nothing() -> None:
    assert QueryValues(None, UNPACED, 5.0).whole_value("sum(load)", FOUND, 300.0, 0.0) is None


class SlowClient(PrometheusClient):
    """A client of a server that takes a time for each answer, without a wait."""

    seconds = 0.0

    def instant(self, query: str, *, timeout_seconds: float, **options: Any) -> InstantAnswer:  # noqa: ANN401 - handed on
        if self.seconds > timeout_seconds:
            raise PrometheusTimeoutError(query, "it did not answer in time")
        return super().instant(query, timeout_seconds=10.0, **options)


@pytest.mark.parametrize(
    ("took", "seconds", "is_whole"),
    [(0.1, 1.9, True), (0.1, 3.0, False), (3.0, 4.0, True), (4.9, 6.0, True), (15.0, 8.0, False)],
    ids=[
        "a fast value",
        "counts that hang",
        "a value that takes longer than its counts may",
        "a value that takes almost the whole time limit",
        "a value whose samples had to be searched for a long time",
    ],
)
def test_a_value_that_takes_its_time_has_that_time_again_beside_the_counts(
    prometheus: ScrapedPrometheus, took: float, seconds: float, *, is_whole: bool
) -> None:
    client = SlowClient(PrometheusSettings(prometheus.url))
    client.seconds = seconds
    values = QueryValues(client, UNPACED, 5.0)
    try:
        found = values.whole_value('sum(load{name="kept"})', FOUND, 300.0, took)
        assert found == (Observed(20.0, FOUND.time) if is_whole else None)
    finally:
        values.close()


def test_a_count_that_hangs_does_not_make_the_value_late(hanging_server: str) -> None:
    client = PrometheusClient(PrometheusSettings(hanging_server))
    values, began = QueryValues(client, UNPACED, 5.0), time.monotonic()
    try:
        assert values.whole_value("sum(load)", FOUND, 300.0, 0.1) is None
    finally:
        values.close()
    assert time.monotonic() - began < 4.0
