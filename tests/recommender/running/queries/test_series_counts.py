"""A query has all of its series if there were some before, and no selector has fewer now."""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.sources.prometheus.answers.decoding import Sample
from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from adapter.foundation.time.pace import UNPACED
from recommender.running.queries.query_values import QueryValues
from recommender.running.queries.series_counts import has_all_series, series_query

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.prometheus import ScrapedPrometheus


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
    assert series_query(query, 300.0) == expected


def counts(*numbers: tuple[float, float]) -> list[Sample]:
    """Return the answer for selectors with these numbers of series, earlier and now; 0 leads to no row."""
    found = []
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
    assert has_all_series(counts(*numbers)) is expected


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
        ('sum(load{name="kept"})', True),
        ('sum(load{name=~"kept|new"})', True),
        ('sum(load{name="new"})', False),
        ('sum(load{name=~"kept|lost"})', False),
        ('sum(load{name="lost"}) or vector(0)', False),
        ('sum(load{name="kept"}) or sum(load{name="never"})', True),
        ("vector(3)", True),
        ('sum(rate(load{name="kept"}[1m])) + max(max_over_time(load{name="kept"}[1m]))', True),
        ('sum(rate(load{name=~"soon|late"}[1m]))', False),
        ('sum(rate(load{name=~"long|far"}[1m]))', False),
        ('sum(max_over_time(load{name=~"soon|late"}[1m]))', True),
        ('sum(max_over_time(load{name="lost"}[1m]))', False),
        ('sum(increase(load{name=~"kept|ended"}[1h]))', True),
    ],
)
def test_a_prometheus_states_the_numbers(prometheus: ScrapedPrometheus, query: str, *, expected: bool) -> None:
    client = PrometheusClient(PrometheusSettings(prometheus.url))
    values = QueryValues(client, UNPACED, 5.0)
    try:
        assert values.has_all_series(query, 300.0) is expected
    finally:
        values.close()


def test_a_prometheus_that_does_not_answer_proves_nothing() -> None:
    assert not QueryValues(None, UNPACED, 5.0).has_all_series("sum(load)", 300.0)


def test_a_count_that_hangs_does_not_make_the_value_late(hanging_server: str) -> None:
    client = PrometheusClient(PrometheusSettings(hanging_server))
    values, began = QueryValues(client, UNPACED, 5.0), time.monotonic()
    try:
        assert not values.has_all_series("sum(load)", 300.0)
    finally:
        values.close()
    assert time.monotonic() - began < 4.0
