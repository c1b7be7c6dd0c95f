"""Proportional scaling as a kind of recommendation."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.state import ClusterNeeds, ClusterState, CountQuery, ObjectKind
from adapter.foundation.objects.quantities import parse_quantity
from adapter.foundation.reports.counts import count_of
from adapter.foundation.reports.terminal_escaping import printable
from adapter.foundation.web.metric_text import label
from recommender.decisions.policy_settings import Output, RecommendationPolicy
from recommender.decisions.targets.vertical_autoscalers import notes_on_sizes, vertical_autoscaler_kinds
from recommender.decisions.texts.columns import GAP, wrap_lines
from recommender.kinds.kind import (
    RECOMMENDED_RESOURCES,
    RESOURCE_FAMILIES,
    Needs,
    NotForObjectsError,
    Paint,
    Recommendation,
    RecommendationKind,
)
from recommender.kinds.proportional.calculate import calculate_proportional
from recommender.kinds.proportional.facts import PODS_AND_SERVICES
from recommender.kinds.proportional.memory import ProportionalMemory
from recommender.kinds.proportional.parameters import DriverQuery, ParametersConfigMap, ProportionalSettings
from recommender.kinds.proportional.sizes import ContainerResources, ContainerSizes
from recommender.kinds.proportional.written_sizes import calculate_written_sizes
from recommender.kinds.resizing.resize_settings import rights_in_namespaces, rights_on_targets
from recommender.outputs.metric_text import Samples, recommendation_label, target_labels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from adapter.foundation.documents.sections import Given
    from adapter.foundation.documents.shapes import ValueShape
    from adapter.foundation.documents.tree import DocumentProblem
    from recommender.decisions.calculation import Calculate, Calculation
    from recommender.decisions.inputs import Inputs
    from recommender.decisions.memory import Memory
    from recommender.decisions.record import Record, TargetReference
    from recommender.kinds.role_rules import RoleRule


_NANOS_PER_UNIT: Final = 10**9


def resource_samples(sized: Iterable[tuple[Record, ContainerResources]]) -> dict[str, Samples]:
    """Return the samples of each family; `sized` are records that have a valid value, with their sizes."""
    samples: Samples = {}
    for record, resources in sized:
        targets = [target_labels(outcome.target) for outcome in record.targets] or [target_labels(None)]
        for container, kinds in resources.items():
            for resource, bound, quantity in _bounds(kinds):
                size = parse_quantity(quantity).nanos / _NANOS_PER_UNIT
                about = f"{label('bound', bound)},{label('container', container)},{recommendation_label(record)}"
                for target in targets:
                    samples.setdefault(f"{about},{label('resource', resource)},{target}", size)
    return {RECOMMENDED_RESOURCES: samples}


def _bounds(kinds: Mapping[str, Mapping[str, str]]) -> Iterator[tuple[str, str, str]]:
    """Yield each resource with its bound and quantity."""
    requests, limits = kinds.get("requests", {}), kinds.get("limits", {})
    for resource, quantity in requests.items():
        yield resource, "target", quantity
    for resource, quantity in limits.items():
        yield resource, "upper" if resource in requests else "target", quantity


def resources_of(record: Record) -> ContainerResources | None:
    """Return the sizes of containers in a record; None if it has none."""
    return record.details.by_container if isinstance(record.details, ContainerSizes) else None


def parameters_of(recommendation: Recommendation) -> ParametersConfigMap | None:
    """Return the ConfigMap with the parameters of a recommendation; None if there is none."""
    settings: object = recommendation.subject
    return settings.config_map if isinstance(settings, ProportionalSettings) else None


def _vertical_autoscalers(recommendation: Recommendation) -> frozenset[ObjectKind]:
    """Return the VerticalPodAutoscalers to read, which may size the targets as well.

    Recommendations that are objects of the API share one watch of all namespaces.
    """
    policy, settings = recommendation.policy, recommendation.subject
    namespaces = [""] if policy.namespace else [target.namespace for target in policy.targets]
    return vertical_autoscaler_kinds(namespaces if settings.resources and policy.targets else ())


def _with_notes(
    policy: RecommendationPolicy, calculate: Calculate, inputs: Inputs, memory: Memory, now: float
) -> Calculation:
    """Return the calculation with notes about other programs that size the targets."""
    found = calculate(inputs, memory, now)
    return replace(found, note="; ".join(filter(None, (found.note, *notes_on_sizes(policy, inputs)))))


class ProportionalKind(RecommendationKind[ProportionalSettings]):
    """Replicas and sizes of containers that follow the number of nodes, cores, objects or a query."""

    key = "proportional"
    doc = "Sizes by what the cluster has."
    memory = ProportionalMemory
    families = RESOURCE_FAMILIES
    page = "proportional/page.html"
    sizes_requests = True

    def shape(self, *, for_backtest: bool) -> ValueShape:  # noqa: ARG002 - as the protocol has it
        """Return the shape of the settings."""
        from recommender.kinds.proportional.reading.proportional_reader import PROPORTIONAL  # noqa: PLC0415 - not for the drop-in

        return PROPORTIONAL

    def check(self, given: Given, outputs: frozenset[Output], *, for_backtest: bool) -> Iterator[DocumentProblem]:  # noqa: ARG002 - as the protocol has it
        """Yield a problem for each key that cannot be combined with sizes that are written."""
        from recommender.kinds.proportional.reading.proportional_reader import written_sizes_problems  # noqa: PLC0415 - not for the drop-in
        from recommender.kinds.resizing.resize_reader import resize_problems  # noqa: PLC0415 - likewise

        yield from resize_problems(given, outputs, self.key)
        if Output.RESIZE in outputs:
            yield from written_sizes_problems(given)
        elif given.has("proportional.alsoWithHPA"):
            message = "`alsoWithHPA` has no effect without the output resize"
            yield given.problem("proportional.alsoWithHPA", message, "add it to outputs")

    def rights(self, recommendation: Recommendation) -> Iterator[RoleRule]:
        """Yield the rights of the output `resize`."""
        if Output.RESIZE in recommendation.policy.outputs:
            targets = recommendation.policy.targets
            yield from rights_on_targets(targets)
            yield from rights_in_namespaces({target.namespace for target in targets})

    def for_object_namespace(
        self,
        settings: ProportionalSettings,
        namespace: str,  # noqa: ARG002 - as RecommendationKind has it
        narrow: Callable[[str], str],
    ) -> ProportionalSettings:
        """Return the settings with narrowed queries. Raises NotForObjectsError for counts that only a file may use."""
        if settings.config_map is not None:
            message = "configMap can be used only in the administrator's file: write linear or ladder into the object"
            raise NotForObjectsError("OnlyInFile", message)
        counted = next((each.name for each in settings.drivers if isinstance(each.source, CountQuery)), "")
        if counted:
            message = f"drivers.{counted} can be used only in the administrator's file: count with drivers.query"
            raise NotForObjectsError("OnlyInFile", message)
        if settings.sizes_by_objects:
            message = (
                "podsAndServicesPerStep can be used only in the administrator's file: use nodesPerStep or coresPerStep"
            )
            raise NotForObjectsError("OnlyInFile", message)
        drivers = tuple(
            replace(each, source=DriverQuery(narrow(each.source.expr)))
            if isinstance(each.source, DriverQuery)
            else each
            for each in settings.drivers
        )
        return replace(settings, drivers=drivers)

    def needs(self, recommendation: Recommendation, cluster: ClusterState | None) -> Needs:  # noqa: ARG002 - as RecommendationKind has it
        """Return the nodes, objects, queries and ConfigMap that the settings name."""
        settings: ProportionalSettings = recommendation.subject
        found = settings.config_map
        queries = frozenset(driver.source.expr for driver in settings.drivers if isinstance(driver.source, DriverQuery))
        return Needs(
            ClusterNeeds(
                # The content of a ConfigMap is not known beforehand.
                nodes=settings.mode is not None or found is not None or bool(settings.resources),
                counts=frozenset(each.source for each in settings.drivers if isinstance(each.source, CountQuery))
                | frozenset(PODS_AND_SERVICES if settings.sizes_by_objects else ()),
                objects=_vertical_autoscalers(recommendation),
            ),
            queries,
            sizing_queries=queries,
            has_queries=bool(queries),
            config_maps={} if found is None else {(found.namespace, found.name): found.default_params},
        )

    def calculation(
        self,
        recommendation: Recommendation,
        others: Sequence[Recommendation],  # noqa: ARG002 - it follows no others
    ) -> Callable[[TargetReference | None], Calculate]:
        """Return the calculation. Raises SelectorError if the selector of nodes cannot be parsed."""
        policy, settings = recommendation.policy, recommendation.subject
        is_written = Output.RESIZE in policy.outputs
        calculate = calculate_written_sizes(policy, settings) if is_written else calculate_proportional(settings)
        if settings.resources and not is_written:
            return lambda _target: partial(_with_notes, policy, calculate)
        return lambda _target: calculate

    def value_metrics(self, settings: ProportionalSettings) -> tuple[str, ...]:
        """Return the metrics of the sizes in the settings."""
        has_size = settings.mode is not None or settings.config_map is not None or bool(settings.drivers)
        return (
            *(super().value_metrics(settings) if has_size else ()),
            *(RESOURCE_FAMILIES if settings.resources else ()),
        )

    def samples(self, records: Iterable[Record]) -> Mapping[str, Samples]:
        """Return the sizes of containers."""
        return resource_samples((record, sizes) for record in records if (sizes := resources_of(record)))

    def document(self, record: Record) -> Mapping[str, object]:
        """Return the sizes of containers."""
        return {"resources": resources_of(record)}

    def value_text(self, record: Record) -> str:
        """Return how many containers are sized."""
        resources = resources_of(record)
        if resources is None:
            return ""
        return f"sizes of {count_of(len(resources), 'container')}"

    def tail_lines(self, record: Record, width: int | None, paint: Paint) -> Iterable[str]:  # noqa: ARG002 - as RecommendationKind has it
        """Yield a line for the requests, and one for the limits, of each container."""
        for container, kinds in (resources_of(record) or {}).items():
            for kind, quantities in kinds.items():
                sizes = ", ".join(f"{resource} {quantity}" for resource, quantity in quantities.items())
                yield from wrap_lines(printable(f"{container} {kind}: {sizes}"), width, GAP)


KIND: Final = ProportionalKind()
"""The instance that `table` returns."""
