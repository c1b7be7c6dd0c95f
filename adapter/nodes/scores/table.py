"""The table of policies: the function of each, and its substitute while there are no metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import numpy as np

from adapter.nodes.model.scheduling_settings import (
    DailyPeaksArgs,
    GpuFragmentationArgs,
    GpuPackingArgs,
    LoadVariationRiskBalancingArgs,
    LowRiskOverCommitmentArgs,
    MostAllocatedArgs,
    PeaksArgs,
    PolicyName,
    RequestedToCapacityRatioArgs,
    SelectorSpreadArgs,
    TargetLoadPackingArgs,
)
from adapter.nodes.scores import selector_spread
from adapter.nodes.scores.blend import BlendedScores, blend
from adapter.nodes.scores.gpus import gpu_fragmentation, gpu_packing
from adapter.nodes.scores.loads import (
    daily_peaks,
    load_variation_risk_balancing,
    low_risk_overcommitment,
    peaks,
    predicted_load_packing,
    target_load_packing,
)
from adapter.nodes.scores.policy_scores import PolicyScores
from adapter.nodes.scores.requests import best_fit, most_allocated, requested_to_capacity_ratio

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from adapter.nodes.model.arrays import Floats
    from adapter.nodes.model.columns import NodeColumns, PendingPod
    from adapter.nodes.model.nodes_snapshot import NodesSnapshot
    from adapter.nodes.model.scheduling_settings import PolicyArgs, PolicySettings
    from adapter.nodes.scores.policy_scores import Rows

Args = TypeVar("Args")
PolicyFunction: TypeAlias = "Callable[[PendingPod, NodesSnapshot, Rows, PolicyArgs], PolicyScores]"
ColumnsFunction: TypeAlias = "Callable[[PendingPod, NodeColumns, Rows, Args], PolicyScores]"

METRIC_POLICIES: Final = frozenset(
    {
        PolicyName.TARGET_LOAD_PACKING,
        PolicyName.LOAD_VARIATION_RISK_BALANCING,
        PolicyName.LOW_RISK_OVERCOMMITMENT,
        PolicyName.PEAKS,
        PolicyName.DAILY_PEAKS,
        PolicyName.PREDICTED_LOAD_PACKING,
    }
)
"""Policies that score nothing without metrics; the others score requests and counts."""

POD_POLICIES: Final = frozenset(
    {
        PolicyName.LOW_RISK_OVERCOMMITMENT,
        PolicyName.SELECTOR_SPREAD,
        PolicyName.MOST_ALLOCATED,
        PolicyName.REQUESTED_TO_CAPACITY_RATIO,
        PolicyName.GPU_PACKING,
        PolicyName.GPU_FRAGMENTATION,
    }
)
"""Policies that score nothing without the pods of nodes: each node would count as empty."""

_NO_PODS: Final = (
    "Pods and their requests are not known: their first list has not arrived, or list and watch must be allowed"
)


def score_request(
    policies: Sequence[PolicySettings], pod: PendingPod, snapshot: NodesSnapshot, rows: Rows
) -> BlendedScores:
    """Return the weighted mean of the policies for the nodes at these rows; -1 stands for an unknown node.

    With the basis `none`, all nodes get the middle score if one of the policies needs metrics: the mean of the others
    would favour nodes for only some of the reasons.
    """
    if snapshot.basis == "none" and any(policy.name in METRIC_POLICIES for policy in policies):
        return blend((), len(rows))
    is_known = rows >= 0

    def values_of(policy: PolicySettings) -> Floats:
        values = np.full(len(rows), np.nan)
        values[is_known] = score_nodes(policy, pod, snapshot, rows[is_known]).values
        return values

    return blend([(policy.weight, values_of(policy)) for policy in policies if policy.weight > 0], len(rows))


def score_nodes(policy: PolicySettings, pod: PendingPod, snapshot: NodesSnapshot, rows: Rows) -> PolicyScores:
    """Return the scores of one policy for the nodes at these rows of the snapshot.

    While there are no metrics, a policy that needs them scores no node; after a while, best fit replaces it.
    """
    if not snapshot.are_nodes_known:
        return PolicyScores(
            np.full(len(rows), np.nan),
            lambda _: "Node objects are not known, so what the node has is not known either: see the log",
        )
    if policy.name in METRIC_POLICIES:
        if snapshot.basis == "none":
            return PolicyScores(np.full(len(rows), np.nan), lambda _: "no node has usable metrics yet")
        if snapshot.basis == "requests" and not snapshot.are_pods_known:
            return PolicyScores(np.full(len(rows), np.nan), lambda _: f"there are no metrics, and {_NO_PODS}")
        if snapshot.basis == "requests":
            return best_fit.score(pod, snapshot.columns, rows)
    if policy.name in POD_POLICIES and not snapshot.are_pods_known:
        return PolicyScores(np.full(len(rows), np.nan), lambda _: _NO_PODS)
    return POLICIES[policy.name](pod, snapshot, rows, policy.args)


def _by_columns(function: ColumnsFunction[Args], expected: type[Args]) -> PolicyFunction:
    """Return the function of a policy that needs only the columns."""

    def scores(pod: PendingPod, snapshot: NodesSnapshot, rows: Rows, args: PolicyArgs) -> PolicyScores:
        return function(pod, snapshot.columns, rows, _check_arguments(args, expected))

    return scores


def _selector_spread(pod: PendingPod, snapshot: NodesSnapshot, rows: Rows, args: PolicyArgs) -> PolicyScores:
    return selector_spread.score(
        pod, snapshot.columns, rows, _check_arguments(args, SelectorSpreadArgs), snapshot.pods_by_namespace
    )


def _check_arguments(args: PolicyArgs, expected: type[Args]) -> Args:
    if not isinstance(args, expected):
        raise TypeError(f"{type(args).__name__} are not the arguments of this policy: it takes {expected.__name__}")
    return args


POLICIES: Final[Mapping[PolicyName, PolicyFunction]] = {
    PolicyName.TARGET_LOAD_PACKING: _by_columns(target_load_packing.score, TargetLoadPackingArgs),
    PolicyName.LOAD_VARIATION_RISK_BALANCING: _by_columns(
        load_variation_risk_balancing.score, LoadVariationRiskBalancingArgs
    ),
    PolicyName.LOW_RISK_OVERCOMMITMENT: _by_columns(low_risk_overcommitment.score, LowRiskOverCommitmentArgs),
    PolicyName.PEAKS: _by_columns(peaks.score, PeaksArgs),
    PolicyName.DAILY_PEAKS: _by_columns(daily_peaks.score, DailyPeaksArgs),
    PolicyName.PREDICTED_LOAD_PACKING: _by_columns(predicted_load_packing.score, TargetLoadPackingArgs),
    PolicyName.SELECTOR_SPREAD: _selector_spread,
    PolicyName.MOST_ALLOCATED: _by_columns(most_allocated.score, MostAllocatedArgs),
    PolicyName.REQUESTED_TO_CAPACITY_RATIO: _by_columns(
        requested_to_capacity_ratio.score, RequestedToCapacityRatioArgs
    ),
    PolicyName.GPU_PACKING: _by_columns(gpu_packing.score, GpuPackingArgs),
    PolicyName.GPU_FRAGMENTATION: _by_columns(gpu_fragmentation.score, GpuFragmentationArgs),
}
