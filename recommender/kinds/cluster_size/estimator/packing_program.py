"""Packing as a linear program: nodes and pods may be divided, so its optimum never exceeds that of whole ones.

For each option g there are n(g) nodes, and x(s, g) pods of each shape s on them. Each row limits what n(g) nodes hold:
one resource, the number of pods, the pods of one shape, or the pods' sizes under dual feasible functions, whose sum
over the pods of a node is at most 1 (Fekete and Schepers, "New classes of fast lower bounds for bin packing problems",
2001).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

POD_COUNT: Final = "pods"
_PARTS: Final = (1, 2, 3)
"""The numbers of parts into which the functions divide a node. Sizes up to 1 / (parts + 1) count as nothing."""
MOST_WORK: Final = 1_500_000_000
"""Limit of the solver's iterations times the entries of the matrix for a bound: a few seconds of processor time."""


@dataclass(frozen=True, slots=True)
class ShapeDemand:
    """Pods of one shape."""

    count: int
    requests: Mapping[str, int]
    """The requests, including 1 of `pods`."""
    rooms: Mapping[int, int]
    """How many of these pods one empty node holds, by index of the option; options that hold none are absent."""


@dataclass(slots=True)
class _Rows:
    """A sparse matrix of rows `sum of entries <= 0`."""

    rows: list[int] = field(default_factory=list)
    columns: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    count: int = 0

    def add(self, entries: Mapping[int, float]) -> None:
        for column, value in entries.items():
            self.rows.append(self.count)
            self.columns.append(column)
            self.values.append(value)
        self.count += 1


@dataclass(frozen=True, slots=True)
class LeastCost:
    """The optimum of the program."""

    cost: float
    pod_prices: tuple[float, ...]
    """The cost that one further pod adds, by demand (the dual values); 0 for demands without an option."""


def least_cost(
    demands: Sequence[ShapeDemand], free: Sequence[Mapping[str, int]], costs: Sequence[float]
) -> float | None:
    """Return a lower bound of the cost of any mix of nodes that holds all pods.

    `free` has the resources of an empty node of each option, and `costs` its cost. Demands without an
    option are left out. None is returned if none remains, or if the solver gives up, as it does after `MOST_WORK`.
    """
    found = optimum_of(demands, free, costs, most_work=MOST_WORK)
    return None if found is None else found.cost


def optimum_of(
    demands: Sequence[ShapeDemand],
    free: Sequence[Mapping[str, int]],
    costs: Sequence[float],
    *,
    most_work: int | None = None,
) -> LeastCost | None:
    """Return the optimum, including the prices of pods; None if the solver gives up, or there is no demand."""
    # The import takes about a second and 50 MiB, and most decisions need no new node.
    from scipy.optimize import linprog  # noqa: PLC0415
    from scipy.sparse import coo_array  # noqa: PLC0415

    held = _on_cheapest_options([demand for demand in demands if demand.rooms], free, costs)
    if not held:
        return None
    columns = _columns(held, len(free))
    limits, totals = _Rows(), _Rows()
    for option, offered in enumerate(free):
        for shares in _shares(held, option, offered):
            limits.add({option: -1.0} | {columns[index, option]: share for index, share in shares.items()})
    for index, demand in enumerate(held):
        totals.add({columns[index, option]: 1.0 for option in demand.rooms})
    width = len(free) + len(columns)
    found = linprog(
        [*costs, *[0.0] * len(columns)],
        A_ub=coo_array((limits.values, (limits.rows, limits.columns)), shape=(limits.count, width)),
        b_ub=[0.0] * limits.count,
        A_eq=coo_array((totals.values, (totals.rows, totals.columns)), shape=(totals.count, width)),
        b_eq=[float(demand.count) for demand in held],
        method="highs",
        # A limit of time would make the answer depend on the machine.
        options={} if most_work is None else {"maxiter": most_work // len(limits.values)},
    )
    if found.status != 0:
        return None
    prices = iter(found.eqlin.marginals)
    return LeastCost(float(found.fun), tuple(float(next(prices)) if demand.rooms else 0.0 for demand in demands))


def _on_cheapest_options(
    demands: Sequence[ShapeDemand], free: Sequence[Mapping[str, int]], costs: Sequence[float]
) -> list[ShapeDemand]:
    """Return the demands without the options that hold the same as one that costs no more.

    Groups are often alike but for their names, and the solver's time grows faster than the number of options.
    """
    rooms: list[list[tuple[int, int]]] = [[] for _ in free]
    for index, demand in enumerate(demands):
        for option, room in demand.rooms.items():
            rooms[option].append((index, room))
    cheapest: dict[object, int] = {}
    for option in sorted(range(len(free)), key=lambda each: costs[each]):
        cheapest.setdefault((tuple(rooms[option]), frozenset(free[option].items())), option)
    kept = set(cheapest.values())
    return [
        replace(demand, rooms={option: room for option, room in demand.rooms.items() if option in kept})
        for demand in demands
    ]


def _columns(demands: Sequence[ShapeDemand], options: int) -> dict[tuple[int, int], int]:
    """Return the column of each demand on each option that holds it; the first columns are for the options' nodes."""
    pairs = [(index, option) for index, demand in enumerate(demands) for option in demand.rooms]
    return {pair: options + place for place, pair in enumerate(pairs)}


def _shares(demands: Sequence[ShapeDemand], option: int, offered: Mapping[str, int]) -> Iterator[dict[int, float]]:
    """Yield the shares of one node of an option that a pod of each demand takes; their sum is at most 1 on any node."""
    held = {index: demand for index, demand in enumerate(demands) if option in demand.rooms}
    for index, demand in held.items():
        yield {index: 1.0 / demand.rooms[option]}
    for resource in dict.fromkeys(resource for demand in held.values() for resource in demand.requests):
        amount = offered.get(resource, 0)
        asked = {index: demand.requests[resource] for index, demand in held.items() if resource in demand.requests}
        if amount <= 0:
            continue
        yield {index: request / amount for index, request in asked.items()}
        for parts in _PARTS:
            yield {index: _rounded_share(request, amount, parts) for index, request in asked.items()}


def _rounded_share(request: int, amount: int, parts: int) -> float:
    whole, rest = divmod((parts + 1) * request, amount)
    return whole / parts if rest else request / amount
