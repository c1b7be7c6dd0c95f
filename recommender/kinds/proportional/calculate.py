"""The calculation of a proportional recommendation: from inputs and memory to a value with its steps."""

from __future__ import annotations

import dataclasses
import sys
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from adapter.foundation.objects.selectors import Selector, parse_selector
from recommender.decisions.calculation import Calculate, Calculation, InputMissingError
from recommender.decisions.limits import Limit, SizeTrail, within
from recommender.decisions.record import Step
from recommender.decisions.replicas import NO_VALUE, Replicas
from recommender.kinds.proportional.facts import Facts, LastCounts
from recommender.kinds.proportional.formulas import by_ratio, by_rungs
from recommender.kinds.proportional.last_parameters import current_parameters
from recommender.kinds.proportional.memory import restore_memory
from recommender.kinds.proportional.missing_series import keep_size, may_lack_series, partial_since
from recommender.kinds.proportional.modes.bounds import SPREAD_REPLICAS, limits_of
from recommender.kinds.proportional.modes.mode_definition import ClusterSize, ModeSteps
from recommender.kinds.proportional.modes.registry import steps_of
from recommender.kinds.proportional.parameters import Driver, Interpolated, Linear, Mode, ProportionalSettings
from recommender.kinds.proportional.sizes import ContainerSizes, sizes_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from adapter.foundation.cluster.values.node_counts import NodeCounts
    from recommender.decisions.inputs import Inputs
    from recommender.decisions.memory import Memory

LARGEST: Final = "largest"
_AT_LEAST_ONE = Limit("min", 1, is_upper=False, detail="perReplica gives at least 1")

_LARGEST: Final = Fraction(sys.float_info.max)


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
        return steps_of(ClusterSize(raised_count(nodes, ratio), raised_count(cores, ratio)), self._mode)

    def _other_steps(self, ratio: float) -> tuple[Step, ...]:
        return tuple(_step(driver, raised_count(count, ratio)) for driver, count in self._others)


def _step(driver: Driver, count: float) -> Step:
    if driver.per_replica is not None:
        return by_ratio(driver.name, count, driver.per_replica)
    return by_rungs(driver.name, count, driver.ladder)


class DriversTrail(SizeTrail):
    """A size that begins as the largest of its drivers."""

    def __init__(self, drivers: Sequence[Step]) -> None:
        """Begin with the largest of the drivers, of which there is at least one."""
        first = max(drivers, key=lambda step: step.value)
        detail = ", ".join(f"{_driver(step.step)} {step.value:.0f}" for step in drivers)
        super().__init__(int(first.value), first.step, [*drivers, Step(LARGEST, int(first.value), detail)])

    def hold(self, held: Mapping[str, int], ratio: float) -> None:
        """Continue with the values that hysteresis holds, by driver."""
        driver = max(held, key=lambda name: held[name])
        detail = f"{_driver(driver)} is not {ratio * 100:.6g}% below its rung yet"
        self.change("hysteresis", held[driver], detail)


def limits_of_mode(mode: Mode | None) -> tuple[Limit, ...]:
    """Return the bounds that apply whatever the counts are, for sizes that are kept while the counts are unknown."""
    if not isinstance(mode, (Linear, Interpolated)):
        return ()
    exceeds = isinstance(mode, Linear) and mode.prevent_single_point_failure and mode.max == 1
    return limits_of(mode.min, SPREAD_REPLICAS if exceeds else mode.max)


def _driver(step: str) -> str:
    return step.rpartition("/")[2]


def calculate_proportional(settings: ProportionalSettings) -> Calculate:
    """Return the calculation for the settings. Raises SelectorError if the selector of nodes cannot be parsed."""
    return _Calculator(settings, parse_selector(settings.node_filter.selector)).calculate


