from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.objects.selectors import EVERYTHING, parse_selector
from adapter.foundation.sources.prometheus.answers.decoding import Sample
from adapter.metrics.readings.errors import AmbiguousSamplesError, PartialAnswerError, UnanswerableSelectorError
from adapter.metrics.readings.samples.external_reading_builder import ExternalReadingBuilder
from adapter.metrics.readings.samples.no_data_and_sample_age import BELOW_ZERO
from adapter.metrics.readings.samples.object_reading import Dropped, Evaluation
from adapter.metrics.readings.samples.sample_times import SampleTimes
from adapter.metrics.rulebook.model import PlanKind
from adapter.metrics.rulebook.requests import PlannedQuery
from tests.support.readings import Harness, ScriptedPrometheus, make_harness, reply

if TYPE_CHECKING:
    from tests.support.readings import Reply

QUEUES = reply(
    ({"queue": "a", "shard": "1", "namespace": "shop"}, "1"),
    ({"queue": "a", "shard": "2", "namespace": "shop"}, "2"),
    ({"queue": "b", "namespace": "shop"}, "4"),
    ({"queue": "n", "namespace": "shop"}, "NaN"),
    ({"queue": "a", "namespace": "bank"}, "8"),
)


def harness_with(answer: Reply) -> tuple[Harness, ScriptedPrometheus]:
    def of_namespace(query: str) -> Reply:
        wanted = re.search(r'namespace="(\w+)"', query)
        return reply(*(pair for pair in answer.samples if wanted is None or pair[0]["namespace"] == wanted[1]))

    prometheus = ScriptedPrometheus(answer=of_namespace)
    return make_harness(prometheus), prometheus


def ask(harness: Harness, name: str, selector: str, namespace: str = "shop") -> list[tuple[dict[str, str], float]]:
    answer = harness.readings.external(harness.external(name), namespace, parse_selector(selector))
    return [(dict(row.labels), row.value) for row in answer.rows]


def test_rows_are_filtered_for_each_request_from_one_answer() -> None:
    harness, prometheus = harness_with(QUEUES)

    assert ask(harness, "queue_rows", "queue=b") == [({"queue": "b", "namespace": "shop"}, 4.0)]
    assert len(ask(harness, "queue_rows", "queue=a")) == 2
    assert len(ask(harness, "queue_rows", "queue in (a,b)")) == 3
    assert ask(harness, "queue_rows", "queue=b,shard=1") == []
    assert len(prometheus.asked) == 1


def test_an_aggregated_answer_equals_the_sum_of_the_exact_query() -> None:
    harness, _ = harness_with(QUEUES)

    assert ask(harness, "queue_depth", "queue=a") == [({}, 3.0)]
    assert ask(harness, "queue_depth", "queue!=n") == [({}, 7.0)]
    assert ask(harness, "queue_depth", "queue=missing") == []


def test_a_sum_with_a_nan_is_no_data() -> None:
    harness, _ = harness_with(QUEUES)

    assert ask(harness, "queue_depth", "queue in (a,n)") == []
    assert ask(harness, "queue_rows", "queue=n") == []
    assert harness.counter("tidewatch_adapter_dropped_samples_total", reason="nan") == 2


def test_a_list_with_some_values_missing_is_an_error_since_its_sum_would_be_too_low() -> None:
    harness, _ = harness_with(QUEUES)

    for _ in range(2):
        with pytest.raises(PartialAnswerError, match=r"1 of 2 series has no finite value .*queue=\"n\"} is nan"):
            ask(harness, "queue_rows", "queue in (b,n)")


@pytest.mark.parametrize("value", ["1e16", "-1e16", "1764195000123456789"])
def test_an_amount_that_autoscalers_read_as_0_or_as_any_number_is_an_error(value: str) -> None:
    answer = reply(({"queue": "a"}, value), ({"queue": "b"}, "1"), ({"queue": "n"}, "NaN"))
    harness = make_harness(ScriptedPrometheus(answer=lambda _query: answer))

    for name, selector in (("queue_rows", "queue=a"), ("queue_rows", "queue!=b"), ("queue_depth", "queue in (a,b)")):
        with pytest.raises(PartialAnswerError, match=r"1 of \d series is too large .* 64 bits, which end at 9.2e15"):
            ask(harness, name, selector)
    assert ask(harness, "queue_rows", "queue=b") == [({"queue": "b"}, 1.0)], "others have nothing of it"


