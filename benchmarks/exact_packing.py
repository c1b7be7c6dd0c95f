"""The fewest nodes that hold given pods, by scipy's solver of integer programs (HiGHS): the reference for estimates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SOLVER_SECONDS = 10.0


def least_cost_exactly(
    pods: Sequence[tuple[int, Mapping[str, int]]],
    options: Sequence[Mapping[str, int]],
    costs: Sequence[float],
    at_most: int,
) -> float | None:
    """Return the least cost of nodes that hold all pods; None if the solver does not prove one within 10 s.

    `pods` are counts with the requests of one pod, `options` what a node of each kind offers, and no kind needs more
    than `at_most` nodes.
    """
    nodes = [option for option in range(len(options)) for _ in range(at_most)]
    width = len(nodes) * (1 + len(pods))
    rows, lows, highs = [], [], []
    for shape, (count, _) in enumerate(pods):
        row = np.zeros(width)
        row[len(nodes) * (1 + shape) : len(nodes) * (2 + shape)] = 1.0
        rows.append(row)
        lows.append(float(count))
        highs.append(float(count))
    for place, option in enumerate(nodes):
        for resource in sorted({name for _, requests in pods for name in requests}):
            row = np.zeros(width)
            row[place] = -float(options[option].get(resource, 0))
            for shape, (_, requests) in enumerate(pods):
                row[len(nodes) * (1 + shape) + place] = float(requests.get(resource, 0))
            rows.append(row)
            lows.append(-np.inf)
            highs.append(0.0)
        if place and nodes[place - 1] == option:
            # Nodes of one kind are equal, so the first ones are used first.
            row = np.zeros(width)
            row[place], row[place - 1] = 1.0, -1.0
            rows.append(row)
            lows.append(-np.inf)
            highs.append(0.0)
    upper = [1.0] * len(nodes) + [float(count) for count, _ in pods for _ in nodes]
    found = milp(
        [costs[option] for option in nodes] + [0.0] * (len(nodes) * len(pods)),
        constraints=LinearConstraint(np.array(rows), lows, highs),
        integrality=np.ones(width),
        bounds=Bounds(np.zeros(width), np.array(upper)),
        options={"time_limit": SOLVER_SECONDS},
    )
    return float(found.fun) if found.status == 0 else None
