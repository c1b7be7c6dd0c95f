"""Remarks of the query engine do not make an answer partial, unless they say that samples were ignored."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.sources.prometheus.answers.answer_elements import INSTANT_LIMITS
from adapter.foundation.sources.prometheus.answers.decoding import read_instant
from adapter.foundation.sources.prometheus.answers.ranges import RANGE_LIMITS, RangeJoiner, RangePart
from adapter.foundation.time.pace import UNPACED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from adapter.foundation.sources.prometheus.answers.decoding import InstantAnswer

KEYS = ("warnings", "infos")
"""Where annotations stand: Thanos and Prometheus before 2.54 have information among the warnings."""
REMARKS = (
    'PromQL info: metric might not be a counter, name does not end in _total/_sum/_count/_bucket: "load" (1:10)',
    "PromQL info: input to histogram_quantile needed to be fixed for monotonicity, from buckets 0.1 to 1 (1:25)",
    'PromQL info: input to histogram_quantile has NaN observations, result is NaN for metric name "h" (1:1)',
    "PromQL info: mismatched custom buckets were reconciled during aggregation (1:5)",
    "PromQL info: a remark of a later version",
    "PromQL warning: conflicting counter resets during histogram aggregation (1:5)",
    'PromQL warning: sample has start time that overlaps with previous sample timestamp for metric "a_total" (1:10)',
    "PromQL warning: sort is ineffective for range queries since results are always ordered by labels (1:1)",
)
IGNORED = (
    "PromQL info: ignored histogram in max aggregation (1:5)",
    'PromQL info: ignored histograms in a range containing both floats and histograms for metric name "load" (1:15)',
    'PromQL info: incompatible sample types encountered for binary operator ">": histogram > float (1:5)',
)
LEFT_OUT = (
    *IGNORED,
    "PromQL warning: encountered a mix of histograms and floats for aggregation (1:5)",
    'PromQL warning: bucket label "le" is missing or has a malformed value of "x" (1:25)',
    'PromQL warning: this native histogram metric is not a counter: "load" (1:10)',
    "PromQL warning: a warning of a later version",
    "2 more warning annotations omitted",
    "store 10.0.0.1:10901 did not answer: PromQL info: ignored",
)


def body(kind: str, result: Sequence[object], annotations: Mapping[str, object]) -> bytearray:
    document = {"status": "success", "data": {"resultType": kind, "result": result}, **annotations}
    return bytearray(json.dumps(document).encode())


def instant(annotations: Mapping[str, object]) -> InstantAnswer:
    found = body("vector", [{"metric": {}, "value": [1.5, "2"]}], annotations)
    return read_instant("q", found, evaluated_at=1.5, limits=INSTANT_LIMITS, pace=UNPACED)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("text", REMARKS)
def test_a_remark_on_a_whole_answer_is_no_warning(text: str, key: str) -> None:
    answer = instant({key: [text]})
    assert (answer.warnings, answer.remarks) == ((), (text,))


@pytest.mark.parametrize(
    ("key", "text"), [("warnings", text) for text in LEFT_OUT] + [("infos", text) for text in IGNORED]
)
def test_an_annotation_that_says_that_samples_were_ignored_is_a_warning(key: str, text: str) -> None:
    answer = instant({key: [text]})
    assert (answer.warnings, answer.remarks) == ((text,), ())


def test_information_that_is_only_counted_is_a_remark() -> None:
    text = "3 more info annotations omitted"
    answer = instant({"infos": [text]})
    assert (answer.warnings, answer.remarks) == ((), (text,))


def test_ranges_have_the_same_warnings() -> None:
    joiner = RangeJoiner("q", RANGE_LIMITS, UNPACED)
    joiner.add(RangePart(0, 1000, 1000), body("matrix", [], {"warnings": list(REMARKS), "infos": list(IGNORED)}))
    assert joiner.answer().warnings == IGNORED


@pytest.mark.parametrize("absent", [{}, {"warnings": None, "infos": None}, {"warnings": [], "infos": []}])
def test_annotations_may_be_absent(absent: Mapping[str, object]) -> None:
    answer = instant(absent)
    assert (answer.warnings, answer.remarks) == ((), ())
