"""Growth of the groups in a replay."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Final

from msgspec import structs

from recommender.replay.cluster.events import Happening
from recommender.replay.simulation.decisions import growth_of
from recommender.replay.simulation.known_growth import GroupGrowth, KnownGrowth, growth_in, growth_key

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapter.foundation.cluster.values.pods import ClusterPod
    from recommender.kinds.cluster_size.model.groups import NodeGroup
    from recommender.kinds.cluster_size.model.size_situation import ClusterSituation
    from recommender.replay.cluster.reserve import Reserve
    from recommender.replay.forecasts.expected_pods import ExpectedPods
    from recommender.replay.policies import ReplayPolicy
    from recommender.replay.simulation.policy_run import PolicyRun

REACTION_SECONDS: Final = 3.0
"""Time from the moment at which a pod fits nowhere until a size is written."""
_AGAIN_SECONDS: Final = 300.0
"""Pods that no group could help are considered again after this time."""


class Growth:
    """Requests nodes for pods that have none."""

    def __init__(self, run: PolicyRun, known: KnownGrowth, rivals: Iterable[ReplayPolicy] = ()) -> None:
        """Begin without a request; `rivals` are policies that differ from the run's policy only in how groups grow."""
        self._run = run
        self.alike = tuple(rivals)
        """The rivals that have made the same decisions as this policy so far."""
        self._asked: float | None = None
        """When the next decision on growth is due; None if none is requested."""
        self._known = known
        self._likes = known.likes_of(run.scene)
        self._number = None if run.spot.market else known.number_of(run.scene, run.settings)
        self._numbers_of_rivals = {
            one.name: None if self._number is None else known.number_of(run.scene, one.settings) for one in self.alike
        }
        self._numbers = count()
        self._again = -math.inf
        """The earliest time at which growth for the reserve or for expected pods is requested again."""
        self.is_covered = True
        """Whether the last decision considered all pending pods, and no further growth has been needed since."""

    def need(self, now: float) -> None:
        """Request a decision soon, since some pods fit on no node."""
        self._ask(now + REACTION_SECONDS)
        self.is_covered = False

    def need_for(self, part: Reserve | ExpectedPods, now: float) -> None:
        """Request a decision if the nodes lack room for the reserve or for expected pods.

        None is requested while one is due, nor if it is too early.
        """
        if self._asked is None and self._again <= now and part.is_short(now):
            self.need(now)

    def begin(self, now: float) -> None:
        """Decide at the start of the recording; the requested nodes start without delay."""
        self._asked = now
        self.decide(now, is_beginning=True)

    def _ask(self, at: float) -> None:
        if self._asked is None or at < self._asked:
            self._asked = at
            self._run.agenda.add(at, Happening.GROW)

    def decide(self, now: float, *, is_beginning: bool = False) -> None:
        """Decide for the pending pods and request the nodes that they need, if a decision is due."""
        if self._asked is None or self._asked > now:
            return
        self._asked = None
        run = self._run
        limits = run.situations.limits(run.situations.growing_slots())
        grown = self._growth(now, is_beginning=is_beginning)
        is_at_limit = False
        startup = 0.0 if is_beginning else run.scene.startup_seconds
        for group in run.scene.groups.groups:
            more = 0 if group.problem else max(0, grown.increases.get(group.name, 0))
            for _ in range(more):
                self._request(group, now, startup)
            if more:
                run.account.changes += 1
                run.memory = structs.replace(run.memory, last_scale_up=now)
            limit = limits[group.name]
            is_at_limit |= limit.target_size + more == limit.max_size and group.name not in run.situations.closed
        self.is_covered = not grown.has_waiting
        # A lack that the groups could not relieve is requested again later, as with pods.
        is_short = run.reserve.is_short(now) or run.expected.is_short(now)
        self._again = now + (_AGAIN_SECONDS if is_short else 0.0)
        if grown.waits_until is not None:
            self._ask(max(now, grown.waits_until))
        elif grown.has_unschedulable or is_at_limit:
            ends = (one.until for one in run.memory.back_offs.values() if one.until > now)
            self._ask(min((now + _AGAIN_SECONDS, *ends)))

    def _growth(self, now: float, *, is_beginning: bool) -> GroupGrowth:
        """Return the decision for the pending pods, and keep only the rivals that decide the same."""
        run = self._run
        future = (*run.expected.for_growth(now, run.settings), *run.reserve.pods(now))
        key = None
        if self._number is not None and not (future or is_beginning or run.memory.back_offs):
            key = growth_key(run.situations, run.scheduler.pending_by_kind(), self._likes, run.settings, now)
        situation: ClusterSituation | None = None
        found: list[GroupGrowth] = []
        policies = [(self._number, run.settings)]
        policies += [(self._numbers_of_rivals[one.name], one.settings) for one in self.alike]
        for number, settings in policies:
            known = self._known.get(number, key)
            if known is None:
                situation = situation or self._situation(now, future, is_beginning=is_beginning)
                known = growth_in(growth_of(situation, settings, run.shapes))
                self._known.put(number, key, known)
            found.append(known)
        self.alike = tuple(one for one, its in zip(self.alike, found[1:], strict=True) if its == found[0])
        return found[0]

    def _situation(self, now: float, future: tuple[ClusterPod, ...], *, is_beginning: bool) -> ClusterSituation:
        run = self._run
        pending = run.scheduler.pending()
        if is_beginning:  # These pods are not young.
            pending = dict.fromkeys(pending, now - REACTION_SECONDS)
        situation = run.situations.grown(pending, now, run.memory)
        return replace(situation, future_pods=future) if future else situation

    def _request(self, group: NodeGroup, now: float, startup_seconds: float) -> None:
        run, name = self._run, group.name
        slot = run.fleet.add(run.scene.new_kinds[name], ready=False)
        run.situations.note_node(slot, run.situations.new_node(name, f"{name}-replayed-{next(self._numbers)}", now))
        if any(run.spot.is_spot(one) and back_off.until > now for one, back_off in run.memory.back_offs.items()):
            run.account.fell_back(slot)
        back = run.spot.absent_until(name)
        if back > now:
            deadline = now + run.settings.provision_seconds_of(group)
            run.spot.wait(slot, deadline)
            run.agenda.add(min(back, deadline), Happening.SPOT_DUE, slot)
        else:
            run.account.node_came(slot, name, now)
            run.agenda.add(now + startup_seconds, Happening.NODE_READY, slot)