@dataclass(frozen=True, slots=True)
class _Calculator:
    settings: ProportionalSettings
    selector: Selector
    counts: LastCounts = field(default_factory=LastCounts)

    def calculate(self, inputs: Inputs, memory: Memory, now: float) -> Calculation:
        """Return the value with its steps; raises InputMissingError or CalculationError."""
        settings, facts = self.settings, Facts(inputs, now, self.counts, memory.known)
        mode, parameters, note = settings.mode, None, ""
        if settings.config_map is not None:
            mode, parameters, note = current_parameters(
                settings.config_map, inputs, restore_memory(memory.own).parameters
            )
        needs_nodes = mode is not None or bool(settings.resources)
        try:
            nodes = facts.nodes(settings.node_filter, self.selector) if needs_nodes else None
            others = [(driver, facts.driver(driver)) for driver in settings.drivers]
            objects = facts.pods_and_services() if settings.sizes_by_objects else 0
        except InputMissingError as error:
            raise InputMissingError(str(error), limits_of_mode(mode), is_refused=error.is_refused) from error
        drivers = Drivers(mode, nodes, others)
        calculation = Calculation(
            NO_VALUE,
            confirmed=facts.confirmed,
            own=replace(restore_memory(memory.own), parameters=parameters),
            known=facts.known,
            inputs=facts.seen,
            details=ContainerSizes(sizes_of(nodes, settings.resources, objects))
            if nodes and settings.resources
            else None,
            note=note,
        )
        if mode is None and not settings.drivers:
            return calculation
        return self._with_replicas(calculation, drivers, facts, memory, now)

    def _with_replicas(
        self,
        calculation: Calculation,
        drivers: Drivers,
        facts: Facts,
        memory: Memory,
        now: float,
    ) -> Calculation:
        own, ratio = restore_memory(calculation.own), self.settings.hysteresis_ratio
        steps = drivers.steps()
        trail = DriversTrail(steps.drivers)
        rungs: dict[str, int] = {}
        if ratio:
            rungs = values_with_hysteresis(steps.drivers, drivers.from_raised_counts(ratio), own.rungs)
            trail.hold(rungs, ratio)
        trail.limit(steps.limits)
        self._keep_quiet(trail, memory, now)
        is_first = own.is_first_process or (memory.last is None and bool(facts.answers))
        last = None if memory.last is None else memory.last.replicas
        if is_first:
            # The target may not have been known when the first value, of a part of the series, was decided.
            last = max((size for size in (last, facts.current_size) if size is not None), default=None)
        since = partial_since(facts.answers, own.partial_since, now, is_first_process=is_first)
        is_first = is_first and (since is not None or may_lack_series(facts.answers))
        # The size that is in place may be outside of the bounds, which hold in any case.
        hold = keep_size(trail, since, None if last is None else within(steps.limits, last)[0], now)
        if hold:
            rungs = {driver: max(value, own.rungs.get(driver, value)) for driver, value in rungs.items()}
        return dataclasses.replace(
            calculation,
            value=Replicas(trail.value),
            own=replace(own, rungs=rungs, partial_since=since, is_first_process=is_first),
            steps=tuple(trail.steps),
            limits=steps.limits,
            binding=trail.binding,
            hold=hold,
        )

    def _keep_quiet(self, trail: SizeTrail, memory: Memory, now: float) -> None:
        """Stay at the last value for a while after a change; a change in the future (a clock set back) is ignored."""
        quiet = self.settings.quiet_period_seconds
        last = None if memory.last is None else memory.last.replicas
        if last is not None and memory.changes and 0 <= now - memory.changes[-1] < quiet:
            trail.change("quietPeriod", last, f"no change within {quiet:g} s after the last one")


def raised_count(count: float, ratio: float) -> float:
    """Return `count / (1 - ratio)`: the count is below any rung above this number by more than `ratio` of the rung.

    The ratio is less than 1. A ratio such as 0.05 counts as the decimal that it prints as: 95 becomes 100.
    """
    return float(min(Fraction(count) / (1 - Fraction(repr(ratio))), _LARGEST))


def values_with_hysteresis(
    raw: Sequence[Step], from_raised_counts: Sequence[Step], memory: Mapping[str, int]
) -> dict[str, int]:
    """Return each driver's value, which rises at once but falls only if the count is below the rung by the whole ratio.

    `from_raised_counts` are the steps of the same drivers from raised counts. `memory` holds the last values by driver.
    """
    lowest_held = {step.step: int(step.value) for step in from_raised_counts}
    values = {step.step: int(step.value) for step in raw}
    return {
        driver: max(value, min(memory.get(driver, value), lowest_held.get(driver, value)))
        for driver, value in values.items()
    }
