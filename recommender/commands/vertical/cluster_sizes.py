"""Reads the size of the cluster, as nodes and their cores or as containers, with lists and no watches."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from adapter.foundation.objects.quantities import QuantityError, parse_quantity
from adapter.foundation.objects.resources import BUILT_IN, find_resource
from adapter.foundation.sources.kubernetes.errors import UnexpectedResponseError
from adapter.foundation.sources.kubernetes.lists.list_checks import CONFIRM_SECONDS
from adapter.foundation.sources.kubernetes.lists.list_watch import METADATA_ONLY, WHOLE_OBJECTS, ListWatch
from adapter.foundation.sources.kubernetes.lists.whole_list import whole_list
from adapter.foundation.sources.kubernetes.watches.streams import lines_of
from recommender.commands.vertical.polls import PollError
from recommender.kinds.proportional.nanny.object_counts import CountError, counted_objects

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.sources.kubernetes.client import KubernetesClient

_NANOS_PER_CORE: Final = 10**9
_METRICS_SECONDS: Final = 20.0
_NODES: Final = find_resource(BUILT_IN, "", "nodes")
_PODS: Final = find_resource(BUILT_IN, "", "pods")
_RUNNING: Final = "status.phase!=Succeeded,status.phase!=Failed"


@dataclass(frozen=True, slots=True)
class NodesAndCores:
    """The number of all nodes, including cordoned and unready ones, and of their cores."""

    nodes: int
    cores: int
    """The sum of their capacities, rounded up to whole cores."""


class ConfirmedCounts:
    """Rejects an empty list until a second list confirms it, since a wrong one does the most harm. Not thread-safe."""

    def __init__(self, outcome: str, clock: Callable[[], float] = time.monotonic) -> None:
        """`outcome` is the outcome of a poll whose list is rejected."""
        self._outcome = outcome
        self._clock = clock
        self._empty_since = math.inf
        """When lists began to be empty, in monotonic seconds; infinite if the last list had objects."""

    def check(self, objects: int) -> None:
        """Check a count: it may be 0 only if lists have been empty for at least half a minute. Raises PollError."""
        now = self._clock()
        self._empty_since = math.inf if objects else min(self._empty_since, now)
        if not objects and now - self._empty_since < CONFIRM_SECONDS:
            message = "the cluster looks empty: the sizes stay until a second list, half a minute later, agrees"
            raise PollError(self._outcome, message)


class _Amounts(msgspec.Struct, gc=False):
    cpu: str | int | float = 0


class _NodeStatus(msgspec.Struct, gc=False):
    capacity: _Amounts | None = None


class _Node(msgspec.Struct, gc=False):
    status: _NodeStatus | None = None


class _Anything(msgspec.Struct, gc=False):
    pass


class _PodSpec(msgspec.Struct, gc=False, rename="camel"):
    containers: list[_Anything] | None = None
    init_containers: list[_Anything] | None = None
    ephemeral_containers: list[_Anything] | None = None


class _Pod(msgspec.Struct, gc=False):
    spec: _PodSpec | None = None


def nodes_and_cores(client: KubernetesClient) -> NodesAndCores:
    """List the nodes, and return how many there are and how many cores they have. Raises KubernetesError."""
    nodes = nanos = 0
    for node in whole_list(client, ListWatch(_NODES, WHOLE_OBJECTS), _Node):
        nodes += 1
        capacity = node.status.capacity if node.status else None
        if capacity is not None:
            try:
                nanos += parse_quantity(str(capacity.cpu)).nanos
            except QuantityError as error:
                raise UnexpectedResponseError(f"GET /api/v1/nodes: the capacity of a node: {error}") from error
    return NodesAndCores(nodes, -(-nanos // _NANOS_PER_CORE))


def number_of_nodes(client: KubernetesClient) -> int:
    """List the metadata of the nodes, and return how many there are. Raises KubernetesError."""
    return sum(1 for _ in whole_list(client, ListWatch(_NODES, METADATA_ONLY), _Anything))


def number_of_containers(client: KubernetesClient) -> int:
    """List the pods that have not ended, and return how many containers of all types they have.

    Raises KubernetesError.
    """
    which = ListWatch(_PODS, WHOLE_OBJECTS, field_selector=_RUNNING)
    specs = (pod.spec for pod in whole_list(client, which, _Pod) if pod.spec is not None)
    return sum(
        len(spec.containers or ()) + len(spec.init_containers or ()) + len(spec.ephemeral_containers or ())
        for spec in specs
    )


def number_in_metrics(client: KubernetesClient, plural: str) -> int:
    """Return how many objects of a kind the API server's own metrics count. Raises KubernetesError."""
    with client.open("/metrics", accept="text/plain") as answer:
        try:
            return counted_objects(
                (line for lines in lines_of(answer.pieces(_METRICS_SECONDS)) for line in lines), plural
            )
        except CountError as error:
            raise UnexpectedResponseError(f"GET /metrics: {error}") from error
