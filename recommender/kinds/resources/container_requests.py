"""Requests of containers as a value that the brakes act on, and their outcome (pure)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from adapter.foundation.objects.quantities import Format, quantity_text
from recommender.decisions.calculation import DecisionContext, SettledValue
from recommender.decisions.constraints.brakes import MAX_STEP, ChangeStop
from recommender.decisions.policy_settings import Output
from recommender.decisions.record import Step
from recommender.decisions.targets.vertical_autoscalers import notes_on_sizes
from recommender.kinds.resizing.request_writes import WantedSizes, resize_outcomes, resize_write
from recommender.kinds.resizing.size_brakes import BrakedSizes, amount_when_stopped, amount_within_step
from recommender.kinds.resources.resources_memory import ResourcesMemory
from recommender.kinds.resources.workloads import CPU, MEMORY
from recommender.outputs.pending_writes import RequestedSize, Resizing, StepLimit
from recommender.outputs.resize_documents import is_worth_a_write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from recommender.decisions.policy_settings import MaxStep, RecommendationPolicy
    from recommender.decisions.targets.target_situation import Situation
    from recommender.kinds.resources.resources_settings import ResourcesSettings

HPA: Final = "hpa"
"""The step of a request that stays unchanged because an HPA divides usage by it."""


@dataclass(frozen=True, slots=True)
class RequestSize:
    """The request of one container for one resource, in millicores or in bytes."""

    target: int | None
    """The target; None if it is unknown, or if the request stays unchanged and is itself unknown."""
    lower: int
    upper: int
    current: int | None
    """The largest current request of the pods; None if they state none, or if it is unknown."""
    held: str = ""
    """Why the request stays unchanged whatever the usage is; empty otherwise."""


Requests = dict[str, dict[str, RequestSize]]
"""Requests by container and resource."""


@dataclass(frozen=True, slots=True)
class RequestSizes:
    """The details of a record with requests of containers."""

    by_container: Mapping[str, Mapping[str, RequestSize]]

    @property
    def has_value(self) -> bool:
        """Whether there is a request that can be followed."""
        return any(size.target is not None for sizes in self.by_container.values() for size in sizes.values())


@dataclass(frozen=True, slots=True)
class ContainerRequests(BrakedSizes):
    """Requests that follow the usage."""

    requests: Requests
    settings: ResourcesSettings
    before: ResourcesMemory

    def kept_text(self, _situation: Situation) -> str:
        """Return a text that says what is kept."""
        return "the requests are kept"

    def within_step(self, step: MaxStep, _situation: Situation) -> ContainerRequests:
        """Limit each request's difference from the last one, or from the current one if there is no last one."""

        def limited(container: str, resource: str, size: RequestSize) -> int | None:
            return amount_within_step(size.target, self._base(container, resource, size), step)

        return self._with_targets(limited, MAX_STEP, f"{(step.ratio or 0.0) * 100:g}% at once")

    def would_change(self, _situation: Situation) -> bool:
        """Return whether a request differs from the last one."""
        return self._differs(self.requests)

    def stopped(self, stop: ChangeStop, _situation: Situation) -> ContainerRequests:
        """Keep the last requests, or the current ones, in the directions that are stopped."""

        def kept(container: str, resource: str, size: RequestSize) -> int | None:
            return amount_when_stopped(size.target, self._base(container, resource, size), stop)

        found = self._with_targets(kept, stop.name, stop.sentence)
        return found.held_by(stop, has_kept_any=found is not self)

    def settled(self, context: DecisionContext) -> SettledValue:
        """Enforce `min` and `max` after the brakes, and leave requests unchanged if an HPA divides usage by them."""
        calculation, policy = context.calculation, context.policy
        found = self._with_targets(self._at_least, "min", "resources.min")
        found = found._with_targets(self._at_most, "max", "resources.max")  # noqa: SLF001 - of the same class
        found = found._left_to_autoscalers()  # noqa: SLF001 - likewise
        wanted = _wanted_sizes(found, policy)
        # A size that is reached in steps from what the writer finds is no base of later steps.
        stepped = {(size.container, size.resource) for size in wanted.requests if size.step is not None}
        sizes = {
            container: {
                resource: size.target
                for resource, size in by_resource.items()
                if size.target is not None and (container, resource) not in stepped
            }
            for container, by_resource in found.requests.items()
        }
        details = RequestSizes(found.requests)
        write = resize_write(wanted, found.settings.resize, policy, calculation.confirmed)
        resizing = None if write is None else write.resizing
        is_written = resizing is not None and any(_is_written(size, resizing) for size in _all_sizes(found))
        reasons = tuple(filter(None, (*found.holds, *found.held.values(), calculation.note, policy.note)))
        return SettledValue(
            replicas=None,
            is_remembered=details.has_value,
            has_changed=self._differs(found.requests),
            is_held=bool(found.holds or found.held),
            own=ResourcesMemory(sizes=sizes) if details.has_value else self.before,
            inputs=calculation.inputs,
            steps=(*calculation.steps, *found.steps),
            binding=found.steps[-1].step if found.steps else None,
            reasons=reasons or (summary_of(found.requests),),
            notes=notes_on_sizes(policy, context.inputs),
            details=details,
            writes=write,
            outcomes=resize_outcomes(context, has_value=details.has_value, is_written=is_written),
        )

    def step_of(
        self, policy: RecommendationPolicy, container: str, resource: str, size: RequestSize
    ) -> StepLimit | None:
        """Return the limit that is left to the writer, which alone knows the current request; None if there is none."""
        step = policy.brakes.max_step
        if step is None or Output.RESIZE not in policy.outputs or self._base(container, resource, size) is not None:
            return None
        least, most = self.settings.least.get(resource, 0), self.settings.most.get(resource)
        return StepLimit(step.ratio or 0.0, least, most)

    def _left_to_autoscalers(self) -> ContainerRequests:
        def stays(container: str, resource: str, size: RequestSize) -> RequestSize:  # noqa: ARG001 - as all changes
            reason = self.held.get(resource, "")
            return replace(size, target=size.current, held=reason) if reason else size

        requests = _requests_by(self.requests, stays)
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
        """Return whether a request differs from the last one; requests that are left to an HPA do not count."""
        return any(
            size.target not in {None, self.before.sizes.get(container, {}).get(resource, size.target)}
            for container, sizes in requests.items()
            for resource, size in sizes.items()
            if resource not in self.held
        )

    def _with_targets(
        self, target: Callable[[str, str, RequestSize], int | None], name: str, detail: str
    ) -> ContainerRequests:
        """Return the requests with changed targets, and with a step for each target that differs."""
        requests = _requests_by(
            self.requests, lambda container, resource, size: replace(size, target=target(container, resource, size))
        )
        steps = tuple(
            Step(f"{container}/{resource}/{name}", in_units(resource, size.target), detail)
            for container, sizes in requests.items()
            for resource, size in sizes.items()
            if size.target is not None and size.target != self.requests[container][resource].target
        )
        return self if requests == self.requests else replace(self, requests=requests, steps=(*self.steps, *steps))


