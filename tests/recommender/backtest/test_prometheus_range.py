from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.promql.narrowing import Matchers
from adapter.foundation.sources.prometheus.prometheus_settings import Access, AccessFiles, PrometheusSettings
from recommender.backtest.errors import BacktestError
from recommender.backtest.recorded import prometheus_range
from recommender.backtest.recorded.prometheus_range import CHUNK_STEPS, LoadRange, read_range
from recommender.backtest.recorded.range_cache import CachedSteps, RangeCache
from tests.support.raw_server import answering, raw_server

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.prometheus import ScrapedPrometheus

STEP = 60
AT = 1_767_225_600 // (STEP * CHUNK_STEPS) * STEP * CHUNK_STEPS
"""The beginning of a chunk, long ago."""
NOW = AT + 10 * STEP * CHUNK_STEPS
HISTORY = "\n".join(
    [
        "# TYPE load gauge",
        *(f"load {at} {AT + STEP * at}" for at in range(40) if at not in {7, 8}),
        "# TYPE odd gauge",
        f'odd{{kind="minus"}} -3 {AT}',
        f'odd{{kind="nan"}} NaN {AT}',
        f'odd{{kind="inf"}} +Inf {AT}',
        "# TYPE huge gauge",
        f"huge 1e308 {AT}",
        "# EOF",
        "",
    ]
)


@pytest.fixture(scope="module")
def url(start_prometheus: Callable[..., ScrapedPrometheus]) -> str:
    return start_prometheus(history=HISTORY).url


def load_range(url: str, query: str, first: int, last: int) -> LoadRange:
    return LoadRange(PrometheusSettings(url), query, AT + STEP * first, AT + STEP * last, STEP)


def cache_of(folder: Path, what: LoadRange) -> RangeCache:
    return RangeCache.of(folder, what.settings, what.query, what.step_seconds)


def test_a_real_prometheus_gives_the_load_at_each_step(url: str, tmp_path: Path) -> None:
    what = load_range(url, "last_over_time(load[30s])", -5, 60)
    found = read_range(what, cache_of(tmp_path, what), NOW)
    assert found.times.tolist() == [AT + STEP * at for at in range(40)]
    assert [at for at in range(40) if np.isnan(found.values[at])] == [7, 8]
    assert found.values[39] == 39
    assert found.source == f"{url}: last_over_time(load[30s])"


def test_a_nan_is_unknown_and_a_step_without_a_value_has_no_sample(url: str, tmp_path: Path) -> None:
    what = load_range(url, "0 * last_over_time(load[30s]) / (last_over_time(load[30s]) - 5)", 2, 12)
    for _ in ("from Prometheus", "from the cache"):
        found = read_range(what, cache_of(tmp_path, what), NOW)
        assert [at for at in range(11) if np.isnan(found.values[at])] == [3, 5, 6], "a division by 0, and no sample"
        assert found.is_sample is not None
        assert [at for at in range(11) if not found.is_sample[at]] == [5, 6]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("odd", "the query has 3 series, and a backtest replays one"),
        ('odd{kind="minus"}', r"the value at .* is -3, and load is 0 or more"),
        ("huge", r"the value at .* is 1e\+308, and no load is larger than 3.4e\+38"),
        ('odd{kind="nan"}', "the query has only values that are NaN or infinite from .* such as for a division by 0"),
        ('odd{kind="inf"}', "the query has only values that are NaN or infinite from"),
        ("nothing", "the query has no value from"),
        ("sum(", "parse error"),
    ],
)
def test_an_answer_that_cannot_be_replayed_is_refused(url: str, tmp_path: Path, query: str, message: str) -> None:
    what = load_range(url, query, 0, 3)
    with pytest.raises(BacktestError, match=message):
        read_range(what, cache_of(tmp_path, what), NOW)


@pytest.mark.parametrize(
    ("first", "last", "message"),
    [
        (5, 4, "covers no step of 60 s: write a longer --last, such as 14d"),
        (0, 3_000_000, "covers 3,000,001 steps, more than 1,000,000, of 60 s: .* or --step=181s"),
    ],
)
def test_a_range_that_cannot_be_replayed_is_refused_with_a_hint(
    tmp_path: Path, first: int, last: int, message: str
) -> None:
    what = load_range("http://127.0.0.1:9", "load", first, last)
    with pytest.raises(BacktestError, match=message):
        read_range(what, cache_of(tmp_path, what), NOW)


