"""What counts as a change for `maxChangesPerHour`. Pure.

A decision whose sizes are written counts once, at its own time, when one of them has been written. Until then it counts
for the brakes alone, so that no later decision uses its place; it ends without a trace if nothing was written, or if no
node was removed. Where nothing is written, a change of the recommended size counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from recommender.kinds.cluster_size.group_writes import group_target

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from recommender.kinds.cluster_size.model.groups import NodeGroup, NodeGroups
    from recommender.kinds.cluster_size.model.memory import AskedSize, ClusterSizeMemory, WrittenSize
    from recommender.kinds.cluster_size.model.size_situation import ClusterSituation


def with_changes(changes: tuple[float, ...], times: Iterable[float]) -> tuple[float, ...]:
    """Return the changes, ascending, with those of other decisions, each of which counts once."""
    return tuple(sorted((*changes, *{*times}.difference(changes))))


def with_settled_changes(
    before: ClusterSizeMemory,
    after: ClusterSizeMemory,
    groups: NodeGroups,
    changes: tuple[float, ...],
    sent: Collection[tuple[str, int]] | None = None,
) -> tuple[ClusterSizeMemory, tuple[float, ...]]:
    """Return the memory and the changes, once outcomes have made the memory `after` of `before`.

    The removal of nodes that are drained first counts from its beginning, and no longer if the size stays the same.
    A replaced size no longer counts if it was not `sent` (`SizeFacts.sent`) before it was replaced. A size of which
    nothing was sent does not count because an earlier write, or somebody else, has moved the group's size.
    """
    by_name = {group.name: group for group in groups.groups}
    unsent = {target: size for target, size in after.unsent.items() if not _may_be_sent(target, size, sent)}
    made = {
        one.since
        for name, one in before.asked.items()
        if _is_written(name, one, after) or _has_moved(one, by_name.get(name), unsent)
    }
    failed = {name: one for name, one in after.written.items() if _has_failed(one, by_name.get(name), after)}
    known = {name: _without_ended_drain(one, by_name.get(name)) for name, one in after.written.items()}
    written = {name: one for name, one in known.items() if name not in failed}
    others = {one.since for one in written.values()} | {one.since for one in after.asked.values()}
    withdrawn = {one.since for one in failed.values()} - others
    never = {one.since for target, one in after.replaced.items() if not _may_be_sent(target, one.size, sent)}
    never -= {one.since for target, one in after.replaced.items() if _may_be_sent(target, one.size, sent)}
    left = tuple(time for time in changes if time not in withdrawn | never)
    return replace(after, written=written, unsent=unsent, replaced={}), with_changes(left, made - withdrawn)


def _may_be_sent(target: str, size: int, sent: Collection[tuple[str, int]] | None) -> bool:
    return sent is None or (target, size) in sent


def _is_written(name: str, asked: AskedSize, after: ClusterSizeMemory) -> bool:
    written = after.written.get(name)
    return name not in after.asked and written is not None and written.since == asked.since


def _has_moved(asked: AskedSize, group: NodeGroup | None, unsent: Mapping[str, int]) -> bool:
    """Return whether the size has moved in the direction of the requested one, though perhaps not as far."""
    if group is None or unsent.get(str(group_target(group))) == asked.size:
        return False
    return (group.target_size - asked.before) * (asked.size - asked.before) > 0


def begun_changes(memory: ClusterSizeMemory, groups: NodeGroups) -> set[float]:
    """Return the times of the requested sizes, except those that were not sent before the group's size changed.

    These are not sent any more, since a group that has another size than at the decision is not written.
    """
    over = {
        group.name
        for group in groups.groups
        if (one := memory.asked.get(group.name)) is not None
        and memory.unsent.get(str(group_target(group))) == one.size
        and group.target_size != one.before
    }
    return {one.since for name, one in memory.asked.items() if name not in over}


def _has_failed(written: WrittenSize, group: NodeGroup | None, memory: ClusterSizeMemory) -> bool:
    """Return whether nodes of a group were to be drained, and are in use again."""
    if group is None or group.target_size != written.drained_from or group.deleting:
        return False
    return memory.last_failure is not None and memory.last_failure >= written.since


def _without_ended_drain(written: WrittenSize, group: NodeGroup | None) -> WrittenSize:
    is_same = group is None or written.drained_from in {None, group.target_size}
    return written if is_same else replace(written, drained_from=None)


def written_groups(situation: ClusterSituation) -> frozenset[str]:
    """Return the groups whose changes count once they are written; those of other autoscalers are not written."""
    groups = situation.groups.groups if situation.writes_sizes else ()
    return frozenset(group.name for group in groups if group_target(group) is not None and not group.autoscaler)


def changes_under_way(memory: ClusterSizeMemory, situation: ClusterSituation) -> tuple[dict[str, int], dict[str, int]]:
    """Return the sizes, and how many removed nodes, that are no further change, by group.

    Of a group that is written, that is the size that is being requested. One that was recommended or written earlier
    may have been changed by somebody since: to write it again is a further change.
    """
    written = written_groups(situation)
    sizes = {name: size for name, size in memory.sizes.items() if name not in written}
    removed: dict[str, int] = {}
    for group in situation.groups.groups:
        asked = memory.asked.get(group.name)
        if asked is None or (asked.before != group.target_size and (asked.machines or not asked.removes)):
            continue
        if asked.removes:
            # Nodes are removed one after the other; some may be removed already.
            removed[group.name] = max(0, group.target_size - asked.size)
        else:
            sizes[group.name] = asked.size
    return sizes, removed
