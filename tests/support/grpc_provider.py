"""A provider of node groups behind Cluster Autoscaler's gRPC protocol, over a cloud in memory.

It is as strict as real providers: it refuses what they refuse, in their words, and records every call. A test can let
single calls fail, hang or answer something else (`instead`), and the form may be that before Cluster Autoscaler 1.35
(`form`).
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import grpc
from google.protobuf.duration_pb2 import Duration

from recommender.kinds.cluster_size.wire import external_grpc_pb2 as wire
from recommender.kinds.cluster_size.wire.kubernetes_pb2 import Node, NodeSpec, NodeStatus, ObjectMeta, Quantity, Taint

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

SERVICE = "clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider"
_STATES = wire.InstanceStatus
REQUESTS: dict[str, Any] = {
    "Refresh": wire.Empty,
    "Cleanup": wire.Empty,
    "NodeGroups": wire.Empty,
    "GPULabel": wire.Empty,
    "GetAvailableGPUTypes": wire.Empty,
    "NodeGroupForNode": wire.NodeGroupForNodeRequest,
    "PricingNodePrice": wire.PricingNodePriceRequest,
    "NodeGroupTargetSize": wire.GroupRequest,
    "NodeGroupNodes": wire.GroupRequest,
    "NodeGroupTemplateNodeInfo": wire.GroupRequest,
    "NodeGroupGetOptions": wire.NodeGroupAutoscalingOptionsRequest,
    "NodeGroupIncreaseSize": wire.SizeChangeRequest,
    "NodeGroupDecreaseTargetSize": wire.SizeChangeRequest,
    "NodeGroupDeleteNodes": wire.NodeGroupDeleteNodesRequest,
}
CHANGES = frozenset({"NodeGroupIncreaseSize", "NodeGroupDecreaseTargetSize", "NodeGroupDeleteNodes"})


class ProviderFaultError(Exception):
    """A call fails with this status."""

    def __init__(self, details: str, code: grpc.StatusCode = grpc.StatusCode.UNKNOWN) -> None:
        super().__init__(details)
        self.code = code


@dataclass
class CloudGroup:
    """A group of the cloud."""

    name: str
    min_size: int = 0
    max_size: int = 10
    machines: list[str] = field(default_factory=list)
    """Provider ids of running machines."""
    target: int | None = None
    """The target size; None if it is the number of machines."""
    cpu: str = "4"
    memory: str = "16Gi"
    price: float | None = None
    options: wire.NodeGroupAutoscalingOptions | None = None
    going: set[str] = field(default_factory=set)
    """Machines that are being deleted."""
    errors: dict[str, str] = field(default_factory=dict)
    """Why machines cannot be created, by provider id."""

    @property
    def size(self) -> int:
        return len(self.machines) - len(self.going) if self.target is None else self.target


class GrpcProvider:
    """The server; `calls` has every call with its request, in order."""

    def __init__(self, *groups: CloudGroup, form: Literal["bytes", "embedded"] = "bytes") -> None:
        self.groups = {group.name: group for group in groups}
        self.form = form
        self.calls: list[tuple[str, Any]] = []
        self.instead: dict[str, Callable[[Any], Any]] = {}
        self.gpu_label = ""
        self._lock = threading.Lock()
        self._server: grpc.Server | None = None
        self.port = 0

    def start(self, pair: tuple[Path, Path] | None = None, clients: Path | None = None, port: int = 0) -> str:
        """Serve on a port of its own, with TLS and client certificates if these are given; return the address."""
        self._server = grpc.server(ThreadPoolExecutor(16))
        handlers = {name: self._handler(name) for name in REQUESTS}
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
        address = f"127.0.0.1:{port}"
        if pair is None:
            self.port = self._server.add_insecure_port(address)
        else:
            content = clients.read_bytes() if clients is not None else None
            keys = [(pair[1].read_bytes(), pair[0].read_bytes())]
            credentials = grpc.ssl_server_credentials(keys, content, require_client_auth=clients is not None)
            self.port = self._server.add_secure_port(address, credentials)
        self._server.start()
        return f"localhost:{self.port}"

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop(None).wait(10.0)

    def made(self, *methods: str) -> list[str]:
        """Return the names of the calls so far, or only those of the given names."""
        return [name for name, _ in self.calls if not methods or name in methods]

    def changes(self) -> list[tuple[str, str, object]]:
        """Return method, group, and the delta or the names of nodes of each change."""
        return [
            (name.removeprefix("NodeGroup"), request.id, _subject(request))
            for name, request in self.calls
            if name in CHANGES
        ]

    def _handler(self, name: str) -> grpc.RpcMethodHandler[Any, Any]:
        def answer(request: Any, context: grpc.ServicerContext) -> Any:  # noqa: ANN401 - any message
            with self._lock:
                self.calls.append((name, request))
            try:
                if name in self.instead:
                    return self.instead[name](request)
                return self.usual(name, request)
            except ProviderFaultError as error:
                context.abort(error.code, str(error))

        return grpc.unary_unary_rpc_method_handler(
            answer,
            request_deserializer=REQUESTS[name].FromString,
            response_serializer=lambda found: found if isinstance(found, bytes) else found.SerializeToString(),
        )

    def usual(self, name: str, request: Any) -> Any:  # noqa: ANN401 - any message
        """Return the answer of a provider without faults."""
        with self._lock:
            if name in {"Refresh", "Cleanup"}:
                return wire.Empty()
            if name == "NodeGroups":
                return wire.NodeGroupsResponse(nodeGroups=map(_group_message, self.groups.values()))
            if name == "GPULabel":
                return wire.GPULabelResponse(label=self.gpu_label)
            if name == "NodeGroupForNode":
                return self._owner(request)
            if name == "PricingNodePrice":
                return self._price(request)
            if name not in {"NodeGroupTargetSize", "NodeGroupNodes", *CHANGES} | _OPTIONAL:
                raise ProviderFaultError(f"method {name} not implemented", grpc.StatusCode.UNIMPLEMENTED)
            group = self.groups.get(request.id)
            if group is None:
                raise ProviderFaultError(f'NodeGroup "{request.id}", not found')
            return self._of_group(name, group, request)

    def _owner(self, request: wire.NodeGroupForNodeRequest) -> wire.NodeGroupForNodeResponse:
        if not request.HasField("node"):
            raise ProviderFaultError("request fields were nil")
        machine = request.node.providerID
        found = next((group for group in self.groups.values() if machine and machine in group.machines), None)
        return wire.NodeGroupForNodeResponse(nodeGroup=wire.NodeGroup() if found is None else _group_message(found))

    def _price(self, request: wire.PricingNodePriceRequest) -> wire.PricingNodePriceResponse:
        times = ("startTimestamp", "endTimestamp") if self.form == "bytes" else ("startTime", "endTime")
        if not all(map(request.HasField, ("node", *times))):
            raise ProviderFaultError("request fields were nil")
        group = self.groups.get(request.node.labels.get("pool", ""))
        if group is None or group.price is None:
            raise ProviderFaultError("not implemented", grpc.StatusCode.UNIMPLEMENTED)
        return wire.PricingNodePriceResponse(price=group.price)

    def _of_group(self, name: str, group: CloudGroup, request: Any) -> Any:  # noqa: ANN401 - any message
        answers: dict[str, Callable[[], Any]] = {
            "NodeGroupTargetSize": lambda: wire.NodeGroupTargetSizeResponse(targetSize=group.size),
            "NodeGroupNodes": lambda: wire.NodeGroupNodesResponse(
                instances=[_instance(each, group) for each in group.machines]
            ),
            "NodeGroupTemplateNodeInfo": lambda: self._template(group),
            "NodeGroupGetOptions": lambda: self._options(group, request),
            "NodeGroupIncreaseSize": lambda: self._increase(group, request.delta),
            "NodeGroupDecreaseTargetSize": lambda: self._decrease(group, request.delta),
            "NodeGroupDeleteNodes": lambda: self._delete(group, request.nodes),
        }
        return answers[name]()

    def _template(self, group: CloudGroup) -> wire.NodeGroupTemplateNodeInfoResponse:
        content = node_bytes(group)
        if self.form == "bytes":
            return wire.NodeGroupTemplateNodeInfoResponse(nodeBytes=content)
        return wire.NodeGroupTemplateNodeInfoResponse(nodeInfo=content)

    def _options(
        self, group: CloudGroup, request: wire.NodeGroupAutoscalingOptionsRequest
    ) -> wire.NodeGroupAutoscalingOptionsResponse:
        form = ("scaleDownUnneededDuration", "scaleDownUnneededTime")[self.form == "embedded"]
        if not request.HasField("defaults") or not request.defaults.HasField(form):
            raise ProviderFaultError("request fields were nil")
        return wire.NodeGroupAutoscalingOptionsResponse(nodeGroupAutoscalingOptions=group.options or request.defaults)

    def _increase(self, group: CloudGroup, delta: int) -> wire.Empty:
        if delta <= 0:
            raise ProviderFaultError("size increase must be positive")
        if group.size + delta > group.max_size:
            raise ProviderFaultError(f"size increase too large, desired: {group.size + delta} max: {group.max_size}")
        group.target = group.size + delta
        return wire.Empty()

    def _decrease(self, group: CloudGroup, delta: int) -> wire.Empty:
        if delta >= 0:
            raise ProviderFaultError("size decrease must be negative")
        if group.size + delta < len(group.machines) - len(group.going):
            raise ProviderFaultError(
                f"attempt to delete existing nodes, targetSize: {group.size} delta: {delta} existingNodes: "
                f"{len(group.machines)}"
            )
        group.target = group.size + delta
        return wire.Empty()

    def _delete(self, group: CloudGroup, nodes: Sequence[wire.ExternalGrpcNode]) -> wire.Empty:
        if group.size - len(nodes) < group.min_size:
            raise ProviderFaultError("min size reached, nodes will not be deleted")
        for node in nodes:
            if node.providerID not in group.machines or node.providerID in group.going:
                raise ProviderFaultError(f"node {node.name} doesn't belong to node group {group.name}")
        group.target = group.size - len(nodes)
        group.going.update(node.providerID for node in nodes)
        return wire.Empty()


_OPTIONAL = {"NodeGroupTemplateNodeInfo", "NodeGroupGetOptions"}


def node_bytes(group: CloudGroup, more: Mapping[str, str] | None = None) -> bytes:
    """Return the Node of a group's template as protobuf."""
    amounts = {"cpu": group.cpu, "memory": group.memory, "pods": "110", **(more or {})}
    quantities = {name: Quantity(string=text) for name, text in amounts.items()}
    node = Node(
        metadata=ObjectMeta(name=f"template-{group.name}", labels={"pool": group.name}),
        spec=NodeSpec(taints=[Taint(key="spot", effect="NoSchedule")] if group.name == "spot" else []),
        status=NodeStatus(capacity=quantities, allocatable=quantities),
    )
    return node.SerializeToString()


