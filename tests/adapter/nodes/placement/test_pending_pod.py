"""The pending pod is read from the Pod that kube-scheduler sends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from adapter.foundation.cluster.facts.objects import FactError
from adapter.foundation.cluster.forms.pods import PodForm
from adapter.foundation.cluster.values.state import PodSelector
from adapter.nodes.model.scheduling_settings import GpuSettings
from adapter.nodes.placement.pending_pod import OwnerSelectors, pending_pod
from tests.support.cluster_objects import pod_object

if TYPE_CHECKING:
    from adapter.nodes.model.columns import PendingPod
    from tests.support.cluster_objects import Json

SELECTORS = OwnerSelectors(
    [
        PodSelector("Service", "shop", "web", "1", "app=web"),
        PodSelector("Service", "shop", "all", "2", "tier in (a,b)"),
        PodSelector("Service", "shop", "none", "3", ""),
        PodSelector("Service", "talk", "web", "4", "app=web"),
        PodSelector("ReplicaSet", "shop", "web", "5", "app=web,hash=x"),
        PodSelector("ReplicaSet", "talk", "web", "6", "app=talk"),
    ]
)
GPU = GpuSettings(allocation_annotation="gpus")


def pending(content: Json) -> PendingPod:
    return pending_pod(msgspec.json.decode(msgspec.json.encode(content), type=PodForm), SELECTORS, GPU)


def test_a_pod_is_read_as_the_scheduler_sends_it() -> None:
    found = pending(pod_object("web-1", labels={"app": "web"}, requests={"cpu": "500m"}, schedulerName="tidewatch"))
    assert (found.namespace, found.name, found.uid) == ("shop", "web-1", "uid-web-1")
    assert (found.scheduler_name, found.has_spread_constraints) == ("tidewatch", False)
    assert found.resources.requests == {"cpu": 500}
    assert (found.gpu_count, found.gpu_milli) == (0, 0)
    spread = pending(pod_object("web-1", topologySpreadConstraints=[{"maxSkew": 1}]))
    assert (spread.scheduler_name, spread.has_spread_constraints) == ("default-scheduler", True)


@pytest.mark.parametrize(("claims", "expected"), [([{"name": "gpu"}], True), ([], False), (None, False)])
def test_a_pod_with_resource_claims_is_recognised(claims: list[Json] | None, expected: bool) -> None:  # noqa: FBT001 - a column
    assert pending(pod_object("web-1", resourceClaims=claims)).has_resource_claims is expected


OWNERS = {
    "a Service": (pod_object("p", labels={"app": "web"}), "app=web"),
    "two Services": (pod_object("p", labels={"app": "web", "tier": "a"}), "app=web,tier in (a,b)"),
    "a controller": (pod_object("p", owner=("ReplicaSet", "web")), "app=web,hash=x"),
    "Services and a controller": (
        pod_object("p", labels={"app": "web"}, owner=("ReplicaSet", "web")),
        "app=web,app=web,hash=x",
    ),
    "a controller of another kind": (pod_object("p", owner=("StatefulSet", "web")), ""),
    "a controller of another namespace": (pod_object("p", "talk", owner=("ReplicaSet", "web")), "app=talk"),
    "nothing": (pod_object("p", labels={"app": "db"}), ""),
}


@pytest.mark.parametrize(("content", "selector"), OWNERS.values(), ids=OWNERS.keys())
def test_the_owner_selector_combines_services_and_the_controller(content: Json, selector: str) -> None:
    assert pending(content).owner_selector == selector


GPUS = {
    "whole ones": (pod_object("p", requests={"nvidia.com/gpu": "2"}), (2, 1000)),
    "a share": (pod_object("p", requests={"nvidia.com/gpu": "1"}, annotations={"gpus": "0:300"}), (1, 300)),
    "shares of two": (pod_object("p", annotations={"gpus": "0:300,1:400"}), (2, 400)),
}


@pytest.mark.parametrize(("content", "needed"), GPUS.values(), ids=GPUS.keys())
def test_gpus_come_from_requests_or_the_annotation(content: Json, needed: tuple[int, int]) -> None:
    found = pending(content)
    assert (found.gpu_count, found.gpu_milli) == needed


@pytest.mark.parametrize(
    "content", [pod_object("p", requests={"cpu": "x"}), pod_object("p", annotations={"gpus": "x"})]
)
def test_a_pod_that_cannot_be_read_is_named(content: Json) -> None:
    with pytest.raises(FactError, match="Pod shop/p: "):
        pending(content)
