"""Watches objects that only other objects name: the templates of Cluster API's node groups."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from recommender.configuration.needs import needs_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.cluster.values.state import ClusterNeeds, ClusterState
    from recommender.running.inputs.poll_plan import PollPlan


class FollowedNeeds:
    """Returns the facts of a cluster, and lets objects that these facts name be watched as well. Not thread-safe."""

    def __init__(
        self, plan: Callable[[], PollPlan], facts: Callable[[], ClusterState], change: Callable[[PollPlan], None]
    ) -> None:
        """`facts` returns what is known of the cluster, and `change` replaces the set of facts that are needed."""
        self._plan = plan
        self._facts = facts
        self._change = change
        self._followed: tuple[PollPlan, ClusterNeeds] | None = None
        """The plan in force, and the objects that are watched for it."""

    def cluster(self) -> ClusterState:
        """Return the facts, and change the watches if the facts name other objects than those that are watched."""
        state, plan = self._facts(), self._plan()
        if not plan.needs.objects:
            return state
        needs = needs_of(plan.configuration, state)
        # After a change of the configuration, the watches begin with the objects that the new plan names.
        watched = self._followed[1] if self._followed and self._followed[0] is plan else plan.needs
        if needs.objects != watched.objects:
            self._change(replace(plan, needs=needs))
        self._followed = plan, needs
        return state
