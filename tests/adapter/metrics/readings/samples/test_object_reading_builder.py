"""The samples of containers, however many one pod seems to have: how many samples came decides their cost."""

from __future__ import annotations

import math
import tracemalloc
from itertools import islice
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.sources.prometheus.answers.decoding import Sample
from adapter.foundation.time.pace import Pace
from adapter.metrics.readings.errors import NoSampleError
from adapter.metrics.readings.samples.assignment import Assignment
from adapter.metrics.readings.samples.object_reading import Dropped, Evaluation
from adapter.metrics.readings.samples.object_reading_builder import MOST_CONTAINERS, ObjectReadingBuilder
from adapter.metrics.readings.samples.sample_times import SampleTimes
from adapter.metrics.readings.samples.shared_names import SharedNames

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapter.metrics.readings.samples.object_reading import ObjectReading

NOW = 1_800_000_000.0
OF_CONTAINERS = Assignment("pod", "namespace", container_label="container", non_negative=True)
MOST_BYTES_A_SAMPLE = 400


class CountingNames(SharedNames):
    """A keeper of names that counts their characters: a measure of work that no other load on the machine changes."""

    def __init__(self) -> None:
        super().__init__(lambda: 0.0)
        self.characters = 0

    def share(self, name: str) -> str:
        self.characters += len(name)
        return super().share(name)


def samples(number: int, pod: str = "web-0") -> Iterator[Sample]:
    for one in range(number):
        yield Sample({"namespace": "shop", "pod": pod, "container": f"container-{one}"}, 1.0, NOW)


def filed(*parts: Iterator[Sample], names: SharedNames | None = None) -> tuple[ObjectReadingBuilder, ObjectReading]:
    filing = ObjectReadingBuilder(
        OF_CONTAINERS, names or SharedNames(lambda: 0.0), SampleTimes(Evaluation(NOW, 0.0), 60)
    )
    for part in parts:
        while batch := list(islice(part, 200)):
            filing.add(batch)
    filing.end()
    return filing, filing.finish()


