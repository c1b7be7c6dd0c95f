from __future__ import annotations

import math
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from scipy.optimize import linprog

from adapter.foundation.cluster.values.constraints import HOSTNAME_LABEL, PodScheduling, PodTerm
from benchmarks.exact_packing import least_cost_exactly
from recommender.kinds.cluster_size.estimator.binpacking import estimate
from recommender.kinds.cluster_size.estimator.equivalence import pod_groups
from recommender.kinds.cluster_size.estimator.least_nodes import lower_bound, lower_cost_bound
from recommender.kinds.cluster_size.model.groups import NodeGroup, NodeTemplate
from recommender.kinds.cluster_size.predicates.snapshot import Snapshot
from tests.recommender.kinds.cluster_size.builders import node, pod
from tests.recommender.kinds.cluster_size.estimator.clusters import MANY, MIB, SELECTOR, ZONE, groups_of, snapshot_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.cluster.values.state import ClusterPod


def option(name: str, cpu: int, memory_gib: int, price: float | None = None, **more: Any) -> NodeGroup:  # noqa: ANN401 - as the builder of nodes
    return NodeGroup(
        name, 0, 100, 0, template=NodeTemplate(node(name, str(cpu), f"{memory_gib}Gi", **more)), price=price
    )


def offered(each: NodeGroup) -> Mapping[str, int]:
    assert each.template is not None
    allocatable = each.template.node.allocatable
    return {
        "cpu": allocatable["cpu"].milli_value(),
        "memory": allocatable["memory"].milli_value() // 1000 // MIB,
        "pods": 110,
    }


def needed(pods: list[tuple[int, int, int]], options: list[NodeGroup]) -> int:
    """Return the lower bound of nodes for pods given as `count, cpu_milli, mem_mib`."""
    snapshot = Snapshot([], [])
    numbers = [{"count": count, "cpu_milli": cpu, "mem_bytes": memory * MIB} for count, cpu, memory in pods]
    return lower_bound(groups_of(numbers, snapshot), options, snapshot)


@pytest.mark.parametrize(
    ("pods", "options", "nodes"),
    [
        ([], [option("a", 4, 16)], 0),
        ([(8, 1000, 0)], [option("a", 4, 16)], 2),
        ([(9, 1000, 0)], [option("a", 4, 16)], 3),
        ([(3, 2100, 0)], [option("a", 4, 16)], 3),
        ([(3, 2100, 0), (2, 2500, 0)], [option("a", 4, 16)], 5),
        ([(200, 1, 0)], [option("a", 4, 16, pods=50)], 4),
        ([(4, 1000, 0), (4, 10, 4096)], [option("a", 4, 16)], 2),
        ([(4, 1000, 0), (4, 10, 4096)], [option("a", 4, 1), option("b", 1, 16)], 2),
        ([(4, 3000, 0)], [option("small", 2, 16), option("large", 16, 64)], 1),
        ([(4, 3000, 0)], [option("small", 2, 16)], 0),
        ([(4, 1000, 0)], [option("tainted", 4, 16, taints=["gpu:NoSchedule"])], 0),
    ],
)
def test_the_lower_bound_of_nodes_is_correct(
    pods: list[tuple[int, int, int]], options: list[NodeGroup], nodes: int
) -> None:
    assert needed(pods, options) == nodes


def test_pods_with_mutual_anti_affinity_need_a_node_each() -> None:
    term = PodTerm(HOSTNAME_LABEL, SELECTOR, frozenset({"default"}))
    first = pod("a", labels={"app": "estimatee"}, controller="a", scheduling=PodScheduling(anti_affinity=(term,)))
    snapshot = Snapshot([], [])
    groups = pod_groups([replace(first, name=f"a-{number}") for number in range(5)], snapshot)
    assert lower_bound(groups, [option("a", 64, 64)], snapshot) == 5


def test_pods_placed_in_the_snapshot_do_not_raise_the_bound() -> None:
    term = PodTerm(ZONE, SELECTOR, frozenset({"default"}))
    first = pod("a", labels={"app": "estimatee"}, controller="a", scheduling=PodScheduling(anti_affinity=(term,)))
    snapshot = Snapshot([node("new-0", labels={ZONE: "x"})], [])
    snapshot.place(first, "new-0")
    options = [option("x", 4, 16, 1.0, labels={ZONE: "x"}), option("y", 4, 16, 10.0, labels={ZONE: "y"})]
    cost = lower_cost_bound(pod_groups([first], snapshot), options, snapshot)
    assert cost is not None
    assert cost <= 1.0


