"""Values the free part of a GPU by the shares that still fit into it, at the prices of a cutting-stock problem.

GPUs are bars that the shares of pods are cut from. Finding the fewest GPUs for a workload is a linear program, whose
dual prices say how much of a GPU each share costs if all are cut well (Gilmore and Gomory, 1961): 0.5 for a share of
470, because two of them fill a GPU; 1 for a share of 810, beside which nothing else fits. The free part of a GPU has
the value of the best set of shares that fits into it. Placements that lose the least value leave no GPU that cannot be
filled.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from adapter.nodes.model.arrays import Floats
    from adapter.nodes.scores.gpus.gpu_fragments import Integers, WorkloadMix

    Knapsack: TypeAlias = tuple[Floats, NDArray[np.intp]]

_STEP_MILLI: Final = 10
_STEPS: Final = 1000 // _STEP_MILLI
"""Shares are rounded up to hundredths of a GPU, and the free part is rounded down."""
_MOST_PIVOTS: Final = 400
_NOTHING: Final = 1e-9
_FREQUENCIES: Final = 200
"""Frequencies are rounded to a 200th, so that prices are not computed again for each pod."""


def value_by_free_milli(mix: WorkloadMix) -> Floats:
    """Return the value of the free part of a GPU, as a share of a whole one, for 0, 10, 20 ... 1000 thousandths."""
    demand: dict[int, float] = {}
    for count, milli, share in zip(mix.gpu_count.tolist(), mix.gpu_milli.tolist(), mix.share.tolist(), strict=True):
        if count:
            size = -(-milli // _STEP_MILLI)
            demand[size] = demand.get(size, 0.0) + count * share
    total = sum(demand.values())
    rounded = {size: round(_FREQUENCIES * amount / total) for size, amount in sorted(demand.items())}
    return _value(tuple((size, amount) for size, amount in rounded.items() if amount))


def values_of_gpus(left_milli: Integers, by_left: Floats) -> Floats:
    """Return the value of each node, in GPUs, from what is left of each of its GPUs (nodes, GPUs)."""
    return np.asarray(by_left[left_milli // _STEP_MILLI].sum(axis=1))


@lru_cache(maxsize=64)
def _value(demand: tuple[tuple[int, int], ...]) -> Floats:
    """Return the value by free hundredths, for a demand of shares (in hundredths), each with its frequency."""
    if not demand:
        return np.zeros(_STEPS + 1)
    sizes = np.array([size for size, _ in demand])
    prices = _prices(sizes, np.array([amount for _, amount in demand], dtype=np.float64))
    value, _ = _knapsack(sizes, prices)
    # Rounded, so that placements which are equally good are exactly equal.
    found: Floats = np.round(value, 6)
    found.setflags(write=False)
    return found


def _prices(sizes: Integers, demand: Floats) -> Floats:
    """Return the dual prices of meeting a demand with the fewest bars, by the simplex method with column generation."""
    basis = np.diag((_STEPS // sizes).astype(np.float64))
    costs = np.ones(len(sizes))
    prices: Floats = costs / np.diag(basis)
    for _ in range(_MOST_PIVOTS):
        entering, cost = _improving_column(sizes, prices)
        if entering is None:
            break
        amounts, change = np.linalg.solve(basis, np.column_stack((demand, entering))).T
        ratios = np.full(len(sizes), np.inf)
        np.divide(np.maximum(amounts, 0.0), change, out=ratios, where=change > _NOTHING)
        leaving = int(ratios.argmin())
        basis[:, leaving], costs[leaving] = entering, cost
        prices = np.asarray(np.linalg.solve(basis.T, costs), dtype=np.float64)
    return np.asarray(np.maximum(prices, 0.0))


def _improving_column(sizes: Integers, prices: Floats) -> tuple[Floats | None, float]:
    """Return a column that improves the plan, and its cost: a pattern for cutting a bar, or a surplus of a share."""
    cheapest = int(prices.argmin())
    column = np.zeros(len(sizes))
    if prices[cheapest] < -_NOTHING:
        column[cheapest] = -1.0
        return column, 0.0
    value, last = _knapsack(sizes, prices)
    if value[-1] <= 1.0 + _NOTHING:
        return None, 0.0
    room = _STEPS
    while room > 0:
        if last[room] < 0:
            room -= 1
        else:
            column[last[room]] += 1.0
            room -= int(sizes[last[room]])
    return column, 1.0


def _knapsack(sizes: Integers, prices: Floats) -> Knapsack:
    """Return the highest price of shares that fit into each size (0..100), and the share added last; -1 for none."""
    best = np.zeros(_STEPS + 1)
    last = np.full(_STEPS + 1, -1, dtype=np.intp)
    for room in range(1, _STEPS + 1):
        best[room] = best[room - 1]
        fitting = int(np.searchsorted(sizes, room, side="right"))
        if fitting:
            prices_with = best[room - sizes[:fitting]] + prices[:fitting]
            choice = int(prices_with.argmax())
            if prices_with[choice] > best[room] + _NOTHING:
                best[room], last[room] = prices_with[choice], choice
    return best, last
