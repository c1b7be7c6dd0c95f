"""The answer to a range query as one array."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.sources.prometheus.answers.ranges import RangeJoiner, RangeLimits, RangeSeries, range_parts
from adapter.foundation.sources.prometheus.errors import AnswerTooLargeError, UnexpectedAnswerError
from adapter.foundation.time.pace import UNPACED
from adapter.nodes.queries.query_steps import QueryPiece
from adapter.nodes.queries.range_matrix import MOST_LABEL_BYTES
from tests.adapter.nodes.queries.answers import Series, matrix_body, read_matrix

PIECE = QueryPiece(1500, 1560, 15)
A, B = {"instance": "a"}, {"instance": "b", "odd": '},{"metric":{'}


def joined(body: bytearray) -> tuple[RangeSeries, ...]:
    """Return the answer as the general reader of range queries reads it."""
    (part,) = range_parts(PIECE.first, PIECE.last, PIECE.step_seconds)
    joiner = RangeJoiner("up", RangeLimits(), UNPACED)
    joiner.add(part, body)
    return joiner.answer().series


values = st.dictionaries(st.sampled_from(PIECE.times), st.floats(), min_size=1).map(
    lambda found: dict(sorted(found.items()))
)
labels = st.dictionaries(st.sampled_from(["instance", "node", "tidewatch_part"]), st.text(max_size=5))


@given(st.lists(st.tuples(labels, values), unique_by=lambda one: frozenset(one[0].items()), max_size=6))
def test_labels_and_values_equal_those_of_the_general_range_reader(series: list[Series]) -> None:
    body = matrix_body(series)
    matrix, expected = read_matrix(body, PIECE), joined(body)
    assert matrix.names.labels("up", UNPACED) == [one.labels for one in expected]
    rows = [dict(zip(one.timestamps, one.values, strict=True)) for one in expected]
    np.testing.assert_array_equal(
        matrix.values, np.array([[row.get(time, math.nan) for time in PIECE.times] for row in rows]).reshape(-1, 5)
    )


def test_an_answer_of_many_slices_keeps_its_order() -> None:
    series: list[Series] = [({**B, "number": str(n)}, {1500: n, 1545: n + 0.5}) for n in range(3_000)]
    matrix = read_matrix(matrix_body(series), PIECE)
    assert [one["number"] for one in matrix.names.labels("up", UNPACED)] == [str(n) for n in range(3_000)]
    assert matrix.values[:, 0].tolist() == list(range(3_000))
    assert matrix.values[:, 3].tolist() == [n + 0.5 for n in range(3_000)]


@pytest.mark.parametrize(
    "series",
    [
        [(B, {1500: 1.0}), (A, {1500: 1.0})],
        [(A, {1500: 1.0})],
        [(A, {1500: 1.0}), ({**B, "instance": "c"}, {1500: 1.0})],
        [],
    ],
    ids=["another order", "one less", "another label", "none"],
)
def test_the_digest_differs_if_the_series_differ(series: list[Series]) -> None:
    before = read_matrix(matrix_body([(A, {1500: 1.0}), (B, {1500: 2.0})]), PIECE)
    assert read_matrix(matrix_body(series), PIECE).names.digest != before.names.digest


def test_the_digest_does_not_depend_on_values() -> None:
    before = read_matrix(matrix_body([(A, {1500: 1.0}), (B, {1500: 2.0})]), PIECE)
    after = read_matrix(matrix_body([(A, {1500: 7.0, 1515: 8.0}), (B, {1500: math.inf})]), PIECE)
    assert after.names.digest == before.names.digest


def of_points(*points: object) -> bytes:
    result = [{"metric": {"a": "b"}, "values": list(points)}]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode()


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b'{"status":"success"}',
        b'{"status":"success","data":{"resultType":"vector","result":[]}}',
        of_points(),
        of_points([1500, "one"]),
        of_points([1500]),
        of_points([None, "1"]),
        of_points([1500, "1"], [1500, "2"]),
        of_points([1515, "1"], [1500, "2"]),
        of_points([1501, "1"]),
        of_points([1485, "1"]),
        of_points([1575, "1"]),
        of_points([1e300, "1"]),
        of_points(["NaN", "1"]),
        b'{"status":"success","data":{"resultType":"matrix","result":[{"values":[[1500,"1"]]}]}}',
    ],
)
def test_malformed_answers_are_refused(body: bytes) -> None:
    with pytest.raises(UnexpectedAnswerError):
        read_matrix(body, PIECE)


@pytest.mark.parametrize(
    ("metrics", "reason"), [(b'{"a":"b"},{"a":"b"}', "same label set twice"), (b'{"a":1},{}', "cannot be read")]
)
def test_labels_are_validated_when_they_are_read(metrics: bytes, reason: str) -> None:
    one, other = metrics.split(b",", 1)
    body = b'{"status":"success","data":{"resultType":"matrix","result":[{"metric":%b,"values":[[1500,"1"]]},' % one
    matrix = read_matrix(body + b'{"metric":%b,"values":[[1500,"1"]]}]}}' % other, PIECE)
    with pytest.raises(UnexpectedAnswerError, match=reason):
        matrix.names.labels("up", UNPACED)


def test_native_histograms_are_left_out() -> None:
    histogram = b'{"metric":{"a":"b"},"histograms":[[1500,{"count":"1"}]]}'
    body = (
        b'{"status":"success","data":{"resultType":"matrix","result":[%b,{"metric":{"a":"c"},"values":[[1500,"1"]]}]}}'
    )
    matrix = read_matrix(body % histogram, PIECE)
    assert matrix.names.labels("up", UNPACED) == [{"a": "c"}]
    assert matrix.values[:, 0].tolist() == [1.0]


def test_series_with_very_long_labels_are_left_out_and_counted() -> None:
    long = {"instance": "x" * MOST_LABEL_BYTES}
    matrix = read_matrix(matrix_body([(A, {1500: 1.0}), (long, {1500: 2.0}), (B, {1500: 3.0})]), PIECE)
    assert matrix.names.labels("up", UNPACED) == [A, B]
    assert matrix.values[:, 0].tolist() == [1.0, 3.0]
    assert matrix.left_out == 1


def test_warnings_and_the_partial_flag_are_kept() -> None:
    matrix = read_matrix(matrix_body([], warnings=["a store is away"], isPartial=True), PIECE)
    assert matrix.warnings == ("a store is away", "the answer is partial (isPartial)")


@pytest.mark.parametrize(("limits", "reason"), [((1, 9), "more than 1 series"), ((9, 2), "more than 2 samples")])
def test_limits_of_series_and_samples_are_enforced(limits: tuple[int, int], reason: str) -> None:
    series: list[Series] = [(A, {1500: 1.0, 1515: 1.0}), (B, {1500: 1.0})]
    with pytest.raises(AnswerTooLargeError, match=reason):
        read_matrix(matrix_body(series), PIECE, RangeLimits(max_series=limits[0], max_samples=limits[1]))
