"""The values of the rulebook: rules as parsed, what was found wrong, and the metrics that rules make of series.

All are immutable. A reload makes a new `Rulebook` and swaps it in one place.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.objects.resources import Resource
    from adapter.rulebook.naming import Naming, SeriesFilter
    from adapter.rulebook.rendering.template import QueryTemplate
    from adapter.rulebook.resources import ResourceMapping


class Api(StrEnum):
    """Which API a rule feeds."""

    CUSTOM = "custom"
    EXTERNAL = "external"
    RESOURCE = "resource"


class Severity(StrEnum):
    """An error refuses the rule that contains it; a warning does not."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Repair:
    """A mechanical change of one line of a rule file."""

    old: str
    """What stands at the finding's place, or behind it on the line."""
    new: str = ""
    """Empty: the line goes, if nothing else stands on it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong or doubtful in a rule file."""

    severity: Severity
    code: str
    """Stable name of what was found, such as `bad-regex`."""
    file: str
    line: int
    message: str
    fix: str
    rule: str | None = None
    """The rule's id; None for the file as a whole."""
    column: int = 1
    """Where on the line, from 1."""
    repair: Repair | None = None
    """How to mend it where that is mechanical."""

    def __str__(self) -> str:
        """`FILE:LINE: what is wrong: what to do`."""
        return f"{self.file}:{self.line}: {self.message}: {self.fix}"


class OnNoData(StrEnum):
    """What is answered when Prometheus has no data."""

    ERROR = "error"
    EMPTY = "empty"
    VALUE = "value"


class ForeignNamespaces(StrEnum):
    """What happens to samples that carry another namespace than the requested one."""

    ERROR = "error"
    ALLOW = "allow"


HOLD_SILENT_SECONDS = 1800.0
"""Default time for which a silent series counts as too old, in seconds."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The policy of a rule. None leaves a decision to the program's flags."""

    on_no_data: OnNoData | None = None
    no_data_value: float | None = None
    """The value that stands for no data; set with VALUE alone."""
    max_sample_age_seconds: float | None = None
    """Values made of an older sample are no values; None: as far as Prometheus looks back."""
    refresh_seconds: float | None = None
    """How often its queries are asked anew."""
    window_seconds: int | None = None
    """The span that its values are measured over, as answers state it."""
    foreign_namespaces: ForeignNamespaces | None = None
    """Whether samples that bear another namespace are let through."""
    hold_silent_seconds: float = HOLD_SILENT_SECONDS
    """External rules that limit the age of their samples: for how long after its last sample a series that fell silent
    counts as too old, though Prometheus knows nothing of it any more. 0: not at all."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One valid rule: everything in it was understood."""

    id: str
    """`rules[3]`, `externalRules[0]`: counted over all files; `resourceRules.cpu`."""
    api: Api
    file: str
    line: int
    series_query: str
    series_filters: tuple[SeriesFilter, ...]
    naming: Naming
    resources: ResourceMapping
    metrics_query: QueryTemplate
    namespaced: bool = True
    """External rules only: whether the asker's namespace restricts the query."""
    policy: Policy = Policy()
    times_query: QueryTemplate | None = None
    """Asks for the times of the samples that its values are made of; None where their age is not limited."""
    ranges_seconds: float = 0.0
    """The longest range that its query looks over, where the rule has a value for no data."""


@dataclass(frozen=True, slots=True)
class RefusedRule:
    """A rule with an error: it serves nothing, and affects no other rule."""

    id: str
    api: Api
    file: str
    line: int
    series_query: str = ""
    """What stands as its `seriesQuery`, if it can be told."""
    said: str = ""
    """All that stands in it: equal for entries that say the same."""


@dataclass(frozen=True, slots=True)
class Retained:
    """Why the last good version of a rule serves, and not what its file says now."""

    reason: str
    """What is wrong with the new text."""
    newer: frozenset[str] = frozenset()
    """Ids of rules that came with the broken text or after it: a name that one of them gives is theirs."""


@dataclass(frozen=True, slots=True)
class ResourceRule:
    """What `resourceRules` say of one resource, read without an error."""

    id: str
    """`resourceRules.cpu`, `resourceRules.memory`."""
    resource: str
    """`cpu` or `memory`: the key in what a pod or a node uses."""
    file: str
    line: int
    metrics: tuple[Metric, ...]
    """What pods use, by container, and what nodes use; one of them where the rule has one query alone."""

    @property
    def api(self) -> Api:
        """Which API it feeds."""
        return Api.RESOURCE


@dataclass(frozen=True, slots=True)
class ResourceRules:
    """All that the rule files say of metrics.k8s.io."""

    rules: tuple[ResourceRule, ...] = ()
    window_seconds: float = 60.0
    """The span that all values are measured over, as answers state it."""

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """All metrics: `pods/cpu`, `nodes/cpu`, `pods/memory`, `nodes/memory`, as far as there are rules for them."""
        return tuple(metric for rule in self.rules for metric in rule.metrics)


@dataclass(frozen=True, slots=True)
class Rulebook:
    """All that the rule files say."""

    rules: tuple[Rule, ...] = ()
    refused: tuple[RefusedRule, ...] = ()
    findings: tuple[Finding, ...] = ()
    files: tuple[str, ...] = ()
    resource: ResourceRules = ResourceRules()
    retained: Mapping[str, Retained] = field(default_factory=dict)
    """By id the refused rules whose last good version is among the rules, under that id."""


class PlanKind(StrEnum):
    """How widely one query is asked: for everybody, for one namespace, or for one asker."""

    WIDE = "wide"
    NAMESPACE = "namespace"
    EXACT = "exact"


@dataclass(frozen=True, slots=True)
class Plan:
    """Which query plans are proven for a metric, and why not the wider ones."""

    proven: frozenset[PlanKind]
    """Always holds EXACT."""
    reasons: dict[PlanKind, str] = field(default_factory=dict)
    """For each plan that is not proven: why."""

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
    """Name in the API."""
    series: str
    """Name in Prometheus."""
    resource: Resource | None
    """The kind of object that it describes; None for external metrics."""
    object_label: str | None
    """The Prometheus label that holds the object's name; None for external metrics."""
    namespace_label: str | None
    """The Prometheus label that holds the namespace; None where none restricts the query."""
    container_label: str | None = None
    """The Prometheus label that contains the container's name; set only for the metrics of what pods use."""
    narrowed: bool = False
    """Whether it is what the series of one namespace tell of objects that are in none themselves."""

    @property
    def namespaced(self) -> bool:
        """Whether the API serves it inside namespaces."""
        return self.resource is None or self.resource.namespaced or self.narrowed

    @property
    def qualified(self) -> str:
        """`pods/http_rps` for custom metrics, `pods/cpu` for resource metrics, `queue_depth` for external ones."""
        return f"{self.resource.qualified}/{self.name}" if self.resource else self.name

    @property
    def query_key(self) -> str:
        """The key of its rule under which its query stands."""
        if self.rule.api is not Api.RESOURCE:
            return "metricsQuery"
        return "containerQuery" if self.container_label else "nodeQuery"
