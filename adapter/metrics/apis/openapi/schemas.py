"""The kinds of the three groups as OpenAPI's schemas, and the paths that answer them (pure).

Fields are those of `k8s.io/metrics/pkg/apis`, and those fields of `ObjectMeta` that are ever set here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from adapter.metrics.apis.routing import CUSTOM, EXTERNAL, RESOURCE

Schema: TypeAlias = dict[str, Any]
Refer: TypeAlias = "Callable[[str, str], Schema]"
"""Makes a reference to a named schema, with a description unless it is empty; each version of OpenAPI has its own
form."""

GVK = "x-kubernetes-group-version-kind"
_PREFIX = "io.tidewatch.apis"


@dataclass(frozen=True, slots=True)
class Operation:
    """One path, which is requested by GET."""

    path: str
    id: str
    action: str
    """The Kubernetes action: `get` or `list`."""
    schema: str
    """Name of the schema of its answer."""
    kind: dict[str, str]
    """Group, version and kind that it is about."""
    parameters: tuple[str, ...]
    """Names of the parameters in the path."""
    description: str


def schemas_of(group: str, version: str, refer: Refer) -> dict[str, Schema]:
    """Return the schemas of one group and version by their names."""

    def ref(kind: str, description: str) -> Schema:
        return refer(_name(group, version, kind), description)

    made = {CUSTOM: _custom, EXTERNAL: _external, RESOURCE: _usage}[group](version, ref)
    for name, schema in made.items():
        if "kind" in schema.get("properties", {}) and name != "ObjectReference":
            schema[GVK] = [_kind(group, version, name)]
    return {_name(group, version, name): schema for name, schema in made.items()}


def operations_of(group: str, version: str) -> Iterator[Operation]:
    """Yield the operations that one group and version offers."""
    root = f"/apis/{group}/{version}"
    if group == RESOURCE:
        for path, kind in (("nodes", "NodeMetrics"), ("namespaces/{namespace}/pods", "PodMetrics")):
            yield _operation(group, version, f"{root}/{path}", "list", f"{kind}List", kind)
            yield _operation(group, version, f"{root}/{path}/{{name}}", "get", kind, kind)
        yield _operation(group, version, f"{root}/pods", "list", "PodMetricsList", "PodMetrics")
    elif group == EXTERNAL:
        path = f"{root}/namespaces/{{namespace}}/{{metric}}"
        yield _operation(group, version, path, "list", "ExternalMetricValueList", "ExternalMetricValueList")
    else:
        for place in ("{resource}/{name}/{metric}", "namespaces/{namespace}/{resource}/{name}/{metric}"):
            yield _operation(group, version, f"{root}/{place}", "get", "MetricValueList", "MetricValueList")
        path = f"{root}/namespaces/{{namespace}}/metrics/{{metric}}"
        yield _operation(group, version, path, "get", "MetricValueList", "MetricValueList")


def _operation(group: str, version: str, path: str, action: str, answer: str, kind: str) -> Operation:
    parameters = tuple(segment[1:-1] for segment in path.split("/") if segment.startswith("{"))
    words = [group, version, *path.split("/")[4:]]
    identifier = "".join(word.strip("{}").replace(".", " ").title().replace(" ", "") for word in words)
    return Operation(
        path=path,
        id=f"{action}{identifier}",
        action=action,
        schema=_name(group, version, answer),
        kind=_kind(group, version, kind),
        parameters=parameters,
        description=f"Return {answer}.",
    )


def _name(group: str, version: str, kind: str) -> str:
    return f"{_PREFIX}.{group.partition('.')[0]}.{version}.{kind}"


def _kind(group: str, version: str, kind: str) -> dict[str, str]:
    return {"group": group, "version": version, "kind": kind}


def _object(description: str, properties: dict[str, Schema], required: tuple[str, ...] = ()) -> Schema:
    schema: Schema = {"description": description, "type": "object", "properties": properties}
    return {**schema, "required": list(required)} if required else schema


_TYPED: Mapping[str, Schema] = {
    "apiVersion": {"description": "Group and version of this object.", "type": "string"},
    "kind": {"description": "Kind of this object.", "type": "string"},
}
"""The fields `apiVersion` and `kind` of every object."""
_QUANTITY = {"type": "string"}


def _text(description: str, form: str = "") -> Schema:
    return {"description": description, "type": "string", **({"format": form} if form else {})}


def _texts(description: str) -> Schema:
    return {"description": description, "type": "object", "additionalProperties": {"type": "string"}}


def _list_of(description: str, of: Schema) -> Schema:
    return {"description": description, "type": "array", "items": of}


def _usage(_version: str, ref: Refer) -> dict[str, Schema]:
    measured = {
        "timestamp": _text("End of the window over which the values were measured.", "date-time"),
        "window": _text("Window over which the values were measured, such as 1m0s."),
    }
    usage = _texts("Usage by resource: cpu in cores, memory in bytes.")
    return {
        "PodMetrics": _object(
            "CPU and memory usage of a pod.",
            {
                **_TYPED,
                "metadata": ref("ObjectMeta", "Name, namespace and labels of the pod."),
                **measured,
                "containers": _list_of("Usage of each container.", ref("ContainerMetrics", "")),
            },
            ("timestamp", "window", "containers"),
        ),
        "ContainerMetrics": _object(
            "CPU and memory usage of a container.",
            {"name": _text("Name of the container in its pod."), "usage": usage},
            ("name", "usage"),
        ),
        "NodeMetrics": _object(
            "CPU and memory usage of a node.",
            {
                **_TYPED,
                "metadata": ref("ObjectMeta", "Name and labels of the node."),
                **measured,
                "usage": usage,
            },
            ("timestamp", "window", "usage"),
        ),
        **_list_kind("PodMetrics", "CPU and memory usage of pods.", ref),
        **_list_kind("NodeMetrics", "CPU and memory usage of nodes.", ref),
        "ObjectMeta": _object_meta(),
    }


def _custom(version: str, ref: Refer) -> dict[str, Schema]:
    selector = ref("LabelSelector", "Selector of the series that the value belongs to.")
    old = {"metricName": _text("Name of the metric."), "window": _window(), "selector": selector}
    new = {"metric": ref("MetricIdentifier", "Identifier of the metric."), "windowSeconds": _window()}
    described = {
        "kind": _text("Kind of the object."),
        "namespace": _text("Namespace of the object, or of the request."),
        "name": _text("Name of the object."),
        "apiVersion": _text("Group and version of the kind."),
    }
    identifier = _object(
        "A metric, and a selector of its series.", {"name": _text("Name of the metric."), "selector": selector}
    )
    return {
        "MetricValue": _object(
            "Value of a metric for one object.",
            {
                **_TYPED,
                "describedObject": ref("ObjectReference", "Object that the value describes."),
                **(old if version == "v1beta1" else new),
                "timestamp": _text("Time of the value.", "date-time"),
                "value": {"description": "The value, as a quantity.", **_QUANTITY},
            },
            ("describedObject", "timestamp", "value"),
        ),
        **_list_kind("MetricValue", "Values of a metric, one for each object.", ref),
        **({} if version == "v1beta1" else {"MetricIdentifier": identifier}),
        "ObjectReference": _object("An object.", described),
        "LabelSelector": _label_selector(),
    }


def _external(_version: str, ref: Refer) -> dict[str, Schema]:
    return {
        "ExternalMetricValue": _object(
            "One series of a metric that describes no object.",
            {
                **_TYPED,
                "metricName": _text("Name of the metric."),
                "metricLabels": _texts("The labels of the series."),
                "timestamp": _text("Time of the value.", "date-time"),
                "window": _window(),
                "value": {"description": "The value, as a quantity.", **_QUANTITY},
            },
            ("metricName", "metricLabels", "timestamp", "value"),
        ),
        **_list_kind("ExternalMetricValue", "All series of a metric that match the selector.", ref),
    }


def _list_kind(kind: str, description: str, ref: Refer) -> dict[str, Schema]:
    properties = {
        **_TYPED,
        "metadata": {"description": "Empty.", "type": "object"},
        "items": _list_of("The results.", ref(kind, "")),
    }
    return {f"{kind}List": _object(description, properties, ("items",))}


def _window() -> Schema:
    return {
        "description": "Window over which the value was measured, in seconds.",
        "type": "integer",
        "format": "int64",
    }


def _object_meta() -> Schema:
    return _object(
        "Metadata of an object.",
        {
            "name": _text("Name of the object."),
            "namespace": _text("Its namespace."),
            "labels": _texts("Its labels."),
            "creationTimestamp": _text("When this answer was made.", "date-time"),
        },
    )


def _label_selector() -> Schema:
    expression = _object(
        "A condition.",
        {
            "key": _text("The label."),
            "operator": _text("In, NotIn, Exists or DoesNotExist."),
            "values": _list_of("The values that it is compared with.", {"type": "string"}),
        },
        ("key", "operator"),
    )
    return _object(
        "Conditions on labels, all of which hold.",
        {
            "matchLabels": _texts("Labels and the values that they have."),
            "matchExpressions": _list_of("Further conditions.", expression),
        },
    )
