"""The last usable answer about each group of a provider, which counts for a while if the next one is missing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from adapter.foundation.objects.grouping import group_values
from recommender.kinds.cluster_size.node_groups.plugin_reading import PluginReading

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recommender.kinds.cluster_size.node_groups.plugin_reading import PluginGroup

KEPT_SECONDS: Final = 60.0
"""How long, at most, the last answer about a group counts: an outage is no reason to add nodes to other groups."""
_UNLISTED: Final = "it is not among the groups that the provider lists"


@dataclass(frozen=True, slots=True)
class _Answer:
    group: PluginGroup
    nodes: tuple[str, ...]
    asked: float


class LastAnswers:
    """The answers of one provider by group. One thread at a time notes them; any number may read them."""

    def __init__(self, provider: str) -> None:
        """Begin without an answer; `provider` is the name that readings have."""
        self._provider = provider
        self._answers: Mapping[str, _Answer] = {}

    def note(self, reading: PluginReading, asked: float) -> None:
        """Remember the usable groups of a reading that was requested at `asked`, a time of the monotonic clock."""
        members = group_values((name, node) for node, name in reading.group_of.items())
        self._answers = {
            **{name: one for name, one in self._answers.items() if asked - one.asked <= KEPT_SECONDS},
            **{
                group.name: _Answer(group, tuple(members.get(group.name, ())), asked - group.age_seconds)
                for group in reading.groups
                if not group.problem
            },
        }

    def complete(self, reading: PluginReading, now: float, kept_seconds: float) -> PluginReading:
        """Return the reading, completed by the last answers about groups that are missing or have a problem in it."""
        problems = {group.name: group.problem for group in reading.groups}
        kept = {
            name: one
            for name, one in self._answers.items()
            if problems.get(name, _UNLISTED)
            and now - one.asked <= min(kept_seconds, KEPT_SECONDS)
            and (name in problems or not _has_moved(name, one, reading))
        }
        if not kept:
            return reading
        unlisted = [one.group for name, one in kept.items() if name not in problems]
        former = {node: name for name, one in kept.items() for node in one.nodes}
        return replace(
            reading,
            groups=(*(kept[each.name].group if each.name in kept else each for each in reading.groups), *unlisted),
            group_of={**former, **reading.group_of},
            kept={name: problems.get(name, _UNLISTED) for name in kept},
        )

    def without_reading(self, problem: str, now: float, kept_seconds: float) -> PluginReading:
        """Return what counts while the provider does not answer: the last answers, or no group and the problem."""
        found = self.complete(PluginReading(self._provider), now, kept_seconds)
        if not found.groups:
            return PluginReading(self._provider, problem=problem)
        return replace(found, kept={}, kept_because=problem)


def _has_moved(name: str, one: _Answer, reading: PluginReading) -> bool:
    """Return whether all nodes of a group belong to other groups now, as after a change of the group's name.

    If the group were kept, its nodes would appear to be missing, and pods would wait for them.
    """
    return bool(one.nodes) and all(reading.group_of.get(node, name) != name for node in one.nodes)
