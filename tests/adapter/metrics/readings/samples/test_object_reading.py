from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.sources.prometheus.answers.decoding import Sample
from adapter.metrics.readings.errors import AmbiguousSamplesError, NoSampleError
from adapter.metrics.readings.samples.assignment import Assignment
from adapter.metrics.readings.samples.object_reading import Dropped, Evaluation, ObjectReading
from adapter.metrics.readings.samples.object_reading_builder import ObjectReadingBuilder
from adapter.metrics.readings.samples.sample_times import SampleTimes
from adapter.metrics.readings.samples.shared_names import SharedNames

if TYPE_CHECKING:
    from collections import Counter

NOW = 1_800_000_000.0
WIDE = Assignment("pod", "namespace")
IN_SHOP = Assignment("pod", "namespace", "shop")
ROOT_SCOPED = Assignment("node", None)


def sample(value: float, timestamp: float = NOW, **labels: str) -> Sample:
    return Sample(labels, value, timestamp)


def build(assignment: Assignment, *samples: Sample) -> tuple[ObjectReading, Counter[Dropped]]:
    filing = ObjectReadingBuilder(assignment, SharedNames(lambda: 0.0), SampleTimes(Evaluation(NOW, 0.0), 60))
    # One at a time: what is filed must not depend on where an answer is cut.
    for one in samples:
        filing.add([one])
    if filing.has_rivals:
        for one in samples:
            filing.compare([one])
    return filing.finish(), +filing.dropped


@pytest.mark.parametrize(
    ("assignment", "samples", "values", "dropped"),
    [
        pytest.param(
            WIDE,
            [sample(1, namespace="shop", pod="a"), sample(2, namespace="bank", pod="a")],
            {"shop": {"a": 1.0}, "bank": {"a": 2.0}},
            {},
            id="each has its namespace",
        ),
        pytest.param(
            IN_SHOP, [sample(1, pod="a")], {"shop": {"a": 1.0}}, {}, id="an aggregated namespace is the requested one"
        ),
        pytest.param(
            IN_SHOP,
            [sample(1, pod="a", namespace="shop"), sample(2, pod="b", namespace="bank")],
            {"shop": {"a": 1.0}},
            {Dropped.FOREIGN_NAMESPACE: 1},
            id="another namespace is never served",
        ),
        pytest.param(
            WIDE, [sample(1, pod="a")], {}, {Dropped.FOREIGN_NAMESPACE: 1}, id="no namespace where one is needed"
        ),
        pytest.param(WIDE, [sample(1, namespace="shop")], {}, {Dropped.UNKNOWN_OBJECT: 1}, id="no object"),
        pytest.param(
            Assignment("pod", "namespace", "shop", frozenset({"a"})),
            [sample(1, pod="a"), sample(2, pod="b")],
            {"shop": {"a": 1.0}},
            {Dropped.UNKNOWN_OBJECT: 1},
            id="an object that was not requested",
        ),
        pytest.param(
            ROOT_SCOPED, [sample(1, node="n", namespace="x")], {"": {"n": 1.0}}, {}, id="outside of namespaces"
        ),
        pytest.param(
            WIDE,
            [
                sample(math.nan, namespace="shop", pod="a"),
                sample(math.inf, namespace="shop", pod="b"),
                sample(-math.inf, namespace="shop", pod="c"),
                sample(-5, namespace="shop", pod="d"),
                sample(0, namespace="shop", pod="e"),
            ],
            {"shop": {"d": -5.0, "e": 0.0}},
            {Dropped.NAN: 1, Dropped.INF: 2},
            id="only finite values are values",
        ),
        pytest.param(
            Assignment("pod", "namespace", non_negative=True),
            [sample(value, namespace="shop", pod=pod) for value, pod in [(-1, "a"), (0, "b"), (-0.0, "c"), (1, "d")]],
            {"shop": {"b": 0.0, "c": -0.0, "d": 1.0}},
            {Dropped.NEGATIVE: 1},
            id="usage is 0 or more",
        ),
        pytest.param(
            WIDE,
            [
                sample(1, NOW - 61, namespace="shop", pod="a"),
                sample(2, NOW - 59, namespace="shop", pod="b"),
                sample(3, NOW + 59, namespace="shop", pod="c"),
                sample(4, NOW + 61, namespace="shop", pod="d"),
            ],
            {"shop": {"b": 2.0, "c": 3.0}},
            {Dropped.STALE: 2},
            id="samples of another time",
        ),
        pytest.param(
            WIDE,
            [
                sample(1, namespace="shop", pod="a", path="/"),
                sample(2, namespace="shop", pod="a", path="/x"),
                sample(3, namespace="shop", pod="a", path="/y"),
                sample(4, namespace="shop", pod="b", path="/"),
            ],
            {"shop": {"b": 4.0}},
            {Dropped.DUPLICATE: 3},
            id="several samples for one object",
        ),
        pytest.param(
            WIDE,
            [sample(math.nan, namespace="shop", pod="a", path="/"), sample(2, namespace="shop", pod="a", path="/x")],
            {"shop": {}},
            {Dropped.NAN: 1, Dropped.DUPLICATE: 1},
            id="a NaN beside a value does not make the value certain",
        ),
    ],
)
def test_samples_become_values_or_are_dropped_with_a_reason(
    assignment: Assignment, samples: list[Sample], values: dict[str, dict[str, float]], dropped: dict[Dropped, int]
) -> None:
    reading, counted = build(assignment, *samples)

    assert reading.values == values
    assert counted == dropped


