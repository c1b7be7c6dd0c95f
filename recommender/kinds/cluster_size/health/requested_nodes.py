"""Nodes that were requested: which are on their way, and which have not come in time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from recommender.kinds.cluster_size.health.cluster_health import NodeReadiness
from recommender.kinds.cluster_size.model.memory import LATE, LONGEST_BACK_OFF_SECONDS, BackOff, RequestedNodes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recommender.kinds.cluster_size.model.groups import NodeGroup
    from recommender.kinds.cluster_size.model.memory import ClusterSizeMemory
    from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings
    from recommender.kinds.cluster_size.model.size_situation import ClusterSituation


INITIAL_SECONDS: Final = 300.0
FORGOTTEN_SECONDS: Final = 10_800.0
"""After this time without a failure, the next one counts as the first."""


def after_failure(last: BackOff | None, now: float, reason: str) -> BackOff:
    """Return the back-off of a group that fails now, as in `utils/backoff` of Cluster Autoscaler.

    The first back-off lasts five minutes, and each further one twice as long as the last, at most half an hour. A
    failure before the last one has expired restarts it with the same duration.
    """
    seconds = INITIAL_SECONDS
    if last is not None and not is_forgotten(last, now):
        seconds = (
            last.duration_seconds if now < last.until else min(last.duration_seconds * 2, LONGEST_BACK_OFF_SECONDS)
        )
    return BackOff(until=now + seconds, duration_seconds=seconds, failed_at=now, reason=reason)


def is_forgotten(back_off: BackOff, now: float) -> bool:
    """Return whether the last failure is so long ago that it no longer counts."""
    return now - back_off.failed_at > FORGOTTEN_SECONDS


@dataclass(frozen=True, slots=True)
class GroupRequest:
    """The nodes that are on their way to a group."""

    size: int
    """The size that a decision starts from: the target size, corrected if requested nodes did not arrive."""
    missing: int = 0
    """Requested nodes that have no Node object yet, but may still arrive."""
    late: int = 0
    """Requested nodes that are not ready in time."""
    failed: int = 0
    """Requested nodes that would be missing, but whose machines cannot be created now."""


def group_request(
    group: NodeGroup,
    readiness: NodeReadiness,
    requested: RequestedNodes | None,
    elapsed_seconds: float,
    provision_seconds: float,
) -> GroupRequest:
    """Return the nodes on their way to a group: none unless `requested` states the size that this program wrote.

    Missing nodes whose machines cannot be made are not on their way. Nodes that are missing or starting for longer than
    `provision_seconds` after the request, which was `elapsed_seconds` ago, are late. The size is then that of the nodes
    that exist, but not below the minimum. An all-or-nothing group keeps its size unless none of its nodes has come.
    """
    if requested is None:
        return GroupRequest(group.target_size)
    wanted = min(group.target_size + group.surplus, requested.size)
    current = _current_nodes(group, readiness)
    missing = max(0, wanted - current)
    if elapsed_seconds <= provision_seconds:
        failed = min(missing, len(group.failures))
        return GroupRequest(group.target_size, missing - failed, failed=failed)
    size = min(group.target_size, max(current, group.min_size)) if missing else group.target_size
    if size and group.options.zero_or_max:
        size = group.target_size
    return GroupRequest(size, late=max(0, wanted - readiness.ready - readiness.unready))


def requests_of(
    situation: ClusterSituation, settings: ClusterSizeSettings, readiness: Mapping[str, NodeReadiness]
) -> tuple[dict[str, GroupRequest], ClusterSizeMemory | None]:
    """Return the nodes on their way by group, and the updated memory, which is None if nothing changed.

    A group with late nodes backs off, and again at the end of each back-off while its size still counts them.
    Forgotten are requests that are fulfilled, requests of late nodes that the size no longer counts, old requests of
    groups that no longer exist, and back-offs that no longer count. The request of a group that is left out is kept,
    because the group's nodes are not known.
    """
    memory = situation.memory
    back_offs = {name: last for name, last in memory.back_offs.items() if not is_forgotten(last, situation.now)}
    requested = _of_other_groups(situation, settings, back_offs)
    found: dict[str, GroupRequest] = {}
    for group in situation.groups.groups:
        seconds = settings.provision_seconds_of(group)
        state = readiness.get(group.name, NodeReadiness())
        request = _counting_request(group, state, situation)
        found[group.name] = GroupRequest(group.target_size)
        if request is not None and not group.problem:
            is_known_late = request.are_late and _is_backing_off(group, back_offs, situation.now)
            elapsed = math.inf if request.are_late else situation.known_seconds_since(request.since)
            if not is_known_late:
                its = found[group.name] = group_request(group, state, request, elapsed, seconds)
                reason = _failure_of(group, its, request, seconds)
                is_new = its.late or not _is_backing_off(group, back_offs, situation.now)
                if reason and is_new:
                    back_offs[group.name] = after_failure(back_offs.get(group.name), situation.now, reason)
            request = _kept_request(group, state, request, is_over=elapsed > seconds)
        if request is not None:
            requested[group.name] = request
    changed = replace(memory, requested=requested if situation.writes_sizes else memory.requested, back_offs=back_offs)
    return found, None if changed == memory else changed


def _of_other_groups(
    situation: ClusterSituation, settings: ClusterSizeSettings, back_offs: Mapping[str, BackOff]
) -> dict[str, RequestedNodes]:
    """Return the requests of groups that are not known now, and may be known again before their nodes are late."""
    groups = {group.name for group in situation.groups.groups}
    longest = settings.max_node_provision_seconds
    return {
        name: request
        for name, request in situation.memory.requested.items()
        if name not in groups
        and (name in back_offs if request.are_late else situation.known_seconds_since(request.since) <= longest)
    }


def _counting_request(group: NodeGroup, readiness: NodeReadiness, situation: ClusterSituation) -> RequestedNodes | None:
    """Return the request of a group; None if nothing is requested.

    Late nodes are forgotten once the size no longer counts them. If the size has grown since, somebody has requested
    nodes, perhaps this program before its memory was lost: if they did not count, the same number would be added again.
    """
    request = situation.memory.requested.get(group.name)
    if not situation.writes_sizes:
        return None
    if group.problem or (request is not None and not request.are_late):
        return request
    if not _lacks_nodes(group, readiness):
        return None
    is_late = request is not None and group.target_size <= request.size
    return RequestedNodes(group.target_size, LATE if is_late else situation.now)


def _kept_request(
    group: NodeGroup, readiness: NodeReadiness, request: RequestedNodes, *, is_over: bool
) -> RequestedNodes | None:
    """Return what is remembered of a request after a decision; None if nothing is."""
    if readiness.ready + readiness.unready >= request.size:
        return None
    if not is_over:
        return request
    return RequestedNodes(group.target_size, LATE) if _lacks_nodes(group, readiness) else None


def _is_backing_off(group: NodeGroup, back_offs: Mapping[str, BackOff], now: float) -> bool:
    return group.name in back_offs and now < back_offs[group.name].until


def _lacks_nodes(group: NodeGroup, readiness: NodeReadiness) -> bool:
    """Return whether a group whose size this program may write has fewer nodes than are desired.

    The size of a provider's group counts nodes that are drained, until their deletion is requested.
    """
    is_ours = group.is_writable and not (group.autoscaler or group.paused or group.problem)
    current = _current_nodes(group, readiness)
    return is_ours and group.target_size > (current if group.provider is None else max(current, len(group.nodes)))


def _current_nodes(group: NodeGroup, readiness: NodeReadiness) -> int:
    return max(len(group.nodes) - len(group.deleting), readiness.total)


def _failure_of(group: NodeGroup, found: GroupRequest, request: RequestedNodes, seconds: float) -> str:
    """Return why a group backs off; empty if none of its requested nodes is late or has failed."""
    count = found.late or found.failed
    if not count:
        return ""
    is_one = count == 1
    nodes = f"{count} requested node{'' if is_one else 's'}"
    if group.failures:
        return f"{nodes} cannot be made: {group.failures[-1]}"
    if request.are_late:
        has = "has" if is_one else "have"
        return f"{nodes} {has} not joined, and its size still counts them: find out why, or lower the size"
    return f"{nodes} {'was' if is_one else 'were'} not ready within {seconds:.0f} s"
