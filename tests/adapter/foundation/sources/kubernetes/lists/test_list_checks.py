"""Lists must be of the requested kind, and some wait for a second list."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from adapter.foundation.objects.resources import BUILT_IN, Resource, find_resource
from adapter.foundation.sources.kubernetes.errors import UnexpectedResponseError
from adapter.foundation.sources.kubernetes.lists.items import ListHead
from adapter.foundation.sources.kubernetes.lists.list_checks import CONFIRM_SECONDS, Confirmation, refuse_other_kind
from adapter.foundation.sources.stores import KubernetesObject, Replacement, SingleObject

NODES = find_resource(BUILT_IN, "", "nodes")
AUTOSCALERS = find_resource(BUILT_IN, "autoscaling", "horizontalpodautoscalers")
POOLS = Resource(
    "cluster.x-k8s.io", "v1beta1", "machinedeployments", "machinedeployment", "MachineDeployment", namespaced=True
)


@pytest.mark.parametrize(
    ("resource", "kind", "version"),
    [
        (NODES, "NodeList", "v1"),
        (NODES, "PartialObjectMetadataList", "meta.k8s.io/v1"),
        (AUTOSCALERS, "HorizontalPodAutoscalerList", "autoscaling/v2"),
        (POOLS, "MachineDeploymentList", "cluster.x-k8s.io/v1beta1"),
        (POOLS, "Pools", "cluster.x-k8s.io/v1beta1"),
    ],
)
def test_a_list_of_the_requested_kind_is_accepted(resource: Resource, kind: str, version: str) -> None:
    refuse_other_kind("/x", resource, ListHead(kind=kind, api_version=version), metadata_alone=True)


@pytest.mark.parametrize(
    ("resource", "kind", "version"),
    [
        (NODES, "PodList", "v1"),
        (NODES, "NodeList", "v2"),
        (NODES, "NodeList", ""),
        (NODES, "", ""),
        (NODES, "List", "v1"),
        (NODES, "Status", "v1"),
        (AUTOSCALERS, "HorizontalPodAutoscalerList", "autoscaling/v1"),
        (AUTOSCALERS, "PartialObjectMetadataList", "v1"),
        (POOLS, "", "cluster.x-k8s.io/v1beta1"),
        (POOLS, "MachineDeploymentList", "other.io/v1beta1"),
    ],
)
def test_any_other_list_is_refused_with_the_requested_kind(resource: Resource, kind: str, version: str) -> None:
    with pytest.raises(UnexpectedResponseError, match=rf"GET /x: a list of .*, not a {resource.kind}List of"):
        refuse_other_kind("/x", resource, ListHead(kind=kind, api_version=version), metadata_alone=True)


def test_metadata_are_refused_if_whole_objects_were_requested() -> None:
    head = ListHead(kind="PartialObjectMetadataList", api_version="meta.k8s.io/v1")
    with pytest.raises(UnexpectedResponseError, match="not a NodeList of v1"):
        refuse_other_kind("/x", NODES, head, metadata_alone=False)


def test_a_doubted_list_is_accepted_only_after_a_late_enough_second_one() -> None:
    now = [100.0]

    def doubt(replacement: Replacement[KubernetesObject], listed: int, *, is_second: bool) -> int:  # noqa: ARG001 - as the protocol
        return 0 if listed or is_second else 7

    found = Confirmation[KubernetesObject](doubt, lambda: now[0])
    store = SingleObject[KubernetesObject]("x", lambda _content: None)

    def believes(listed: int) -> bool:
        return found.believes(store.replacement(), listed)

    def waits() -> tuple[int, float | None]:
        return found.kept, found.due_seconds

    assert not believes(0)
    assert waits() == (7, CONFIRM_SECONDS)
    now[0] += CONFIRM_SECONDS - 0.1
    assert not believes(0), "too soon to be a second one"
    now[0] += 0.2
    assert found.due_seconds == 0
    assert believes(0)
    assert waits() == (0, None)
    assert not believes(0), "a doubt of its own"
    assert believes(3), "the objects are back"
    assert waits() == (0, None)


@dataclass
class Lists:
    """Lists with given numbers of objects, and the number of known objects when each arrives."""

    now: float = 100.0
    known: int = 0

    def __post_init__(self) -> None:
        self.found = Confirmation[KubernetesObject](self.doubt, lambda: self.now)

    def doubt(self, replacement: Replacement[KubernetesObject], listed: int, *, is_second: bool) -> int:  # noqa: ARG002 - as the protocol
        return 0 if listed or is_second else self.known

    def believes(self, listed: int, after_seconds: float = 0.0) -> tuple[bool, bool, float | None]:
        """Return whether a list is accepted, whether the first one is in doubt, and when a second one is due."""
        self.now += after_seconds
        store = SingleObject[KubernetesObject]("x", lambda _content: None)
        taken = self.found.believes(store.replacement(), listed)
        self.known = listed if taken else self.known
        return taken, self.found.began_empty, self.found.due_seconds


def test_an_empty_first_list_is_accepted_and_a_second_one_is_due() -> None:
    lists = Lists()
    assert lists.believes(0) == (True, True, CONFIRM_SECONDS)
    assert lists.believes(0, CONFIRM_SECONDS - 1.0) == (True, True, 1.0)
    assert lists.believes(0, 1.0) == (True, False, None)
    assert lists.believes(0, 100.0) == (True, False, None), "there is nothing to lose"


def test_objects_end_the_doubt_about_an_empty_first_list() -> None:
    lists = Lists()
    lists.believes(0)
    assert lists.believes(3, 1.0) == (True, False, None)
    assert lists.believes(0, 1.0) == (False, False, CONFIRM_SECONDS)


def test_objects_added_by_a_watch_are_not_lost_by_the_confirming_list() -> None:
    lists = Lists()
    lists.believes(0)
    lists.known = 2
    assert lists.believes(0, CONFIRM_SECONDS) == (False, True, CONFIRM_SECONDS)
    assert lists.believes(0, CONFIRM_SECONDS) == (True, False, None)
