"""A kind of recommendation: everything that the rest of the program needs from it.

A kind reads its part of the configuration, says what it needs, calculates a value, remembers, and shows its records.
The loop, the brakes, the memory and the supervisor are the same for all kinds (`recommender/decisions`). Each kind is a
folder beside this module and a line in `table.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, TypeAlias, TypeVar

from adapter.foundation.cluster.values.state import ClusterNeeds, ClusterState
from recommender.decisions.memory import KindMemory
from recommender.decisions.policy_settings import Output
from recommender.decisions.texts.record_texts import message_without_notes

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from adapter.foundation.documents.sections import Given, Key
    from adapter.foundation.documents.shapes import ValueShape
    from adapter.foundation.documents.tree import DocumentProblem
    from recommender.decisions.calculation import Calculate
    from recommender.decisions.limits import Limit
    from recommender.decisions.policy_settings import RecommendationPolicy
    from recommender.decisions.record import Record, TargetReference
    from recommender.kinds.role_rules import RoleRule
    from recommender.outputs.event_rules import TargetEvent
    from recommender.outputs.metric_text import Samples

Paint: TypeAlias = "Callable[[str, str], str]"
"""A function from a text and a terminal code to the text to print."""
S = TypeVar("S")

RECOMMENDED_RESOURCES: Final = "tidewatch_recommended_resources"
RESOURCE_FAMILIES: Final = {
    RECOMMENDED_RESOURCES: "Size of a container by resource, in cores and bytes. From usage: its request with bounds. "
    "By the cluster's size: bound=target is its request, or its limit where only that is sized; bound=upper is its "
    "limit beside a request.",
}
"""The help of metric families, by name, that several kinds share because more than one kind sizes containers."""


@dataclass(frozen=True, slots=True)
class ScaleClaim:
    """The objects that an output of an entry writes, so that no two entries of a file write the same one."""

    place: Hashable
    """What identifies the objects; claims that may be on the same object have an equal place."""
    shown: str
    """The objects as messages name them."""
    fix: str
    """The repair if another recommendation has the same claim."""
    part: str = ""
    """The part of the place that is claimed; empty for all of it."""
    output: Output = Output.SCALE
    """The output without which the entry claims nothing."""

    def meets(self, other: ScaleClaim) -> bool:
        """Return whether both claims may be on the same object."""
        return self.place == other.place and (self.part == other.part or not (self.part and other.part))


class NotForObjectsError(Exception):
    """An object of kind Recommendation has a setting that only the file may have, or that cannot be confined."""

    def __init__(self, reason: str, message: str) -> None:
        """`reason` is the reason of the object's condition, in CamelCase."""
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Recommendation:
    """One entry of `recommendations`."""

    policy: RecommendationPolicy
    subject: Any
    """The settings of the recommendation's kind."""
    line: int = 0
    """Where the entry begins in the file."""
    target_lines: tuple[int, ...] = ()
    """The line of each of `policy.targets` in the file."""


@dataclass(frozen=True, slots=True)
class SeparateTargets:
    """The targets that are decided one by one, each with a memory of its own: series name them, or `targets` does."""

    api_version: str
    """The version of the kind; empty if `targets` names the targets."""
    kind: str
    """The kind of the targets in Kubernetes; empty if `targets` names the targets."""
    max_targets: int
    shards: int
    """How many ConfigMaps the memories of the targets take."""


@dataclass(frozen=True, slots=True)
class Needs:
    """The facts that a recommendation needs; nothing else is watched, read or queried."""

    cluster: ClusterNeeds = field(default_factory=ClusterNeeds)
    queries: frozenset[str] = frozenset()
    """PromQL expressions with one value each, which every poll queries."""
    sizing_queries: frozenset[str] = frozenset()
    """Those of `queries` whose value a size follows, so that it must not lack series."""
    metrics: Mapping[str, str] = field(default_factory=dict)
    """Names of metrics that must have series in Prometheus, each with what depends on it."""
    load: str = ""
    """PromQL of the load, whose history is followed elsewhere; empty for none."""
    has_queries: bool = False
    """Whether Prometheus is needed at all."""
    config_maps: Mapping[tuple[str, str], Mapping[str, str] | None] = field(default_factory=dict)
    """The needed ConfigMaps, by namespace and name, with the content of one that is missing; None to create none."""
    for_each: SeparateTargets | None = None
    """The targets that are decided one by one; None if one decision applies to all targets."""