@pytest.mark.parametrize("pods", [1, 40])
def test_memory_grows_with_the_samples_and_not_with_their_square(pods: int) -> None:
    """6,000 containers of one pod once took a gigabyte; 20,000 took all the memory there was."""
    number = 20_000
    names = CountingNames()
    parts = [samples(number // pods, f"web-{one}") for one in range(pods)]
    tracemalloc.start()
    try:
        kept = filed(*parts, names=names)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept
    assert peak < MOST_BYTES_A_SAMPLE * number
    assert names.characters < 60 * number


def test_a_pod_with_too_many_containers_has_no_value_and_a_reason() -> None:
    filing, reading = filed(samples(20_000), samples(2, "web-1"))
    assert reading.values == {"shop": {"web-1/container-0": 1.0, "web-1/container-1": 1.0}}
    assert filing.dropped == {Dropped.UNKNOWN_OBJECT: 20_000}
    (key,) = reading.keys("shop", "web-0")
    assert "more than 1000 values of the label for containers" in reading.faults["shop"][key].reason
    with pytest.raises(NoSampleError, match="more than 1000 values"):
        reading.one("shop", key)
    example = filing.ambiguous_example
    assert example is not None
    assert example.startswith("shop/web-0 has no value: more than 1000 ")


def test_a_pod_may_have_as_many_containers_as_the_limit_says() -> None:
    filing, reading = filed(samples(MOST_CONTAINERS))
    assert len(reading.values["shop"]) == len(reading.keys("shop", "web-0")) == MOST_CONTAINERS
    assert not reading.faults
    assert filing.ambiguous_example is None


def test_duplicates_before_the_container_limit_are_still_compared() -> None:
    filing = ObjectReadingBuilder(OF_CONTAINERS, SharedNames(lambda: 0.0), SampleTimes(Evaluation(NOW, 0.0), 60))
    twice = [*samples(2), *samples(2), *samples(MOST_CONTAINERS + 5)]
    filing.add(twice)
    filing.compare(twice)
    reading = filing.finish()
    assert reading.values == {"shop": {}}
    assert sum(filing.dropped.values()) == len(twice)
    assert [reading.faults["shop"][key].ambiguous for key in reading.keys("shop", "web-0")] == [False]


def test_pods_of_a_workload_share_the_text_of_their_containers() -> None:
    _, reading = filed(samples(2, "web-0"), samples(2, "web-1"))
    assert reading.containers is not None
    texts = reading.containers["shop"]
    assert texts["web-0"] == "container-0/container-1"
    assert texts["web-0"] is texts["web-1"]


def test_container_names_are_joined_in_slices() -> None:
    sleeps: list[float] = []
    moments = iter(range(1_000_000))
    pace = Pace(pause_seconds=0.004, sleep=sleeps.append, clock=lambda: next(moments) / 1000)
    filing = ObjectReadingBuilder(OF_CONTAINERS, SharedNames(lambda: 0.0), SampleTimes(Evaluation(NOW, 0.0), 60))
    for one in range(20):
        filing.add(samples(2, f"web-{one}"))
    reading = filing.finish(pace)
    assert reading.containers is not None
    assert len(reading.containers["shop"]) == 20
    assert len(sleeps) >= 19


def sample(pod: str, container: str | None, value: float = 1.0) -> Sample:
    labels = {"namespace": "shop", "pod": pod} | ({} if container is None else {"container": container})
    return Sample(labels, value, NOW)


@pytest.mark.parametrize(
    ("given_samples", "values", "caution"),
    [
        ([sample("web-0", None, 2.0)], {"web-0/": 2.0}, True),
        ([sample("web-0", None, 2.0), sample("web-0", "app")], {"web-0/app": 1.0}, False),
        ([sample("web-0", "app"), sample("web-0", None, 2.0)], {"web-0/app": 1.0}, False),
        ([sample("web-0", "app"), sample("web-1", None, 2.0)], {"web-0/app": 1.0, "web-1/": 2.0}, False),
        ([sample("web-0", None), sample("web-0", None), sample("web-0", "app")], {"web-0/app": 1.0}, False),
        ([sample("web-0", None, math.nan), sample("web-0", "app")], {"web-0/app": 1.0}, False),
    ],
    ids=["alone", "before a container", "after one", "beside another pod", "twice", "NaN"],
)
def test_a_sample_of_a_whole_pod_counts_only_if_the_pod_has_no_container(
    given_samples: list[Sample], values: dict[str, float], *, caution: bool
) -> None:
    filing, reading = filed(iter(given_samples))
    assert reading.values == {"shop": values}
    assert (reading.caution is not None) is caution
    assert not filing.has_rivals
    assert not reading.faults.get("shop")


def test_two_samples_of_a_whole_pod_are_ambiguous() -> None:
    filing, reading = filed(iter([sample("web-0", None), sample("web-0", None)]))
    assert filing.has_rivals
    assert reading.values == {"shop": {}}
    assert reading.faults["shop"]["web-0/"].ambiguous
    assert reading.keys("shop", "web-0") == ("web-0/",)


@given(
    st.lists(
        st.builds(sample, st.sampled_from(["a", "b"]), st.sampled_from([None, "x", "y"]), st.just(1.0)), max_size=7
    ).flatmap(lambda given_samples: st.tuples(st.just(given_samples), st.permutations(given_samples)))
)
def test_the_order_of_samples_does_not_matter(orders: tuple[list[Sample], list[Sample]]) -> None:
    one, other = (filed(iter(order))[1] for order in orders)
    assert (one.values, one.caution) == (other.values, other.caution)
    assert {space: set(faults) for space, faults in one.faults.items()} == {
        space: set(faults) for space, faults in other.faults.items()
    }
    for pod in ("a", "b"):
        assert sorted(one.keys("shop", pod)) == sorted(other.keys("shop", pod))


def test_a_sample_of_the_whole_pod_does_not_hide_that_it_has_too_many_containers() -> None:
    _, reading = filed(samples(MOST_CONTAINERS + 1), iter([sample("web-0", None)]))
    assert "more than 1000 values" in reading.faults["shop"]["web-0/"].reason
