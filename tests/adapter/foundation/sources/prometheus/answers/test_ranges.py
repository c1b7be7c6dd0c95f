"""Range queries: the parts in which they are sent, how the parts are joined, and which answers are refused."""

from __future__ import annotations

import itertools
import json
import math
import time
from array import array
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.sources.prometheus.answers.ranges import (
    MOST_POINTS,
    RANGE_LIMITS,
    RangeAnswer,
    RangeJoiner,
    RangeLimits,
    RangePart,
    RangeSeries,
    range_parts,
)
from adapter.foundation.sources.prometheus.errors import (
    AnswerTooLargeError,
    PrometheusError,
    PrometheusTimeoutError,
    QueryRefusedError,
    UnexpectedAnswerError,
)
from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from adapter.foundation.time.pace import UNPACED, Pace
from tests.adapter.foundation.sources.prometheus.answers.matrix_bodies import body, one
from tests.support.raw_server import Peer, answering, raw_server

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.prometheus import ScrapedPrometheus


AT = math.floor(time.time()) // 600 * 600 - 7200
HISTORY = "\n".join(
    [
        "# TYPE load gauge",
        *(f'load{{pod="{pod}"}} {pod}.{at:03} {AT + 15 * at}' for pod in (1, 2) for at in range(120)),
        "# TYPE odd gauge",
        f'odd{{kind="nan"}} NaN {AT}',
        f'odd{{kind="plus"}} +Inf {AT}',
        f'odd{{kind="minus"}} -Inf {AT}',
        f'odd{{kind="tiny"}} 5e-324 {AT}',
        "# EOF",
        "",
    ]
)


@pytest.fixture(scope="module")
def prometheus(start_prometheus: Callable[..., ScrapedPrometheus]) -> ScrapedPrometheus:
    return start_prometheus(history=HISTORY)


def by_label(answer: RangeAnswer, label: str) -> dict[str, RangeSeries]:
    return {series.labels[label]: series for series in answer.series}


# A real Prometheus


def test_series_are_returned_as_columns_with_their_labels(client: PrometheusClient) -> None:
    found = client.range("load", start=AT, end=AT + 15 * 119, step_seconds=15, timeout_seconds=10)
    series = by_label(found, "pod")
    assert series.keys() == {"1", "2"}
    assert series["1"].labels == {"__name__": "load", "pod": "1"}
    assert series["1"].timestamps == array("d", [AT + 15 * at for at in range(120)])
    assert series["2"].values == array("d", [float(f"2.{at:03}") for at in range(120)])
    assert found.warnings == ()


@pytest.mark.parametrize("points", [MOST_POINTS, MOST_POINTS + 1, 2 * MOST_POINTS, 30_000])
def test_a_long_range_has_every_step_once(client: PrometheusClient, points: int) -> None:
    start = AT - 40_000
    found = client.range("time()", start=start, end=start + points - 1, step_seconds=1, timeout_seconds=30)
    (series,) = found.series
    assert series.timestamps == series.values == array("d", range(start, start + points))


def test_steps_may_be_fractions_of_a_second(client: PrometheusClient) -> None:
    found = client.range("time()", start=AT + 0.1, end=AT + 1200.099, step_seconds=0.1, timeout_seconds=30)
    (series,) = found.series
    assert [round(at * 10) for at in series.timestamps] == list(range(AT * 10 + 1, AT * 10 + 12_001))


def test_steps_without_a_value_are_left_out(client: PrometheusClient) -> None:
    query = "vector(time()) % 1000 >= 500"
    found = client.range(query, start=AT - 24_000, end=AT, step_seconds=1, timeout_seconds=30)
    (series,) = found.series
    expected = [at for at in range(AT - 24_000, AT + 1) if at % 1000 >= 500]
    assert list(series.timestamps) == expected
    assert list(series.values) == [at % 1000 for at in expected]


def test_an_ended_series_has_no_stale_marker(client: PrometheusClient) -> None:
    found = client.range('load{pod="1"}', start=AT, end=AT + 7000, step_seconds=100, timeout_seconds=10)
    (series,) = found.series
    assert not any(map(math.isnan, series.values))
    # Five minutes after the last sample Prometheus has no value any more.
    assert series.timestamps[-1] <= AT + 15 * 119 + 300


def test_infinity_and_nan_are_returned_unchanged(client: PrometheusClient) -> None:
    found = by_label(client.range("odd", start=AT, end=AT + 60, step_seconds=30, timeout_seconds=10), "kind")
    assert all(math.isnan(value) for value in found["nan"].values)
    assert {kind: set(found[kind].values) for kind in ("plus", "minus", "tiny")} == {
        "plus": {math.inf},
        "minus": {-math.inf},
        "tiny": {5e-324},
    }


def test_a_range_query_without_series_has_an_empty_answer(client: PrometheusClient) -> None:
    assert client.range("absent_metric", start=AT, end=AT + 60, step_seconds=30, timeout_seconds=10).series == ()