def _wanted_sizes(found: ContainerRequests, policy: RecommendationPolicy) -> WantedSizes:
    """Return the requests that may be written."""
    sizes = tuple(
        RequestedSize(container, resource, size.target, found.step_of(policy, container, resource, size))
        for container, by_resource in found.requests.items()
        for resource, size in by_resource.items()
        if size.target is not None and not size.held
    )
    summary = summary_of(found.requests)
    return WantedSizes(sizes, summary, may_grow=found.may_grow, may_shrink=found.may_shrink)


def _all_sizes(found: ContainerRequests) -> Iterable[RequestSize]:
    return (size for sizes in found.requests.values() for size in sizes.values())


def _is_written(size: RequestSize, resizing: Resizing) -> bool:
    return size.target is not None and is_worth_a_write(size.current, size.target, resizing)


def _requests_by(requests: Requests, change: Callable[[str, str, RequestSize], RequestSize]) -> Requests:
    return {
        container: {resource: change(container, resource, size) for resource, size in sizes.items()}
        for container, sizes in requests.items()
    }


def in_units(resource: str, amount: int) -> float:
    """Return an amount in cores or bytes."""
    return amount / 1000 if resource == CPU else float(amount)


def quantity_of_request(resource: str, amount: int) -> str:
    """Return an amount as manifests spell it, such as `352m` or `363Mi`."""
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
