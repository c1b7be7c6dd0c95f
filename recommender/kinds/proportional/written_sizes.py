"""The effects of brakes and HPAs on sizes that follow the cluster and are written by the output `resize` (pure).

Without that output, nothing acts on these sizes, not even a brake.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from msgspec.structs import replace as changed

from adapter.foundation.objects.quantities import Format, parse_quantity, quantity_text
from recommender.decisions.calculation import Calculate, Calculation, DecisionContext, SettledValue
from recommender.decisions.constraints.brakes import MAX_STEP, ChangeStop
from recommender.decisions.record import Step
from recommender.decisions.targets.vertical_autoscalers import notes_on_sizes
from recommender.kinds.proportional.calculate import calculate_proportional
from recommender.kinds.proportional.memory import ProportionalMemory, restore_memory
from recommender.kinds.proportional.sizes import ContainerResources, ContainerSizes
from recommender.kinds.resizing.hpa_held_requests import held_by_autoscalers
from recommender.kinds.resizing.request_writes import WantedSizes, resize_outcomes, resize_write, sized_target
from recommender.kinds.resizing.size_brakes import BrakedSizes, amount_when_stopped, amount_within_step
from recommender.outputs.pending_writes import RequestedSize

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from recommender.decisions.inputs import Inputs
    from recommender.decisions.memory import Memory
    from recommender.decisions.policy_settings import MaxStep, RecommendationPolicy
    from recommender.decisions.targets.target_situation import Situation
    from recommender.kinds.proportional.parameters import ProportionalSettings
    from recommender.kinds.resizing.resize_settings import ResizeSettings
    from recommender.outputs.pending_writes import PendingWrite

_T = TypeVar("_T")
_REQUESTS: Final = "requests"
_LIMITS: Final = "limits"
_CPU: Final = "cpu"


class _Place(NamedTuple):
    """The purpose of an amount: a container's request or limit of a resource."""

    container: str
    section: str
    """`requests` or `limits`."""
    resource: str


@dataclass(frozen=True, slots=True)
class _Amount:
    """An amount in millicores or in bytes; None if it is unknown."""

    amount: int | None
    format: Format
    """The format of the quantity in the configuration."""


def calculate_written_sizes(policy: RecommendationPolicy, settings: ProportionalSettings) -> Calculate:
    """Return the calculation of sizes that are written. Raises SelectorError."""
    calculate = calculate_proportional(settings)
    target = sized_target(policy)
    assert target is not None, "the output resize has one target"

    def calculated(inputs: Inputs, memory: Memory, now: float) -> Calculation:
        found = calculate(inputs, memory, now)
        if not isinstance(found.details, ContainerSizes):
            return found
        held = {} if settings.also_with_hpa else held_by_autoscalers(policy, target, inputs, now)
        sizes = WrittenSizes(
            _amounts(found.details.by_container), settings.resize, restore_memory(found.own), held=held
        )
        return replace(found, value=sizes, details=None)

    return calculated


