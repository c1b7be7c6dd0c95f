"""Properties of every decision: moved pods have places, and no limit is exceeded."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.foundation.cluster.values.constraints import (
    HOSTNAME_LABEL,
    NO_CONSTRAINTS,
    HostPort,
    PodScheduling,
    PodTerm,
    SpreadConstraint,
)
from adapter.foundation.cluster.values.workloads import DisruptionBudget
from adapter.foundation.objects.selectors import parse_selector
from recommender.kinds.cluster_size.model.size_settings import ScaleDownSettings, SizeLimits
from recommender.kinds.cluster_size.predicates.filters import PodFilter
from recommender.kinds.cluster_size.scale_down.block_free_resources import BLOCK
from recommender.kinds.cluster_size.scale_down.disruptions import RemainingDisruptions
from recommender.kinds.cluster_size.scale_down.drainability import DrainRules
from recommender.kinds.cluster_size.scale_down.minimum_sizes import Minimums
from recommender.kinds.cluster_size.scale_down.removal_candidates import survey
from recommender.kinds.cluster_size.scale_down.removal_sequence import simulate
from recommender.kinds.cluster_size.scale_down.simulated_removal import ZONE_LABEL
from tests.recommender.kinds.cluster_size.builders import node, pod
from tests.recommender.kinds.cluster_size.scale_down.harness import Harness, due, group

if TYPE_CHECKING:
    from collections.abc import Mapping

SPREAD = PodScheduling(spread=(SpreadConstraint(ZONE_LABEL, 1, parse_selector("app=spread")),))
APART = PodScheduling(anti_affinity=(PodTerm(HOSTNAME_LABEL, parse_selector("app=apart"), frozenset({"default"})),))
PORT = PodScheduling(host_ports=(HostPort("TCP", "0.0.0.0", 80),))
PINNED = PodScheduling(node_selector=((ZONE_LABEL, "z0"),))
KINDS: Mapping[str, PodScheduling] = {
    "spread": SPREAD,
    "apart": APART,
    "port": PORT,
    "pinned": PINNED,
    "plain": NO_CONSTRAINTS,
}


@st.composite
def harnesses(draw: st.DrawFn) -> Harness:
    count = draw(st.integers(2, 9))
    names = [f"n{number}" for number in range(count)]
    nodes = [node(name, "4", "8Gi", labels={ZONE_LABEL: f"z{number % 3}"}) for number, name in enumerate(names)]
    pods = []
    for number in range(draw(st.integers(0, 20))):
        kind = draw(st.sampled_from(sorted(KINDS)))
        cpu = draw(st.sampled_from(["200m", "500m", "900m"]))
        at = draw(st.sampled_from(names))
        pods.append(
            pod(f"p{number}", cpu, "256Mi", node=at, labels={"app": kind}, controller=kind, scheduling=KINDS[kind])
        )
    cut = draw(st.integers(0, count))
    groups = (
        group("a", names[:cut], least=draw(st.integers(0, 3))),
        group("b", names[cut:], least=draw(st.integers(0, 3))),
    )
    budgets = tuple(
        DisruptionBudget("default", kind, parse_selector(f"app={kind}"), draw(st.integers(0, 3)))
        for kind in draw(st.sets(st.sampled_from(sorted(KINDS)), max_size=3))
    )
    return Harness(
        nodes=tuple(nodes),
        pods=tuple(pods),
        groups=groups,
        budgets=budgets,
        settings=ScaleDownSettings(utilization_threshold_ratio=draw(st.sampled_from([0.5, 1.0]))),
        limits=SizeLimits(min_cores=draw(st.sampled_from([0, 8]))),
    )


@settings(max_examples=60, deadline=None)
@given(harnesses())
def test_every_moved_pod_has_a_place_on_a_fresh_snapshot(harness: Harness) -> None:
    situation, sizes, snapshot = harness.situation(), harness.sizes(), harness.snapshot()
    rules = DrainRules(sizes.scale_down, situation.workloads, RemainingDisruptions(situation.budgets), situation.now)
    minimums = Minimums({one.name: one for one in harness.groups}, harness.nodes, sizes.limits)
    found = survey(situation, sizes, snapshot, rules, minimums)
    sequence = simulate(situation, sizes.scale_down, snapshot, found, minimums)
    fresh = harness.snapshot()
    for removal in sequence.removed:
        leaving = {one.node.name for one in removal.unit}
        assert leaving.isdisjoint(move.target for move in removal.moves)
        for move in removal.moves:
            fresh.evict(move.pod)
        for move in removal.moves:
            assert PodFilter(fresh, fresh.shape(move.pod)).fits(fresh.nodes[move.target])
            fresh.place(move.pod, move.target)
        for name in leaving:
            assert {one.controller.kind for one in fresh.remove_node(name) if one.controller} <= {"DaemonSet"}


@settings(max_examples=60, deadline=None)
@given(harnesses())
def test_all_removals_together_respect_budgets_and_minimum_sizes(harness: Harness) -> None:
    decision = harness.decide()
    going = frozenset(due(decision))
    assert going.isdisjoint(one.node for one in decision.kept)
    assert {one.name for one in harness.nodes} == {one.node for one in decision.removals} | {
        one.node for one in decision.kept
    }
    sizes = Counter(one.group for one in decision.removals if one.is_due)
    for one in harness.groups:
        assert sizes[one.name] == 0 or one.target_size - sizes[one.name] >= one.min_size
    assert not going or 4 * (len(harness.nodes) - len(going)) >= harness.limits.min_cores
    for budget in harness.budgets or ():
        away = [
            one for one in harness.pods if one.node in going and budget.selector and budget.selector.matches(one.labels)
        ]
        assert len(away) <= budget.disruptions_allowed


@st.composite
def plain_harnesses(draw: st.DrawFn) -> Harness:
    """Return more nodes than a block has, with pods of several sizes and no constraints."""
    count = draw(st.integers(BLOCK - 2, BLOCK + 8))
    sizes = draw(st.lists(st.sampled_from([100, 300, 400, 700, 1100, 1900, 2500]), min_size=count, max_size=3 * count))
    at = draw(st.lists(st.integers(0, count - 1), min_size=len(sizes), max_size=len(sizes)))
    pods = [
        pod(f"p{number}", f"{size}m", "64Mi", node=f"n{where}", controller="web")
        for number, (size, where) in enumerate(zip(sizes, at, strict=True))
    ]
    nodes = tuple(node(f"n{number}", "3") for number in range(count))
    return Harness(nodes, tuple(pods), settings=ScaleDownSettings(utilization_threshold_ratio=1.0))


@settings(max_examples=25, deadline=None)
@given(plain_harnesses())
def test_remembering_full_nodes_does_not_change_decisions(harness: Harness) -> None:
    situation, sizes, snapshot = harness.situation(), harness.sizes(), harness.snapshot()
    rules = DrainRules(sizes.scale_down, situation.workloads, RemainingDisruptions(situation.budgets), situation.now)
    minimums = Minimums({"g": situation.groups.groups[0]}, harness.nodes, sizes.limits)
    found = survey(situation, sizes, snapshot, rules, minimums)
    sequence = simulate(situation, sizes.scale_down, snapshot, found, minimums)
    free = {one.name: 3000 for one in harness.nodes}
    where: dict[str, dict[str, int]] = {one.name: {} for one in harness.nodes}
    for one in harness.pods:
        where[one.node][one.name] = one.resources.requests["cpu"]
        free[one.node] -= one.resources.requests["cpu"]
    gone = [unit[0].node.name for unit in found.units if moves_all(unit[0].node.name, found.destinations, free, where)]
    assert [one.unit[0].node.name for one in sequence.removed] == gone


def moves_all(name: str, destinations: tuple[str, ...], free: dict[str, int], where: dict[str, dict[str, int]]) -> bool:
    """Move all pods of a node, each to the first destination with room, without caches; move all or none."""
    left, moved = dict(free), []
    for one, cpu in sorted(where[name].items(), key=lambda item: item[1], reverse=True):
        target = next((other for other in destinations if other in left and other != name and left[other] >= cpu), None)
        if target is None:
            return False
        left[target] -= cpu
        moved.append((one, cpu, target))
    del left[name], where[name]
    free.clear()
    free.update(left)
    for one, cpu, target in moved:
        where[target][one] = cpu
    return True
