"""The calculation of one target's requests from its usage (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.state import Unknown
from recommender.decisions.calculation import Calculation, InputMissingError
from recommender.decisions.policy_settings import Output
from recommender.decisions.record import Step, TargetReference
from recommender.decisions.texts.times import age_seconds, rfc3339
from recommender.kinds.resizing.hpa_held_requests import held_by, held_by_autoscalers
from recommender.kinds.resources.container_requests import ContainerRequests, Requests, RequestSize, in_units
from recommender.kinds.resources.resources_memory import restore_memory
from recommender.kinds.resources.size_record import WorkloadUsage
from recommender.kinds.resources.workloads import CPU, MEMORY

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from recommender.decisions.inputs import Inputs
    from recommender.decisions.memory import Memory
    from recommender.decisions.policy_settings import RecommendationPolicy
    from recommender.kinds.resources.resources_settings import ResourcesSettings
    from recommender.kinds.resources.size_record import ResourceSize, SizeRecord

STALE_USAGE_SECONDS: Final = 900.0
"""The age from which usage is stale. Sizes cover days, and usage is read every five minutes, so two readings may
fail."""
SURE_HISTORY_SECONDS: Final = 86_400.0
_FEW_DAYS: Final = "with less than a day of history, no request is lowered below its upper bound"
_UNKNOWN_REQUEST: Final = (
    "with less than a day of history, a request that kube-state-metrics does not report is not lowered"
)
_NOT_READ: Final = Unknown("its usage has not been read yet")


@dataclass(frozen=True, slots=True)
class UsageCalculation:
    """Calculates the requests of one target."""

    policy: RecommendationPolicy
    settings: ResourcesSettings
    target: TargetReference

    def calculate(self, inputs: Inputs, memory: Memory, now: float) -> Calculation:
        """Return the requests with their steps. Raises InputMissingError."""
        usage = self._usage(inputs, now)
        sized = [each for each in usage.sizes if each.cpu is not None and each.memory is not None]
        if not sized:
            problems = sorted({each.message for each in usage.sizes})
            raise InputMissingError("; ".join(problems) or f"nothing is known of the usage of {self.target}")
        requests = {each.container: _requests_of(each) for each in sized}
        unsized = [f"{each.container}: {each.message}" for each in usage.sizes if each not in sized]
        raised = [f"{each.container}: {each.message}" for each in sized if each.message]
        raised += [f"{each.container}: {_FEW_DAYS}" for each in sized if _is_kept_high(each)]
        unsure = [each.container for each in sized if _may_be_above_the_target(each)]
        if Output.RESIZE in self.policy.outputs:
            raised += [f"{container}: {_UNKNOWN_REQUEST}" for container in unsure]
        return Calculation(
            ContainerRequests(
                requests,
                self.settings,
                restore_memory(memory.own),
                held=self._held_requests(usage, inputs, now),
                may_shrink=not unsure,
            ),
            # Whether the usage is recent enough has been judged here.
            confirmed=now,
            inputs=_inputs(sized),
            steps=tuple(self._steps(requests)),
            note="; ".join((*raised, *unsized)),
        )

    def _usage(self, inputs: Inputs, now: float) -> WorkloadUsage:
        known = inputs.usage.get(self.policy.name, _NOT_READ)
        found = known if isinstance(known, Unknown) else known.get(self.target, _NOT_READ)
        if isinstance(found, Unknown):
            raise InputMissingError(found.reason, is_refused=found.is_refused)
        if age_seconds(found.time, now) > STALE_USAGE_SECONDS:
            raise InputMissingError(f"its usage is known until {rfc3339(found.time)} only")
        if not isinstance(found.value, WorkloadUsage):
            raise InputMissingError(_NOT_READ.reason)
        return found.value

    def _steps(self, requests: Requests) -> Iterator[Step]:
        how = self.settings.from_usage
        share = "of its own" if how.percentile_ratio is None else f"{how.percentile_ratio * 100:g}"
        detail = f"percentile {share}, and {how.margin_ratio * 100:g}%"
        for container, sizes in requests.items():
            for resource, size in sizes.items():
                if size.target is not None:
                    yield Step(f"{container}/{resource}", in_units(resource, size.target), detail)

    def _held_requests(self, usage: WorkloadUsage, inputs: Inputs, now: float) -> Mapping[str, str]:
        """Return, by resource, why the target's requests stay unchanged: an HPA divides usage by them, or may do so."""
        if self.settings.also_with_hpa:
            return {}
        known = usage.autoscaler
        followed = () if known is None else tuple((known.name, each.lower()) for each in known.resources)
        of_series = {resource: held_by(name, resource) for name, resource in followed}
        return dict(sorted((of_series | held_by_autoscalers(self.policy, self.target, inputs, now)).items()))


def _requests_of(record: SizeRecord) -> dict[str, RequestSize]:
    return {
        resource: RequestSize(_careful_target(record, resource, size), size.lower, size.upper, size.request)
        for resource, size in _sizes_by_resource(record)
    }


def _careful_target(record: SizeRecord, resource: str, size: ResourceSize) -> int:
    """Return the target; with less than a day of history, a request is not lowered below the upper bound.

    That bound is high while little is known, because the busy hours of the workload may still be to come.
    """
    if size.request is None or _has_long_history(record, resource):
        return size.target
    return max(size.target, min(size.request, size.upper))


def _has_long_history(record: SizeRecord, resource: str) -> bool:
    # A gap is not part of what is known: the busy hours may have been in it.
    seconds = min(record.history_seconds, record.measured_seconds)
    return (seconds if resource == CPU else min(seconds, record.memory_history_seconds)) >= SURE_HISTORY_SECONDS


def _sizes_by_resource(record: SizeRecord) -> Iterator[tuple[str, ResourceSize]]:
    yield from ((name, size) for name, size in ((CPU, record.cpu), (MEMORY, record.memory)) if size is not None)


def _is_kept_high(record: SizeRecord) -> bool:
    return any(_careful_target(record, name, size) != size.target for name, size in _sizes_by_resource(record))


def _may_be_above_the_target(record: SizeRecord) -> bool:
    """Return whether a request may exist, unknown, that a write would lower although little is known."""
    return any(
        size.request is None and not _has_long_history(record, name) for name, size in _sizes_by_resource(record)
    )


def _inputs(sized: list[SizeRecord]) -> dict[str, float]:
    return {
        "containers": len(sized),
        "pods": max(each.replicas for each in sized),
        "history_seconds": max(each.history_seconds for each in sized),
        "samples": sum(each.samples for each in sized),
        "oom_kills": sum(each.oom_kills for each in sized),
    }
