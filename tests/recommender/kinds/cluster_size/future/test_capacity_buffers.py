from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from adapter.foundation.cluster.values.state import ClusterState, Observed, Unknown
from adapter.foundation.cluster.values.workloads import WorkloadFacts
from recommender.kinds.cluster_size.future.capacity_buffers import (
    ChunkError,
    buffer_chunks,
    buffer_kinds,
    chunk_of,
    chunks_asked,
    chunks_for,
)
from recommender.kinds.cluster_size.model.size_settings import BufferSettings
from tests.recommender.kinds.cluster_size.builders import pod
from tests.recommender.kinds.cluster_size.cases import cases

if TYPE_CHECKING:
    from tests.recommender.kinds.cluster_size.cases import Case

STATED = BufferSettings("shop", "reserve")


@pytest.mark.parametrize("case", cases("capacity_buffer"))
def test_a_buffer_has_as_many_chunks_as_in_the_peer(case: Case) -> None:
    given = case.input
    limits = None if given["limit_cores"] is None else {"cpu": given["limit_cores"] * 1000}
    chunk = {"cpu": given["pod_cores"] * 1000}
    found = chunks_asked(given["replicas"], given["percentage"], given["target_replicas"], limits, chunk)
    assert found == case.expected["replicas"]


@pytest.mark.parametrize(
    ("replicas", "percentage", "target", "limits", "chunks"),
    [
        (3, 50, 10, None, 5),
        (7, 50, 10, None, 7),
        (0, None, None, None, 0),
        (5, None, None, {"memory": 100}, 5),
        (5, None, None, {"cpu": 2500, "memory": 1}, 2),
        (5, None, None, {"cpu": 0}, 0),
        (None, 50, 0, None, 0),
    ],
)
def test_limits_and_percentages_bound_a_buffer(
    replicas: int | None, percentage: int | None, target: int | None, limits: dict[str, int] | None, chunks: int
) -> None:
    assert chunks_asked(replicas, percentage, target, limits, {"cpu": 1000}) == chunks


@pytest.mark.parametrize(("percentage", "limits"), [(None, None), (50, None), (None, {"memory": 5})])
def test_a_buffer_without_a_size_is_an_error(percentage: int | None, limits: dict[str, int] | None) -> None:
    with pytest.raises(ChunkError, match="set one of them"):
        chunks_asked(None, percentage, None, limits, {"cpu": 1000})


@pytest.mark.parametrize(
    ("pods", "chunk", "chunks"),
    [
        ((), {"cpu": 1000}, 0),
        ((pod("a", "500m", "1Gi"), pod("b", "600m", "1Gi")), {"cpu": 1000}, 2),
        ((pod("a", "500m", "1Gi"), pod("b", "500m", "4Gi")), {"cpu": 1000, "memory": 1 << 30}, 5),
        ((pod("a", "500m"),), {"cpu": 250, "memory": 0}, 2),
    ],
)
def test_chunks_together_hold_the_requests_of_the_pods(pods: Any, chunk: dict[str, int], chunks: int) -> None:  # noqa: ANN401 - a tuple of pods
    assert chunks_for(pods, chunk) == chunks


def test_a_chunk_without_requests_is_an_error() -> None:
    with pytest.raises(ChunkError, match="requests nothing"):
        chunks_for((pod("a"),), {"cpu": 0})


def state(spec: dict[str, Any], status: dict[str, Any] | None = None, template: Any = None) -> ClusterState:  # noqa: ANN401 - JSON
    buffer: dict[str, object] = {
        "metadata": {"namespace": "shop", "name": "reserve"},
        "spec": spec,
        "status": status or {},
    }
    resources = {"requests": {"cpu": "250m", "memory": "1Gi"}} if template is None else template
    made: dict[str, object] = {
        "metadata": {"namespace": "shop", "name": "chunk"},
        "template": {"spec": {"containers": [{"name": "c", "resources": resources}]}},
    }
    held: dict[str, tuple[dict[str, object], ...]] = {"CapacityBuffer": (buffer,), "PodTemplate": (made,)}
    web = WorkloadFacts("Deployment", "shop", "web", "uid", 3, replace(pod("", "2"), namespace="shop"))
    return ClusterState(
        objects={kind: Observed(held[kind.kind], 0.0) for kind in buffer_kinds(STATED)},
        workloads=Observed((web,), 0.0),
    )


@pytest.mark.parametrize(
    ("cluster", "cpu"),
    [
        (state({"podTemplateRef": {"name": "chunk"}}), 250),
        (state({"scalableRef": {"kind": "Deployment", "name": "web"}}, {"podTemplateRef": {"name": "chunk"}}), 250),
        (state({"scalableRef": {"kind": "Deployment", "name": "web"}}), 2000),
    ],
    ids=["template", "status", "workload"],
)
def test_the_size_of_a_chunk_comes_from_the_object_that_the_buffer_names(cluster: ClusterState, cpu: int) -> None:
    assert chunk_of(STATED, cluster)["cpu"] == cpu


@pytest.mark.parametrize(
    ("cluster", "problem"),
    [
        (state({"podTemplateRef": {"name": "none"}}), "there is no PodTemplate shop/none"),
        (state({}), "names neither a pod template nor a workload"),
        (state({"scalableRef": {"kind": "Deployment", "name": "none"}}), "names neither"),
        (
            state({"podTemplateRef": {"name": "chunk"}}, template={"requests": {"cpu": "much"}}),
            "'much' is not a quantity",
        ),
        (state({"podTemplateRef": {"name": "chunk"}}, template=3), "PodTemplate shop/chunk: Expected"),
        (ClusterState(), "there is no CapacityBuffer shop/reserve: create it"),
        (
            ClusterState(objects=dict.fromkeys(buffer_kinds(STATED), Unknown("403"))),
            "CapacityBuffers are not known: 403",
        ),
    ],
)
def test_a_chunk_of_unknown_size_is_an_error_with_the_cause(cluster: ClusterState, problem: str) -> None:
    with pytest.raises(ChunkError, match=problem):
        chunk_of(STATED, cluster)


@pytest.mark.parametrize(
    ("spec", "replicas", "is_limited"),
    [
        ({"podTemplateRef": {"name": "chunk"}}, 4, False),
        ({"podTemplateRef": {"name": "chunk"}, "limits": {"cpu": "500m"}}, 4, True),
        ({"scalableRef": {"kind": "Deployment", "name": "web"}, "percentage": 300}, 1, False),
    ],
)
def test_a_buffer_has_enough_chunks_for_future_pods(spec: dict[str, Any], replicas: int, *, is_limited: bool) -> None:
    found = buffer_chunks(STATED, state(spec), tuple(pod(f"p{number}", "500m", "64Mi") for number in range(2)))
    assert found.replicas == replicas
    assert ("limits of CapacityBuffer shop/reserve allow 2" in found.detail) == is_limited


def test_unreadable_limits_are_reported() -> None:
    spec = {"podTemplateRef": {"name": "chunk"}, "limits": {"cpu": "much"}}
    with pytest.raises(ChunkError, match=r"CapacityBuffer shop/reserve: spec.limits: 'much'"):
        buffer_chunks(STATED, state(spec), ())
