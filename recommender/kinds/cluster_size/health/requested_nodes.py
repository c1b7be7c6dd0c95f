"""Nodes that were requested: which are on their way, and which have not come in time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec.structs import replace

from recommender.kinds.cluster_size.health.group_back_off import after_failure, is_forgotten
from recommender.kinds.cluster_size.health.provision_time import provision_seconds_of
from recommender.kinds.cluster_size.health.readiness import NodeReadiness
from recommender.kinds.cluster_size.model.memory import RequestedNodes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recommender.kinds.cluster_size.model.groups import NodeGroup
    from recommender.kinds.cluster_size.model.memory import BackOff, ClusterSizeMemory
    from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings
    from recommender.kinds.cluster_size.model.size_situation import ClusterSituation


@dataclass(frozen=True, slots=True)
class GroupRequest:
    """The nodes that are on their way to a group."""

    size: int
    """The size that a decision starts from: the target size, corrected if requested nodes did not arrive."""
    missing: int = 0
    """Requested nodes that have no Node object yet, but may still arrive."""
    late: int = 0
    """Requested nodes that are not ready in time."""


def group_request(
    group: NodeGroup,
    readiness: NodeReadiness,
    requested: RequestedNodes | None,
    elapsed_seconds: float,
    provision_seconds: float,
) -> GroupRequest:
    """Return the nodes on their way to a group: none unless `requested` states the size that this program wrote.

    Nodes that are missing or starting for longer than `provision_seconds` after the request, which was
    `elapsed_seconds` ago, are late. The size is then that of the nodes that exist, but not below the minimum.
    """
    if requested is None:
        return GroupRequest(group.target_size)
    wanted = min(group.target_size, requested.size)
    present = _present_nodes(group, readiness)
    missing = max(0, wanted - present)
    if elapsed_seconds <= provision_seconds:
        return GroupRequest(group.target_size, missing)
    size = min(group.target_size, max(present, group.min_size)) if missing else group.target_size
    return GroupRequest(size, late=max(0, wanted - len(readiness.ready) - len(readiness.unready)))


def requests_of(
    situation: ClusterSituation, settings: ClusterSizeSettings, readiness: Mapping[str, NodeReadiness]
) -> tuple[dict[str, GroupRequest], ClusterSizeMemory | None]:
    """Return the nodes on their way by group, and the updated memory, which is None if nothing changed.

    A group with late nodes backs off, and its request is forgotten, as are requests that are fulfilled and back-offs
    that no longer count. The request of a group that is left out is kept, because the group's nodes are not known.
    """
    memory = situation.memory
    requested = dict(memory.requested) if situation.writes_sizes else {}
    back_offs = {name: last for name, last in memory.back_offs.items() if not is_forgotten(last, situation.now)}
    found: dict[str, GroupRequest] = {}
    for group in situation.groups.groups:
        request = requested.get(group.name)
        seconds = provision_seconds_of(group, settings)
        state = readiness.get(group.name, NodeReadiness())
        if request is None and situation.writes_sizes and _lacks_nodes(group, state):
            # Somebody has requested them, perhaps this program before its memory was lost. If they did not count, the
            # same number would be added again.
            request = requested[group.name] = RequestedNodes(group.target_size, situation.now)
        if request is None or group.problem:
            found[group.name] = GroupRequest(group.target_size)
            continue
        elapsed = situation.known_seconds_since(request.since)
        its = found[group.name] = group_request(group, state, request, elapsed, seconds)
        if its.late:
            back_offs[group.name] = _backed_off(back_offs.get(group.name), its, situation.now, seconds)
        if len(state.ready) + len(state.unready) >= request.size or elapsed > seconds:
            del requested[group.name]
    changed = replace(memory, requested=requested if situation.writes_sizes else memory.requested, back_offs=back_offs)
    return found, None if changed == memory else changed


def _lacks_nodes(group: NodeGroup, readiness: NodeReadiness) -> bool:
    """Return whether a group whose size this program may write has fewer nodes than are desired."""
    is_ours = group.is_writable and not (group.autoscaler or group.paused or group.problem)
    return is_ours and group.target_size > _present_nodes(group, readiness)


def _present_nodes(group: NodeGroup, readiness: NodeReadiness) -> int:
    return max(len(group.nodes) - len(group.deleting), readiness.total)


def _backed_off(last: BackOff | None, request: GroupRequest, now: float, seconds: float) -> BackOff:
    nodes = "1 requested node was" if request.late == 1 else f"{request.late} requested nodes were"
    return after_failure(last, now, f"{nodes} not ready within {seconds:.0f} s")
