"""Cluster size as a kind of recommendation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from adapter.foundation.cluster.facts.scale_targets import group_of
from adapter.foundation.cluster.values.state import ClusterNeeds
from adapter.foundation.documents.tree import did_you_mean
from adapter.foundation.reports.counts import first_names
from recommender.decisions.policy_settings import Output
from recommender.kinds.cluster_size.future.capacity_buffers import buffer_kinds
from recommender.kinds.cluster_size.future.resource_quotas import QUOTAS
from recommender.kinds.cluster_size.model.answer import answer_of, nodes_of, sizes_text, summary_text
from recommender.kinds.cluster_size.model.memory import ClusterSizeMemory
from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings
from recommender.kinds.cluster_size.node_groups.watched_kinds import CLUSTER_API_GROUP, SCALABLE_RESOURCES
from recommender.kinds.cluster_size.reading.cluster_size_reader import CLUSTER_SIZE
from recommender.kinds.cluster_size.reading.entry import BESIDE, check_entry
from recommender.kinds.cluster_size.shown.document import size_keys
from recommender.kinds.cluster_size.shown.events import events_of_sizes
from recommender.kinds.cluster_size.shown.explain_details import explained_lines
from recommender.kinds.cluster_size.shown.metrics import SIZE_FAMILIES, size_samples
from recommender.kinds.cluster_size.shown.pod_and_node_texts import kept_by_reason
from recommender.kinds.cluster_size.shown.table import size_lines
from recommender.kinds.kind import Logged, Needs, RecommendationKind, ScaleClaim
from recommender.kinds.predictive.kind import PredictiveKind
from recommender.kinds.predictive.predictive_settings import predictive_settings
from recommender.kinds.role_rules import CREATE, GET, LIST, UPDATE, WATCH, RoleRule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from adapter.foundation.cluster.values.state import ClusterState
    from adapter.foundation.documents.sections import Given
    from adapter.foundation.documents.shapes import ValueShape
    from adapter.foundation.documents.tree import DocumentProblem
    from recommender.decisions.calculation import Calculate
    from recommender.decisions.record import Record, TargetReference
    from recommender.kinds.kind import Paint, Recommendation
    from recommender.outputs.event_rules import TargetEvent
    from recommender.outputs.metric_text import Samples


_SIZED_ONCE: Final = "give each its own namespaces or clusterName, or remove the output scale from one of them"
_OWN_BUFFER: Final = "give each a CapacityBuffer of its own"
_ONE_WRITER: Final = "remove the output scale from one of them"
_NODES: Final = "tidewatch_recommended_nodes"


class ClusterSizeKind(RecommendationKind[ClusterSizeSettings]):
    """Sizes of node groups for the pods of a cluster."""

    key = "clusterSize"
    memory = ClusterSizeMemory
    doc = "Numbers of nodes."
    beside = BESIDE
    has_targets = False
    is_replayed = True
    is_slow = True
    families = SIZE_FAMILIES
    page = "cluster_size/shown/page.html"
    page_filters = {"kept_by_reason": kept_by_reason, "listed": first_names}  # noqa: RUF012 - likewise
    charted = "nodes"
    has_own_inputs = True
    has_own_steps = True

    def shape(self, *, for_backtest: bool) -> ValueShape:  # noqa: ARG002 - as the protocol has it
        """Return the schema of the settings."""
        return CLUSTER_SIZE

    def check(self, given: Given, outputs: frozenset[Output], *, for_backtest: bool) -> Iterator[DocumentProblem]:  # noqa: ARG002 - as the protocol has it
        """Yield a problem for each output or key that cannot be combined with sizes of node groups."""
        return check_entry(given, outputs)

    def completed(self, settings: ClusterSizeSettings, **beside: Any) -> ClusterSizeSettings:  # noqa: ANN401 - as the protocol has it
        """Return the settings with the CapacityBuffer that the entry names."""
        return replace(settings, **beside)

    def wrong_references(self, settings: ClusterSizeSettings, types: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Yield a problem for each forecast that names an entry that is not in the file or forecasts nothing."""
        for forecast in settings.forecasts:
            found = types.get(forecast.recommendation)
            if found == PredictiveKind.key:
                continue
            names = [name for name, kind in types.items() if kind == PredictiveKind.key]
            what = "no entry with predictive" if found is None else f"{found}, which forecasts nothing"
            message = f"`forecasts` names {forecast.recommendation!r}, which is {what}"
            yield message, did_you_mean(forecast.recommendation, names, "write the name of an entry with predictive")

    def claims(self, settings: ClusterSizeSettings) -> Iterator[ScaleClaim]:
        """Yield the groups of Cluster API in each namespace, those of providers, and the CapacityBuffer."""
        groups = settings.node_groups.cluster_api
        for namespace in groups.namespaces if groups is not None else ():
            shown = f"the groups of `clusterAPI` in namespace {namespace}"
            yield ScaleClaim(("clusterAPI", namespace), shown, _SIZED_ONCE, groups.cluster_name if groups else "")
        external, plugin = settings.node_groups.external_grpc, settings.node_groups.plugin
        if external is not None:
            shown = f"the groups of `externalGRPC` at {external.address}"
            yield ScaleClaim(("externalGRPC", external.address), shown, _ONE_WRITER)
        if plugin is not None and plugin.writes:
            yield ScaleClaim(
                ("plugin", plugin.name, str(sorted(plugin.options.items()))),
                f"the groups of the plugin {plugin.name}",
                _ONE_WRITER,
            )
        buffer = settings.buffer
        if buffer is not None:
            shown = f"the CapacityBuffer {buffer.namespace}/{buffer.name}"
            yield ScaleClaim(buffer, shown, _OWN_BUFFER, output=Output.CAPACITY_BUFFER)

    def sizes(self, settings: ClusterSizeSettings, target: TargetReference, cluster: ClusterState) -> bool:
        """Return whether the target is, or may be, a node group of Cluster API."""
        groups = settings.node_groups.cluster_api
        if groups is None or group_of(target.api_version) != CLUSTER_API_GROUP:
            return False
        from recommender.kinds.cluster_size.node_groups.cluster_api.groups import may_be_group  # noqa: PLC0415 - as `calculation`

        return may_be_group(target, groups, cluster.objects)

    def for_own_namespace(self, settings: ClusterSizeSettings, namespace: str) -> ClusterSizeSettings:
        """Return the settings, with this namespace added to those in which a Cluster Autoscaler is looked for."""
        known = settings.node_groups.autoscaler_namespaces
        if namespace in known:
            return settings
        return replace(settings, node_groups=replace(settings.node_groups, autoscaler_namespaces=(*known, namespace)))

    def needs(self, recommendation: Recommendation, cluster: ClusterState | None) -> Needs:
        """Return all objects from which sizes are calculated, including those that objects of Cluster API name."""
        from recommender.kinds.cluster_size.node_groups.discover import object_kinds  # noqa: PLC0415 - as `calculation`

        settings: ClusterSizeSettings = recommendation.subject
        priorities = settings.priorities_config_map
        return Needs(
            ClusterNeeds(
                nodes=True,
                # Predicted pods count only as far as the HPAs and the ResourceQuotas of their namespaces allow.
                autoscaler_namespaces=frozenset({""} if settings.forecasts else ()),
                pods=True,
                scheduling=True,
                objects=frozenset().union(
                    object_kinds(settings.node_groups, cluster),
                    {QUOTAS} if settings.forecasts else (),
                    buffer_kinds(settings.buffer) if settings.buffer is not None else (),
                ),
            ),
            config_maps={} if priorities is None else {priorities: None},
        )

    def rights(self, recommendation: Recommendation) -> Iterable[RoleRule]:
        """Yield the rights to write sizes and buffers."""
        return rights_of_sizes(recommendation)

    def calculation(
        self, recommendation: Recommendation, others: Sequence[Recommendation]
    ) -> Callable[[TargetReference | None], Calculate]:
        """Return the calculation; with forecasts, it follows the decisions of the others in this poll."""
        from recommender.kinds.cluster_size.decide import Sizing  # noqa: PLC0415 - files of other kinds start without it

        growths = {name: settings.max_growth for name, settings in predictive_settings(others).items()}
        sizing = Sizing(recommendation.policy, recommendation.subject, growths)
        return lambda _target: sizing.calculate

    def value_metrics(self, settings: ClusterSizeSettings) -> tuple[str, ...]:  # noqa: ARG002 - as RecommendationKind has it
        """Return the metric of the sizes."""
        return (_NODES,)

    def samples(self, records: Iterable[Record]) -> Mapping[str, Samples]:
        """Return the sizes of node groups, and how they were derived."""
        return size_samples([(record, found) for record in records if (found := answer_of(record)) is not None])

    def document(self, record: Record) -> Mapping[str, object]:
        """Return the keys that a decision on cluster size adds to the document of its recommendation."""
        return size_keys(answer_of(record))

    def value_text(self, record: Record) -> str:
        """Return how many nodes there should be."""
        answer = answer_of(record)
        return "" if answer is None else sizes_text(answer)

    def charted_sizes(self, record: Record) -> tuple[int | None, int | None]:
        """Return the recommended and the current number of nodes of all groups."""
        answer = answer_of(record)
        return (None, None) if answer is None else nodes_of(answer)

    def head_lines(self, record: Record, width: int | None, paint: Paint) -> Iterable[str]:
        """Return the tables of the answer."""
        answer = answer_of(record)
        return () if answer is None else size_lines(answer, width, paint)

    def headline(self, record: Record) -> str:
        """Return the reason for unchanged sizes, and the assumptions; the sections show the changes."""
        answer = answer_of(record)
        text = super().headline(record)
        return text if answer is None else text.removesuffix(summary_text(answer)).removesuffix("; ")

    def explained_lines(self, record: Record, width: int | None, paint: Paint) -> Iterable[str]:
        """Return the steps, the refusals and the nodes that stay."""
        answer = answer_of(record)
        return () if answer is None else explained_lines(answer, record.inputs, width, paint)

    def notes(self, record: Record) -> tuple[str, ...]:
        """Return the notes of the answer."""
        answer = answer_of(record)
        return () if answer is None else answer.notes

    def log_line(self, record: Record) -> Logged | None:
        """Return the sizes of the groups; ages and counts are left out, since they change with every poll."""
        answer = answer_of(record)
        if answer is None:
            return None
        sizes = tuple(
            (group.name, group.recommended, group.after_removals, group.is_left_out) for group in answer.groups
        )
        return Logged((sizes, record.binding, len(answer.unschedulable)), {"nodes": sizes_text(answer)})

    def events(self, before: Record | None, after: Record) -> Iterable[TargetEvent]:
        """Yield the events for sizes that have changed, and for new pods that no group can hold."""
        return events_of_sizes(before, after)


