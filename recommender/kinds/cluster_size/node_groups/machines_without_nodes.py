"""Finds the machines of a provider that have no Node, and says when that is uncertain. Pure.

A provider lists machines by their provider ids, and a Node has one as its `spec.providerID`. A different spelling would
look like a machine without a node, so every doubt is stated with the result.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from adapter.foundation.cluster.values.constraints import HOSTNAME_LABEL
from adapter.foundation.cluster.values.virtual_nodes import is_virtual
from adapter.foundation.sources.kubernetes.errors import trim_message
from recommender.kinds.cluster_size.model.groups import UnregisteredMachine
from recommender.kinds.cluster_size.node_groups.protocol import InstanceState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from adapter.foundation.cluster.values.state import ClusterNode
    from recommender.kinds.cluster_size.model.groups import NodeGroup
    from recommender.kinds.cluster_size.node_groups.plugin_reading import PluginGroup, PluginReading


@dataclass(frozen=True, slots=True)
class NodeSpellings:
    """All texts that may identify a node in a list of machines, in lower case."""

    whole: frozenset[str]
    """Provider ids, names and host names."""
    parts: frozenset[str]
    """The ends of all provider ids, from any slash on."""

    def has(self, machine: str) -> bool:
        """Return whether the text of a machine equals that of a node or of a part of one, or ends with one."""
        spelled = machine.casefold()
        return spelled in self.whole or spelled in self.parts or any(end in self.whole for end in _ends(spelled))


def spellings_of(nodes: Iterable[ClusterNode]) -> NodeSpellings:
    """Return the spellings of nodes."""
    whole: set[str] = set()
    parts: set[str] = set()
    for node in nodes:
        whole.update(map(str.casefold, (node.provider_id, node.name, node.labels.get(HOSTNAME_LABEL, ""))))
        parts.update(_ends(node.provider_id.casefold()))
    return NodeSpellings(frozenset(whole - {""}), frozenset(parts - {""}))


def nameless_node(nodes: Iterable[ClusterNode]) -> str:
    """Return why any machine may be a node: a node that may be one has no provider id; empty if all have one."""
    found = next((node.name for node in nodes if not node.provider_id and not is_virtual(node)), "")
    return f"node {found} has no spec.providerID, so it may be any machine: set it" if found else ""


@dataclass(frozen=True, slots=True)
class MachineComparison:
    """The machines of all groups of one provider, compared with all nodes of the cluster."""

    doubt: str
    """Why machines of no group can be compared with nodes; empty if they can be."""
    known: frozenset[str]
    """The provider ids of all nodes."""
    spellings: NodeSpellings = field(default_factory=lambda: spellings_of(()))
    last_parts: frozenset[str] = frozenset()
    """The last parts of the ids of those nodes that are not machines of the provider."""

    def with_machines(
        self, group: NodeGroup, stated: PluginGroup, members: Sequence[ClusterNode], kept: str
    ) -> NodeGroup:
        """Return a group with its machines that are not nodes, as its plugin states them.

        `members` are the nodes of the group, and `kept` is why the answer about the group is an earlier one; empty if
        it is a current one.
        """
        machines = tuple(
            UnregisteredMachine(one.provider_id, trim_message(one.error) if one.state is InstanceState.CREATING else "")
            for one in stated.instances
            if one.state is not InstanceState.DELETING
            and one.provider_id not in self.known
            and not self.spellings.has(one.provider_id)
            and _last(one.provider_id.casefold()) not in self.last_parts
        )
        staying = sum(one.state is not InstanceState.DELETING for one in stated.instances)
        doubt = self._doubt(stated, members, kept) if machines else ""
        return replace(group, unregistered=machines, joined=staying - len(machines), unregistered_doubt=doubt)

    def _doubt(self, group: PluginGroup, members: Sequence[ClusterNode], kept: str) -> str:
        if kept or group.age_seconds > 0:
            return f"the list of machines is an earlier one{f': {kept}' if kept else ''}"
        listed = {one.provider_id for one in group.instances}
        unlisted = next((node.name for node in members if node.provider_id not in listed), "")
        if unlisted:
            return f"node {unlisted} of the group is not in the list of machines, or is spelled differently there"
        return self.doubt


def compare_machines(reading: PluginReading, nodes: Mapping[str, ClusterNode], problem: str = "") -> MachineComparison:
    """Compare machines and nodes. `problem` is why the nodes of the cluster are not all known; empty if they are."""
    known = frozenset(node.provider_id for node in nodes.values() if node.provider_id)
    going = [one.provider_id for group in reading.groups for one in group.instances]
    listed = frozenset(going)
    if listed <= known:
        return MachineComparison("", known)
    unlisted = [node for node in nodes.values() if node.provider_id and node.provider_id not in listed]
    twice = "" if len(going) == len(listed) else "the provider lists a machine in two groups"
    doubt = problem or twice or nameless_node(nodes.values()) or _foreign_spelling(known & listed, unlisted)
    return MachineComparison(
        doubt,
        known,
        spellings_of(nodes.values()),
        frozenset(_last(node.provider_id.casefold()) for node in unlisted),
    )


def _foreign_spelling(matches: frozenset[str], unlisted: Iterable[ClusterNode]) -> str:
    """Return why ids cannot be compared: no machine and node share one, or the id of a node has another form."""
    if not matches:
        return "no machine that the provider lists is the spec.providerID of any node, so ids cannot be compared"
    schemes = {_scheme(each) for each in matches}
    others = (node for node in unlisted if _scheme(node.provider_id) not in schemes)
    other = next((node for node in others if not is_virtual(node)), None)
    if other is None:
        return ""
    return f"the spec.providerID of node {other.name}, {other.provider_id}, has another form than those of machines"


def _scheme(provider_id: str) -> str:
    scheme, separator, _ = provider_id.partition("://")
    return scheme if separator else ""


def _ends(spelled: str) -> Iterator[str]:
    """Yield what follows each slash."""
    _, slash, rest = spelled.partition("/")
    while slash:
        if rest:
            yield rest
        _, slash, rest = rest.partition("/")


def _last(spelled: str) -> str:
    return spelled.rpartition("/")[2]
