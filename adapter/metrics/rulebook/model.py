"""The values of the rulebook: parsed rules, and the metrics that they provide from series.

All are immutable. A reload creates a new `Rulebook` and replaces the former one in one place.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.objects.resources import Resource
    from adapter.foundation.promql.narrowing import Matchers
    from adapter.foundation.sources.prometheus.backends.backend import Backend
    from adapter.metrics.rulebook.findings import Finding
    from adapter.metrics.rulebook.naming import Naming, SeriesFilter
    from adapter.metrics.rulebook.resources import ResourceMapping
    from adapter.metrics.rulebook.templates.template import QueryTemplate


class Api(StrEnum):
    """The API that a rule provides metrics for."""

    CUSTOM = "custom"
    EXTERNAL = "external"
    RESOURCE = "resource"


class OnNoData(StrEnum):
    """The answer to a request if Prometheus has no data."""

    ERROR = "error"
    EMPTY = "empty"
    VALUE = "value"


class ForeignNamespaces(StrEnum):
    """The treatment of samples with another namespace than the requested one."""

    ERROR = "error"
    ALLOW = "allow"


HOLD_SILENT_SECONDS = 1800.0
"""Default time for which a silent series counts as too old, in seconds."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The policy of a rule. None leaves a decision to the program's flags."""

    on_no_data: OnNoData | None = None
    no_data_value: float | None = None
    """Value that is served if there is no data; only set for VALUE."""
    max_sample_age_seconds: float | None = None
    """Age from which a sample is not used; None for Prometheus's look-back."""
    refresh_seconds: float | None = None
    """Time between two refreshes of its queries."""
    window_seconds: int | None = None
    """Time over which its values are measured, as stated in answers."""
    foreign_namespaces: ForeignNamespaces | None = None
    """Whether samples with another namespace are used."""
    hold_silent_seconds: float = HOLD_SILENT_SECONDS
    """Time after its last sample during which a silent series of an external rule counts as too old, even if Prometheus
    has forgotten it. Only used with a limit of the sample age; 0 disables it."""


METRIC_RULE = "MetricRule"
"""The kind of the objects that hold a rule, and the label value that they all share in the adapter's metrics."""


@dataclass(frozen=True, slots=True)
class Confinement:
    """The namespace that the rule of a MetricRule object is confined to."""

    namespace: str
    matchers: Matchers
    """Matchers that are put into every selector of its queries, such as `namespace="shop"`."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One valid rule."""

    id: str
    """`rules[3]` or `externalRules[0]`, numbered across all files, `resourceRules.cpu`, or `MetricRule shop/web`."""
    api: Api
    file: str
    line: int
    series_query: str
    series_filters: tuple[SeriesFilter, ...]
    naming: Naming
    resources: ResourceMapping
    metrics_query: QueryTemplate
    namespaced: bool = True
    """Whether the requester's namespace restricts the query; only for external rules."""
    policy: Policy = Policy()
    times_query: QueryTemplate | None = None
    """Query for the times of the samples of its values; None if their age is not limited."""
    ranges_seconds: float = 0.0
    """Longest range of its query; only set if the rule has a value for no data."""
    confinement: Confinement | None = None
    """The namespace that the rule is confined to; None for the rules of files."""
    backend: Backend | None = None
    """The Prometheus that its queries are sent to; None for that of the flags."""

    @property
    def place(self) -> str:
        """Where people find the rule: `rules[3] (adapter.yaml:12)`, or `MetricRule shop/web`."""
        return f"{self.id} ({self.file}:{self.line})" if self.confinement is None else self.id

    @property
    def content(self) -> Rule:
        """The rule without its place, so that rules with the same content are equal wherever they are."""
        return replace(self, id="", file="", line=0)

    @property
    def label_value(self) -> str:
        """The value of the label `rule` in the adapter's metrics: one for all objects, since there may be thousands."""
        return self.id if self.confinement is None else METRIC_RULE


@dataclass(frozen=True, slots=True)
class RefusedRule:
    """A rule with an error. It provides no metrics and affects no other rule."""

    id: str
    api: Api
    file: str
    line: int
    series_query: str = ""
    """The rule's `seriesQuery`; empty if it cannot be read."""
    said: str = ""
    """The whole entry as JSON, without line numbers, so that entries with the same content are equal."""