_INFRASTRUCTURE: Final = "infrastructure.cluster.x-k8s.io"
"""The API group of the machine templates of all Cluster API providers; their kinds differ by provider."""
_AUTOSCALER_API: Final = "autoscaling.x-k8s.io"


def rights_of_sizes(recommendation: Recommendation) -> Iterator[RoleRule]:
    """Yield the rights to write what the outputs name, and to watch the templates of machines."""
    settings: ClusterSizeSettings = recommendation.subject
    # Pods that no group can hold, and objects whose sizes are recommended, can be in any namespace.
    yield RoleRule("", "", "events", "", CREATE)
    # Buffers that an earlier configuration sized, wherever they are, are found by their annotations.
    yield RoleRule("", _AUTOSCALER_API, "capacitybuffers", "", LIST)
    if Output.SCALE in recommendation.policy.outputs:
        # The doctor names those that nobody may answer while this recommendation writes node groups.
        yield RoleRule("", _AUTOSCALER_API, "provisioningrequests", "", LIST)
    groups = settings.node_groups.cluster_api
    for namespace in groups.namespaces if groups is not None else ():
        yield RoleRule(namespace, _INFRASTRUCTURE, "*", "", WATCH)
        if groups is not None and Output.SCALE in recommendation.policy.outputs:
            yield from _scaling_rights(namespace, changes_machines=groups.may_have_marks)
    if Output.SCALE in recommendation.policy.outputs and settings.node_groups.delete_nodes:
        yield RoleRule("", "", "nodes", "", UPDATE)
        yield RoleRule("", "", "pods", "eviction", CREATE)
    if settings.buffer is not None:
        buffer = settings.buffer
        yield RoleRule(buffer.namespace, _AUTOSCALER_API, "capacitybuffers", "", UPDATE, (buffer.name,))


def _scaling_rights(namespace: str, *, changes_machines: bool) -> Iterator[RoleRule]:
    """Yield the rights to write sizes, and to read limits and pauses again right before each write."""
    for resource in (*SCALABLE_RESOURCES.values(), "clusters"):
        yield RoleRule(namespace, CLUSTER_API_GROUP, resource, "", GET)
    for resource in SCALABLE_RESOURCES.values():
        yield RoleRule(namespace, CLUSTER_API_GROUP, resource, "scale", UPDATE)
    if changes_machines:
        yield RoleRule(namespace, CLUSTER_API_GROUP, "machines", "", UPDATE)


KIND: Final = ClusterSizeKind()
"""The instance that `table` returns."""
