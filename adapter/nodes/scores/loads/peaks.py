"""Peaks: place the pod where the power of the node rises least.

The model and the normalisation are those of `pkg/trimaran/peaks` of kubernetes-sigs/scheduler-plugins: a node at x
percent of its CPU takes k0 + k1 * exp(k2 * x) watts. In the plugin, a node without metrics or model, or one that the
pod would overload, counts as the cheapest; here, the former is unknown and the latter gets 0.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from adapter.nodes.model.loads import LoadResource
from adapter.nodes.scores.policy_scores import MAX_SCORE, PolicyScores, column_of_rows, load_taken, share

if TYPE_CHECKING:
    from adapter.nodes.model.arrays import Floats
    from adapter.nodes.model.columns import NodeColumns, PendingPod
    from adapter.nodes.model.scheduling_settings import PeaksArgs, PowerModel
    from adapter.nodes.scores.policy_scores import Rows

_NO_MODEL: Final = (np.nan, np.nan)
_RAW_SCALE: Final = 1e15
"""The plugin compares integers of femtowatts."""


def score(pod: PendingPod, columns: NodeColumns, rows: Rows, args: PeaksArgs) -> PolicyScores:
    """Return scores by the rise in power, normalised over the nodes of the request; NaN without metrics or model."""
    load = load_taken(columns.mean_ratio, LoadResource.CPU, rows)
    capacity = column_of_rows(columns.capacity, "cpu", rows)
    percent = 100.0 * (load + share(column_of_rows(columns.recent_requests, LoadResource.CPU, rows), capacity))
    added = np.full(len(rows), 100.0 * pod.resources.requests.get("cpu", 0))
    predicted = percent + share(added, capacity)
    models = [args.node_power_model.get(columns.names[row]) for row in rows.tolist()]
    k1, k2 = np.array([_NO_MODEL if m is None else (m.k1, m.k2) for m in models]).reshape(-1, 2).T
    raw = power_rise(k1, k2, percent, predicted)
    is_full = predicted > 100.0
    values = normalize_scores(raw, is_full)

    def reason(position: int) -> str:
        model = models[position]
        if model is None:
            return "the node has no power model"
        if np.isnan(load[position]):
            return "the node has no CPU metrics"
        if np.isnan(raw[position]):
            return "the power model of the node gives no finite number"
        if is_full[position]:
            return f"CPU would be at {predicted[position]:.0f}%, which is more than the node has"
        return (
            f"power rises by {raw[position] / _RAW_SCALE:.3g} W from {watts(model, percent[position]):.0f} W "
            f"when CPU goes from {percent[position]:.0f}% to {predicted[position]:.0f}%"
        )

    return PolicyScores(values, reason)


def watts(model: PowerModel, percent: float) -> float:
    """Return the power of a node, in watts, at this percentage of its CPU."""
    return model.k0 + model.k1 * math.exp(model.k2 * percent)


def power_rise(k1: Floats, k2: Floats, from_percent: Floats, to_percent: Floats) -> Floats:
    """Return the rise in power in femtowatts, truncated to integers."""
    with np.errstate(over="ignore", invalid="ignore"):
        rise: Floats = np.trunc(k1 * (np.exp(k2 * to_percent) - np.exp(k2 * from_percent)) * _RAW_SCALE)
    # A model may be so steep that its power is not a finite number.
    return np.where(np.isinf(rise), np.nan, rise)


def normalize_scores(raw: Floats, is_full: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> Floats:
    """Return scores from 0 to 100: 100 for the smallest rise in power, and 0 for full nodes; NaN stays NaN.

    All scores are 0 if the power rises on no node and no node is full.
    """
    compared = ~is_full & ~np.isnan(raw)
    values = np.where(is_full & ~np.isnan(raw), 0.0, np.nan)
    if not compared.any():
        return values
    low, high = float(raw[compared].min()), float(raw[compared].max())
    if low == high:
        values[compared] = MAX_SCORE if high != 0.0 or is_full.any() else 0.0
        return values
    values[compared] = MAX_SCORE - np.trunc(MAX_SCORE * (raw[compared] - low) / (high - low))
    return values
