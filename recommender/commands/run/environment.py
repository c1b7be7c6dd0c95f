"""The environment of the loop: a cluster, or a folder of objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from recommender.commands.run.followed_objects import FollowedObjects, without_objects

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from recommender.decisions.inputs import WriteRefusal
    from recommender.decisions.record import TargetReference
    from recommender.running.inputs.input_gathering import ConfigMapInput, ReadCluster, ReadTargets, TargetInput
    from recommender.running.inputs.poll_plan import PollPlan
    from recommender.running.memory.memories import Memories
    from recommender.running.objects.object_configuration import ObjectConfigurations
    from recommender.running.polls.leadership import Leadership
    from recommender.running.polls.runner import Effects


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnvironment:
    """The source of inputs, and the destination of decisions."""

    cluster: ReadCluster
    config_map: Callable[[str, str], ConfigMapInput]
    targets: ReadTargets
    leadership: Leadership
    memories: Memories
    effects: Effects
    change: Callable[[PollPlan], None]
    """Adapts the environment to a changed configuration."""
    refusals: Callable[[], Mapping[tuple[str, TargetReference], WriteRefusal]] = dict
    """Returns why the requests of containers were not written, by recommendation and target."""
    failures: Callable[[], Mapping[tuple[str, TargetReference], str]] = dict
    """Returns why the last scale calls failed, by recommendation and target."""
    settled: Callable[[], Mapping[tuple[str, TargetReference], object]] = dict
    """Returns the sizes that the last attempt to write them found already in place."""
    with_own_size: Callable[[TargetReference, TargetInput], TargetInput]
    """Returns a look-up with the size that this process has written to the target since then, if any."""
    has_tried_lists: Callable[[], bool]
    """Returns whether the first list of every kind has arrived or failed."""
    follow_objects: Callable[[ObjectConfigurations], FollowedObjects] = without_objects
    """Returns the tasks that read objects of the kind Recommendation, so that they count as configuration."""
