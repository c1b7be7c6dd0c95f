"""The numeric cases of the tests of cluster-proportional-autoscaler and cluster-proportional-vertical-autoscaler."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from adapter.foundation.objects.selectors import parse_selector
from recommender.kinds.proportional.config_map_parsing import ParametersError, parse_parameters
from recommender.kinds.proportional.cpa_flags import FlagError, check_target_flag, parse_targets
from recommender.kinds.proportional.facts import filtered_counts
from recommender.kinds.proportional.parameters import NodeFilter, ProportionalSettings, ResourceStep
from recommender.kinds.proportional.sizes import size_of
from tests.recommender.kinds.proportional.clusters import NOW, calculated, inputs_of, node, nodes_of

if TYPE_CHECKING:
    from collections.abc import Callable

    Json = dict[str, Any]

CASES: Final = json.loads(Path(__file__).with_name("cases.json").read_text(encoding="utf-8"))["cases"]


def replicas(mode: str, parameters: Json, given: Json) -> Json:
    nodes = nodes_of(given["schedulable_nodes"], given["schedulable_cores"], given["total_nodes"], given["total_cores"])
    settings = ProportionalSettings(mode=parse_parameters(mode, json.dumps(parameters)))
    return {"replicas": calculated(settings, inputs_of(nodes)).replicas}


def linear(case: Json) -> Json:
    return replicas("linear", case["params"], case["input"])


def ladder(case: Json) -> Json:
    return replicas("ladder", case["params"], case["input"])


def linear_single_param(case: Json) -> Json:
    cores = case["input"]["resource"]
    sizes = {"schedulable_nodes": 1, "schedulable_cores": cores, "total_nodes": 1, "total_cores": cores}
    return replicas("linear", {**case["params"], "coresPerReplica": case["input"]["per_replica"]}, sizes)


def ladder_entries(case: Json) -> Json:
    cores = case["input"]["resource"]
    sizes = {"schedulable_nodes": 1, "schedulable_cores": cores, "total_nodes": 1, "total_cores": cores}
    return replicas("ladder", {"coresToReplicas": case["input"]["entries"]}, sizes)


def parsing(mode: str) -> Callable[[Json], Json]:
    def parse(case: Json) -> Json:
        try:
            parse_parameters(mode, case["input"]["json"])
        except ParametersError:
            return {"error": True}
        return {"error": False}

    return parse


def target_flag(case: Json) -> Json:
    try:
        check_target_flag(case["input"]["target"])
    except FlagError:
        return {"valid": False}
    return {"valid": True}


def target_parse(case: Json) -> Json:
    try:
        return {"targets": [list(target) for target in parse_targets(case["input"]["target"])]}
    except FlagError:
        return {"error": True}


def cluster_status(case: Json) -> Json:
    nodes = [node(**given) for given in case["input"]["nodes"]]
    counts = filtered_counts(nodes, NodeFilter(), parse_selector(case["input"]["selector"]), NOW)
    return {
        "total_nodes": counts.nodes,
        "schedulable_nodes": counts.schedulable_nodes,
        "total_cores": counts.cores,
        "schedulable_cores": counts.schedulable_cores,
    }


def cpva(case: Json) -> Json:
    given = case["params"]
    step = ResourceStep(
        base=f"{given['base_milli']}m",
        step=f"{given['step_milli']}m",
        max=f"{given['max_milli']}m" if "max_milli" in given else None,
        cores_per_step=given.get("coresPerStep", 0),
        nodes_per_step=given.get("nodesPerStep", 0),
    )
    return {"milli": size_of(case["input"]["nodes"], case["input"]["cores"], step).milli_value()}


RUN: Final[dict[str, Callable[[Json], Json]]] = {
    "linear": linear,
    "ladder": ladder,
    "linear_single_param": linear_single_param,
    "ladder_entries": ladder_entries,
    "linear_parse": parsing("linear"),
    "ladder_parse": parsing("ladder"),
    "target_flag": target_flag,
    "target_parse": target_parse,
    "cluster_status": cluster_status,
    "cpva": cpva,
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_the_result_equals_that_of_the_peer(case: Json) -> None:
    assert RUN[case["kind"]](case) == case["expected"]
