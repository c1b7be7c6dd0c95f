"""The order in which limits apply here gives the same results as cluster-proportional-autoscaler's order."""

from __future__ import annotations

import json
import math
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from recommender.kinds.proportional.config_map_parsing import parse_parameters
from recommender.kinds.proportional.parameters import ProportionalSettings
from tests.recommender.kinds.proportional.clusters import calculated, inputs_of, nodes_of

FEW = settings(max_examples=60)
SIZES = st.tuples(st.integers(0, 40), st.integers(0, 2000), st.integers(0, 10), st.integers(0, 500)).map(
    lambda size: (size[0], size[1] if size[0] else 0, size[2], size[3] if size[2] else 0)
)
"""Schedulable nodes and their cores, and other nodes and their cores."""

RATIOS = st.one_of(st.just(0), st.floats(0.01, 300), st.integers(1, 300))


@st.composite
def linear_parameters(draw: st.DrawFn) -> dict[str, Any]:
    lowest = draw(st.integers(0, 30))
    ratios = draw(st.tuples(RATIOS, RATIOS).filter(any))
    return {
        "coresPerReplica": ratios[0],
        "nodesPerReplica": ratios[1],
        "min": lowest,
        "max": draw(st.one_of(st.just(0), st.integers(max(lowest, 1), 60))),
        "preventSinglePointFailure": draw(st.booleans()),
        "includeUnschedulableNodes": draw(st.booleans()),
    }


RUNGS = st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 50)), max_size=8, unique_by=lambda rung: rung[0])


def peer_s_linear(parameters: dict[str, Any], nodes: int, cores: int) -> int:
    """Return the larger component, each limited by itself, and the node component raised to 2."""
    lowest, highest = parameters["min"] or 1, parameters["max"]

    def component(count: int, ratio: float) -> int:
        if ratio == 0:
            return 1
        value: float = math.ceil(float(count) / ratio)
        if highest != 0:
            value = min(highest, value)
        return int(max(lowest, value))

    by_cores, by_nodes = (
        component(cores, parameters["coresPerReplica"]),
        component(nodes, parameters["nodesPerReplica"]),
    )
    if parameters["preventSinglePointFailure"] and nodes > 1 and by_nodes < 2:
        by_nodes = 2
    return max(by_cores, by_nodes)


def peer_s_ladder(rungs: list[tuple[int, int]], count: int) -> int:
    ordered = sorted(rungs)
    reached = [replicas for threshold, replicas in ordered if threshold <= count]
    if not ordered:
        return 0
    return reached[-1] if reached else ordered[0][1]


def replicas(mode: str, parameters: dict[str, Any], size: tuple[int, int, int, int]) -> int | None:
    nodes, cores, other_nodes, other_cores = size
    cluster = nodes_of(nodes, cores, nodes + other_nodes, cores + other_cores)
    proportional = ProportionalSettings(mode=parse_parameters(mode, json.dumps(parameters)))
    return calculated(proportional, inputs_of(cluster)).replicas


def counted(parameters: dict[str, Any], size: tuple[int, int, int, int]) -> tuple[int, int]:
    nodes, cores, other_nodes, other_cores = size
    if parameters["includeUnschedulableNodes"]:
        return nodes + other_nodes, cores + other_cores
    return nodes, cores


@FEW
@given(parameters=linear_parameters(), size=SIZES)
def test_linear_mode_gives_the_results_of_the_peer(parameters: dict[str, Any], size: tuple[int, int, int, int]) -> None:
    assert replicas("linear", parameters, size) == peer_s_linear(parameters, *counted(parameters, size))


@FEW
@given(cores_rungs=RUNGS, nodes_rungs=RUNGS, size=SIZES, everything=st.booleans())
def test_ladder_mode_gives_the_results_of_the_peer(
    cores_rungs: list[tuple[int, int]],
    nodes_rungs: list[tuple[int, int]],
    size: tuple[int, int, int, int],
    *,
    everything: bool,
) -> None:
    parameters = {
        "coresToReplicas": cores_rungs,
        "nodesToReplicas": nodes_rungs,
        "includeUnschedulableNodes": everything,
    }
    nodes, cores = counted(parameters, size)
    expected = max(peer_s_ladder(cores_rungs, cores), peer_s_ladder(nodes_rungs, nodes))
    assert replicas("ladder", parameters, size) == expected
