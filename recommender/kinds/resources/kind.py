"""Requests of containers from their usage, as a kind of recommendation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.state import ClusterNeeds, ClusterState
from adapter.foundation.reports.counts import count_of
from recommender.decisions.policy_settings import Output
from recommender.decisions.targets.vertical_autoscalers import vertical_autoscaler_kinds
from recommender.kinds.kind import RESOURCE_FAMILIES, Logged, Needs, RecommendationKind, SeparateTargets
from recommender.kinds.resizing.resize_reader import resize_problems
from recommender.kinds.resizing.resize_settings import API_VERSION, plural_of, rights_in_namespaces, rights_on_targets
from recommender.kinds.resources.calculate import UsageCalculation
from recommender.kinds.resources.container_requests import RequestSizes
from recommender.kinds.resources.resources_memory import ResourcesMemory
from recommender.kinds.resources.resources_reader import RESOURCES
from recommender.kinds.resources.resources_settings import ResourcesSettings, memory_shards
from recommender.kinds.resources.shown import request_keys, request_lines, request_rows, request_samples
from recommender.kinds.role_rules import CREATE, GET, REPLACE, RoleRule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from adapter.foundation.documents.sections import Given
    from adapter.foundation.documents.shapes import ValueShape
    from adapter.foundation.documents.tree import DocumentProblem
    from recommender.decisions.calculation import Calculate
    from recommender.decisions.record import Record, TargetReference
    from recommender.kinds.kind import Paint, Recommendation
    from recommender.outputs.metric_text import Samples

_MEMORY: Final = "container_memory_working_set_bytes"
_METRICS: Final = {
    _MEMORY: "usage is unknown: scrape the kubelet's /metrics/cadvisor",
    "kube_pod_owner": "the workloads of pods are unknown: scrape kube-state-metrics",
    "kube_pod_container_resource_requests": "current requests are unknown: scrape kube-state-metrics",
}
_NO_REPLICAS: Final = "sizes of containers are not a number of replicas"


class ResourcesKind(RecommendationKind[ResourcesSettings]):
    """The requests that each container of a workload should have."""

    key = "resources"
    doc = "Requests of containers by what they used."
    memory = ResourcesMemory
    sizes_requests = True
    families = RESOURCE_FAMILIES
    page = "resources/page.html"
    page_filters = {"request_rows": request_rows}  # noqa: RUF012 - as of the protocol

    def shape(self, *, for_backtest: bool) -> ValueShape:  # noqa: ARG002 - as the protocol has it
        """Return the shape of the settings."""
        return RESOURCES

    def check(self, given: Given, outputs: frozenset[Output], *, for_backtest: bool) -> Iterator[DocumentProblem]:  # noqa: ARG002 - as the protocol has it
        """Yield a problem for each key that cannot be combined with requests of containers."""
        if not given.has("targets") and not given.has("resources.forEach"):
            fix = "list them under targets, or write forEach: {kind: Deployment}"
            yield given.node.problem("the recommendation has no targets", fix)
        yield from resize_problems(given, outputs, self.key)
        if Output.SCALE in outputs:
            yield given.problem("outputs", f"the output scale has no effect: {_NO_REPLICAS}", "write metric")
        step = given.get("maxStep")
        if step is not None and step.ratio is None:
            yield given.problem("maxStep", f"maxStep is a number of replicas: {_NO_REPLICAS}", "write one such as 20%")

    def needs(self, recommendation: Recommendation, cluster: ClusterState | None) -> Needs:  # noqa: ARG002 - as RecommendationKind has it
        """Return the objects that may set requests or divide usage by them, and the targets with their own records."""
        settings: ResourcesSettings = recommendation.subject
        each, targets = settings.for_each, recommendation.policy.targets
        metrics = dict(_METRICS)
        if settings.from_usage.memory:
            del metrics[_MEMORY]
        if each is None:
            most = max(len(targets), 1)
            return Needs(
                ClusterNeeds(objects=vertical_autoscaler_kinds(target.namespace for target in targets)),
                metrics=metrics,
                has_queries=True,
                for_each=SeparateTargets("", "", most, memory_shards(most)),
            )
        namespaces = frozenset(each.namespaces or {""})
        return Needs(
            ClusterNeeds(autoscaler_namespaces=namespaces, objects=vertical_autoscaler_kinds(namespaces)),
            metrics=metrics,
            has_queries=True,
            for_each=SeparateTargets(API_VERSION, each.kind, each.max_targets, memory_shards(each.max_targets)),
        )

    def rights(self, recommendation: Recommendation) -> Iterator[RoleRule]:
        """Yield the rights of the output `resize`: to read the owners of requests, and to write pods and templates."""
        settings: ResourcesSettings = recommendation.subject
        if Output.RESIZE not in recommendation.policy.outputs:
            return
        each = settings.for_each
        if each is None:
            targets = recommendation.policy.targets
            yield from rights_on_targets(targets)
            yield from rights_in_namespaces({target.namespace for target in targets})
            return
        namespaces = each.namespaces or ("",)
        for namespace in namespaces:
            yield RoleRule(namespace, "", "events", "", CREATE)
            yield RoleRule(namespace, "apps", plural_of(each.kind), "", GET)
            yield RoleRule(namespace, "apps", plural_of(each.kind), "", REPLACE)
        yield from rights_in_namespaces(namespaces)

    def calculation(
        self,
        recommendation: Recommendation,
        others: Sequence[Recommendation],  # noqa: ARG002 - it follows no others
    ) -> Callable[[TargetReference | None], Calculate]:
        """Return the calculation of one of the targets."""
        policy, settings = recommendation.policy, recommendation.subject

        def of(target: TargetReference | None) -> Calculate:
            assert target is not None, "each target is decided by itself"
            return UsageCalculation(policy, settings, target).calculate

        return of

    def value_metrics(self, settings: ResourcesSettings) -> tuple[str, ...]:  # noqa: ARG002 - as RecommendationKind has it
        """Return the metric of the requests."""
        return tuple(RESOURCE_FAMILIES)

    def samples(self, records: Iterable[Record]) -> Mapping[str, Samples]:
        """Return the requests with their bounds."""
        return request_samples((record, found) for record in records if (found := _sizes_of(record)) is not None)

    def document(self, record: Record) -> Mapping[str, object]:
        """Return the requests with their bounds, in quantities."""
        found = _sizes_of(record)
        return {"resources": None if found is None else request_keys(found)}

    def value_text(self, record: Record) -> str:
        """Return how many containers are sized."""
        found = _sizes_of(record)
        if found is None or not found.has_value:
            return ""
        return f"sizes of {count_of(len(found.by_container), 'container')}"

    def head_lines(self, record: Record, width: int | None, paint: Paint) -> Iterable[str]:  # noqa: ARG002 - as RecommendationKind has it
        """Return the table of the requests."""
        return request_lines([record], width)

    def lines_of_targets(self, records: Sequence[Record], width: int | None) -> Iterable[str] | None:
        """Return the table of the requests of many targets."""
        return request_lines(records, width)

    def log_line(self, record: Record) -> Logged | None:
        """Return what the log says about the requests; None if the record has none."""
        found = _sizes_of(record)
        return None if found is None else Logged((record.binding,), {"requests": record.message})


def _sizes_of(record: Record) -> RequestSizes | None:
    return record.details if isinstance(record.details, RequestSizes) else None


KIND: Final = ResourcesKind()
"""The instance that `table` returns."""
