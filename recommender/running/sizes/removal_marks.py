"""The mark of a node that is being drained and deleted: all that a process needs to know to continue the removal.

The node is cordoned and has the taint of Cluster Autoscaler, which load balancers and other programs know. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any, Final

import msgspec

from adapter.foundation.cluster.values.constraints import TaintEffect
from adapter.foundation.cluster.values.state import Taint
from adapter.foundation.objects.decoders import decoder_of
from recommender.kinds.cluster_size.health.failed_removals import FAILED_REMOVAL
from recommender.kinds.cluster_size.model.taints import TO_BE_DELETED_TAINT
from recommender.kinds.cluster_size.node_groups.fields import section, text, texts
from recommender.kinds.cluster_size.scale_down.annotations import SCALE_DOWN_DISABLED

REMOVAL: Final = "tidewatch.io/removal"
"""The annotation that holds the mark, as JSON."""
_CLOCK_SECONDS: Final = 60.0
"""How far the clocks of two processes may differ."""
_OTHERS_SECONDS: Final = 3600.0
"""How long a removal is left to the recommender that began it: longer than any takes."""


class RemovalMark(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """States for which recommendation, and since when, a node is removed. Times are Unix seconds."""

    recommendation: str
    provider: str
    group: str
    since: float
    cordoned: bool = False
    """Whether the removal cordoned the node, so that the node accepts pods again if the removal fails."""
    deleting_since: float | None = None
    """When the provider was asked to delete the machine; stored before the request. None without a request."""
    accepted: bool = False
    """Whether the provider has accepted the request."""
    whole: int = 0
    """How many nodes of the group are removed together, if it has either no node or all of them; 0 otherwise."""
    owner: str = ""
    """The recommender that removes the node, by its Lease; empty in marks of earlier versions."""


_MARKS: Final = decoder_of(RemovalMark)


def mark_of(node: Mapping[str, Any]) -> RemovalMark | None:
    """Return the mark of a Node; None if there is none, or if it cannot be read."""
    text = texts(node, "metadata", "annotations").get(REMOVAL, "")
    try:
        return _MARKS.decode(text) if text else None
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def without_future(mark: RemovalMark, now: float) -> RemovalMark:
    """Return the mark with the current time in place of times in the future, which would delay the removal."""
    if max(mark.since, mark.deleting_since or 0.0) <= now + _CLOCK_SECONDS:
        return mark
    deleting_since = None if mark.deleting_since is None else min(mark.deleting_since, now)
    return msgspec.structs.replace(mark, since=min(mark.since, now), deleting_since=deleting_since)


def is_of_another(mark: RemovalMark, owner: str, waited: float) -> bool:
    """Return whether another recommender carries the removal out; after an hour, it no longer exists."""
    return mark.owner not in {"", owner} and waited < _OTHERS_SECONDS


def deletions_since(time: float, mark: RemovalMark, others: Iterable[RemovalMark]) -> int:
    """Return how many of the other removals are of the same group and have requested the deletion since `time`."""
    group = (mark.recommendation, mark.provider, mark.group)
    return sum(
        (other.recommendation, other.provider, other.group) == group
        and other.deleting_since is not None
        and other.deleting_since > time
        for other in others
    )


def removal_taint(since: float) -> Taint:
    """Return the taint of a node whose removal began at a time in Unix seconds."""
    return Taint(TO_BE_DELETED_TAINT, str(int(since)), TaintEffect.NO_SCHEDULE)


def marked_node(node: dict[str, Any], mark: RemovalMark) -> dict[str, Any]:
    """Return the Node with the mark: cordoned, tainted and annotated."""
    taint = asdict(removal_taint(mark.since))
    annotations = {**texts(node, "metadata", "annotations"), REMOVAL: msgspec.json.encode(mark).decode()}
    annotations.pop(FAILED_REMOVAL, None)
    spec = {**section(node, "spec"), "unschedulable": True, "taints": [*_other_taints(node), taint]}
    return {**node, "metadata": {**node["metadata"], "annotations": annotations}, "spec": spec}


def unmarked_node(node: dict[str, Any], failed_at: float) -> dict[str, Any]:
    """Return the Node in its former state, with the time at which its removal failed."""
    mark = mark_of(node)
    annotations = {key: text for key, text in texts(node, "metadata", "annotations").items() if key != REMOVAL}
    annotations[FAILED_REMOVAL] = str(int(failed_at))
    spec = {**section(node, "spec"), "taints": _other_taints(node)}
    if mark is None or mark.cordoned:
        spec["unschedulable"] = False
    return {**node, "metadata": {**node["metadata"], "annotations": annotations}, "spec": spec}


def _is_removed_by_others(node: Mapping[str, Any]) -> bool:
    """Return whether Cluster Autoscaler, or another program with its taint, is removing the Node."""
    return mark_of(node) is None and _other_taints(node) != section(node, "spec").get("taints", [])


def reason_to_stay(node: Mapping[str, Any], owner: str) -> str:
    """Return why a recommender must not remove the Node; empty if nothing on the Node forbids it."""
    if text(node, "metadata", "deletionTimestamp"):
        return "it is being deleted already"
    if text(node, "metadata", "annotations", SCALE_DOWN_DISABLED) == "true":
        return f"it has the annotation {SCALE_DOWN_DISABLED}"
    mark = mark_of(node)
    if mark is not None and is_of_another(mark, owner, 0.0):
        return f"the recommender {mark.owner} is removing it"
    return "another program is removing it" if _is_removed_by_others(node) else ""


def is_cordoned(node: Mapping[str, Any]) -> bool:
    """Return whether the Node accepts no new pods."""
    return section(node, "spec").get("unschedulable") is True


def _other_taints(node: Mapping[str, Any]) -> list[object]:
    found = section(node, "spec").get("taints")
    taints = found if isinstance(found, list) else []
    return [each for each in taints if not (isinstance(each, dict) and each.get("key") == TO_BE_DELETED_TAINT)]


def remedy_of(node: str) -> str:
    """Return what to do if the rights are missing to continue the removal of a node."""
    return (
        "grant get and update on nodes, as the chart does with `deleteNodes`, or make the node usable yourself: "
        f"`kubectl annotate node {node} {REMOVAL}-`, `kubectl taint node {node} {TO_BE_DELETED_TAINT}-`, "
        f"`kubectl uncordon {node}`"
    )