@pytest.mark.parametrize(
    ("values", "is_below"),
    [
        (["-3"], True),
        (["5", "-6"], True),
        (["6", "-5"], False),
        (["-0.0004"], False),
        (["-0"], False),
        (["1", "2"], False),
    ],
)
def test_a_sum_that_an_hpa_takes_for_an_overflow_is_served_with_a_warning(values: list[str], *, is_below: bool) -> None:
    answer = reply(*(({"queue": "a", "shard": str(number)}, value) for number, value in enumerate(values)))
    harness = make_harness(ScriptedPrometheus(answer=lambda _query: answer))

    found = harness.readings.external(harness.external("queue_rows"), "shop", parse_selector("queue=a"))
    assert [row.value for row in found.rows] == [float(value) for value in values]
    assert found.warnings == ((BELOW_ZERO,) if is_below else ())


def test_an_unsupported_selector_fails_only_its_own_request() -> None:
    harness, _ = harness_with(QUEUES)
    odd = parse_selector("queue=a")
    answer = harness.readings.external(harness.external("queue_rows"), "shop", odd)

    with pytest.raises(UnanswerableSelectorError):
        harness.readings.external(harness.external("queue_rows"), "shop", parse_selector("queue>5"))

    assert harness.readings.external(harness.external("queue_rows"), "shop", odd) == answer


def test_dropped_samples_are_counted_once_per_reading() -> None:
    harness, _ = harness_with(QUEUES)
    tally: Counter[str] = Counter()
    for _ in range(3):
        ask(harness, "queue_rows", "queue=n")
        tally["asked"] += 1

    assert harness.counter("tidewatch_adapter_dropped_samples_total", reason="nan") == 1
    assert tally["asked"] == 3


A1, A2, B = ({"queue": "a", "shard": "1"}, "1"), ({"queue": "a", "shard": "2"}, "2"), ({"queue": "b"}, "4")
SELECTED = ("queue_rows", "queue=a"), ("queue_depth", "queue=a")
"""Rows as they are, and aggregated."""


@pytest.mark.parametrize(("name", "selector"), SELECTED)
def test_a_native_histogram_beside_values_is_an_error_since_their_sum_would_be_too_low(
    name: str, selector: str
) -> None:
    answer = reply(A1, B, histograms=[A2[0]])
    harness = make_harness(ScriptedPrometheus(answer=lambda _query: answer))

    with pytest.raises(PartialAnswerError, match=r'1 of 2 series has no value \({queue="a",shard="2"}\).*histogram_q'):
        ask(harness, name, selector)
    assert [value for _, value in ask(harness, name, "queue=b")] == [4.0], "others have nothing of it"
    assert harness.counter("tidewatch_adapter_dropped_samples_total", reason="histogram") == 1


def test_two_rows_of_the_same_labels_are_found_although_a_slice_of_the_answer_ends_between_them() -> None:
    times = SampleTimes(Evaluation(1000.0, 0.0), 5.0)
    builder = ExternalReadingBuilder(PlannedQuery("depth", PlanKind.EXACT, None, None), None, times, frozenset())
    for shard in ("1", "2", "1"):
        builder.add([Sample({"shard": shard}, 7.0, 1000.0)])
    reading = builder.finish()
    with pytest.raises(AmbiguousSamplesError, match="2 series have the same labels as another"):
        reading.answer(None, EVERYTHING, lambda _: None)
    assert builder.dropped[Dropped.DUPLICATE] == 2


@pytest.mark.parametrize(("name", "selector"), SELECTED)
def test_two_rows_of_the_same_labels_are_an_error_since_their_sum_would_be_too_high(name: str, selector: str) -> None:
    answer = reply(A1, A2, B, ({**A1[0], "zone": ""}, "1"))
    harness = make_harness(ScriptedPrometheus(answer=lambda _query: answer))

    with pytest.raises(AmbiguousSamplesError, match="2 series have the same labels as another"):
        ask(harness, name, selector)
    assert [value for _, value in ask(harness, name, "queue=b")] == [4.0], "others have nothing of it"
    assert harness.counter("tidewatch_adapter_dropped_samples_total", reason="duplicate") == 2


@pytest.mark.parametrize(("name", "selector"), SELECTED)
def test_a_late_row_beside_others_is_an_error_and_late_ones_alone_are_dropped(name: str, selector: str) -> None:
    harness = make_harness(ScriptedPrometheus(answer=lambda _query: reply(A1, B, late=[A2])))
    with pytest.raises(PartialAnswerError, match="1 of 2 series is left out"):
        ask(harness, name, selector)
    assert [value for _, value in ask(harness, name, "queue=b")] == [4.0], "others have nothing of it"

    late = make_harness(ScriptedPrometheus(answer=lambda _query: reply(late=[A1, A2])))
    assert ask(late, name, selector) == []
