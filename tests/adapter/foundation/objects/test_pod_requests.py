"""Effective requests and limits of pods, as the scheduler counts them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.objects.pod_requests import (
    ContainerResources,
    ContainerSpec,
    PodResources,
    PodResourcesError,
    PodSpecResources,
    pod_resources,
    raised_limits,
)

if TYPE_CHECKING:
    import random

MI = 1 << 20


def container(cpu: object = None, memory: object = None, *, name: str = "c", always: bool = False) -> ContainerSpec:
    stated = {"cpu": cpu, "memory": memory}
    return ContainerSpec(name, {key: str(text) for key, text in stated.items() if text is not None}, {}, always)


def limited(cpu: int, memory: int) -> ContainerSpec:
    return ContainerSpec("c", {}, {"cpu": f"{cpu}m", "memory": memory})


UPSTREAM = {
    "effres-0, requests": (
        PodSpecResources(
            (container("1000m", 2048), container("500m", 1024)), (container("100m", 512),), {"cpu": "10m"}
        ),
        "requests",
        (1510, 3072),
    ),
    "effres-2, requests of zero": (
        PodSpecResources((container("0", 0), container("0", 200 * MI), container("1", 400 * MI)), (container(0, 0),)),
        "requests",
        (1000, 600 * MI),
    ),
    "effres-3, limits, the init container is larger": (
        PodSpecResources((limited(1000, 2048), limited(500, 1024)), (limited(2000, 4096),), {"cpu": "10m"}),
        "limits",
        (2010, 4096),
    ),
    "effres-4, limits": (
        PodSpecResources((limited(1000, 4096), limited(2500, 2048)), (limited(2000, 4096),), {"cpu": "10m"}),
        "limits",
        (3510, 6144),
    ),
}
"""The cases of pkg/trimaran/resourcestats_test.go of kubernetes-sigs/scheduler-plugins at 903da7df."""


@pytest.mark.parametrize(("spec", "which", "expected"), UPSTREAM.values(), ids=UPSTREAM.keys())
def test_upstream_cases_give_the_same_requests_and_limits(
    spec: PodSpecResources, which: str, expected: tuple[int, int]
) -> None:
    found = getattr(pod_resources(spec), which)
    assert (found["cpu"], found["memory"]) == expected


SIDECARS = {
    "a sidecar adds to the containers": (
        PodSpecResources((container("1"),), (container("200m", always=True),)),
        1200,
    ),
    "an init container runs beside the sidecars before it": (
        PodSpecResources((container("1"),), (container("500m", always=True), container("2"))),
        2500,
    ),
    "an init container does not run beside the sidecars after it": (
        PodSpecResources((container("1"),), (container("2"), container("500m", always=True))),
        2000,
    ),
    "sidecars alone can be the largest of the start": (
        PodSpecResources((), (container("1", always=True), container("1", always=True))),
        2000,
    ),
    "init containers run one after the other": (
        PodSpecResources((container("1"),), (container("700m"), container("800m"))),
        1000,
    ),
    "the pod level replaces the sum, overhead is added": (
        PodSpecResources((container("1"),), (container("9"),), {"cpu": "50m"}, {"cpu": "2"}),
        2050,
    ),
    "an amount beyond int64 is the largest one": (
        PodSpecResources((container("1e900"), container("1"))),
        2**63 - 1,
    ),
    "parts of a milli are rounded once, up": (
        PodSpecResources((container("0.4m"), container("0.4m"))),
        1,
    ),
}


@pytest.mark.parametrize(("spec", "cpu_milli"), SIDECARS.values(), ids=SIDECARS.keys())
def test_requests_include_sidecars_init_containers_and_the_pod_level(spec: PodSpecResources, cpu_milli: int) -> None:
    assert pod_resources(spec).requests["cpu"] == cpu_milli


NON_ZERO = {
    "each container without requests has the defaults": (
        PodSpecResources((container(), container("300m"), container(None, "1Gi"))),
        {"cpu": 500, "memory": 1424 * MI},
    ),
    "an explicit zero stays zero": (PodSpecResources((container("0", "0"),)), {"cpu": 0, "memory": 0}),
    "so do init containers": (
        PodSpecResources((container("50m", MI),), (container(),)),
        {"cpu": 100, "memory": 200 * MI},
    ),
    "the pod level is no default": (
        PodSpecResources((container(), container()), requests={"cpu": "10m"}),
        {"cpu": 10, "memory": 400 * MI},
    ),
    "without containers nothing is added": (PodSpecResources(), {"cpu": 0, "memory": 0}),
}


@pytest.mark.parametrize(("spec", "expected"), NON_ZERO.values(), ids=NON_ZERO.keys())
def test_missing_requests_have_the_defaults_of_the_scheduler(spec: PodSpecResources, expected: dict[str, int]) -> None:
    assert pod_resources(spec).non_zero_requests == expected


def test_containers_are_kept_for_predictions_and_init_containers_are_not() -> None:
    spec = PodSpecResources(
        (container("250m"), ContainerSpec("d", {}, {"cpu": "1"}), container()), (container("4"),), {"cpu": "20m"}
    )
    assert pod_resources(spec) == PodResources(
        requests={"cpu": 4020},
        limits={"cpu": 1020},
        non_zero_requests={"cpu": 4020, "memory": 600 * MI},
        containers=(ContainerResources(250, None), ContainerResources(None, 1000), ContainerResources()),
        overhead_cpu_milli=20,
    )


def test_overhead_alone_is_not_a_limit_and_limits_are_raised_to_requests() -> None:
    found = pod_resources(PodSpecResources((container("1"),), (), {"cpu": "10m"}))
    assert found.limits == {}
    assert raised_limits(found, "cpu") == 1010
    assert raised_limits(found, "memory") == 0


LIMITED = ContainerSpec("c", {}, {"cpu": "2", "nvidia.com/gpu": "1"})
NOT_ADMITTED = {
    "limits of containers": (PodSpecResources((LIMITED, container("1"))), {"cpu": 3000, "nvidia.com/gpu": 1}),
    "limits of an init container": (
        PodSpecResources((container("1"),), (LIMITED,)),
        {"cpu": 2000, "nvidia.com/gpu": 1},
    ),
    "a request beside a limit": (PodSpecResources((ContainerSpec("c", {"cpu": "0"}, {"cpu": "2"}),)), {"cpu": 0}),
    "limits of the pod": (
        PodSpecResources((container(),), overhead={"cpu": "1"}, limits={"cpu": "2", "memory": "1Ki"}),
        {"cpu": 3000, "memory": 1024},
    ),
    "limits of the pod beside requests of containers": (
        PodSpecResources((container("1"), LIMITED), limits={"cpu": "8", "memory": "1Ki"}),
        {"cpu": 3000, "memory": 1024, "nvidia.com/gpu": 1},
    ),
    "limits of the pod beside its requests": (
        PodSpecResources((container("1"),), requests={"cpu": "4"}, limits={"cpu": "8", "memory": "1Ki"}),
        {"cpu": 4000, "memory": 1024},
    ),
    "huge pages, which have no other request than their limit": (
        PodSpecResources((ContainerSpec("c", {"hugepages-2Mi": "2Mi"}),), limits={"hugepages-2Mi": "4Mi"}),
        {"hugepages-2Mi": 4 * MI},
    ),
}


@pytest.mark.parametrize(("spec", "expected"), NOT_ADMITTED.values(), ids=NOT_ADMITTED.keys())
def test_requests_of_a_pod_that_is_not_admitted_yet_default_to_its_limits(
    spec: PodSpecResources, expected: dict[str, int]
) -> None:
    assert pod_resources(spec, is_admitted=False).requests == expected


def test_the_error_for_an_unreadable_limit_names_the_limit() -> None:
    with pytest.raises(PodResourcesError, match=r"limits\.memory: '1GB'"):
        pod_resources(PodSpecResources((ContainerSpec("c", {}, {"memory": "1GB"}),)), is_admitted=False)


def counted(*lists: dict[str, str | int | float], always: bool = False) -> ContainerSpec:
    return ContainerSpec("c", {"cpu": "1"}, {"cpu": "4"}, always, lists)


SPEC: dict[str, str | int | float] = {"cpu": "1"}
RESIZES = {
    "no resize": (PodSpecResources((counted(),)), {"cpu": 1000}),
    "a container that still has more": (PodSpecResources((counted(SPEC, {"cpu": "2"}),)), {"cpu": 2000}),
    "a container that still has less": (PodSpecResources((counted(SPEC, {"cpu": "500m"}),)), {"cpu": 1000}),
    "the largest of three": (PodSpecResources((counted(SPEC, {"cpu": "2"}, {"cpu": "3"}),)), {"cpu": 3000}),
    "the largest of each resource": (
        PodSpecResources((counted(SPEC, {"cpu": "500m", "memory": "1Ki"}, {"memory": "2Ki"}),)),
        {"cpu": 1000, "memory": 2048},
    ),
    "a resize that is infeasible": (PodSpecResources((counted({"cpu": "500m"}, {"cpu": "400m"}),)), {"cpu": 500}),
    "an infeasible resize of a container without requests": (PodSpecResources((counted({}),)), {}),
    "a sidecar": (PodSpecResources((counted(),), (counted({"cpu": "2"}, always=True),)), {"cpu": 3000}),
    "requests of the whole pod": (
        PodSpecResources((counted(SPEC, {"cpu": "2"}),), requests={"cpu": "1500m"}),
        {"cpu": 1500},
    ),
    "an amount that cannot be read": (PodSpecResources((counted(SPEC, {"cpu": "lots"}),)), {"cpu": 1000}),
    "a negative amount": (PodSpecResources((counted({"cpu": "-2"}, {"cpu": "3"}),)), {"cpu": 1000}),
}


@pytest.mark.parametrize(("spec", "expected"), RESIZES.values(), ids=RESIZES.keys())
def test_an_unfinished_resize_counts_with_the_largest_amount(spec: PodSpecResources, expected: dict[str, int]) -> None:
    assert pod_resources(spec).requests == expected


def test_a_resized_container_has_the_defaults_of_the_scheduler_for_missing_requests() -> None:
    found = pod_resources(PodSpecResources((counted({"memory": "1Ki"}),)))
    assert found.non_zero_requests == {"cpu": 100, "memory": 1024}


def test_limits_and_containers_are_those_of_the_spec_during_a_resize() -> None:
    found = pod_resources(PodSpecResources((counted(SPEC, {"cpu": "8"}),)))
    assert (found.limits, found.containers) == ({"cpu": 4000}, (ContainerResources(1000, 4000),))
    assert raised_limits(found, "cpu") == 8000


ERRORS = {
    "spec.containers[web].resources.requests.cpu: 'four' is not a quantity": PodSpecResources(
        (container("four", name="web"),)
    ),
    "spec.initContainers[load].resources.limits.memory: '1GB'": PodSpecResources(
        (), (ContainerSpec("load", {}, {"memory": "1GB"}),)
    ),
    "spec.overhead.cpu: '-1' is negative": PodSpecResources(overhead={"cpu": -1}),
    "spec.resources.requests.memory: ''": PodSpecResources(requests={"memory": ""}),
}


@pytest.mark.parametrize(("message", "spec"), ERRORS.items(), ids=ERRORS.keys())
def test_the_error_for_an_unreadable_quantity_names_container_and_field(message: str, spec: PodSpecResources) -> None:
    with pytest.raises(PodResourcesError) as caught:
        pod_resources(spec)
    assert str(caught.value).startswith(message)


amounts = st.dictionaries(
    st.sampled_from(["cpu", "memory", "nvidia.com/gpu"]), st.integers(min_value=0, max_value=1 << 40), max_size=3
)
containers = st.builds(ContainerSpec, st.just("c"), amounts, amounts)
inits = st.builds(ContainerSpec, st.just("i"), amounts, amounts, st.booleans())


@given(st.lists(containers, max_size=5), st.lists(inits, max_size=5), st.randoms(use_true_random=False))
def test_no_container_exceeds_its_pod_and_the_order_of_containers_does_not_matter(
    plain: list[ContainerSpec], first: list[ContainerSpec], chance: random.Random
) -> None:
    found = pod_resources(PodSpecResources(tuple(plain), tuple(first)))
    for one in (*plain, *first):
        for name, amount in one.requests.items():
            assert int(amount) * (1000 if name == "cpu" else 1) <= found.requests[name]
    for name, amount in found.non_zero_requests.items():
        assert amount >= found.requests.get(name, 0)
    shuffled = list(plain)
    chance.shuffle(shuffled)
    again = pod_resources(PodSpecResources(tuple(shuffled), tuple(first)))
    assert (again.requests, again.limits) == (found.requests, found.limits)


@given(st.lists(containers, max_size=4), st.lists(inits, max_size=6))
def test_the_request_is_the_maximum_over_the_life_of_the_pod(
    plain: list[ContainerSpec], first: list[ContainerSpec]
) -> None:
    def of(specs: list[ContainerSpec]) -> int:
        return sum(int(one.requests.get("memory", 0)) for one in specs)

    moments = [of([one for one in first[:at] if one.restarts_always] + [first[at]]) for at in range(len(first))]
    moments.append(of([one for one in first if one.restarts_always] + plain))
    found = pod_resources(PodSpecResources(tuple(plain), tuple(first)))
    assert found.requests.get("memory", 0) == max(moments)
