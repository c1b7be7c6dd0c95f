"""The key `recommendationObjects` of the configuration file: whether objects take effect, and what they may do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from adapter.foundation.documents.scalars import BOOLEAN, NAMESPACE, PROMETHEUS_LABEL, TEXT, one_of, whole
from adapter.foundation.documents.sections import Key, Section
from adapter.foundation.documents.shapes import ListOf
from recommender.configuration.configured_targets import manifest_kind
from recommender.decisions.policy_settings import Output

GROUP: Final = "tidewatch.io"
VERSION: Final = "v1alpha1"
PLURAL: Final = "recommendations"
KIND: Final = "Recommendation"
OBJECT_OUTPUTS: Final = (Output.METRIC, Output.SCALE)
"""The outputs that objects may have. A CapacityBuffer belongs to cluster sizes, which only the file may contain."""
OBJECTS_MEMORY: Final = "objects.tidewatch.io"
"""The name under which the memories of all objects are stored. No entry of the file can have this name."""
OBJECTS_SHARDS: Final = 32
"""The number of ConfigMaps that hold the memories of objects, whatever the number of objects."""


@dataclass(frozen=True, slots=True, order=True)
class TargetKind:
    """A kind of object that may be a target, with its API version."""

    api_version: str
    kind: str

    @property
    def group(self) -> str:
        """The API group, empty for the core group."""
        return self.api_version.rpartition("/")[0]

    def __str__(self) -> str:
        """Return text such as `Deployment of apps/v1`."""
        return f"{self.kind} of {self.api_version}"


@dataclass(frozen=True, slots=True)
class RecommendationObjectSettings:
    """The settings that state what Recommendation objects may do."""

    enabled: bool = False
    outputs: frozenset[Output] = frozenset({Output.METRIC})
    target_kinds: tuple[TargetKind, ...] = (TargetKind("apps/v1", "Deployment"), TargetKind("apps/v1", "StatefulSet"))
    trusted_namespaces: frozenset[str] = frozenset()
    """Namespaces whose objects may query the series of all namespaces."""
    backends: tuple[str, ...] = ()
    """The names of the backends that objects may choose, in addition to the default backend."""
    namespace_label: str = "namespace"
    """The label of series that names their namespace."""
    max_per_namespace: int = 20
    max_targets_per_namespace: int = 100
    """The number of targets that the objects of a namespace may size: listed ones, and `forEach.max` per `forEach`."""


def collection_path(namespace: str) -> str:
    """Return the path under which the API server serves the objects of a namespace."""
    return f"/apis/{GROUP}/{VERSION}/namespaces/{namespace}/{PLURAL}"


def _target_kind(*, api_version: str, kind: str) -> TargetKind:
    return TargetKind(api_version, manifest_kind(api_version.rpartition("/")[0], kind))


RECOMMENDATION_OBJECTS: Final = Section(
    "recommendationObjects",
    RecommendationObjectSettings,
    (
        Key("enabled", BOOLEAN, "Whether objects of the kind Recommendation are watched."),
        Key(
            "outputs",
            ListOf(
                one_of(OBJECT_OUTPUTS, "an output of objects").then(Output),
                frozenset,
                ("recommendationObjects.outputs is empty", "write metric, scale or both"),
            ),
            "Which outputs objects may have; metric alone without the key.",
        ),
        Key(
            "targetKinds",
            ListOf(
                Section(
                    "recommendationObjects.targetKinds",
                    _target_kind,
                    (
                        Key("apiVersion", TEXT, "API version of the kind.", "apps/v1"),
                        Key("kind", TEXT, "Name of the kind.", "Deployment"),
                    ),
                ),
                unique=lambda kind: kind,
            ),
            "Kinds that objects may size; Deployment and StatefulSet without the key.",
        ),
        Key(
            "trustedNamespaces",
            ListOf(NAMESPACE, frozenset),
            "Namespaces whose objects may query the series of all namespaces.",
        ),
        Key(
            "backends",
            ListOf(TEXT, unique=lambda name: f"the backend {name}"),
            "Backends of `prometheus` that objects may choose; only the default one is queried without the key.",
        ),
        Key("namespaceLabel", PROMETHEUS_LABEL, "Label of series that names their namespace."),
        Key("maxPerNamespace", whole(1, 10_000), "Maximum number of objects of a namespace."),
        Key(
            "maxTargetsPerNamespace",
            whole(1, 100_000),
            "Maximum number of targets of the objects of a namespace; forEach counts as its max.",
        ),
    ),
)
