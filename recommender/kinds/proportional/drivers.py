"""The steps of a calculation before its constraints: the mode's steps and those of the other drivers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recommender.decisions.limits import Limit
from recommender.kinds.proportional.formulas import by_ratio, by_rungs
from recommender.kinds.proportional.hysteresis import raised
from recommender.kinds.proportional.modes.mode_definition import ClusterSize, ModeSteps
from recommender.kinds.proportional.modes.registry import steps_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapter.foundation.cluster.values.node_counts import NodeCounts
    from recommender.decisions.record import Step
    from recommender.kinds.proportional.parameters import Driver, Mode

_AT_LEAST_ONE = Limit("min", 1, is_upper=False, detail="perReplica gives at least 1")


class Drivers:
    """The mode, its counts, and the other drivers with their counts."""

    def __init__(self, mode: Mode | None, nodes: NodeCounts | None, others: Sequence[tuple[Driver, float]]) -> None:
        self._mode = mode
        self._nodes = nodes
        self._others = others

    def steps(self) -> ModeSteps:
        """Return the raw values and the limits."""
        has_ratio = any(driver.per_replica is not None for driver, _ in self._others)
        own = self._mode_steps(0.0)
        at_least = (_AT_LEAST_ONE,) if has_ratio else ()
        return ModeSteps((*own.drivers, *self._other_steps(0.0)), (*own.limits, *at_least))

    def from_raised_counts(self, ratio: float) -> tuple[Step, ...]:
        """Return the raw values for counts that are raised by the ratio, for hysteresis."""
        return (*self._mode_steps(ratio).drivers, *self._other_steps(ratio))

    def _mode_steps(self, ratio: float) -> ModeSteps:
        if self._mode is None or self._nodes is None:
            return ModeSteps(())
        counts = self._nodes
        if self._mode.include_unschedulable_nodes:
            nodes, cores = counts.nodes, counts.cores
        else:
            nodes, cores = counts.schedulable_nodes, counts.schedulable_cores
        return steps_of(ClusterSize(_at_least_one(nodes, ratio), _at_least_one(cores, ratio)), self._mode)

    def _other_steps(self, ratio: float) -> tuple[Step, ...]:
        return tuple(_step(driver, _at_least_one(count, ratio)) for driver, count in self._others)


def _step(driver: Driver, count: float) -> Step:
    if driver.per_replica is not None:
        return by_ratio(driver.name, count, driver.per_replica)
    return by_rungs(driver.name, count, driver.ladder)


def _at_least_one(count: float, ratio: float) -> float:
    return raised(count, ratio) if ratio else count
