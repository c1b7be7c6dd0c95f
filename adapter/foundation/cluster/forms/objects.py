"""The parts of Kubernetes objects that are decoded, whether from a watch, a JSON file or a YAML file."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from adapter.foundation.objects.metadata import ObjectMeta

QuantityText: TypeAlias = str | int | float
"""The API server writes text; a file may have a bare number."""


class NodeMeta(ObjectMeta, gc=False, rename={"created": "creationTimestamp"}):
    """The metadata of a Node."""

    uid: str = ""
    created: str | None = None


class TaintForm(msgspec.Struct, gc=False):
    """A taint of a node."""

    key: str
    value: str | None = None
    effect: str = ""


class NodeSpec(msgspec.Struct, gc=False):
    """`core/v1 NodeSpec`."""

    unschedulable: bool | None = None
    taints: list[TaintForm] | None = None


class ConditionForm(msgspec.Struct, gc=False):
    """A condition without its times, which every heartbeat changes."""

    type: str
    status: str


class NodeAddressForm(msgspec.Struct, gc=False):
    """`core/v1 NodeAddress`."""

    type: str = ""
    address: str = ""


class NodeStatus(msgspec.Struct, gc=False):
    """`core/v1 NodeStatus`."""

    capacity: dict[str, QuantityText] | None = None
    allocatable: dict[str, QuantityText] | None = None
    conditions: list[ConditionForm] | None = None
    addresses: list[NodeAddressForm] | None = None


class NodeForm(msgspec.Struct, gc=False):
    """`core/v1 Node`."""

    metadata: NodeMeta
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


class EndpointConditions(msgspec.Struct, gc=False):
    """`discovery/v1 EndpointConditions`."""

    ready: bool | None = None


class EndpointForm(msgspec.Struct, gc=False):
    """`discovery/v1 Endpoint`."""

    addresses: list[str] | None = None
    conditions: EndpointConditions | None = None


class SliceForm(msgspec.Struct, gc=False):
    """`discovery/v1 EndpointSlice`."""

    metadata: ObjectMeta
    endpoints: list[EndpointForm] | None = None


class NameMeta(msgspec.Struct, gc=False):
    """Metadata without labels: if the server applies the selector, a count needs nothing else."""

    name: str
    namespace: str | None = None


class NameForm(msgspec.Struct, gc=False):
    """An object of which only the name is kept."""

    metadata: NameMeta