def test_the_error_for_a_refused_query_has_the_message_of_prometheus(client: PrometheusClient) -> None:
    with pytest.raises(QueryRefusedError, match="unexpected end of input"):
        client.range("up{", start=AT, end=AT + 60, step_seconds=30, timeout_seconds=10)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (RangeLimits(max_series=1), "more than 1 (samples or )?series"),
        (RangeLimits(max_samples=100), "more than 100 samples"),
        (RangeLimits(max_bytes=1000), "more than 1,000 bytes"),
    ],
)
def test_an_answer_above_a_limit_is_refused(client: PrometheusClient, limits: RangeLimits, message: str) -> None:
    with pytest.raises(AnswerTooLargeError, match=message):
        client.range("load", start=AT, end=AT + 1200, step_seconds=15, timeout_seconds=10, limits=limits)


# Parts


@given(
    start=st.integers(0, 2 * 10**9),
    milliseconds=st.integers(0, 10**8),
    step=st.integers(1, 10**5),
)
def test_parts_are_adjacent_on_one_grid(start: int, milliseconds: int, step: int) -> None:
    parts = range_parts(start, start + milliseconds / 1000, step / 1000)
    assert parts[0].start == start * 1000
    assert 0 <= start * 1000 + milliseconds - parts[-1].end < step
    for part in parts:
        assert (part.end - part.start) % step == 0
        assert (part.end - part.start) // step < MOST_POINTS
    for before, after in itertools.pairwise(parts):
        assert after.start == before.end + step
        assert (before.end - before.start) // step == MOST_POINTS - 1


@pytest.mark.parametrize(
    ("start", "end", "step"), [(1, 0, 1), (0, 1, 0), (0, 1, -1), (0, 1, 0.0005), (0, math.inf, 1), (math.nan, 1, 1)]
)
def test_an_impossible_range_is_refused(start: float, end: float, step: float) -> None:
    with pytest.raises(ValueError, match=r"must be|before it starts"):
        range_parts(start, end, step)


# Answers of a scripted server

PART = RangePart(0, 20_000, 10_000)


def joined(*bodies: bytes, part: RangePart = PART, limits: RangeLimits = RANGE_LIMITS) -> RangeAnswer:
    joiner = RangeJoiner("load", limits, UNPACED)
    for i, content in enumerate(bodies):
        shift = i * (part.end - part.start + part.step)
        joiner.add(RangePart(part.start + shift, part.end + shift, part.step), bytearray(content))
    return joiner.answer()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<html>",
        b"[]",
        b'{"status":"success"}',
        b'{"status":"error","error":"no"}',
        body({"metric": {}, "value": [0, "1"]}, kind="vector"),
        body({"metric": {}}),
        body({"values": [[0, "1"]]}),
        body({"metric": {"a": 1}, "values": []}),
        body(one((0, "one"))),
        body({"metric": {}, "values": [[0]]}),
        body({"metric": {}, "values": [[0, "1", "2"]]}),
        body({"metric": {}, "values": {"0": "1"}}),
        body({"metric": {}, "values": [[None, "1"]]}),
    ],
)
def test_an_answer_that_is_not_a_matrix_is_unexpected(content: bytes) -> None:
    with pytest.raises(UnexpectedAnswerError):
        joined(content)


@pytest.mark.parametrize(
    "points",
    [
        [(0, "1"), (0, "2")],
        [(10, "1"), (0, "2")],
        [(5, "1")],
        [(-10, "1")],
        [(30, "1")],
    ],
)
def test_points_off_the_requested_steps_are_refused(points: list[tuple[float, str]]) -> None:
    with pytest.raises(UnexpectedAnswerError, match="starts at a multiple of its step"):
        joined(body(one(*points)))


def test_a_success_that_also_states_an_error_is_unexpected() -> None:
    content = body(one((0, "1")), error="a store is away")
    with pytest.raises(UnexpectedAnswerError, match="a store is away"):
        joined(content)


def test_a_repeated_label_set_is_refused() -> None:
    # Its points would be appended behind later ones.
    with pytest.raises(UnexpectedAnswerError, match="same label set twice"):
        joined(body(one((20, "1"), pod="a"), one((0, "1"), pod="a")))


def test_parts_are_joined_by_label_set_and_may_lack_series() -> None:
    found = joined(
        body(one((0, "1"), (20, "3"), pod="a"), one((0, "5"), pod="b")),
        body(one((30, "6"), pod="b")),
        body(one((60, "7"), pod="a"), one((70, "8"), pod="c")),
    )
    assert [(s.labels["pod"], list(s.timestamps), list(s.values)) for s in found.series] == [
        ("a", [0, 20, 60], [1, 3, 7]),
        ("b", [0, 30], [5, 6]),
        ("c", [70], [8]),
    ]