class Recorded:
    """A Prometheus whose value at a step is the step's number; it records the requested ranges."""

    def __init__(self) -> None:
        self.ranges: list[tuple[int, int]] = []
        self.newest = NOW // STEP
        """The last step that has a value."""

    def values(
        self, _settings: object, _query: str, start: float, end: float, step: int, _timeout: float
    ) -> list[list[tuple[float, float]]]:
        first, last = round(start / step), round(end / step)
        self.ranges.append((first - AT // STEP, last - AT // STEP))
        return [[(float(at * step), float(at)) for at in range(first, min(last, self.newest) + 1)]]


def read(server: Recorded, folder: Path, first: int, last: int, now: float = NOW) -> list[float]:
    what = load_range("http://127.0.0.1:9", "load", first, last)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prometheus_range, "range_values", partial(server.values))
        found = read_range(what, cache_of(folder, what), now)
    return list(map(float, found.values - AT // STEP))


def test_a_second_run_requests_only_missing_steps(tmp_path: Path) -> None:
    server = Recorded()
    assert read(server, tmp_path, 10, 20) == list(range(10, 21))
    assert read(server, tmp_path, 10, 20) == list(range(10, 21))
    assert read(server, tmp_path, 8, 25) == list(range(8, 26))
    assert server.ranges == [(10, 20), (8, 9), (21, 25)]


def test_a_long_range_is_requested_in_chunks(tmp_path: Path) -> None:
    server = Recorded()
    read(server, tmp_path, CHUNK_STEPS - 2, 2 * CHUNK_STEPS + 1)
    assert server.ranges == [
        (CHUNK_STEPS - 2, CHUNK_STEPS - 1),
        (CHUNK_STEPS, 2 * CHUNK_STEPS - 1),
        (2 * CHUNK_STEPS, 2 * CHUNK_STEPS + 1),
    ]


def test_values_that_may_still_change_are_requested_again(tmp_path: Path) -> None:
    server, now = Recorded(), AT + STEP * 20.0
    read(server, tmp_path, 0, 19, now)
    read(server, tmp_path, 0, 19, now)
    assert server.ranges == [(0, 19), (15, 19)]


def test_values_that_arrive_late_are_requested_again(tmp_path: Path) -> None:
    """A store may receive them after a while, or the clock of this machine may be ahead."""
    server, now = Recorded(), AT + STEP * 30.0
    server.newest = AT // STEP + 12
    assert read(server, tmp_path, 0, 29, now) == list(range(13))
    server.newest = AT // STEP + 29
    assert read(server, tmp_path, 0, 29, now) == list(range(30))
    assert server.ranges == [(0, 29), (13, 29)]


def test_a_broken_or_unwritable_cache_is_not_needed(tmp_path: Path) -> None:
    server = Recorded()
    read(server, tmp_path, 0, 5)
    for path in tmp_path.iterdir():
        path.write_bytes(path.read_bytes()[:20])
    assert read(server, tmp_path, 0, 5) == list(range(6))
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert read(server, blocked, 0, 5) == list(range(6))
    assert len(server.ranges) == 3


def test_a_cache_that_cannot_be_written_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    read(Recorded(), blocked, 0, 3 * CHUNK_STEPS)
    assert caplog.messages == [f"the answers of Prometheus are not cached in {blocked}: File exists"]


def test_another_query_step_server_tenant_client_or_cluster_has_another_cache(tmp_path: Path) -> None:
    url = "https://127.0.0.1:9"
    servers = (
        PrometheusSettings(url),
        PrometheusSettings("https://127.0.0.1:8"),
        PrometheusSettings(f"{url}?tenant=a"),
        PrometheusSettings(url, headers=(("X-Scope-OrgID", "a"),)),
        PrometheusSettings(url, headers=(("Authorization", "Bearer a"),)),
        PrometheusSettings(url, username="a"),
        PrometheusSettings(url, token_file=Path("a")),
        PrometheusSettings(url, client_cert_file=Path("a"), client_key_file=Path("key")),
        PrometheusSettings(url, access_files=AccessFiles((Path("a"),), Access)),
        PrometheusSettings(url, matchers=Matchers.read('cluster="a"')),
    )
    asked = [(server, "load", 60) for server in servers]
    asked += [(servers[0], "load", 30), (servers[0], "other", 60)]
    assert len({RangeCache.of(tmp_path, *each).key for each in asked}) == len(asked)


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), min_size=1, max_size=5))
def test_the_values_are_those_of_the_range_whatever_is_cached(
    tmp_path_factory: pytest.TempPathFactory, ranges: list[tuple[int, int]]
) -> None:
    server, folder = Recorded(), tmp_path_factory.mktemp("cache")
    for a, b in ranges:
        assert read(server, folder, min(a, b), max(a, b)) == list(range(min(a, b), max(a, b) + 1))


def test_a_chunk_is_read_as_it_was_written(tmp_path: Path) -> None:
    cache = RangeCache(tmp_path / "state" / "backtest", "key")
    assert cache.read(3) is None
    cache.write(3, CachedSteps(7, np.array([1.0, np.nan])))
    found = cache.read(3)
    assert found is not None
    assert (found.first, found.end) == (7, 9)


def test_a_cached_file_with_any_wrong_byte_is_not_used(tmp_path: Path) -> None:
    cache, known = RangeCache(tmp_path, "key"), CachedSteps(7, np.array([1.0, np.nan, 5.0]))
    cache.write(3, known)
    (path,) = tmp_path.iterdir()
    good = path.read_bytes()
    broken = [good[:place] + bytes([good[place] ^ 0xFF]) + good[place + 1 :] for place in range(len(good))]
    broken += [good[:length] for length in range(len(good))] + [good + b"\0"]

    for content in broken:
        path.write_bytes(content)
        assert cache.read(3) is None


def test_values_outside_the_range_are_refused(tmp_path: Path) -> None:
    body = {"status": "success", "data": {"resultType": "matrix", "result": [{"metric": {}, "values": [[AT, "7"]]}]}}
    with raw_server(answering(json.dumps(body).encode())) as server:
        what = load_range(server.url, "load", 5, 9)
        with pytest.raises(BacktestError, match="values outside the range"):
            read_range(what, cache_of(tmp_path, what), NOW)


def test_the_read_timeout_is_the_timeout_of_the_whole_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    patience = []

    def answers(settings: PrometheusSettings, *rest: object) -> list[list[tuple[float, float]]]:
        patience.append(settings.read_timeout_seconds == rest[-1])
        return [[(AT, 1.0)]]

    monkeypatch.setattr(prometheus_range, "range_values", answers)
    what = load_range("http://prometheus:9090", "load", 0, 1)
    read_range(what, cache_of(tmp_path, what), NOW)
    assert patience == [True]
