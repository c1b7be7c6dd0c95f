"""Everything that a decision is made from, besides its configuration and its memory."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from adapter.foundation.cluster.values.state import ClusterState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.cluster.facts.scale_targets import ReplicasManager
    from adapter.foundation.cluster.values.state import ClusterPod, Observed, Unknown
    from recommender.decisions.loads.inputs import LoadInputs
    from recommender.decisions.record import Record, TargetReference


@dataclass(frozen=True, slots=True)
class TargetState:
    """The known size of a target."""

    replicas: int
    """`spec.replicas`."""
    ready_replicas: int | None = None
    """None if it was not looked up."""
    rollout: bool = False
    """Whether a rollout is under way."""
    paused: str | None = None
    """The annotation `tidewatch.io/paused`; None if there is none, or the rights do not allow to look."""
    replicas_managers: tuple[ReplicasManager, ...] | None = None
    """None if field managers may not be looked up, as with cluster-proportional-autoscaler's rights."""


@dataclass(frozen=True, slots=True)
class ConfigMapData:
    """The content of a parameter ConfigMap."""

    data: Mapping[str, str]
    resource_version: str


@dataclass(frozen=True, slots=True)
class WriteRefusal:
    """Why the last write for a target was refused."""

    owner: str | None
    """The owner of what was to be written; None if the API server or a pause refused it."""
    message: str


@dataclass(frozen=True, slots=True)
class ActiveAutoscaler:
    """A VerticalPodAutoscaler that writes requests. One with the mode `Off` only recommends."""

    namespace: str
    name: str
    mode: str
    """`Auto`, `Recreate`, `InPlaceOrRecreate`, `Initial`, or what later versions add."""
    target_group: str
    """The API group that its `targetRef` states; empty without one."""

    @property
    def called(self) -> str:
        """Return its kind, namespace and name."""
        return f"VerticalPodAutoscaler {self.namespace}/{self.name}"


ActiveAutoscalers: TypeAlias = "Mapping[tuple[str, str, str], tuple[ActiveAutoscaler, ...]]"
"""By namespace, kind and name of the workload; sorted by name."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """One snapshot for all recommendations of a poll."""

    cluster: ClusterState = field(default_factory=ClusterState)
    queries: Mapping[str, Observed[float] | Unknown] = field(default_factory=dict)
    """By PromQL text: what the default backend answers, or after `of_backend` that of the decision at hand."""
    config_maps: Mapping[tuple[str, str], Observed[ConfigMapData | None] | Unknown] = field(default_factory=dict)
    """By namespace and name; None: there is no such ConfigMap."""
    targets: Mapping[TargetReference, Observed[TargetState | None] | Unknown] = field(default_factory=dict)
    """None: there is no such object."""
    loads: Mapping[str, LoadInputs | Unknown] = field(default_factory=dict)
    """By the name of a predictive recommendation; Unknown: nothing is known of its load as a whole."""
    usage: Mapping[str, Mapping[TargetReference, Observed[object] | Unknown] | Unknown] = field(default_factory=dict)
    """By the name of a recommendation that follows usage: that of each target, in a form that its kind knows."""
    refusals: Mapping[tuple[str, TargetReference], WriteRefusal] = field(default_factory=dict)
    """By recommendation and target, why its requests were not written."""
    settled: Mapping[tuple[str, TargetReference], object] = field(default_factory=dict)
    """By recommendation and target, what the last attempt to write its sizes found in place already."""
    assumed_pods: tuple[ClusterPod, ...] = ()
    """Pods that do not exist, and that a what-if question adds; cluster sizes alone look at them."""
    displaced_pods: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """By namespace and name: the node that a pod runs on and that a what-if question removes."""
    own: Mapping[str, object] = field(default_factory=dict)
    """By the name of a recommendation: what is gathered for it alone, in a form that its kind knows."""
    decided: Mapping[str, tuple[Record, ...]] = field(default_factory=dict)
    """By the name of a recommendation: what has been decided in this poll, for kinds that follow others."""
    queries_elsewhere: Mapping[str, Mapping[str, Observed[float] | Unknown]] = field(default_factory=dict)
    """By the name of another backend and by PromQL text: what that one answers."""
    vertical_autoscalers: ActiveAutoscalers = field(default_factory=dict)
    """The VerticalPodAutoscalers that size containers too."""

    def of_backend(self, backend: str) -> Inputs:
        """Return the inputs of a recommendation that asks this backend, empty for the default one."""
        return replace(self, queries=self.queries_elsewhere.get(backend, {})) if backend else self
