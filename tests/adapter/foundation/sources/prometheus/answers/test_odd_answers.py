"""Answers that are JSON, or nearly so, but not what Prometheus writes are refused, and in time."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.sources.prometheus.answers.answer_elements import INSTANT_LIMITS
from adapter.foundation.sources.prometheus.answers.decoding import read_instant
from adapter.foundation.sources.prometheus.answers.slicing import VECTOR, cut_walked
from adapter.foundation.sources.prometheus.errors import UnexpectedAnswerError
from adapter.foundation.sources.prometheus.queries.date_header import refuse_other_time
from adapter.foundation.time.pace import UNPACED, Pace, Slice
from tests.support.answers import read_series

if TYPE_CHECKING:
    from collections.abc import Iterator

BOUND_SECONDS = 60
WALKED = b'{ "status":"success","data":{"resultType":"vector","result":['
COMPACT = WALKED.replace(b" ", b"")
SAMPLE = b'{"metric":{},"value":[1,"1"]}'
LONG = 400_000


def values_of(body: bytes) -> list[float]:
    answer = read_instant("up", bytearray(body), evaluated_at=1.0, limits=INSTANT_LIMITS, pace=UNPACED)
    return [sample.value for batch in answer.batches(UNPACED) for sample in batch]


@pytest.mark.timeout(BOUND_SECONDS)
@pytest.mark.parametrize(
    "body",
    [
        b"[" * LONG,
        WALKED + b"[" * LONG,
        WALKED + b"[" * LONG + b"]" * LONG + b"]}}",
        b'{"a":' * LONG,
        COMPACT + (SAMPLE + b",") * 4000 + b"[" * LONG,
        WALKED + b'"\\' * LONG,
        WALKED + b'"' + b"\\" * LONG,
        WALKED + b'"a"' + b" " * LONG,
    ],
    ids=["lists", "elements", "closed", "objects", "behind samples", "strings", "backslashes", "blanks"],
)
def test_endlessly_nested_or_unclosed_answers_are_refused_in_time(body: bytes) -> None:
    with pytest.raises(UnexpectedAnswerError):
        values_of(body)
    with pytest.raises(UnexpectedAnswerError):
        list(read_series("up", body, limits=INSTANT_LIMITS).batches(UNPACED))


class CountedPace(Pace):
    """A pace that counts the slices of work."""

    def __init__(self) -> None:
        super().__init__(0.0, lambda _: None)
        self.slices_begun = 0

    @contextmanager
    def slice(self) -> Iterator[Slice]:
        self.slices_begun += 1
        with super().slice() as work:
            yield work


def test_a_walk_ends_where_nesting_is_too_deep_for_a_decoder() -> None:
    pace = CountedPace()
    assert cut_walked(bytearray(WALKED + b"[" * LONG), VECTOR, pace) is None
    assert pace.slices_begun == 1


def test_content_nested_deeper_than_the_samples_is_walked_through() -> None:
    histogram = {"metric": {}, "histogram": [1, {"buckets": [[[[[0]]]]]}]}
    body = json.dumps({"data": {"resultType": "vector", "result": [histogram] * 3000}, "status": "success"})
    assert values_of(body.encode()) == []


@pytest.mark.parametrize(
    "value", ["1_000", " 1", "1 ", "1\n", "\N{ARABIC-INDIC DIGIT ONE}", "0x10", "1d", "", "1e", "nan1", "--1"], ids=repr
)
@pytest.mark.parametrize("kind", ["vector", "scalar"])
def test_a_value_that_prometheus_would_not_write_is_refused(kind: str, value: str) -> None:
    result = [1, value] if kind == "scalar" else [{"metric": {}, "value": [1, value]}]
    with pytest.raises(UnexpectedAnswerError):
        values_of(json.dumps({"status": "success", "data": {"resultType": kind, "result": result}}).encode())


@pytest.mark.parametrize(
    ("value", "expected"),
    [("1", 1.0), ("-1.5e-07", -1.5e-07), ("1e+21", 1e21), ("+Inf", float("inf")), ("-Inf", float("-inf")), ("0", 0.0)],
)
def test_values_that_prometheus_writes_are_read(value: str, expected: float) -> None:
    # The second sample makes the reading of all of them the careful one.
    samples = [{"metric": {}, "value": [1, value]}, {"metric": {}, "value": [1, "+Inf"]}]
    body = json.dumps({"status": "success", "data": {"resultType": "vector", "result": samples}}).encode()
    assert values_of(body) == [expected, float("inf")]


@pytest.mark.parametrize(
    "date", ["Mon, 01 Jan 2026 00:00:00 +99999999999999999999", "Mon, 01 Jan 99999 00:00:00 GMT", "", "9" * 5000]
)
def test_an_invalid_date_is_not_compared_with_the_clock(date: str) -> None:
    refuse_other_time("up", {"date": date}, 1_800_000_000.0)