@pytest.mark.parametrize(
    ("prices", "cost"),
    [((1.0, None), None), ((1.0, 10.0), 4.0), ((1.0, 2.0), 2.0), ((0.1, 0.2), 0.2)],
    ids=["unknown", "small", "large", "of cents"],
)
def test_the_cost_is_bounded_if_all_options_have_prices(prices: tuple[float, float | None], cost: float | None) -> None:
    snapshot = snapshot_of([])
    groups = groups_of([{"count": 8, "cpu_milli": 1000, "mem_bytes": 0}], snapshot)
    found = lower_cost_bound(groups, [option("s", 2, 16, prices[0]), option("l", 8, 64, prices[1])], snapshot)
    assert found == (None if cost is None else pytest.approx(cost, rel=1e-5))


def test_options_that_are_alike_cost_the_solver_no_more_than_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fleet has hundreds of groups with the same machines, and the solver's time grows faster than their number."""
    entries: list[int] = []

    def counting(*args: Any, **more: Any) -> Any:  # noqa: ANN401 - handed on as they are
        entries.append(more["A_ub"].nnz)
        return linprog(*args, **more)

    monkeypatch.setattr("scipy.optimize.linprog", counting)
    pods = [(8, 1000, 512), (40, 700, 2048), (3, 2500, 100)]
    for count in (1, 20):
        assert needed(pods, [option(f"a{number}", 4, 16) for number in range(count)]) == 11
    assert entries[0] == entries[1]


def test_of_options_that_are_alike_the_cheapest_bounds_the_cost() -> None:
    snapshot = snapshot_of([])
    groups = groups_of([{"count": 8, "cpu_milli": 1000, "mem_bytes": 0}], snapshot)
    options = [option(f"a{price}", 4, 16, price) for price in (3.0, 1.0, 2.0)]
    assert lower_cost_bound(groups, options, snapshot) == pytest.approx(2.0, rel=1e-5)


def test_there_is_no_bound_if_the_solver_would_need_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recommender.kinds.cluster_size.estimator.packing_program.MOST_WORK", 1)
    options = [option("a", 4, 1, 1.0), option("b", 1, 16, 1.0)]
    assert needed([(4, 1000, 0), (4, 10, 4096)], options) == 0


def test_an_option_without_a_template_is_ignored() -> None:
    assert needed([(8, 1000, 0)], [option("a", 4, 16), NodeGroup("empty", 0, 9, 0, problem="no template")]) == 2


def small_cluster(random: Random, *, has_memory: bool) -> list[ClusterPod]:
    return [
        pod(
            f"{shape}-{number}",
            cpu=f"{cpu}m",
            memory=f"{memory}Gi" if has_memory else "",
            controller=str(shape),
        )
        for shape in range(random.randint(1, 4))
        for cpu, memory in [(random.randint(3, 38) * 100, random.randint(1, 15))]
        for number in range(random.randint(1, 4))
    ]


@pytest.mark.parametrize("has_memory", [False, True], ids=["cpu", "cpu-and-memory"])
def test_the_estimate_is_between_the_optimum_and_its_guarantee(has_memory: bool) -> None:  # noqa: FBT001 - a parameter of the table
    for seed in range(25):
        pods = small_cluster(Random(seed), has_memory=has_memory)
        kind = option("a", 4, 16)
        assert kind.template is not None
        snapshot = Snapshot([], [])
        groups = pod_groups(pods, snapshot)
        found = estimate(snapshot, groups, kind.template, name_prefix="new", max_nodes=MANY)
        assert len(found.pods) == len(pods), seed
        best = exactly(pods, [kind], [1.0], found.node_count)
        assert lower_bound(groups, [kind], snapshot) <= best <= found.node_count, seed
        if not has_memory:
            # The guarantee of first-fit decreasing (Dósa 2007), which holds for one resource.
            assert found.node_count <= math.floor(11 / 9 * best + 6 / 9 + 1e-9), seed


@pytest.mark.parametrize("seed", range(10))
def test_bounds_never_exceed_the_best_mix(seed: int) -> None:
    random = Random(seed)
    pods = small_cluster(random, has_memory=True)
    prices = [float(random.randint(1, 9)) for _ in range(2)]
    options = [option("a", 4, 16, prices[0]), option("b", 8, 20, prices[1])]
    snapshot = Snapshot([], [])
    groups = pod_groups(pods, snapshot)
    assert lower_bound(groups, options, snapshot) <= exactly(pods, options, [1.0, 1.0], 6)
    cost = lower_cost_bound(groups, options, snapshot)
    assert cost is not None
    assert cost <= exactly(pods, options, prices, 6)


def exactly(pods: list[ClusterPod], options: list[NodeGroup], costs: list[float], at_most: int) -> float:
    numbers: dict[str, tuple[int, dict[str, int]]] = {}
    for each in pods:
        assert each.controller is not None
        asked = {"cpu": each.resources.requests["cpu"], "pods": 1}
        asked["memory"] = each.resources.requests.get("memory", 0) // MIB
        numbers[each.controller.uid] = (numbers.get(each.controller.uid, (0, {}))[0] + 1, asked)
    found = least_cost_exactly(list(numbers.values()), [offered(one) for one in options], costs, at_most)
    assert found is not None
    return round(found, 6)