def options(unneeded_seconds: int = 0, threshold: float = 0.5) -> wire.NodeGroupAutoscalingOptions:
    """Return options in the newest form."""
    return wire.NodeGroupAutoscalingOptions(
        scaleDownUtilizationThreshold=threshold,
        scaleDownGpuUtilizationThreshold=0.5,
        scaleDownUnneededDuration=Duration(seconds=unneeded_seconds),
    )


def _group_message(group: CloudGroup) -> wire.NodeGroup:
    return wire.NodeGroup(id=group.name, minSize=group.min_size, maxSize=group.max_size, debug=f"group {group.name}")


def _instance(machine: str, group: CloudGroup) -> wire.Instance:
    state = _STATES.instanceDeleting if machine in group.going else _STATES.instanceRunning
    if machine in group.errors and machine not in group.going:
        stated = wire.InstanceErrorInfo(errorCode=group.errors[machine], instanceErrorClass=1)
        status = wire.InstanceStatus(instanceState=_STATES.instanceCreating, errorInfo=stated)
        return wire.Instance(id=machine, status=status)
    return wire.Instance(id=machine, status=wire.InstanceStatus(instanceState=state))


def _subject(request: Any) -> object:  # noqa: ANN401 - a change
    if isinstance(request, wire.NodeGroupDeleteNodesRequest):
        return [node.name for node in request.nodes]
    return request.delta
