"""Simulates what happens to machines in a replay: they start, do not arrive, or are interrupted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from recommender.kinds.cluster_size.health.requested_nodes import after_failure
from recommender.replay.cluster.events import Happening

if TYPE_CHECKING:
    from recommender.replay.simulation.growth import Growth
    from recommender.replay.simulation.policy_run import PolicyRun


class MachineEvents:
    """Simulates how machines start, and how spot machines are interrupted or do not arrive."""

    def __init__(self, run: PolicyRun, growth: Growth) -> None:
        self._run = run
        self._growth = growth

    def ready(self, slot: int, now: float) -> int:
        """Make a node accept pods; return its slot."""
        self._run.fleet.set_usable(slot, usable=True)
        self.runs(slot, self._group(slot), now)
        return slot

    def runs(self, slot: int, group: str, now: float) -> None:
        """Note that a machine runs; if it is a spot machine, schedule its interruption."""
        end = self._run.spot.began(slot, group, now)
        if end is not None:
            self._run.agenda.add(end[0], Happening.INTERRUPTED, end[1])

    def interrupt_machine(self, number: int, now: float) -> int | None:
        """Return the slot of the machine that is interrupted now; None if it no longer exists."""
        run = self._run
        slot = run.spot.take_interrupted(number)
        if slot is not None:
            run.spot.note_interruption(self._group(slot), now)
            run.account.count_interruption(len(run.fleet.pods[slot]))
        return slot

    def due(self, slot: int, now: float) -> None:
        """Let a machine that was unavailable arrive or wait further; if it is too late, let its group back off."""
        run, group = self._run, self._group(slot)
        deadline = run.spot.deadline(slot)
        if deadline is None:
            return
        back = run.spot.absent_until(group)
        if back <= now and now + run.scene.startup_seconds <= deadline:
            run.spot.note_arrival(slot)
            run.account.node_came(slot, group, now)
            run.agenda.add(now + run.scene.startup_seconds, Happening.NODE_READY, slot)
        elif now < deadline:
            run.agenda.add(min(back, deadline) if back > now else deadline, Happening.SPOT_DUE, slot)
        else:
            self._give_up(slot, group, now)

    def _give_up(self, slot: int, group: str, now: float) -> None:
        """Remove a machine that did not arrive from the size of its group; the group then backs off as in `run`."""
        run = self._run
        run.spot.forget(slot)
        run.fleet.remove(slot)
        run.account.gave_up(slot)
        failed = after_failure(run.memory.back_offs.get(group), now, "spot machines did not arrive in time")
        run.memory = structs.replace(run.memory, back_offs={**run.memory.back_offs, group: failed})
        self._growth.need(now)

    def _group(self, slot: int) -> str:
        fleet = self._run.fleet
        kind: int = fleet.kind_of.item(slot)
        return fleet.kinds[kind].group
