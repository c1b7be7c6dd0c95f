"""Everything that a decision depends on, besides its configuration and its memory."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from adapter.foundation.cluster.values.state import Autoscaler, ClusterPod, ClusterState, Observed, Unknown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recommender.decisions.loads.load_inputs import LoadInputs
    from recommender.decisions.record import Record, TargetReference


HELD_SECONDS: Final = 900.0
"""How long after a write another recommender's size is left in place. Two recommenders that disagree then change it
only twice in that time instead of at each poll, and one that was removed does not hold the target for longer."""


WHOLE_SECONDS: Final = 300.0
"""For how long the series of a query must have been there until a smaller value is a smaller load in any case. A source
that starts without data scrapes all of its targets in that time."""


@dataclass(frozen=True, slots=True)
class QueryAnswer(Observed[float]):
    """The value of a query that may lack series, because it has fallen or because its source may have just started."""

    whole_seconds: float = 0.0
    """How long ago, in seconds, the query had some series but no more than now, as far as was looked up; at most
    `WHOLE_SECONDS`. It is 0 if series are missing."""


@dataclass(frozen=True, slots=True)
class ReplacedSize:
    """A size that this process wrote, and that another recommender has replaced."""

    replicas: int
    """The size that this process wrote."""
    until: float
    """The time until which the other size is left in place, in Unix seconds."""


@dataclass(frozen=True, slots=True)
class TargetState:
    """The known size of a target."""

    replicas: int
    """`spec.replicas`."""
    rollout: bool = False
    """Whether a rollout is under way."""
    paused: str | None = None
    """The annotation `tidewatch.io/paused`; None if there is none, or if RBAC does not allow reading it."""
    replicas_managers: tuple[str, ...] | None = None
    """Field managers that wrote `spec.replicas`; None if they may not be looked up, as with the RBAC rules of
    cluster-proportional-autoscaler."""
    replaced: ReplacedSize | None = None
    """The size of this process that another recommender has replaced; None if none has."""
    uid: str = field(default="", compare=False)
    """The UID of the target; empty if it is not known."""
    is_owned: bool | None = False
    """Whether something else owns the size; None if that is still looked up. Only for sizes that are written."""


@dataclass(frozen=True, slots=True)
class ConfigMapData:
    """The content of a parameter ConfigMap."""

    data: Mapping[str, str]
    resource_version: str


@dataclass(frozen=True, slots=True)
class WriteRefusal:
    """Why the last write for a target was refused."""

    owner: str | None
    """The owner of the field; None if the API server or a pause refused the write."""
    message: str


@dataclass(frozen=True, slots=True)
class ActiveAutoscaler:
    """A VerticalPodAutoscaler that writes requests.

    One with the mode `Off` only recommends, unless it boosts the CPU of pods at their start.
    """

    namespace: str
    name: str
    mode: str
    """`Auto`, `Recreate`, `InPlaceOrRecreate`, `Initial`, or a mode of later versions; `Off` if it only boosts."""
    target_group: str
    """The API group that its `targetRef` states; empty if it states none."""

    @property
    def full_name(self) -> str:
        """Return the kind, namespace and name of the autoscaler."""
        return f"VerticalPodAutoscaler {self.namespace}/{self.name}"

    @property
    def only_boosts(self) -> bool:
        """Return whether it writes requests only at the start of pods."""
        return self.mode == "Off"

    @property
    def remedy(self) -> str:
        """Return what to do so that it writes no requests."""
        return "remove its startupBoost" if self.only_boosts else "set its updateMode to Off"


ActiveAutoscalers: TypeAlias = "Mapping[tuple[str, str, str], tuple[ActiveAutoscaler, ...]]"
"""VerticalPodAutoscalers by namespace, kind and name of the workload; sorted by name."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """One snapshot for all recommendations of a poll."""

    cluster: ClusterState = field(default_factory=ClusterState)
    queries: Mapping[str, Observed[float] | Unknown] = field(default_factory=dict)
    """Answers by PromQL text, each a QueryAnswer if it may lack series. They come from the default backend, or after
    `of_backend`, from the chosen backend."""
    config_maps: Mapping[tuple[str, str], Observed[ConfigMapData | None] | Unknown] = field(default_factory=dict)
    """ConfigMaps by namespace and name; None if there is no such ConfigMap."""
    targets: Mapping[TargetReference, Observed[TargetState | None] | Unknown] = field(default_factory=dict)
    """States of targets; None if there is no such object."""
    loads: Mapping[str, LoadInputs | Unknown] = field(default_factory=dict)
    """Loads by the name of a predictive recommendation; Unknown if nothing is known about its load as a whole."""
    usage: Mapping[str, Mapping[TargetReference, Observed[object] | Unknown] | Unknown] = field(default_factory=dict)
    """The usage of each target, by the name of a recommendation that follows usage, in a form that its kind knows."""
    refusals: Mapping[tuple[str, TargetReference], WriteRefusal] = field(default_factory=dict)
    """Why the requests of a target were not written, by recommendation and target."""
    failures: Mapping[tuple[str, TargetReference], str] = field(default_factory=dict)
    """Why the last scale call for a target failed, by recommendation and target."""
    settled: Mapping[tuple[str, TargetReference], object] = field(default_factory=dict)
    """Sizes that the last attempt to write them found already in place, by recommendation and target."""
    assumed_pods: tuple[ClusterPod, ...] = ()
    """Pods that do not exist but that a what-if question adds; only cluster sizes use them."""
    displaced_pods: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """The node of each pod whose node a what-if question removes, by the pod's namespace and name."""
    cluster_with_removed_nodes: ClusterState | None = None
    """The cluster with the nodes that a what-if question removes and with their pods; None if it removes none."""
    own: Mapping[str, object] = field(default_factory=dict)
    """Facts that are gathered for a single recommendation, by its name, in a form that its kind knows."""
    decided: Mapping[str, tuple[Record, ...]] = field(default_factory=dict)
    """Decisions of this poll by the name of the recommendation, for kinds that follow others."""
    queries_elsewhere: Mapping[str, Mapping[str, Observed[float] | Unknown]] = field(default_factory=dict)
    """Answers of other backends, by the name of the backend and by PromQL text."""
    vertical_autoscalers: ActiveAutoscalers = field(default_factory=dict)
    """The VerticalPodAutoscalers that also size containers."""
    scaled_objects: Mapping[str, Observed[tuple[Autoscaler, ...]] | Unknown] = field(default_factory=dict)
    """The ScaledObjects of KEDA by namespace, in the form of HPAs; absent where they are not needed or installed."""

    def of_backend(self, backend: str) -> Inputs:
        """Return the inputs with the answers of this backend as `queries`; an empty name means the default backend."""
        return replace(self, queries=self.queries_elsewhere.get(backend, {})) if backend else self
