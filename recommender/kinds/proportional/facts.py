"""The inputs of a calculation, each looked up once, the nodes that count, and the time of the oldest input."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, TypeVar

from adapter.foundation.cluster.values.node_counts import NodeCounts, count_nodes
from adapter.foundation.cluster.values.state import CountQuery, Observed, Unknown
from adapter.foundation.cluster.values.virtual_nodes import is_virtual
from adapter.foundation.documents.tree import shorten
from recommender.decisions.calculation import CalculationError, InputMissingError
from recommender.decisions.targets.doubted_first_lists import known_now, unless_doubted
from recommender.decisions.texts.times import oldest_time
from recommender.kinds.proportional.parameters import Driver, DriverQuery, NodeFilter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from adapter.foundation.cluster.values.state import ClusterNode
    from adapter.foundation.objects.selectors import Selector
    from recommender.decisions.inputs import Inputs

T = TypeVar("T")
PODS_AND_SERVICES: Final = (CountQuery("pods"), CountQuery("services"))
_NOT_COUNTED = Unknown("nothing has counted them yet")
_NOT_ASKED = Unknown("Prometheus has not been queried yet")


class LastCounts:
    """Counts nodes again only when they have changed, since there are more polls than changes. Not thread-safe."""

    def __init__(self) -> None:
        self._of: Sequence[ClusterNode] | None = None
        self._counts: NodeCounts | None = None

    def count(
        self, nodes: Sequence[ClusterNode], node_filter: NodeFilter, selector: Selector, now: float
    ) -> NodeCounts:
        """Return what `filtered_counts` returns; each call must have the same filter.

        Nodes count as unchanged if they are the same object.
        """
        if self._counts is None or nodes is not self._of or node_filter.min_node_age_seconds:
            self._of, self._counts = nodes, filtered_counts(nodes, node_filter, selector, now)
        return self._counts


def filtered_counts(
    nodes: Sequence[ClusterNode], node_filter: NodeFilter, selector: Selector, now: float
) -> NodeCounts:
    """Return the counts of the nodes that pass the filter; `selector` is the filter's parsed selector.

    `now` is in Unix seconds.
    """
    if node_filter.ignore_virtual_nodes:
        nodes = [node for node in nodes if not is_virtual(node)]
    if node_filter.min_node_age_seconds:
        newest = now - node_filter.min_node_age_seconds
        nodes = [node for node in nodes if node.created is None or node.created <= newest]
    return count_nodes(nodes, selector, node_filter.ignore_taints)


class Facts:
    """The facts of one calculation. Each method raises InputMissingError if the fact is unknown."""

    def __init__(self, inputs: Inputs, now: float, counts: LastCounts, known: Mapping[str, int]) -> None:
        """`known` are the facts about the cluster that the memory holds."""
        self.known = known
        """The remembered facts about the cluster, updated with the facts that were read."""
        self._inputs = inputs
        self._now = now
        self._counts = counts
        self._times: list[float] = []
        self.answers: list[Observed[float]] = []
        """The answers to queries that were read."""
        self.seen: dict[str, float] = {}
        """The inputs that were read, by name."""

    @property
    def confirmed(self) -> float:
        """The time of the oldest fact that was read (`times.oldest`), in Unix seconds."""
        return oldest_time(self._times, self._now)

    @property
    def current_size(self) -> int | None:
        """The number of replicas of the target; None if it is not known, or if there is no target or more than one."""
        states = [each.value for each in self._inputs.targets.values() if isinstance(each, Observed)]
        return states[0].replicas if len(states) == 1 and states[0] is not None else None

    def nodes(self, node_filter: NodeFilter, selector: Selector) -> NodeCounts:
        """Return the counts of the nodes that pass the filter."""
        fact = unless_doubted("nodes", self._inputs.cluster.nodes, self.known)
        nodes = self._known_fact("the nodes", fact)
        self.known = known_now("nodes", fact, len(nodes), self.known)
        counts = self._counts.count(nodes, node_filter, selector, self._now)
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
            value = self._number_of(driver.name, driver.name, driver.source)
        self.seen[driver.name] = value
        return value

    def pods_and_services(self) -> int:
        """Return the number of pods plus the number of Services in the cluster."""
        # A driver of the same kind may count only some of them.
        found = {f"all_{each.kind}": self._number_of(f"all_{each.kind}", each.kind, each) for each in PODS_AND_SERVICES}
        self.seen |= found
        return sum(found.values())

    def _number_of(self, name: str, noun: str, source: CountQuery) -> int:
        """Return the number of some objects, which is remembered under the name."""
        fact = unless_doubted(name, self._inputs.cluster.counts.get(source, _NOT_COUNTED), self.known)
        number = self._known_fact(f"the number of {noun}", fact)
        self.known = known_now(name, fact, number, self.known)
        return number

    def _query(self, expr: str) -> float:
        name = f"the value of the query {shorten(expr)!r}"
        fact = self._inputs.queries.get(expr, _NOT_ASKED)
        if isinstance(fact, Unknown) and fact.is_refused:
            raise InputMissingError(f"{name} cannot be read: {fact.reason}", is_refused=True)
        value = self._known_fact(name, fact)
        if isinstance(fact, Observed):
            self.answers.append(fact)
        if not math.isfinite(value) or value < 0:
            raise CalculationError(f"{name} is {value:g}: correct the query so that it returns a number of 0 or more")
        return value

    def _known_fact(self, name: str, fact: Observed[T] | Unknown) -> T:
        if isinstance(fact, Unknown):
            raise InputMissingError(f"{name} cannot be read: {fact.reason}")
        self._times.append(fact.time)
        return fact.value
