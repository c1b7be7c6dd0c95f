"""Requests of containers as a value that the brakes act on, and what becomes of them (pure)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Final

from adapter.foundation.objects.quantities import Format, quantity_text
from recommender.decisions.calculation import SettledValue
from recommender.decisions.constraints.brakes import MAX_CHANGES, MAX_STEP, PAUSED
from recommender.decisions.policy_settings import Output
from recommender.decisions.record import Step, TargetAction, TargetOutcome
from recommender.kinds.resources.resources_memory import ResourcesMemory
from recommender.kinds.resources.workloads import CPU, MEMORY
from recommender.outputs.resize_documents import is_worth_a_write
from recommender.outputs.wishes import RequestedSize, Resizing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from recommender.decisions.calculation import DecisionContext
    from recommender.decisions.constraints.brakes import ChangeStop
    from recommender.decisions.policy_settings import MaxStep, RecommendationPolicy
    from recommender.decisions.record import TargetReference
    from recommender.decisions.targets.target_situation import Situation
    from recommender.kinds.resources.resources_settings import ResourcesSettings

HPA: Final = "hpa"
"""The step of a request that stays because an HPA divides by it."""


@dataclass(frozen=True, slots=True)
class RequestSize:
    """The request of one container for one resource, in milli of cores or in bytes."""

    target: int | None
    """None: nobody knows what it should be, or it stays as it is and that is not known."""
    lower: int
    upper: int
    current: int | None
    """The largest of the pods now; None if they state none, or if it is unknown."""
    held: str = ""
    """Why it stays as it is, whatever is used; empty otherwise."""


Requests = dict[str, dict[str, RequestSize]]
"""By container and resource."""


@dataclass(frozen=True, slots=True)
class RequestSizes:
    """The details of a record with requests of containers."""

    by_container: Mapping[str, Mapping[str, RequestSize]]

    @property
    def has_value(self) -> bool:
        """Whether there is a request that can be followed."""
        return any(size.target is not None for sizes in self.by_container.values() for size in sizes.values())


@dataclass(frozen=True, slots=True)
class ContainerRequests:
    """Requests on their way through the brakes."""

    replicas: ClassVar[None] = None
    requests: Requests
    settings: ResourcesSettings
    before: ResourcesMemory
    held: Mapping[str, str] = field(default_factory=dict)
    """By resource, why requests of it stay as they are."""
    steps: tuple[Step, ...] = ()
    holds: tuple[str, ...] = ()
    may_grow: bool = True
    """Whether no pause forbids to write larger requests, whatever they are now."""
    may_shrink: bool = True

    def kept_text(self, _situation: Situation) -> str:
        """Return what is kept."""
        return "the requests are kept"

    def above_rollouts(self, _situation: Situation) -> ContainerRequests:
        """Return the requests as they are: what a rollout changes is not what is used."""
        return self

    def within_step(self, step: MaxStep, _situation: Situation) -> ContainerRequests:
        """Limit the distance of each request from the last one, or from the present one where there is no last."""
        ratio = Fraction(repr(step.ratio or 0.0))

        def limited(container: str, resource: str, size: RequestSize) -> int | None:
            base = self._base(container, resource, size)
            if base is None or size.target is None:
                return size.target
            most = max(1, int(ratio * base))
            return min(max(size.target, base - most), base + most)

        return self._changed(limited, MAX_STEP, f"{float(ratio) * 100:g} % at once")

    def would_change(self, _situation: Situation) -> bool:
        """Return whether a request differs from the last one."""
        return self._differs(self.requests)

    def stopped(self, stop: ChangeStop, _situation: Situation) -> ContainerRequests:
        """Keep the last requests, or the present ones, in the directions that are stopped."""

        def kept(container: str, resource: str, size: RequestSize) -> int | None:
            base = self._base(container, resource, size)
            if base is None or size.target is None:
                return None if stop.up and stop.down else size.target
            target = min(size.target, base) if stop.up else size.target
            return max(target, base) if stop.down else target

        found = self._changed(kept, stop.name, stop.sentence)
        if stop.name == PAUSED:
            paused = replace(self, may_grow=self.may_grow and not stop.up, may_shrink=self.may_shrink and not stop.down)
            found = paused if found is self else replace(found, may_grow=paused.may_grow, may_shrink=paused.may_shrink)
        if found.requests is self.requests and not (stop.up and stop.down):
            return found
        hold = f"{stop.sentence}, until {stop.until}" if stop.name == MAX_CHANGES else stop.sentence
        return replace(found, holds=(*self.holds, hold))

    def settled(self, question: DecisionContext) -> SettledValue:
        """Keep `min` and `max` whatever the brakes wanted, and leave to an HPA what it divides by."""
        calculation, policy = question.calculation, question.policy
        found = self._changed(self._at_least, "min", "resources.min")
        found = found._changed(self._at_most, "max", "resources.max")  # noqa: SLF001 - of the same class
        found = found._left_to_autoscalers()  # noqa: SLF001 - likewise
        sizes = {
            container: {resource: size.target for resource, size in by_resource.items() if size.target is not None}
            for container, by_resource in found.requests.items()
        }
        details = RequestSizes(found.requests)
        changed = tuple(step for step in found.steps if step not in calculation.steps)
        writes = writes_of(found, policy, calculation.confirmed)
        reasons = tuple(filter(None, (*found.holds, *found.held.values(), calculation.note, policy.note)))
        return SettledValue(
            replicas=None,
            is_remembered=details.has_value,
            has_changed=bool(self.before.sizes) and self._differs(found.requests),
            is_held=bool(found.holds or found.held),
            own=ResourcesMemory(sizes=sizes) if details.has_value else self.before,
            inputs=calculation.inputs,
            steps=(*calculation.steps, *changed),
            binding=changed[-1].step if changed else None,
            reasons=reasons or (summary_of(found.requests),),
            details=details,
            writes=writes,
            outcomes=outcomes_of_requests(found, writes, question),
        )

    def _left_to_autoscalers(self) -> ContainerRequests:
        def stays(container: str, resource: str, size: RequestSize) -> RequestSize:  # noqa: ARG001 - as all changes
            reason = self.held.get(resource, "")
            return replace(size, target=size.current, held=reason) if reason else size

        requests = _mapped(self.requests, stays)
        steps = tuple(
            Step(f"{container}/{resource}/{HPA}", in_units(resource, size.target), "stays as it is")
            for container, sizes in requests.items()
            for resource, size in sizes.items()
            if size.held and size.target is not None
        )
        return replace(self, requests=requests, steps=(*self.steps, *steps))

    def _at_least(self, _container: str, resource: str, size: RequestSize) -> int | None:
        return None if size.target is None else max(size.target, self.settings.least.get(resource, 0))

    def _at_most(self, _container: str, resource: str, size: RequestSize) -> int | None:
        return None if size.target is None else min(size.target, self.settings.most.get(resource, size.target))

    def _base(self, container: str, resource: str, size: RequestSize) -> int | None:
        return self.before.sizes.get(container, {}).get(resource, size.current)

    def _differs(self, requests: Requests) -> bool:
        return any(
            size.target not in {None, self.before.sizes.get(container, {}).get(resource, size.target)}
            for container, sizes in requests.items()
            for resource, size in sizes.items()
        )

    def _changed(
        self, target: Callable[[str, str, RequestSize], int | None], name: str, detail: str
    ) -> ContainerRequests:
        """Return the requests with other targets, and a step for each that differs."""
        requests = _mapped(
            self.requests, lambda container, resource, size: replace(size, target=target(container, resource, size))
        )
        steps = tuple(
            Step(f"{container}/{resource}/{name}", in_units(resource, size.target), detail)
            for container, sizes in requests.items()
            for resource, size in sizes.items()
            if size.target is not None and size.target != self.requests[container][resource].target
        )
        return self if requests == self.requests else replace(self, requests=requests, steps=(*self.steps, *steps))


@dataclass(frozen=True, slots=True)
class RequestWrites:
    """What the output resize writes for a target."""

    target: TargetReference
    resizing: Resizing
    valid_until: float
    """In seconds since the Unix epoch."""
    reason: str


def writes_of(found: ContainerRequests, policy: RecommendationPolicy, confirmed: float) -> RequestWrites | None:
    """Return what is to be written; None without the output, or while another recommendation writes the same."""
    target, settings = policy.each, found.settings.resize
    if target is None or Output.RESIZE not in policy.outputs or policy.rivals.get(target):
        return None
    sizes = tuple(
        RequestedSize(container, resource, size.target)
        for container, by_resource in found.requests.items()
        for resource, size in by_resource.items()
        if size.target is not None and not size.held
    )
    resizing = Resizing(
        sizes, settings.threshold_ratio, settings.in_place, found.may_grow, found.may_shrink, policy.owners.managers
    )
    until = confirmed + policy.stale_after_seconds
    return RequestWrites(target, resizing, until, summary_of(found.requests)) if sizes else None


def outcomes_of_requests(
    found: ContainerRequests, writes: RequestWrites | None, question: DecisionContext
) -> tuple[TargetOutcome, ...]:
    """Return what the requests mean for the target."""
    policy, target = question.policy, question.policy.each
    if target is None:
        return ()
    present = question.situation.present
    outcome = TargetOutcome(target, None if present is None else present.state.replicas, TargetAction.NONE)
    if Output.METRIC in policy.outputs and RequestSizes(found.requests).has_value:
        outcome = replace(outcome, action=TargetAction.METRIC)
    rivals = policy.rivals.get(target, ())
    if Output.RESIZE in policy.outputs and rivals:
        owner = f"recommendation {', '.join(rivals)}"
        message = f"{owner} resizes {target} too: keep the output resize in one of them"
        return (replace(outcome, action=TargetAction.REFUSED, owner=owner, message=message),)
    if writes is None or not any(_is_written(size, writes.resizing) for size in _all_sizes(found)):
        return (outcome,)
    refusal = question.inputs.refusals.get((policy.name, target))
    if refusal is not None:
        return (replace(outcome, action=TargetAction.REFUSED, owner=refusal.owner, message=refusal.message),)
    return (replace(outcome, action=TargetAction.RESIZE),)


def _all_sizes(found: ContainerRequests) -> Iterable[RequestSize]:
    return (size for sizes in found.requests.values() for size in sizes.values())


def _is_written(size: RequestSize, resizing: Resizing) -> bool:
    if size.target is None or size.held:
        return False
    return is_worth_a_write(size.current, size.target, resizing)


def _mapped(requests: Requests, change: Callable[[str, str, RequestSize], RequestSize]) -> Requests:
    return {
        container: {resource: change(container, resource, size) for resource, size in sizes.items()}
        for container, sizes in requests.items()
    }


def in_units(resource: str, amount: int) -> float:
    """Return an amount in cores or bytes."""
    return amount / 1000 if resource == CPU else float(amount)


def quantity_of_request(resource: str, amount: int) -> str:
    """Return an amount as manifests have it, such as `352m` and `363Mi`."""
    if resource == MEMORY:
        return quantity_text(amount * 1000, Format.BINARY_SI)
    return quantity_text(amount, Format.DECIMAL_SI)


def summary_of(requests: Mapping[str, Mapping[str, RequestSize]]) -> str:
    """Return the requests in a sentence: `web: cpu 352m, memory 363Mi; proxy: …`."""
    return "; ".join(
        f"{container}: "
        + ", ".join(
            f"{resource} {'unknown' if size.target is None else quantity_of_request(resource, size.target)}"
            for resource, size in sizes.items()
        )
        for container, sizes in requests.items()
    )
