"""The deletion of a node's machine through the provider of its group, within the group's minimum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from recommender.kinds.cluster_size.node_groups.fields import text, texts
from recommender.kinds.cluster_size.node_groups.plugin_host import ProviderUnreachableError
from recommender.kinds.cluster_size.node_groups.plugin_reading import PluginError, PluginGroup
from recommender.kinds.cluster_size.node_groups.protocol import InstanceState, OutcomeUnknownError, ProviderNode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from recommender.running.sizes.plugin_hosts import WritesGroups
    from recommender.running.sizes.removal_marks import RemovalMark

_ACCEPTED_SECONDS: Final = 900.0
"""How long a machine may take to disappear after the provider has accepted its deletion."""
UNCERTAIN_SECONDS: Final = 120.0
"""How long a machine may take to disappear if it is unknown whether the provider has accepted its deletion."""


@dataclass(frozen=True, slots=True)
class DeletionProblem:
    """Why a machine is not deleted; an empty message if it may be deleted."""

    message: str = ""
    waits: bool = False
    """Whether the problem may pass by itself or may not exist, so that the node stays as it is for now."""


class MachineDeletion:
    """Deletes machines. Not thread-safe."""

    def __init__(self, groups: WritesGroups, monotonic: Callable[[], float]) -> None:
        """`monotonic` returns the seconds of a monotonic clock."""
        self._groups = groups
        self._monotonic = monotonic
        self._expected: dict[tuple[str, str, str], tuple[int, float]] = {}
        """The size of each group after its last deletion, which the provider may show late, and the time until which
        that size counts."""

    def problem_of(self, node: Mapping[str, Any], mark: RemovalMark, unseen: int) -> DeletionProblem:
        """Return why the machine must not be deleted now, with an empty message if it may be deleted.

        `unseen` is the number of deletions in the group that a former process has requested lately: the size that the
        provider shows may not count them yet.
        """
        try:
            group = self._look(mark)
        except ProviderUnreachableError as error:
            return DeletionProblem(str(error), waits=True)
        problem = self._minimum_problem(mark, group, unseen)
        ids = {each.provider_id for each in group.instances}
        if not problem.message and ids and not ids & _ids(node):
            return DeletionProblem(f"the provider lists no such machine in the group {mark.group}")
        return problem

    def _minimum_problem(self, mark: RemovalMark, group: PluginGroup, unseen: int) -> DeletionProblem:
        """Return why the group may not lose a machine, with an empty message if it may lose one."""
        left = self._size(mark, group) - 1
        if left < group.min_size:
            return DeletionProblem(f"the group {mark.group} has a minimum of {group.min_size}")
        # A node that exists can always go from a group that may have none.
        if max(0, left - unseen) < group.min_size:
            message = (
                f"the size of the group {mark.group}, with its minimum of {group.min_size}, may not count {unseen} "
            )
            return DeletionProblem(f"{message}earlier deletions yet", waits=True)
        running = sum(each.state is InstanceState.RUNNING for each in group.instances)
        if group.instances and running - 1 < group.min_size:
            message = f"{running} machines of the group {mark.group} run, and its minimum is {group.min_size}"
            return DeletionProblem(message, waits=True)
        return DeletionProblem()

    def delete(self, node: Mapping[str, Any], mark: RemovalMark) -> DeletionProblem:
        """Ask the provider once to delete the machine; return the problem, which `waits` if the outcome is unknown."""
        machine = ProviderNode(
            text(node, "metadata", "name"),
            text(node, "spec", "providerID"),
            texts(node, "metadata", "labels"),
            texts(node, "metadata", "annotations"),
        )
        try:
            self._groups.change(
                mark.recommendation, mark.provider, mark.group, lambda group: group.delete_nodes((machine,))
            )
        except OutcomeUnknownError as error:
            self._expect_one_less(mark)
            return DeletionProblem(str(error), waits=True)
        except (PluginError, ProviderUnreachableError) as error:
            return DeletionProblem(str(error))
        self._expect_one_less(mark)
        return DeletionProblem()

    def _expect_one_less(self, mark: RemovalMark) -> None:
        """Note that the group may have one node fewer than its provider shows, so that its minimum is respected."""
        key = _key(mark)
        if key in self._expected:
            size, _ = self._expected[key]
            self._expected[key] = size - 1, self._monotonic() + UNCERTAIN_SECONDS

    def is_under_way(self, node: Mapping[str, Any], mark: RemovalMark) -> bool:
        """Return whether the provider is deleting the machine, or has deleted it."""
        try:
            group = self._look(mark)
        except ProviderUnreachableError:
            return False
        states = {each.state for each in group.instances if each.provider_id in _ids(node)}
        return states <= {InstanceState.DELETING}

    @staticmethod
    def longest_seconds(mark: RemovalMark) -> float:
        """Return how long the deletion may take."""
        return _ACCEPTED_SECONDS if mark.accepted else UNCERTAIN_SECONDS

    def _look(self, mark: RemovalMark) -> PluginGroup:
        return self._groups.look(mark.recommendation, mark.provider, mark.group)

    def _size(self, mark: RemovalMark, group: PluginGroup) -> int:
        """Return the size of a group; for a while after a deletion, it is at most the size that the deletion left."""
        key, now = _key(mark), self._monotonic()
        size, until = self._expected.get(key, (group.target_size, 0.0))
        known = min(size, group.target_size) if now < until else group.target_size
        self._expected[key] = known, until
        return known


def _ids(node: Mapping[str, Any]) -> set[str]:
    """Return the identifiers by which a provider may list the machine of a node."""
    return {text(node, "spec", "providerID"), text(node, "metadata", "name")} - {""}


def _key(mark: RemovalMark) -> tuple[str, str, str]:
    return mark.recommendation, mark.provider, mark.group
