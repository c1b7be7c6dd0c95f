"""The state that the parts of one simulation share: the current nodes and pods, and the future events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from recommender.kinds.cluster_size.model.memory import ClusterSizeMemory
from recommender.kinds.cluster_size.predicates.pod_shapes import ShapeTable
from recommender.replay.cluster.events import Agenda
from recommender.replay.cluster.fleet import NodeFleet
from recommender.replay.cluster.reserve import Reserve
from recommender.replay.cluster.scheduler import Scheduler
from recommender.replay.cluster.situations import Situations
from recommender.replay.forecasts.expected_pods import ExpectedPods
from recommender.replay.policy_outcome import Account
from recommender.replay.spot import SpotMachines

if TYPE_CHECKING:
    from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings
    from recommender.replay.cluster.replay_facts import Scene
    from recommender.replay.policies import ReplayPolicy


@dataclass(slots=True)
class PolicyRun:
    """The state of one policy's simulation."""

    scene: Scene
    settings: ClusterSizeSettings
    fleet: NodeFleet
    account: Account
    situations: Situations
    scheduler: Scheduler
    reserve: Reserve
    expected: ExpectedPods
    spot: SpotMachines
    agenda: Agenda = field(default_factory=Agenda)
    memory: ClusterSizeMemory = field(default_factory=ClusterSizeMemory)
    shapes: ShapeTable = field(default_factory=ShapeTable)
    """The shapes of the recorded pods, which all decisions share."""


def new_run(scene: Scene, policy: ReplayPolicy, settings: ClusterSizeSettings) -> PolicyRun:
    """Return the state of a simulation without nodes and pods; `settings` replace the settings of the policy."""
    fleet = NodeFleet(scene.resources, scene.node_kinds)
    account = Account(scene.recording.start, scene.recording.end, scene.prices)
    scheduler = Scheduler(scene, fleet, account)
    reserve = Reserve(scene, settings, fleet, scheduler)
    return PolicyRun(
        scene,
        settings,
        fleet,
        account,
        Situations(scene, settings, fleet, policy.closed),
        scheduler,
        reserve,
        ExpectedPods(scene, policy.forecasts, fleet, scheduler),
        SpotMachines(policy.market),
    )
