"""The replay checks a few removable nodes at a time, and removes what it would if it checked all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.made_past import START, PastPlan, made_past
from benchmarks.replay import GROUPS
from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings, NodeGroupSources
from recommender.replay.cluster.events import events_of
from recommender.replay.cluster.replay_facts import scene_of
from recommender.replay.policies import ReplayPolicy
from recommender.replay.simulation import removals
from recommender.replay.simulation.policy_run import new_run
from recommender.replay.simulation.removals import DRAINS, Removals, with_drains
from recommender.replay.simulation.simulation import simulate

if TYPE_CHECKING:
    from recommender.replay.simulation.policy_run import PolicyRun

SIZES = ClusterSizeSettings(NodeGroupSources(static=GROUPS))
POLICY = ReplayPolicy("configured", SIZES)
UNNEEDED_SECONDS = SIZES.scale_down.unneeded_seconds + 60.0


def run_of(nodes: int, with_pods: int) -> PolicyRun:
    """Return a run with these nodes, of which the first ones have a pod each."""
    scene = scene_of(made_past(PastPlan(days=0.05, nodes=nodes, seed=1)), SIZES)
    run = new_run(scene, POLICY, with_drains(SIZES))
    number, pod = next((at, pod) for at, pod in enumerate(scene.recording.pods) if scene.replayed[pod.kind])
    for place, one in enumerate(scene.recording.nodes[:nodes]):
        slot = run.fleet.add(scene.kind_of_node[one.node.name], ready=True)
        run.situations.note_node(slot, one.node)
        if place < with_pods:
            run.fleet.put(number + place, pod.kind, scene.needs[pod.kind], slot)
    return run


def test_removal_of_empty_nodes_is_not_delayed_by_nodes_with_pods() -> None:
    run = run_of(nodes=60, with_pods=30)
    looks = Removals(run)
    looks.look(START, is_covered=True)
    due, _ = looks.look(START + UNNEEDED_SECONDS, is_covered=True)
    emptied = [slot for slot in due if run.fleet.pods[slot]]
    assert len(emptied) == DRAINS * SIZES.scale_down.max_drain_parallelism
    assert len(due) - len(emptied) == 30


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_checking_some_nodes_costs_as_many_node_hours_as_checking_all(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = scene_of(made_past(PastPlan(days=1.0, nodes=500, seed=seed)), SIZES)
    some = simulate(scene, POLICY, events_of(scene)).outcome
    for limit in ("SPARE", "MOST_WITH_PODS", "MOST_EMPTY", "DESTINATIONS_EACH", "FEWEST_DESTINATIONS"):
        monkeypatch.setattr(removals, f"_{limit}", 10**6)
    every = simulate(scene, POLICY, events_of(scene)).outcome
    assert every.changes > 10
    assert some.node_hours.sum() == pytest.approx(every.node_hours.sum(), rel=0.02)
