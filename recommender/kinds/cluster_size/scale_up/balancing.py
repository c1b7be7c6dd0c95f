"""Node groups that are similar, and how new nodes are spread over them."""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.constraints import HOSTNAME_LABEL
from adapter.foundation.objects.amount_texts import amount_text
from recommender.kinds.cluster_size.model.resources import amounts_of
from recommender.kinds.cluster_size.model.size_settings import MEMORY
from recommender.kinds.cluster_size.resource_limits import check_quota, quota_after

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence

    from recommender.kinds.cluster_size.model.groups import NodeTemplate
    from recommender.kinds.cluster_size.resource_limits import Quota


IGNORED_LABELS: Final = frozenset(
    {
        HOSTNAME_LABEL,
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        "beta.kubernetes.io/fluentd-ds-ready",
        "kops.k8s.io/instancegroup",
        # Labels that clouds put on nodes and that differ between groups of one kind, as their providers ignore them.
        "alpha.eksctl.io/instance-id",
        "alpha.eksctl.io/nodegroup-name",
        "eks.amazonaws.com/nodegroup",
        "k8s.amazonaws.com/eniConfig",
        "lifecycle",
        "topology.ebs.csi.aws.com/zone",
        "topology.k8s.aws/zone-id",
        "agentpool",
        "aksEngineVersion",
        "creationSource",
        "poolName",
        "resourceNameSuffix",
        "kubernetes.azure.com/agentpool",
        "kubernetes.azure.com/consolidated-additional-properties",
        "kubernetes.azure.com/node-image-version",
        "topology.disk.csi.azure.com/zone",
        "topology.gke.io/zone",
    }
)
"""Labels in which similar nodes may differ."""
_CAPACITY_RATIOS: Final = {MEMORY: 0.015}
_AMOUNTS_RATIO: Final = 0.05
"""How much allocatable amounts, and free amounts, may differ, as a share of the larger one."""


def difference(
    one: NodeTemplate, other: NodeTemplate, ignored: Collection[str] = (), compared: Sequence[str] = ()
) -> str:
    """Return why nodes of two templates are not alike; empty if they are.

    Their capacities must be equal (memory within 1.5%); the allocatable amounts, and what the template's own pods
    leave of them, must agree within 5%; and the labels must be equal, except those of `IGNORED_LABELS` and `ignored`.
    Where `compared` lists labels, both must have these with equal values, and nothing else is compared.
    """
    labels, others = one.node.labels, other.node.labels
    if compared:
        return _labels_difference(
            labels, others, (key for key in compared if key not in labels or labels[key] != others.get(key))
        )
    skipped = IGNORED_LABELS.union(ignored)
    unequal = (key for key in sorted({*labels, *others}) if key not in skipped and labels.get(key) != others.get(key))
    return (
        _amounts_difference(
            "capacity", amounts_of(one.node.capacity), amounts_of(other.node.capacity), _CAPACITY_RATIOS, 0.0
        )
        or _amounts_difference(
            "allocatable", amounts_of(one.node.allocatable), amounts_of(other.node.allocatable), {}, _AMOUNTS_RATIO
        )
        or _amounts_difference("free", _free(one), _free(other), {}, _AMOUNTS_RATIO)
        or _labels_difference(labels, others, unequal)
    )


def similar_groups(
    chosen: str, alike: Sequence[str], schedulable: Mapping[str, frozenset[Hashable]], *, balance: bool
) -> tuple[str, ...]:
    """Return the groups similar to the chosen one that can hold every pod group that the chosen one can hold.

    `schedulable` has, by node group, the pod groups that it can hold. The result is empty if
    balancing is off, or if the chosen group can hold nothing.
    """
    wanted = schedulable.get(chosen)
    if not balance or not wanted:
        return ()
    return tuple(group for group in alike if wanted <= schedulable.get(group, frozenset()))


def _amounts_difference(
    what: str, one: Mapping[str, int], other: Mapping[str, int], ratios: Mapping[str, float], ratio: float
) -> str:
    """Describe the first resource whose amounts differ by more than its ratio in `ratios`, by default `ratio`."""
    for resource in sorted({*one, *other}):
        if resource not in one or resource not in other:
            return f"only one of them has {what} {resource}"
        if not _within(one[resource], other[resource], ratios.get(resource, ratio)):
            amounts = [amount_text(resource, each[resource], rounds_up=False) for each in (one, other)]
            return f"{what} {resource} is {amounts[0]} and {amounts[1]}"
    return ""


def _labels_difference(one: Mapping[str, str], other: Mapping[str, str], unequal: Iterable[str]) -> str:
    key = next(iter(unequal), None)
    return "" if key is None else f"the label {key} is {_value(one, key)} and {_value(other, key)}"


def _value(labels: Mapping[str, str], key: str) -> str:
    return repr(labels[key]) if key in labels else "absent"


def _within(one: int, other: int, ratio: float) -> bool:
    smaller, larger = sorted((one, other))
    return larger - smaller <= ratio * larger


def _free(template: NodeTemplate) -> dict[str, int]:
    requested: Counter[str] = Counter()
    for pod in template.pods:
        requested.update(pod.resources.requests)
    return {
        resource: amount - requested[resource] for resource, amount in amounts_of(template.node.allocatable).items()
    }


@dataclass(frozen=True, slots=True)
class GroupRoom:
    """How large a group is and may become."""

    name: str
    size: int
    max_size: int


def spread_new_nodes(groups: Sequence[GroupRoom], new_nodes: int) -> dict[str, int]:
    """Return how many of the new nodes each group gets; groups that get none are absent.

    One node at a time is added to the smallest group; among equal ones, to the first. Groups at their maximum are left
    out; nodes for which no group has room are dropped. The result has the groups in the order of their sizes before the
    growth.
    """
    growing = sorted((group for group in groups if group.size < group.max_size), key=lambda group: group.size)
    queue = [(group.size, place) for place, group in enumerate(growing)]
    heapq.heapify(queue)
    sizes = [group.size for group in growing]
    for _ in range(new_nodes):
        if not queue:
            break
        size, place = heapq.heappop(queue)
        sizes[place] = size + 1
        if size + 1 < growing[place].max_size:
            heapq.heappush(queue, (size + 1, place))
    return {group.name: size - group.size for group, size in zip(growing, sizes, strict=True) if size > group.size}


def within_quota(shares: Mapping[str, int], nodes: Mapping[str, Mapping[str, int]], quota: Quota) -> dict[str, int]:
    """Return the shares that the quota allows; groups that get no node are absent.

    The shares are cut one after the other; the nodes that are cut are not given to another group. `nodes` has, by
    group, the amounts of one node that count towards the quota.
    """
    allowed: dict[str, int] = {}
    for group, share in shares.items():
        count = check_quota(quota, nodes[group], share).allowed
        quota = quota_after(quota, nodes[group], count)
        if count:
            allowed[group] = count
    return allowed