def test_an_object_with_several_samples_has_no_value_and_the_message_names_the_labels_they_differ_in() -> None:
    reading, _ = build(
        WIDE,
        sample(1, namespace="shop", pod="a", path="/", code="200", zone="z"),
        sample(2, namespace="shop", pod="a", path="/x", code="200", zone="z"),
        sample(3, namespace="shop", pod="a", path="/", zone="z"),
    )

    with pytest.raises(AmbiguousSamplesError, match=r"'a' has no value: several samples .* differ in code, path: "):
        reading.one("shop", "a")


def test_a_list_leaves_out_ambiguous_objects_unless_nothing_is_left() -> None:
    reading, _ = build(
        WIDE,
        sample(1, namespace="shop", pod="a", path="/"),
        sample(2, namespace="shop", pod="a", path="/x"),
        sample(3, namespace="shop", pod="b", path="/"),
    )

    assert reading.of("shop", ("a", "b", "c")) == (("b", 3.0),)
    with pytest.raises(AmbiguousSamplesError):
        reading.of("shop", ("a", "c"))
    assert reading.of("shop", ("c",)) == ()


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        ([], "Prometheus has no sample for it"),
        ([sample(math.nan, namespace="shop", pod="a")], "its value is NaN"),
        ([sample(math.inf, namespace="shop", pod="a")], "its value is infinite"),
        ([sample(1e16, namespace="shop", pod="a")], "its value is too large: .* divide it in the rule's metricsQuery"),
        ([sample(-1e16, namespace="shop", pod="a")], "its value is too large"),
        (
            [sample(1, namespace="shop", instance="x", job="y")],
            "without the label 'pod', .* but with instance, job, namespace: keep that label",
        ),
    ],
)
def test_an_object_without_a_value_is_an_error_with_the_reason(samples: list[Sample], message: str) -> None:
    reading, _ = build(WIDE, *samples)

    with pytest.raises(NoSampleError, match=f"'a' has no value: .*{message}"):
        reading.one("shop", "a")


def test_a_list_is_an_error_if_no_sample_has_the_label_of_its_object() -> None:
    nameless = sample(1, namespace="shop", instance="x")
    broken, _ = build(WIDE, nameless)
    with pytest.raises(NoSampleError, match=r"no object has a value: .* label 'pod', .* with instance, name"):
        broken.of("shop", ("a", "b"))

    works_for_others, _ = build(WIDE, nameless, sample(1, namespace="other", pod="a"))
    assert works_for_others.of("shop", ("a", "b")) == ()


labels = st.fixed_dictionaries(
    {},
    optional={
        "namespace": st.sampled_from(["", "n", "m"]),
        "pod": st.sampled_from(["", "a", "b", "c"]),
        "x": st.sampled_from("pq"),
    },
)
series = st.lists(st.tuples(labels, st.floats()), unique_by=lambda pair: tuple(sorted(pair[0].items())), max_size=25)


@given(series)
def test_assigning_samples_agrees_with_a_simple_model(pairs: list[tuple[dict[str, str], float]]) -> None:
    reading, dropped = build(WIDE, *(Sample(labels, value, NOW) for labels, value in pairs))

    by_object: dict[tuple[str, str], list[float]] = {}
    for found, value in pairs:
        if found.get("namespace") and found.get("pod"):
            by_object.setdefault((found["namespace"], found["pod"]), []).append(value)
    alone = {key: values[0] for key, values in by_object.items() if len(values) == 1}
    expected = {key: value for key, value in alone.items() if abs(value) < 2**63 / 1000}
    assert {(ns, name): value for ns, found in reading.values.items() for name, value in found.items()} == expected
    assert len(pairs) - len(expected) == dropped.total()


@given(st.floats(-100, 100), st.floats(-100, 100))
def test_the_age_is_the_larger_one_of_both_clocks(wall: float, monotonic: float) -> None:
    age = Evaluation(1000.0, 50.0).age(1000.0 + wall, 50.0 + monotonic)

    assert age == pytest.approx(max(wall, monotonic))


def new_string(text: str) -> str:
    return text.encode().decode()


def test_names_are_shared_by_all_metrics_until_long_unseen() -> None:
    moment = 0.0
    names = SharedNames(lambda: moment, rotation_seconds=10)
    first = new_string("web-0")
    assert names.share(first) is first
    assert names.share(new_string("web-0")) is first

    moment = 10.0
    names.rotate()
    assert names.share(new_string("web-0")) is first

    moment = 20.0
    names.rotate()
    moment = 30.0
    names.rotate()
    other = new_string("web-0")
    assert names.share(other) is other


def test_a_native_histogram_has_no_value_and_makes_a_sample_beside_it_ambiguous() -> None:
    filing = ObjectReadingBuilder(WIDE, SharedNames(lambda: 0.0), SampleTimes(Evaluation(NOW, 0.0), 60))
    histograms = [{"namespace": "shop", "pod": "a"}, {"namespace": "shop", "pod": "b"}]
    filing.add([sample(1, namespace="shop", pod="a", path="/")], histograms)
    filing.compare([sample(1, namespace="shop", pod="a", path="/")], histograms)
    reading = filing.finish()

    with pytest.raises(AmbiguousSamplesError, match="differ in path"):
        reading.one("shop", "a")
    with pytest.raises(NoSampleError, match="native histograms have no single value"):
        reading.one("shop", "b")
    with pytest.raises(NoSampleError, match="native histograms have no single value"):
        reading.of("shop", ("b",))
    assert reading.of("bank", ("b",)) == (), "another namespace has nothing of it"