@dataclass(frozen=True, slots=True)
class WrittenSizes(BrakedSizes):
    """Sizes that follow the cluster."""

    amounts: Mapping[_Place, _Amount]
    resize: ResizeSettings
    before: ProportionalMemory

    def kept_text(self, _situation: Situation) -> str:
        """Return a text that says what is kept."""
        return "the sizes are kept"

    def within_step(self, step: MaxStep, _situation: Situation) -> WrittenSizes:
        """Limit the difference of each size from the last one, if there is one."""
        detail = f"{(step.ratio or 0.0) * 100:g}% at once"
        return self._with_amounts(lambda amount, base: amount_within_step(amount, base, step), MAX_STEP, detail)

    def would_change(self, _situation: Situation) -> bool:
        """Return whether a size differs from the last one; sizes that are left to an HPA do not count."""
        return any(
            self._base(place) not in {None, found.amount}
            for place, found in self.amounts.items()
            if found.amount is not None and place.resource not in self.held
        )

    def stopped(self, stop: ChangeStop, _situation: Situation) -> WrittenSizes:
        """Keep the last sizes in the directions that are stopped."""
        found = self._with_amounts(
            lambda amount, base: amount_when_stopped(amount, base, stop), stop.name, stop.sentence
        )
        return found.held_by(stop, has_kept_any=found.amounts != self.amounts)

    def settled(self, context: DecisionContext) -> SettledValue:
        """Leave requests unchanged if an HPA divides usage by them, and return the value with what is to be written."""
        calculation, policy = context.calculation, context.policy
        left = {
            place: found
            for place, found in self.amounts.items()
            if found.amount is not None and place.resource not in self.held
        }
        held = tuple(
            reason for name, reason in self.held.items() if any(name == each.resource for each in self.amounts)
        )
        write = resize_write(self._wanted_sizes(left), self.resize, policy, calculation.confirmed)
        reasons = tuple(filter(None, (*self.holds, *held, calculation.note, policy.note)))
        return SettledValue(
            replicas=None,
            is_remembered=bool(left),
            has_changed=self.would_change(context.situation),
            is_held=bool(self.holds or held),
            own=changed(self.before, sizes=self._last_sizes(left)),
            inputs=calculation.inputs,
            steps=(*calculation.steps, *self.steps),
            binding=self.steps[-1].step if self.steps else None,
            reasons=reasons or (_summary(left),),
            notes=notes_on_sizes(policy, context.inputs),
            details=ContainerSizes(_by_container(left, _text)) if left else None,
            writes=write,
            outcomes=resize_outcomes(context, has_value=bool(left), is_written=self._is_written(write, context)),
        )

    def _last_sizes(self, left: Mapping[_Place, _Amount]) -> dict[str, dict[str, dict[str, int]]]:
        """Return the sizes to remember; sizes that stay for now keep their last value, the base of the next step."""
        kept = {
            place: replace(found, amount=left[place].amount if place in left else self._base(place))
            for place, found in self.amounts.items()
        }
        known = {place: found for place, found in kept.items() if found.amount is not None}
        return _by_container(known, lambda _, found: found.amount or 0)

    def _wanted_sizes(self, left: Mapping[_Place, _Amount]) -> WantedSizes:
        def sizes_of(section: str) -> tuple[RequestedSize, ...]:
            return tuple(
                RequestedSize(place.container, place.resource, found.amount or 0)
                for place, found in left.items()
                if place.section == section
            )

        return WantedSizes(
            sizes_of(_REQUESTS), _summary(left), sizes_of(_LIMITS), may_grow=self.may_grow, may_shrink=self.may_shrink
        )

    def _is_written(self, write: PendingWrite | None, context: DecisionContext) -> bool:
        """Return whether anything will be written: not if the last attempt found the same sizes in place."""
        if write is None or not (self.may_grow or self.may_shrink):
            return False
        return context.inputs.settled.get((context.policy.name, write.target)) != write.resizing

    def _base(self, place: _Place) -> int | None:
        return self.before.sizes.get(place.container, {}).get(place.section, {}).get(place.resource)

    def _with_amounts(
        self, change: Callable[[int | None, int | None], int | None], name: str, detail: str
    ) -> WrittenSizes:
        """Return the sizes with changed amounts, and with a step for each amount that differs."""
        amounts = {
            place: replace(found, amount=change(found.amount, self._base(place)))
            for place, found in self.amounts.items()
        }
        steps = tuple(
            Step(f"{'/'.join(place)}/{name}", found.amount / 1000 if place.resource == _CPU else found.amount, detail)
            for place, found in amounts.items()
            if found.amount is not None and found != self.amounts[place]
        )
        return replace(self, amounts=amounts, steps=(*self.steps, *steps))


def _amounts(sizes: ContainerResources) -> dict[_Place, _Amount]:
    found: dict[_Place, _Amount] = {}
    for container, sections in sizes.items():
        for section, quantities in sections.items():
            for resource, text in quantities.items():
                quantity = parse_quantity(text)
                milli = quantity.milli_value()
                amount = milli if resource == _CPU else -(-milli // 1000)
                found[_Place(container, section, resource)] = _Amount(amount, quantity.format)
    return found


def _by_container(
    amounts: Mapping[_Place, _Amount], value: Callable[[_Place, _Amount], _T]
) -> dict[str, dict[str, dict[str, _T]]]:
    found: dict[str, dict[str, dict[str, _T]]] = {}
    for place, each in amounts.items():
        found.setdefault(place.container, {}).setdefault(place.section, {})[place.resource] = value(place, each)
    return found


def _text(place: _Place, found: _Amount) -> str:
    amount = found.amount or 0
    return quantity_text(amount if place.resource == _CPU else amount * 1000, found.format)


def _summary(amounts: Mapping[_Place, _Amount]) -> str:
    """Return the sizes in a sentence: `dns: requests cpu 130m, memory 68Mi; limits memory 1Gi`."""
    return "; ".join(
        f"{container}: "
        + "; ".join(
            f"{section} {', '.join(f'{resource} {text}' for resource, text in quantities.items())}"
            for section, quantities in sections.items()
        )
        for container, sections in _by_container(amounts, _text).items()
    )
