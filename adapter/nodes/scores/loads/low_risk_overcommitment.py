"""LowRiskOverCommitment: avoid nodes where limits exceed the capacity, and where the load often exceeds the requests.

The formula is that of `pkg/trimaran/lowriskovercommitment` of kubernetes-sigs/scheduler-plugins. The load is assumed to
be beta-distributed with the measured mean and deviation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from adapter.nodes.model.columns import NodeColumns, PendingPod
from adapter.nodes.model.loads import LoadResource
from adapter.nodes.scores.loads.beta import incomplete_beta, match_moments, max_variance
from adapter.nodes.scores.policy_scores import (
    MAX_SCORE,
    PolicyScores,
    clamp_scores,
    column_of_rows,
    load_taken,
    round_half_up,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from adapter.nodes.model.arrays import Floats
    from adapter.nodes.model.scheduling_settings import LowRiskOverCommitmentArgs
    from adapter.nodes.scores.policy_scores import Rows

_RESOURCES: Final = (LoadResource.CPU, LoadResource.MEMORY)
_MAX_VARIANCE_SHARE: Final = 0.99
"""The variance is at most this share of the largest that a beta distribution with the same mean can have."""


@dataclass(frozen=True, slots=True, eq=False)
class Commitment:
    """The requests and limits of pods on some nodes, for one resource; limits are at least the requests."""

    capacity: Floats
    """The allocatable amount. Requests are at most that."""
    requested: Floats
    limits: Floats
    requested_without_pod: Floats
    limits_without_pod: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Risk:
    """The parts of a risk, each 0..1."""

    limits: Floats
    load: Floats
    total: Floats


def score(pod: PendingPod, columns: NodeColumns, rows: Rows, args: LowRiskOverCommitmentArgs) -> PolicyScores:
    """Return 100 minus the larger risk of CPU and memory; NaN for nodes that have metrics of neither.

    A pod without requests and limits gets 0 everywhere.
    """
    stated = (pod.resources.requests, pod.resources.limits)
    if not any(amounts.get(resource, 0) for amounts in stated for resource in _RESOURCES):
        return PolicyScores(np.zeros(len(rows)), lambda _: "the pod has neither requests nor limits")
    mean = _loads(columns.mean_ratio, rows)
    weights = [args.risk_limit_weights[resource] for resource in _RESOURCES]
    # Both resources are computed at once: most of the cost is that of the calls, not of the elements.
    both = compute_risk(
        _join_commitments([commitment(pod, columns, rows, resource) for resource in _RESOURCES]),
        _known_load_risk(columns, rows, args.smoothing_window_size),
        np.repeat(weights, len(rows)),
    )
    cpu, memory = both.total.reshape(2, -1)
    is_measured = ~np.logical_and(*np.isnan(mean).reshape(2, -1))
    highest = np.maximum(cpu, memory)
    values = np.where(is_measured, round_half_up((1.0 - highest) * MAX_SCORE), np.nan)

    def reason(position: int) -> str:
        if not is_measured[position]:
            return "the node has no metrics of cpu and memory"
        return "; ".join(
            f"the risk of {resource} is {both.total[at]:.2f} (limits {both.limits[at]:.2f}, load {both.load[at]:.2f})"
            for resource, at in zip(_RESOURCES, (position, position + len(rows)), strict=True)
        )

    return PolicyScores(values, reason)


def commitment(pod: PendingPod, columns: NodeColumns, rows: Rows, resource: LoadResource) -> Commitment:
    """Return the commitment of the nodes with and without the pod."""
    capacity = column_of_rows(columns.allocatable, resource, rows)
    requested = column_of_rows(columns.requested, resource, rows)
    limits = column_of_rows(columns.limits, resource, rows)
    pod_request = pod.resources.requests.get(resource, 0)
    pod_limit = max(pod.resources.limits.get(resource, 0), pod_request)
    return Commitment(
        capacity=capacity,
        requested=np.minimum(requested + pod_request, capacity),
        limits=limits + pod_limit,
        requested_without_pod=np.minimum(requested, capacity),
        limits_without_pod=limits,
    )


def _join_commitments(parts: Sequence[Commitment]) -> Commitment:
    return Commitment(
        capacity=np.concatenate([part.capacity for part in parts]),
        requested=np.concatenate([part.requested for part in parts]),
        limits=np.concatenate([part.limits for part in parts]),
        requested_without_pod=np.concatenate([part.requested_without_pod for part in parts]),
        limits_without_pod=np.concatenate([part.limits_without_pod for part in parts]),
    )


def _loads(ratios: Mapping[LoadResource, Floats], rows: Rows) -> Floats:
    return np.concatenate([load_taken(ratios, resource, rows) for resource in _RESOURCES])


def _known_load_risk(columns: NodeColumns, rows: Rows, smoothing: int) -> Floats:
    """Return the load risk of the rows, which is cached: it does not depend on the pod, and takes most of the time."""

    def computed(lacking: Rows) -> Floats:
        committed = _join_commitments([commitment(PendingPod(), columns, lacking, resource) for resource in _RESOURCES])
        mean, std = _loads(columns.mean_ratio, lacking), _loads(columns.std_ratio, lacking)
        return load_risk(committed, mean, std, smoothing).reshape(len(_RESOURCES), -1)

    return columns.kept.of(("load risk", smoothing), len(_RESOURCES), rows, computed).reshape(-1)


def compute_risk(committed: Commitment, load: Floats, limit_weight: Floats) -> Risk:
    """Return the risk that limits are used, the given risk that the load exceeds the requests, and their total.

    The total is weighted by `limit_weight`.
    """
    excess = np.maximum(committed.limits - committed.capacity, 0.0)
    spread = committed.limits - committed.requested
    limits = excess / np.where(spread > 0.0, spread, 1.0)
    return Risk(limits, load, total=clamp_scores(limit_weight * limits + (1.0 - limit_weight) * load, 1.0))


def load_risk(committed: Commitment, mean: Floats, std: Floats, smoothing: int) -> Floats:
    """Return the probability, among possible loads, that the load exceeds the requests of the pods on the node.

    Without metrics it is 0, as in the plugin. `smoothing` is the plugin's smoothingWindowSize.
    """
    capacity = np.where(committed.capacity > 0.0, committed.capacity, np.inf)
    mu = clamp_scores(mean, 1.0)
    sigma = np.minimum(np.fmax(std, 0.0), 1.0) * math.sqrt(smoothing)
    sigma = np.minimum(sigma, np.sqrt(_MAX_VARIANCE_SHARE * max_variance(mu)))
    within = clamp_scores(committed.requested_without_pod / capacity, 1.0)
    limit = committed.limits_without_pod / capacity
    a, b = match_moments(mu, sigma * sigma)
    is_fitted = ~np.isnan(a)
    probability = np.where(mu <= within, 1.0, 0.0)
    # If limits keep the load below the capacity, only loads up to the limits may occur.
    is_limited = (limit < 1.0) & (committed.requested_without_pod <= committed.limits_without_pod)
    fitted = np.flatnonzero(is_fitted)
    below_limit = np.flatnonzero(is_fitted & is_limited & (limit > 0.0))
    both = np.concatenate((fitted, below_limit))
    thresholds = np.concatenate((within[fitted], limit[below_limit]))
    values = incomplete_beta(thresholds, a[both], b[both])
    probability[fitted] = values[: len(fitted)]
    at_limit = values[len(fitted) :]
    probability[below_limit] /= np.where(at_limit > 0.0, at_limit, 1.0)
    probability[is_limited & (limit == 0.0)] = 1.0
    return np.where(np.isnan(mu), 0.0, 1.0 - clamp_scores(probability, 1.0))
