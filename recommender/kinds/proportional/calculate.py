"""The calculation of a proportional recommendation: from inputs and memory to a value with its steps."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec.structs import replace

from adapter.foundation.objects.selectors import parse_selector
from recommender.decisions.calculation import Calculation, InputMissingError
from recommender.decisions.replicas import NO_VALUE, Replicas
from recommender.kinds.proportional.drivers import Drivers
from recommender.kinds.proportional.facts import Facts
from recommender.kinds.proportional.hysteresis import held
from recommender.kinds.proportional.last_parameters import current_parameters
from recommender.kinds.proportional.limits import Trail, limits_of_mode
from recommender.kinds.proportional.memory import remembered
from recommender.kinds.proportional.node_filter import LastCounts
from recommender.kinds.proportional.sizes import ContainerSizes, sizes_of

if TYPE_CHECKING:
    from adapter.foundation.objects.selectors import Selector
    from recommender.decisions.calculation import Calculate
    from recommender.decisions.inputs import Inputs
    from recommender.decisions.memory import Memory
    from recommender.kinds.proportional.parameters import ProportionalSettings


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
            mode, parameters, note = current_parameters(settings.config_map, inputs, remembered(memory.own).parameters)
        needs_nodes = mode is not None or bool(settings.resources)
        try:
            nodes = facts.nodes(settings.node_filter, self.selector) if needs_nodes else None
            others = [(driver, facts.driver(driver)) for driver in settings.drivers]
        except InputMissingError as error:
            raise InputMissingError(str(error), limits_of_mode(mode), is_refused=error.is_refused) from error
        drivers = Drivers(mode, nodes, others)
        calculation = Calculation(
            NO_VALUE,
            confirmed=facts.confirmed,
            own=replace(remembered(memory.own), parameters=parameters),
            known=facts.known,
            inputs=facts.seen,
            details=ContainerSizes(sizes_of(nodes, settings.resources)) if nodes and settings.resources else None,
            note=note,
        )
        if mode is None and not settings.drivers:
            return calculation
        return self._with_replicas(calculation, drivers, memory, now)

    def _with_replicas(self, calculation: Calculation, drivers: Drivers, memory: Memory, now: float) -> Calculation:
        own, ratio = remembered(calculation.own), self.settings.hysteresis_ratio
        steps = drivers.steps()
        trail = Trail(steps.drivers)
        rungs: dict[str, int] = {}
        if ratio:
            rungs = held(steps.drivers, drivers.from_raised_counts(ratio), own.rungs)
            trail.hold(rungs, ratio)
        trail.limit(steps.limits)
        self._keep_quiet(trail, memory, now)
        return dataclasses.replace(
            calculation,
            value=Replicas(trail.value),
            own=replace(own, rungs=rungs),
            steps=tuple(trail.steps),
            limits=steps.limits,
            binding=trail.binding,
        )

    def _keep_quiet(self, trail: Trail, memory: Memory, now: float) -> None:
        """Stay at the last value for a while after a change; one in the future means that the clock was set back."""
        quiet = self.settings.quiet_period_seconds
        last = None if memory.last is None else memory.last.replicas
        if last is not None and memory.changes and 0 <= now - memory.changes[-1] < quiet:
            trail.change("quietPeriod", last, f"no change within {quiet:g} s after the last one")
