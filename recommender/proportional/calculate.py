"""The calculation of a proportional recommendation: from inputs and memory to a value with its steps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from adapter.objects.selectors import parse_selector
from recommender.decisions.calculation import Calculation
from recommender.proportional.drivers import Drivers
from recommender.proportional.facts import Facts
from recommender.proportional.hysteresis import held
from recommender.proportional.last_parameters import current_parameters
from recommender.proportional.limits import Trail
from recommender.proportional.sizes import sizes_of

if TYPE_CHECKING:
    from adapter.objects.selectors import Selector
    from recommender.decisions.calculation import Calculate
    from recommender.decisions.inputs import Inputs
    from recommender.decisions.memory import Memory
    from recommender.proportional.parameters import ProportionalSettings


def calculate_proportional(settings: ProportionalSettings) -> Calculate:
    """Return the calculation for the settings. Raises SelectorError if the selector of nodes cannot be parsed."""
    return _Calculator(settings, parse_selector(settings.node_filter.selector)).calculate


@dataclass(frozen=True, slots=True)
class _Calculator:
    settings: ProportionalSettings
    selector: Selector

    def calculate(self, inputs: Inputs, memory: Memory, now: float) -> Calculation:
        """Return the value with its steps; raises InputMissingError or CalculationError."""
        settings, facts = self.settings, Facts(inputs, now)
        mode, parameters, note = settings.mode, None, ""
        if settings.config_map is not None:
            mode, parameters, note = current_parameters(settings.config_map, inputs, memory.parameters)
        needs_nodes = mode is not None or bool(settings.resources)
        nodes = facts.nodes(settings.node_filter, self.selector) if needs_nodes else None
        drivers = Drivers(mode, nodes, [(driver, facts.driver(driver)) for driver in settings.drivers])
        calculation = Calculation(
            replicas=None,
            confirmed=facts.confirmed,
            memory=replace(memory, parameters=parameters),
            inputs=facts.seen,
            resources=sizes_of(nodes, settings.resources) if nodes and settings.resources else None,
            note=note,
        )
        if mode is None and not settings.drivers:
            return calculation
        return self._with_replicas(calculation, drivers, now)

    def _with_replicas(self, calculation: Calculation, drivers: Drivers, now: float) -> Calculation:
        memory, ratio = calculation.memory, self.settings.hysteresis_ratio
        steps = drivers.steps()
        trail = Trail(steps.drivers)
        rungs: dict[str, int] = {}
        if ratio:
            rungs = held(steps.drivers, drivers.from_raised_counts(ratio), memory.rungs)
            trail.hold(rungs, ratio)
        trail.limit(steps.limits)
        self._keep_quiet(trail, memory, now)
        return replace(
            calculation,
            replicas=trail.value,
            memory=replace(memory, rungs=rungs),
            steps=tuple(trail.steps),
            binding=trail.binding,
        )

    def _keep_quiet(self, trail: Trail, memory: Memory, now: float) -> None:
        """Stay at the last value for a while after a change; one in the future means that the clock was set back."""
        quiet = self.settings.quiet_period_seconds
        if memory.last is not None and memory.changes and 0 <= now - memory.changes[-1] < quiet:
            trail.change("quietPeriod", memory.last.replicas, f"no change within {quiet:g} s after the last one")
