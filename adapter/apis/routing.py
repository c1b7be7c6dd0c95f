"""From a raw path to what is asked for (pure).

Segments are split first and decoded once each after that, so `%2F` never makes a new segment. kube-apiserver, which
authorises a request by its path before passing it on, decodes first; both readings agree on every path that is served,
since no namespace, kind, object or metric has a name with a slash in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from adapter.objects.percent import EncodingError, decoded

CUSTOM = "custom.metrics.k8s.io"
EXTERNAL = "external.metrics.k8s.io"
RESOURCE = "metrics.k8s.io"
VERSIONS = {CUSTOM: ("v1beta2", "v1beta1"), EXTERNAL: ("v1beta1",), RESOURCE: ("v1beta1",)}
"""Versions of each group, the preferred one first."""
METRIC_GROUPS = (CUSTOM, EXTERNAL)
"""Groups whose resources are metrics."""

ALL_OBJECTS = "*"
HEALTH = ("/healthz", "/livez", "/readyz")
EXPLAIN = "/debug/explain"
"""Routed before the APIs: the right to it depends on the metric that is asked about."""


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
"""What `/` lists."""


_FREQUENT = tuple(f"/apis/{group}/" for group in VERSIONS)


def is_frequent(target: str) -> bool:
    """Tell whether a raw request target is one that autoscalers ask for all the time: values, and lists of metrics."""
    return target.startswith(_FREQUENT)


class PathError(ValueError):
    """A path that no URL may have; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Index:
    """`/`: what there is."""


@dataclass(frozen=True, slots=True)
class Version:
    """`/version`."""


@dataclass(frozen=True, slots=True)
class OwnMetrics:
    """`/metrics`: what this process tells of itself."""


@dataclass(frozen=True, slots=True)
class GroupList:
    """`/apis`: the groups, or aggregated discovery where that is asked for."""


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
    """`/openapi/v3`: where the schemas of each group are; or those of one."""

    group: str = ""
    """Empty: where they are."""
    version: str = ""


@dataclass(frozen=True, slots=True)
class CustomValues:
    """A metric of one object, or of all that selectors choose where `name` is `*`."""

    version: str
    namespace: str | None
    """None for objects outside of namespaces; a metric of a namespace itself has it as `name`."""
    resource: str
    name: str
    metric: str


@dataclass(frozen=True, slots=True)
class ExternalValues:
    """A metric that describes no object."""

    version: str
    namespace: str
    metric: str


@dataclass(frozen=True, slots=True)
class UsageValues:
    """What pods or nodes use: of one by its name, or a list."""

    resource: str
    """`pods` or `nodes`."""
    namespace: str | None = None
    """None for nodes, and for the pods of all namespaces."""
    name: str | None = None


Document: TypeAlias = Index | Version | GroupPath
Values: TypeAlias = CustomValues | ExternalValues | UsageValues
Schemas: TypeAlias = OpenApi2 | OpenApi3
Route: TypeAlias = Document | OwnMetrics | GroupList | ResourceList | Schemas | Values


def route(path: str) -> Route | None:
    """Return what the raw path asks for; None if nothing is there. Raises PathError for a path that is no path."""
    try:
        segments = [decoded(segment) for segment in path.removesuffix("/").split("/")]
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
    """Return the API group that a raw path lies in, or `other`: a label with few values, whatever is asked."""
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
    match segments:
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
