"""Maps raw paths to what they ask for (pure).

A path is split into segments before each segment is decoded once, so `%2F` never starts a new segment. kube-apiserver,
which authorizes a request by its path before passing it on, decodes first. Both agree on every path that is served,
because no namespace, kind, object or metric has a slash in its name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from adapter.foundation.objects.percent import EncodingError, percent_decode

CUSTOM = "custom.metrics.k8s.io"
EXTERNAL = "external.metrics.k8s.io"
RESOURCE = "metrics.k8s.io"
VERSIONS = {CUSTOM: ("v1beta2", "v1beta1"), EXTERNAL: ("v1beta1",), RESOURCE: ("v1beta1",)}
"""Versions of each group, starting with the preferred one."""
METRIC_GROUPS = (CUSTOM, EXTERNAL)
"""Groups whose resources are metrics."""

ALL_OBJECTS = "*"
HEALTH = ("/healthz", "/livez", "/readyz")
EXPLAIN = "/debug/explain"
"""This path is routed before the APIs: the right to it depends on the metric that is asked about."""


PATHS = (
    "/apis",
    *(f"/apis/{group}" for group in VERSIONS),
    *(f"/apis/{group}/{version}" for group, versions in VERSIONS.items() for version in versions),
    EXPLAIN,
    *HEALTH,
    "/openapi/v2",
    "/openapi/v3",
    *(f"/openapi/v3/apis/{group}/{version}" for group, versions in VERSIONS.items() for version in versions),
    "/metrics",
    "/version",
)
"""The paths that `/` lists."""


_FREQUENT = tuple(f"/apis/{group}/" for group in VERSIONS)


def is_frequent(target: str) -> bool:
    """Return whether a raw request target is one that autoscalers request constantly: values and lists of metrics."""
    return target.startswith(_FREQUENT)


class PathError(ValueError):
    """A path that is not valid in a URL, or incomplete; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Index:
    """`/`: the paths that are served."""


@dataclass(frozen=True, slots=True)
class Version:
    """`/version`."""


@dataclass(frozen=True, slots=True)
class OwnMetrics:
    """`/metrics`: the metrics of this process."""


@dataclass(frozen=True, slots=True)
class GroupList:
    """`/apis`: the groups, or aggregated discovery if the client requests it."""


@dataclass(frozen=True, slots=True)
class GroupPath:
    """`/apis/GROUP`: the versions of one group."""

    group: str


@dataclass(frozen=True, slots=True)
class ResourceList:
    """`/apis/GROUP/VERSION`: the metrics of one group."""

    group: str
    version: str


@dataclass(frozen=True, slots=True)
class OpenApi2:
    """`/openapi/v2`: the schemas of all groups."""


@dataclass(frozen=True, slots=True)
class OpenApi3:
    """`/openapi/v3`: the index of the schemas of all groups, or the schemas of one group."""

    group: str = ""
    """The group; empty for the index."""
    version: str = ""


@dataclass(frozen=True, slots=True)
class CustomValues:
    """A metric of one object, or of all selected objects if `name` is `*`."""

    version: str
    namespace: str | None
    """The namespace; None for cluster-scoped objects. A metric of a namespace itself has the namespace as `name`."""
    resource: str
    name: str
    metric: str

    @property
    def tenant(self) -> str | None:
        """The namespace that the values belong to: a metric of a namespace belongs to that namespace."""
        return self.name if self.resource.lower() in {"namespaces", "namespace"} else self.namespace


@dataclass(frozen=True, slots=True)
class ExternalValues:
    """A metric that does not describe an object."""

    version: str
    namespace: str
    metric: str


@dataclass(frozen=True, slots=True)
class UsageValues:
    """The resource usage of one pod or node, or of a list of them."""

    resource: str
    """`pods` or `nodes`."""
    namespace: str | None = None
    """The namespace; None for nodes, and for the pods of all namespaces."""
    name: str | None = None


Document: TypeAlias = Index | Version | GroupPath
Values: TypeAlias = CustomValues | ExternalValues | UsageValues
Schemas: TypeAlias = OpenApi2 | OpenApi3
Route: TypeAlias = Document | OwnMetrics | GroupList | ResourceList | Schemas | Values


def route(path: str) -> Route | None:
    """Return the meaning of the raw path; None if nothing is served there. Raises PathError."""
    try:
        segments = [percent_decode(segment) for segment in path.removesuffix("/").split("/")]
    except EncodingError as e:
        raise PathError(f"the path {e}") from e
    match segments:
        case [""]:
            return Index()
        case ["", "version"]:
            return Version()
        case ["", "metrics"]:
            return OwnMetrics()
        case ["", "openapi", *rest]:
            return _schemas(rest)
        case ["", "apis", *rest]:
            return _api(rest)
        case _:
            return None


def group_of(path: str) -> str:
    """Return the API group of a raw path, or `other`: a label value from a small set, whatever the path."""
    segments = path.split("/", 3)
    return segments[2] if len(segments) > 2 and segments[1] == "apis" and segments[2] in VERSIONS else "other"


def _schemas(segments: list[str]) -> Schemas | None:
    match segments:
        case ["v2"]:
            return OpenApi2()
        case ["v3"]:
            return OpenApi3()
        case ["v3", "apis", group, version] if version in VERSIONS.get(group, ()):
            return OpenApi3(group, version)
        case _:
            return None


def _api(segments: list[str]) -> Route | None:
    match segments:
        case []:
            return GroupList()
        case [group] if group in VERSIONS:
            return GroupPath(group)
        case [group, version] if version in VERSIONS.get(group, ()):
            return ResourceList(group, version)
        case [group, version, *rest] if version in VERSIONS.get(group, ()) and all(rest):
            return _values(group, version, rest)
        case _:
            return None


def _values(group: str, version: str, segments: list[str]) -> Values | None:
    if group == RESOURCE:
        return _usage(segments)
    return _custom(version, segments) if group == CUSTOM else _external(version, segments)


def _custom(version: str, segments: list[str]) -> CustomValues | None:
    """Return the values that are requested. Raises PathError for a path that lacks the kind of object."""
    match segments:
        case ["namespaces", _, _]:
            raise PathError("the path names no kind of object: write namespaces/NAMESPACE/KIND/NAME/METRIC")
        case ["namespaces", name, "metrics", metric]:
            return CustomValues(version, None, "namespaces", name, metric)
        case ["namespaces", namespace, resource, name, metric]:
            return CustomValues(version, namespace, resource, name, metric)
        case ["namespaces", *_]:
            return None
        case [resource, name, metric]:
            return CustomValues(version, None, resource, name, metric)
        case _:
            return None


def _external(version: str, segments: list[str]) -> ExternalValues | None:
    match segments:
        case ["namespaces", namespace, metric]:
            return ExternalValues(version, namespace, metric)
        case _:
            return None


def _usage(segments: list[str]) -> UsageValues | None:
    match segments:
        case ["nodes" | "pods" as resource]:
            return UsageValues(resource)
        case ["nodes" as resource, name]:
            return UsageValues(resource, name=name)
        case ["namespaces", namespace, "pods" as resource]:
            return UsageValues(resource, namespace)
        case ["namespaces", namespace, "pods" as resource, name]:
            return UsageValues(resource, namespace, name)
        case _:
            return None
