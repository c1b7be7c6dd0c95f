"""The inputs of a calculation, each looked up once, and the time of the oldest."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeVar

from adapter.cluster.state import Observed, Unknown
from adapter.documents.tree import shortened
from recommender.decisions.calculation import CalculationError, InputMissingError
from recommender.proportional.node_filter import counted
from recommender.proportional.parameters import DriverQuery

if TYPE_CHECKING:
    from adapter.cluster.nodes import NodeCounts
    from adapter.objects.selectors import Selector
    from recommender.decisions.inputs import Inputs
    from recommender.proportional.parameters import Driver, NodeFilter

T = TypeVar("T")


class Facts:
    """What one calculation looks at. Each method raises InputMissingError where the fact is unknown."""

    def __init__(self, inputs: Inputs, now: float) -> None:
        self._inputs = inputs
        self._now = now
        self._times: list[float] = []
        self.seen: dict[str, float] = {}
        """What was looked at, by name."""

    @property
    def confirmed(self) -> float:
        """The time of the oldest fact that was looked at, in seconds since the Unix epoch."""
        return min(self._times, default=self._now)

    def nodes(self, node_filter: NodeFilter, selector: Selector) -> NodeCounts:
        """Return the sizes of the cluster."""
        nodes = self._known("the nodes", self._inputs.cluster.nodes)
        counts = counted(nodes, node_filter, selector, self._now)
        self.seen.update(
            nodes=counts.nodes,
            schedulable_nodes=counts.schedulable_nodes,
            cores=counts.cores,
            schedulable_cores=counts.schedulable_cores,
        )
        return counts

    def driver(self, driver: Driver) -> float:
        """Return the count of a driver; raises CalculationError if a query's value cannot be a count."""
        if isinstance(driver.source, DriverQuery):
            value = self._query(driver.source.expr)
        else:
            name = f"the number of {driver.name}"
            value = self._known(name, self._inputs.cluster.counts.get(driver.source, _NOT_COUNTED))
        self.seen[driver.name] = value
        return value

    def _query(self, expr: str) -> float:
        name = f"the value of the query {shortened(expr)!r}"
        value = self._known(name, self._inputs.queries.get(expr, _NOT_ASKED))
        if not math.isfinite(value) or value < 0:
            raise CalculationError(f"{name} is {value:g}: correct the query so that it returns a number of 0 or more")
        return value

    def _known(self, name: str, fact: Observed[T] | Unknown) -> T:
        if isinstance(fact, Unknown):
            raise InputMissingError(f"{name} cannot be stated: {fact.reason}")
        self._times.append(fact.time)
        return fact.value


_NOT_COUNTED = Unknown("nothing has counted them yet")
_NOT_ASKED = Unknown("Prometheus has not been asked yet")
