"""Simulates one policy on the recorded past: processes events in order, and decides where a size could change."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import structs

from recommender.replay.cluster.events import Event, Happening
from recommender.replay.simulation.growth import Growth
from recommender.replay.simulation.known_growth import KnownGrowth
from recommender.replay.simulation.machine_events import MachineEvents
from recommender.replay.simulation.policy_run import new_run
from recommender.replay.simulation.removals import SOON_SECONDS, Removals, with_drains

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from adapter.foundation.cluster.values.state import ClusterNode
    from recommender.replay.cluster.replay_facts import Scene
    from recommender.replay.policies import ReplayPolicy
    from recommender.replay.policy_outcome import PolicyOutcome


@dataclass(frozen=True, slots=True)
class SimulatedPolicy:
    """The result of one simulation."""

    outcome: PolicyOutcome
    alike: tuple[ReplayPolicy, ...]
    """The rivals that would always have made the same decisions."""


def outcomes_of(scene: Scene, policies: Sequence[ReplayPolicy], past: Sequence[Event]) -> Iterator[PolicyOutcome]:
    """Yield the outcome of each policy; `past` are the recorded events, from `events_of`.

    Policies that differ in their expanders but would always decide the same are simulated once.
    """
    known: dict[str, PolicyOutcome] = {}
    growth = KnownGrowth()
    for place, policy in enumerate(policies):
        if policy.name not in known:
            rivals = [one for one in policies[place + 1 :] if one.name not in known and _differs_in_growth(policy, one)]
            simulated = simulate(scene, policy, past, rivals, growth)
            known[policy.name] = simulated.outcome
            known |= {one.name: replace(simulated.outcome, name=one.name) for one in simulated.alike}
        yield known[policy.name]


def _differs_in_growth(policy: ReplayPolicy, other: ReplayPolicy) -> bool:
    """Return whether two policies differ only in their expanders."""
    settings = replace(other.settings, expanders=policy.settings.expanders)
    return replace(other, name=policy.name, settings=settings) == policy


def simulate(
    scene: Scene,
    policy: ReplayPolicy,
    past: Sequence[Event],
    rivals: Sequence[ReplayPolicy] = (),
    known: KnownGrowth | None = None,
) -> SimulatedPolicy:
    """Return the outcome of a policy, and the rivals that always decide the same.

    `rivals` are policies that differ from this one only in how groups grow; `known` are decisions from earlier
    simulations of the scene.
    """
    simulation = _Simulation(scene, policy, rivals, KnownGrowth() if known is None else known)
    # Nodes that offer no CPU or memory have no score; allowing that for each pod takes longer than its score.
    with np.errstate(divide="ignore", invalid="ignore"):
        simulation.run(past)
    return SimulatedPolicy(simulation.outcome(policy.name), simulation.alike)


# Comparing with a member of the enumeration takes longer than most events do.
_POD_GONE: Final = int(Happening.POD_GONE)
_POD_CAME: Final = int(Happening.POD_CAME)
_DECISIONS: Final = frozenset(map(int, (Happening.FORECAST, Happening.GROW, Happening.LOOK)))


class _Simulation:
    def __init__(self, scene: Scene, policy: ReplayPolicy, rivals: Sequence[ReplayPolicy], known: KnownGrowth) -> None:
        self._scene = scene
        self._run = new_run(scene, policy, with_drains(policy.settings))
        self._closed = policy.closed
        self._growth = Growth(self._run, known, rivals)
        self._machines = MachineEvents(self._run, self._growth)
        self._removals = Removals(self._run)
        self._outside: dict[int, int] = {}
        """The slot of each recorded node outside all groups."""

    def run(self, past: Sequence[Event]) -> None:
        """Simulate the whole recording, from its start to its end."""
        recording = self._scene.recording
        left = self._begin(past)
        if self._has_closed_nodes():
            left = self._begin_with_others(left)
        self._run.agenda.add(recording.start + SOON_SECONDS, Happening.LOOK)
        for moment in self._run.expected.moments():
            self._run.agenda.add(moment, Happening.FORECAST)
        for now, batch in self._run.agenda.moments(left, recording.end):
            self._step(now, batch)

    @property
    def alike(self) -> tuple[ReplayPolicy, ...]:
        """Return the rivals that have decided the same so far."""
        return self._growth.alike

    def outcome(self, name: str) -> PolicyOutcome:
        """Return the result of the simulation under this policy name."""
        account, waiting = self._run.account, self._run.scheduler.pending()
        for since in waiting.values():
            account.record_wait(since, self._scene.recording.end)
        has_spot = self._run.spot.market is not None
        return account.outcome(name, len(waiting), has_spot=has_spot)

    def _begin(self, past: Sequence[Event]) -> list[Event]:
        """Add the nodes and pods that exist at the start of the recording; return the remaining events."""
        recording, scene, run = self._scene.recording, self._scene, self._run
        slots: dict[str, int] = {}
        for number, one in enumerate(recording.nodes):
            group = scene.node_kinds[scene.kind_of_node[one.node.name]].group
            if not one.is_there(recording.start) or one.node.name in slots or group in self._closed:
                continue
            slot = slots[one.node.name] = run.fleet.add(scene.kind_of_node[one.node.name], ready=True)
            run.situations.note_node(slot, self._as_ready(one.node))
            run.account.node_came(slot, group, recording.start)
            self._machines.runs(slot, group, recording.start)
            if not group:
                self._outside[number] = slot
        left = []
        for event in past:
            _, what, number = event
            pod = recording.pods[number] if what == Happening.POD_CAME else None
            is_there = pod is not None and pod.bound is not None and pod.bound <= recording.start
            if pod is not None and is_there and pod.node in slots:
                run.scheduler.bind(number, slots[pod.node])
            else:
                left.append(event)
        return left

    def _has_closed_nodes(self) -> bool:
        """Whether closed groups had nodes at the start of the recording."""
        scene, start = self._scene, self._scene.recording.start
        return bool(self._closed) and any(
            one.is_there(start) and scene.node_kinds[scene.kind_of_node[one.node.name]].group in self._closed
            for one in scene.recording.nodes
        )

    def _begin_with_others(self, past: Sequence[Event]) -> list[Event]:
        """Start the pods of closed groups' nodes on nodes of other groups; return the remaining events."""
        start, pods = self._scene.recording.start, self._scene.recording.pods
        came: dict[int, dict[int, float]] = {}
        left = []
        for event in past:
            if event[0] == start and event[1] == _POD_CAME:
                came.setdefault(pods[event[2]].kind, {})[event[2]] = start
            else:
                left.append(event)
        if came and self._run.scheduler.arrive(came, start):
            self._growth.begin(start)
        return left

    def _step(self, now: float, batch: Sequence[Event]) -> None:
        """Process all events of one moment: pods that end come first, and decisions last."""
        scheduler = self._run.scheduler
        _, what, number = batch[0]
        if what == _POD_GONE and len(batch) == 1:  # as most moments are
            slot = scheduler.end(number, now)
            if slot is not None:
                scheduler.fill((slot,), now)
            return
        roomier = set[int]()
        came: dict[int, dict[int, float]] = {}
        asked = set[int]()
        for _, what, number in batch:
            if what == _POD_CAME:
                came.setdefault(self._scene.recording.pods[number].kind, {})[number] = now
            elif what in _DECISIONS:
                asked.add(what)
            else:
                slot = self._slot_with_more_room(what, number, now)
                if slot is not None:
                    roomier.add(slot)
        scheduler.fill(roomier, now)
        if came:
            self._run.expected.came(came)
            if scheduler.arrive(came, now):
                self._growth.need(now)
        if came or asked:
            self._decide(asked, now, has_come=bool(came))

    def _decide(self, asked: Collection[int], now: float, *, has_come: bool) -> None:
        """Make the decisions that are due."""
        if has_come or Happening.LOOK in asked:
            self._growth.need_for(self._run.reserve, now)
        if Happening.FORECAST in asked:
            self._growth.need_for(self._run.expected, now)
        if Happening.GROW in asked:
            self._growth.decide(now)
        if Happening.LOOK in asked:
            self._look(now)

    def _slot_with_more_room(self, what: int, number: int, now: float) -> int | None:
        """Process the end of a pod, or an event of a node; return the slot that has more room afterwards, if any."""
        if what == _POD_GONE:
            return self._run.scheduler.end(number, now)
        if what == Happening.NODE_READY:
            return self._machines.ready(number, now)
        if what == Happening.NODE_CAME:
            return self._outside_came(number)
        if what == Happening.SPOT_DUE:
            self._machines.due(number, now)
        elif what == Happening.INTERRUPTED:
            slot = self._machines.interrupt_machine(number, now)
            if slot is not None:
                self._evict(slot, now, is_decided=False)
        elif number in self._outside:
            self._evict(self._outside.pop(number), now, is_decided=False)
        return None

    def _outside_came(self, number: int) -> int:
        one = self._scene.recording.nodes[number]
        slot = self._outside[number] = self._run.fleet.add(self._scene.kind_of_node[one.node.name], ready=True)
        self._run.situations.note_node(slot, self._as_ready(one.node))
        return slot

    def _as_ready(self, node: ClusterNode) -> ClusterNode:
        """Return a recorded node as one that accepts pods, with the taints and the amounts of its kind."""
        like = self._scene.node_kinds[self._scene.kind_of_node[node.name]].node
        # Amounts that are one object for all nodes of a kind are read once for all of them.
        return replace(
            node,
            taints=like.taints,
            allocatable=like.allocatable,
            conditions={"Ready": "True"},
            unschedulable=False,
        )

    def _look(self, now: float) -> None:
        """Remove the nodes that `Removals` chooses; their pods move to none of these nodes."""
        run = self._run
        due, next_look = self._removals.look(now, is_covered=self._growth.is_covered)
        if due:
            run.account.changes += len({run.fleet.kinds[run.fleet.kind_of[slot]].group for slot in due})
            run.memory = structs.replace(run.memory, last_delete=now)
            for slot in due:
                run.fleet.set_usable(slot, usable=False)
            for slot in due:
                self._evict(slot, now)
        run.agenda.add(next_look, Happening.LOOK)

    def _evict(self, slot: int, now: float, *, is_decided: bool = True) -> None:
        """Remove a node and reschedule its pods, which count as evicted if a decision removed the node."""
        self._removals.forget(slot)
        self._run.spot.forget(slot)
        pods = self._run.fleet.remove(slot)
        self._run.account.node_went(slot, now)
        if is_decided:
            self._run.account.count_evictions(now, len(pods))
        if self._run.scheduler.lose(pods, now):
            self._growth.need(now)