@dataclass(frozen=True, slots=True)
class ResourceRule:
    """The valid rule of one resource in `resourceRules`."""

    id: str
    """`resourceRules.cpu` or `resourceRules.memory`."""
    resource: str
    """`cpu` or `memory`: the key in the usage of a pod or node."""
    file: str
    line: int
    metrics: tuple[Metric, ...]
    """The usage of pods by container, and of nodes; only one of them if the rule has only one query."""

    @property
    def api(self) -> Api:
        """The API that the rule provides metrics for."""
        return Api.RESOURCE

    @property
    def content(self) -> tuple[Rule, ...]:
        """The rule without its place."""
        return tuple(metric.rule.content for metric in self.metrics)


@dataclass(frozen=True, slots=True)
class ResourceRules:
    """The rules for metrics.k8s.io of all rule files."""

    rules: tuple[ResourceRule, ...] = ()
    window_seconds: float = 60.0
    """Time over which all values are measured, as stated in answers."""

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics among `pods/cpu`, `nodes/cpu`, `pods/memory` and `nodes/memory` for which there are rules."""
        return tuple(metric for rule in self.rules for metric in rule.metrics)


@dataclass(frozen=True, slots=True)
class Rulebook:
    """The content of all rule files."""

    rules: tuple[Rule, ...] = ()
    refused: tuple[RefusedRule, ...] = ()
    findings: tuple[Finding, ...] = ()
    files: tuple[str, ...] = ()
    resource: ResourceRules = ResourceRules()
    retained: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By the id of each refused rule whose last good version is among `rules`: the ids of rules that changed with it or
    later, which take precedence for equal metric names."""
    backends: tuple[Backend, ...] = ()
    """The backends that the files declare now, with their current credentials; a retained rule's may be missing."""


def all_rules(rulebook: Rulebook) -> tuple[Rule, ...]:
    """Return all valid rules; those of metrics.k8s.io once for pods and once for nodes."""
    return (*rulebook.rules, *(metric.rule for metric in rulebook.resource.metrics))


class PlanKind(StrEnum):
    """Whom one query is sent for: all requesters, the requesters of one namespace, or one requester."""

    WIDE = "wide"
    NAMESPACE = "namespace"
    EXACT = "exact"


@dataclass(frozen=True, slots=True)
class Plan:
    """Which query plans are proven for a metric, and why wider ones are not."""

    proven: frozenset[PlanKind]
    """Proven plans; always contains EXACT."""
    reasons: dict[PlanKind, str] = field(default_factory=dict)
    """Why a plan is not proven, by plan."""

    @property
    def kind(self) -> PlanKind:
        """The widest proven plan."""
        return next(kind for kind in PlanKind if kind in self.proven)

    @property
    def reason(self) -> str:
        """Why the next wider plan was refused; `proven` for a wide plan."""
        kinds = tuple(PlanKind)
        position = kinds.index(self.kind)
        return self.reasons.get(kinds[position - 1], "") if position else "proven"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric that an API serves: a rule applied to one series name, for one kind of object."""

    rule: Rule
    name: str
    """Name of the metric in the API."""
    series: str
    """Name of the series in Prometheus."""
    resource: Resource | None
    """The kind of object that it describes; None for external metrics."""
    object_label: str | None
    """The Prometheus label that contains the object's name; None for external metrics."""
    namespace_label: str | None
    """The Prometheus label that contains the namespace; None if no namespace restricts the query."""
    container_label: str | None = None
    """The Prometheus label that contains the container's name; only set for the usage of pods."""
    narrowing_label: str | None = None
    """The Prometheus label that contains the namespace of the series, if it describes cluster-scoped objects."""
    assumes_labels: bool = False
    """Whether its series may have other labels of its rule than these, which is not known before they are looked up."""
    narrowed: bool = False
    """Whether it describes cluster-scoped objects by the series of one namespace."""

    @property
    def namespaced(self) -> bool:
        """Whether the API serves it in namespaces."""
        return self.resource is None or self.resource.namespaced or self.narrowed

    @property
    def needs_selector(self) -> bool:
        """Whether nothing but a selector fills the matchers of its query: neither objects nor a namespace do."""
        return self.object_label is None and self.namespace_label is None

    @property
    def qualified(self) -> str:
        """`pods/http_rps` for custom metrics, `pods/cpu` for resource metrics, `queue_depth` for external ones."""
        return f"{self.resource.qualified}/{self.name}" if self.resource else self.name

    @property
    def query_key(self) -> str:
        """The key of its query in its rule."""
        if self.rule.api is not Api.RESOURCE:
            return "metricsQuery"
        return "containerQuery" if self.container_label else "nodeQuery"