@dataclass(frozen=True, slots=True)
class Logged:
    """The log line of a value that is not a number of replicas."""

    facts: tuple[object, ...]
    """The part of the value whose changes are logged."""
    fields: Mapping[str, object]


class RecommendationKind(Protocol[S]):
    """A kind of recommendation with settings of the type `S`. A kind overrides only the parts that it uses."""

    key: ClassVar[str]
    """The key of the kind's settings in entries, which is also the type of its records."""
    memory: ClassVar[type[KindMemory]] = KindMemory
    has_targets: ClassVar[bool] = True
    """Whether its value is the size of targets."""
    sizes_requests: ClassVar[bool] = False
    """Whether the output `resize` can write its value."""
    is_replayed: ClassVar[bool] = False
    """Whether `replay` queries Prometheus for its past."""
    is_slow: ClassVar[bool] = False
    """Whether a decision can take seconds, so that it is made in a thread of its own after all other decisions."""

    # Read

    doc: ClassVar[str]
    """One sentence about the kind's key, which the schema shows."""
    beside: ClassVar[tuple[tuple[Key, str], ...]] = ()
    """Further keys of the kind's entries, each with the message for its use in an entry of another kind, named by
    `{}`."""

    def shape(self, *, for_backtest: bool) -> ValueShape:
        """Return the shape of the settings. A backtest has other sources for what `run` and `recommend` require."""

    def check(
        self,
        given: Given,  # noqa: ARG002 - of use to kinds whose settings are judged together with other keys
        outputs: frozenset[Output],  # noqa: ARG002
        *,
        for_backtest: bool,  # noqa: ARG002
    ) -> Iterable[DocumentProblem]:
        """Yield keys of the entry that cannot be combined."""
        return ()

    def completed(self, settings: S, **beside: Any) -> S:  # noqa: ANN401, ARG002 - the values of those keys
        """Return the settings, completed with the values of the further keys."""
        return settings

    def limits(self, settings: S) -> tuple[Limit, ...]:  # noqa: ARG002 - of use to kinds with `min` and `max`
        """Return the bounds of the value that do not depend on the cluster."""
        return ()

    def wrong_references(
        self,
        settings: S,  # noqa: ARG002 - of use to kinds that follow others
        types: Mapping[str, str],  # noqa: ARG002
    ) -> Iterable[tuple[str, str]]:
        """Yield message and repair for each wrong reference to another entry; `types` maps entries' names to types."""
        return ()

    def claims(self, settings: S) -> Iterable[ScaleClaim]:  # noqa: ARG002 - of use to kinds that write more than targets
        """Yield the objects that the outputs write besides the targets that the entry lists."""
        return ()

    def sizes(self, settings: S, target: TargetReference, cluster: ClusterState) -> bool:  # noqa: ARG002 - as `claims`
        """Return whether the output `scale` writes the size of this object, which the entry does not list as target."""
        return False

    def for_own_namespace(self, settings: S, namespace: str) -> S:  # noqa: ARG002 - of use to kinds that look for neighbours
        """Return the settings for a process that runs in this namespace."""
        return settings

    def for_object_namespace(self, settings: S, namespace: str, narrow: Callable[[str], str]) -> S:  # noqa: ARG002
        """Return the settings for an object in this namespace, which cannot have targets in other namespaces.

        `narrow` returns a query in the form that the object may send. Raises NotForObjectsError, like `narrow`.
        """
        raise NotForObjectsError("OnlyInFile", f"{self.key} can be used only in the administrator's file")

    def remarks(self, settings: S) -> Iterable[str]:  # noqa: ARG002 - of use to kinds with defaults that depend on a place
        """Return the remarks of `run --validate` on settings that are valid but may not be what was meant."""
        return ()

    # Needs

    def needs(self, recommendation: Recommendation, cluster: ClusterState | None) -> Needs:  # noqa: ARG002
        """Return what a recommendation needs; facts that are known about the cluster may name further objects."""
        return Needs()

    def rights(self, recommendation: Recommendation) -> Iterable[RoleRule]:  # noqa: ARG002
        """Yield the rights in the cluster that do not follow from the needs."""
        return ()

    # Decide

    def calculation(
        self, recommendation: Recommendation, others: Sequence[Recommendation]
    ) -> Callable[[TargetReference | None], Calculate]:
        """Return the calculation, with `forEach` for one target. `others` are the recommendations of the same file."""

    # Show

    families: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """The help of the kind's own metrics by name, in the order in which they are served."""
    page: ClassVar[str] = ""
    """The template of the kind's details on the page, in the folder of the kinds; empty for none.

    It has the macros `value(record)`, `head(record, now)` before the targets, and `tail(record)` after the steps.
    """

    def value_metrics(self, settings: S) -> tuple[str, ...]:  # noqa: ARG002 - of use to kinds with other values
        """Return the names of the metrics that have the value."""
        return ("tidewatch_recommended_replicas",)

    def samples(self, records: Iterable[Record]) -> Mapping[str, Samples]:  # noqa: ARG002
        """Return the samples of each family; `records` are the records of all kinds that have a valid value."""
        return {}

    def document(self, record: Record) -> Mapping[str, object]:  # noqa: ARG002
        """Return the kind's own keys of a record's JSON. They are never absent; a key without a value is null."""
        return {}

    def value_text(self, record: Record) -> str:  # noqa: ARG002
        """Return, in a few words, a value that is not a number of replicas; empty if there is none."""
        return ""

    charted: ClassVar[str] = "replicas"
    """The unit of the chart of the last day, in the plural."""

    def charted_sizes(self, record: Record) -> tuple[int | None, int | None]:
        """Return the recommended and the current size for the chart of the last day; None for an unknown size."""
        return record.replicas, record.targets[0].current_replicas if record.targets else None

    page_filters: ClassVar[Mapping[str, Callable[..., object]]] = MappingProxyType({})
    """Functions that its template calls, by name."""
    has_own_inputs: ClassVar[bool] = False
    """Whether the kind's own lines show the inputs."""
    has_own_steps: ClassVar[bool] = False
    """Whether the kind's own lines show the steps."""

    def head_lines(self, record: Record, width: int | None, paint: Paint) -> Iterable[str]:  # noqa: ARG002
        """Return the details that come before the targets as text; if `width` is None, as one line of any length."""
        return ()

    def headline(self, record: Record) -> str:
        """Return the message of a record without the parts that the kind's lines already state."""
        return message_without_notes(record, self.notes(record))

    def explained_lines(self, record: Record, width: int | None, paint: Paint) -> Iterable[str]:  # noqa: ARG002
        """Return further details as lines of text, for `recommend --explain`."""
        return ()

    def tail_lines(self, record: Record, width: int | None, paint: Paint) -> Iterable[str]:  # noqa: ARG002
        """Return the details that come after the targets as text."""
        return ()

    def lines_of_targets(self, records: Sequence[Record], width: int | None) -> Iterable[str] | None:  # noqa: ARG002
        """Return many targets of one recommendation as text; None if the table that all kinds share is to be used."""
        return None

    def notes(self, record: Record) -> tuple[str, ...]:  # noqa: ARG002
        """Return the notes at the end of the message, for readers who see them in a separate list."""
        return ()

    def log_line(self, record: Record) -> Logged | None:  # noqa: ARG002
        """Return the log line of a value that is not a number of replicas; None if there is no such value."""
        return None

    def events(self, before: Record | None, after: Record) -> Iterable[TargetEvent]:  # noqa: ARG002
        """Yield a decision's events besides those of targets; `before` is the record before it, if there was one."""
        return ()