def test_warnings_of_all_parts_are_kept_once() -> None:
    first = body(warnings=["a store is away"])
    found = joined(first, first, body(isPartial=True))
    assert found.warnings == ("a store is away", "the answer is partial (isPartial)")


def test_native_histograms_are_left_out() -> None:
    histogram = {"metric": {"a": "b"}, "histograms": [[0, {"count": "1"}], [10, {"count": "2"}]]}
    found = joined(body(histogram, {**histogram, "metric": {"a": "c"}, "values": [[20, "1"]]}))
    assert [(series.labels, list(series.values)) for series in found.series] == [({"a": "c"}, [1.0])]


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_many_long_series_are_read_whole_in_any_formatting(separators: tuple[str, str]) -> None:
    points = 3_000
    odd = '},{"metric":{"],["'
    series = [one(*((10 * at, f"{at}.{pod}") for at in range(points)), pod=f"{odd}{pod}") for pod in range(8)]
    document = {"status": "success", "data": {"resultType": "matrix", "result": series}}
    found = joined(json.dumps(document, separators=separators).encode(), part=RangePart(0, 10_000 * points, 10_000))
    assert [s.labels["pod"] for s in found.series] == [f"{odd}{pod}" for pod in range(8)]
    for pod, one_series in enumerate(found.series):
        assert list(one_series.timestamps) == [10.0 * at for at in range(points)]
        assert list(one_series.values) == [float(f"{at}.{pod}") for at in range(points)]


def test_limits_apply_to_all_parts_together() -> None:
    bodies = [body(one((30 * i, "1"), pod=str(i))) for i in range(3)]
    assert len(joined(*bodies, limits=RangeLimits(max_series=3, max_samples=3)).series) == 3
    with pytest.raises(AnswerTooLargeError, match="more than 2 series"):
        joined(*bodies, limits=RangeLimits(max_series=2))
    with pytest.raises(AnswerTooLargeError, match="more than 2 samples"):
        joined(*bodies, limits=RangeLimits(max_samples=2))


def test_one_deadline_applies_to_all_parts() -> None:
    timeouts: list[float] = []

    def script(peer: Peer) -> None:
        while (request := peer.read()) is not None:
            (seconds,) = parse_qs(request.body.decode())["timeout"]
            timeouts.append(float(seconds))
            if len(timeouts) == 2:
                peer.drip(b"HTTP/1.1 200 OK\r\n" * 100)
                return
            peer.answer(body())

    with (
        raw_server(script) as server,
        PrometheusClient(PrometheusSettings(server.url)) as client,
        pytest.raises(PrometheusTimeoutError),
    ):
        client.range("load", start=0, end=30_000, step_seconds=1, timeout_seconds=0.7)
    assert len(timeouts) == 2
    assert timeouts[1] < timeouts[0] <= 0.7


def test_a_failed_part_fails_the_whole_query() -> None:
    def script(peer: Peer) -> None:
        while peer.read() is not None:
            if len(server.requests) == 2:
                peer.answer(b'{"status":"error","errorType":"execution","error":"no"}', "422 Unprocessable Entity")
            else:
                peer.answer(body())

    with (
        raw_server(script) as server,
        PrometheusClient(PrometheusSettings(server.url)) as client,
        pytest.raises(QueryRefusedError),
    ):
        client.range("load", start=0, end=30_000, step_seconds=1, timeout_seconds=10)
    assert [request.target for request in server.requests] == ["/api/v1/query_range"] * 2


def test_an_answer_of_a_server_with_another_time_is_refused() -> None:
    headers = {"Date": "Thu, 01 Jan 2026 00:00:00 GMT"}
    with (
        raw_server(answering(body(), **headers)) as server,
        PrometheusClient(PrometheusSettings(server.url)) as client,
        pytest.raises(PrometheusError, match="clock"),
    ):
        client.range("load", start=0, end=10, step_seconds=1, timeout_seconds=10)


@given(st.lists(st.floats(), min_size=1, max_size=50))
def test_every_float_is_read_exactly(values: list[float]) -> None:
    texts = [repr(value).replace("inf", "Inf").replace("nan", "NaN") for value in values]
    texts = [f"+{text}" if text == "Inf" else text for text in texts]
    points = [(10 * at, text) for at, text in enumerate(texts)]
    (series,) = joined(body(one(*points)), part=RangePart(0, 10_000 * len(points), 10_000)).series
    assert list(map(repr, series.values)) == list(map(repr, values))


def test_many_short_series_share_slices() -> None:
    ticks = itertools.count()
    pauses: list[float] = []
    pace = Pace(pause_seconds=0.004, sleep=pauses.append, clock=lambda: next(ticks) * 0.00001)
    joiner = RangeJoiner("load", RANGE_LIMITS, pace)
    joiner.add(PART, bytearray(body(*(one((0, "1"), (10, "2"), node=str(node)) for node in range(1000)))))
    assert len(joiner.answer().series) == 1000
    assert len(pauses) < 100
