"""Properties of every policy for any nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.foundation.objects.pod_requests import ContainerResources, PodResources
from adapter.nodes.model.columns import PendingPod
from adapter.nodes.model.nodes_snapshot import NodesSnapshot
from adapter.nodes.model.scheduling_settings import (
    DEFAULT_ARGS,
    PeaksArgs,
    PolicyArgs,
    PolicyName,
    PolicySettings,
    PowerModel,
)
from adapter.nodes.model.usage import UsageName
from adapter.nodes.scores.table import score_nodes
from tests.adapter.nodes.scores.builder import CPU, MEMORY, Node, bound_pod, columns, listed

if TYPE_CHECKING:
    from collections.abc import Mapping

NAMES: Final = tuple(f"n{i}" for i in range(6))
MODELS: Final = {name: PowerModel(400.0, -90.0, -0.07 + 0.01 * i) for i, name in enumerate(NAMES[:5])}
ARGS: Final[Mapping[PolicyName, PolicyArgs]] = {**DEFAULT_ARGS, PolicyName.PEAKS: PeaksArgs(MODELS)}
# Without numbers so small that their ratio to a capacity is beyond floating point.
RATIO = st.one_of(st.just(0.0), st.just(float("nan")), st.floats(1e-9, 1.0))
IN_ORDER: Final = list(range(len(NAMES)))
AMOUNT = st.integers(0, 2**20)
"""An amount that stays exact when it is scaled by a power of two."""


@st.composite
def some_node(draw: st.DrawFn, name: str) -> Node:
    resources = ("cpu", "memory")
    requested = {resource: draw(AMOUNT) for resource in resources}
    return Node(
        name,
        capacity={resource: draw(AMOUNT) for resource in resources},
        allocatable={resource: draw(AMOUNT) for resource in resources},
        requested=requested,
        limits={resource: amount + draw(AMOUNT) for resource, amount in requested.items()},
        mean={CPU: draw(RATIO), MEMORY: draw(RATIO)},
        std={CPU: draw(RATIO), MEMORY: draw(RATIO)},
        usage={name: draw(RATIO) for name in UsageName},
        recent_cpu_prediction=draw(AMOUNT),
        recent_requests={CPU: draw(AMOUNT)},
        zone=draw(st.integers(-1, 2)),
        gpu_left=tuple(draw(st.lists(st.integers(0, 1000), max_size=4))),
    )


NODES = st.tuples(*(some_node(name) for name in NAMES))


@st.composite
def some_pod(draw: st.DrawFn) -> PendingPod:
    requests = {"cpu": draw(AMOUNT), "memory": draw(AMOUNT)}
    return PendingPod(
        resources=PodResources(
            requests=requests,
            limits={"cpu": draw(AMOUNT)},
            non_zero_requests=requests,
            containers=(ContainerResources(cpu_limit_milli=draw(AMOUNT)),),
        ),
        gpu_count=draw(st.integers(0, 2)),
        gpu_milli=draw(st.integers(1, 1000)),
        owner_selector="app=web",
    )


def scores(name: PolicyName, pending: PendingPod, nodes: tuple[Node, ...], order: list[int]) -> list[float | None]:
    pods = [bound_pod(NAMES[index], {"app": "web"}, "") for index in (0, 0, 1, 3)]
    snapshot = NodesSnapshot(columns=columns(*nodes), loads=None, basis="metrics", pods_by_namespace={"": pods})
    return listed(score_nodes(PolicySettings(name, 1, ARGS[name]), pending, snapshot, np.array(order, dtype=np.intp)))


@settings(max_examples=60)
@given(nodes=NODES, pending=some_pod(), order=st.permutations(range(len(NAMES))))
def test_scores_are_integers_from_0_to_100_and_do_not_depend_on_node_order(
    nodes: tuple[Node, ...], pending: PendingPod, order: list[int]
) -> None:
    for name in PolicyName:
        straight = scores(name, pending, nodes, IN_ORDER)
        assert all(value is None or (0 <= value <= 100 and value == int(value)) for value in straight), name
        assert scores(name, pending, nodes, order) == [straight[index] for index in order], name


def scaled(amounts: Mapping[str, float], factor: int) -> dict[str, float]:
    return {key: amount * factor for key, amount in amounts.items()}


@settings(max_examples=60)
@given(nodes=NODES, pending=some_pod(), factor=st.sampled_from([2, 1024]))
def test_the_unit_of_amounts_does_not_matter(nodes: tuple[Node, ...], pending: PendingPod, factor: int) -> None:
    larger = tuple(
        replace(
            node,
            capacity=scaled(node.capacity, factor),
            allocatable=scaled(node.allocatable or {}, factor),
            requested=scaled(node.requested, factor),
            limits=scaled(node.limits, factor),
            recent_cpu_prediction=node.recent_cpu_prediction * factor,
            recent_requests={key: amount * factor for key, amount in node.recent_requests.items()},
        )
        for node in nodes
    )
    requests = {key: amount * factor for key, amount in pending.resources.requests.items()}
    limit = pending.resources.limits["cpu"] * factor
    container = ContainerResources(cpu_limit_milli=(pending.resources.containers[0].cpu_limit_milli or 0) * factor)
    resources = PodResources(requests, {"cpu": limit}, requests, (container,))
    same = replace(pending, resources=resources)
    for name in PolicyName:
        assert scores(name, same, larger, IN_ORDER) == scores(name, pending, nodes, IN_ORDER), name
