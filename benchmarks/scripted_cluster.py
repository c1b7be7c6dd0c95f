"""A scripted API server with a large cluster: `python -m benchmarks.scripted_cluster --nodes 5000 --pods 50000 …`.

It serves lists in pages, streamed lists, and watches of nodes, pods, services and ReplicaSets over HTTP, allows what
access reviews ask about, and sends the nodes' heartbeats. It prints its port. Whole nodes and pods have the size of
real ones. Pods are whole and bound to nodes, unless only their metadata is requested.
"""

from __future__ import annotations

import argparse
import json
import time
from http.server import ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from benchmarks.scripted_pods import replica_set, service, whole_pod
from demo.machine.http_answers import JSON, AnswerHandler

if TYPE_CHECKING:
    from collections.abc import Sequence

CORES_OF_A_NODE = 16
_PAGE = 500
_IMAGES = 40
_CONDITIONS = ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
_NO_HEARTBEATS_POLL_SECONDS = 0.2
_ZONES = 3
_KINDS = ("nodes", "pods", "services", "replicasets")
_NONE_OF = ("daemonsets", "replicationcontrollers", "statefulsets")
"""Kinds of which the cluster has no objects."""
_LISTS = {
    "nodes": "NodeList",
    "pods": "PodList",
    "services": "ServiceList",
    "replicasets": "ReplicaSetList",
    "daemonsets": "DaemonSetList",
    "replicationcontrollers": "ReplicationControllerList",
    "statefulsets": "StatefulSetList",
}
_VERSION = "5000"


def node_name(number: int) -> str:
    """Return the name of a node."""
    return f"ip-10-0-{number // 256}-{number % 256}.eu-central-1.compute.internal"


def node_address(number: int) -> str:
    """Return the internal IP address of a node."""
    return f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"


def node(number: int, heartbeat: int = 0) -> dict[str, Any]:
    """Return a Node as it is after a number of heartbeats of the cluster."""
    time_text = f"2026-01-01T{heartbeat // 3600 % 24:02d}:{heartbeat // 60 % 60:02d}:{heartbeat % 60:02d}Z"
    name = node_name(number)
    labels = {f"node.example.com/label-{key}": f"value-{number * key % 7}" for key in range(18)}
    sizes = {"pods": "110", "ephemeral-storage": "100Gi", "hugepages-1Gi": "0", "hugepages-2Mi": "0"}
    return {
        "metadata": {
            "name": name,
            "uid": f"{number:036d}",
            "resourceVersion": str(10_000 + heartbeat),
            "creationTimestamp": "2025-01-01T00:00:00Z",
            "labels": labels
            | {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"eu-central-1{'abc'[number % _ZONES]}"},
            "annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true", "note": "x" * 200},
            "managedFields": [{"manager": "kubelet", "operation": "Update", "fieldsV1": _fields("f:status")}],
        },
        "spec": {"podCIDR": "10.0.0.0/24", "providerID": f"example:///{number}"},
        "status": {
            "capacity": sizes | {"cpu": str(CORES_OF_A_NODE), "memory": f"{32_000_000 + number}Ki"},
            "allocatable": sizes | {"cpu": str(CORES_OF_A_NODE), "memory": f"{31_000_000 + number}Ki"},
            "conditions": [_condition(kind, time_text) for kind in _CONDITIONS],
            "addresses": [{"type": "InternalIP", "address": node_address(number)}],
            "nodeInfo": {"kernelVersion": "6.1", "osImage": "Linux"},
            "images": [
                {"names": [f"registry.example.com/team/image-{image}@sha256:{'a' * 64}"], "sizeBytes": 123_456}
                for image in range(_IMAGES)
            ],
        },
    }


def metadata(kind: str, number: int) -> dict[str, Any]:
    """Return a pod or a service as a list of metadata contains it."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {
            "name": f"{kind}-{number // 5:06d}-{number % 5}-abcde",
            "namespace": f"team-{number % 500}",
            "uid": f"{number:036d}",
            "resourceVersion": "1",
            "creationTimestamp": "2025-01-01T00:00:00Z",
            "labels": {"app": f"app-{number // 50}", "pod-template-hash": f"{number // 50:010d}"},
            "managedFields": [{"manager": "kube-controller-manager", "fieldsV1": _fields("f:metadata")}],
        },
    }


class ScriptedCluster(ThreadingHTTPServer):
    """The scripted API server."""

    def __init__(self, sizes: dict[str, int], heartbeats_per_second: float) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.sizes = sizes
        self.heartbeats_per_second = heartbeats_per_second


class _Handler(AnswerHandler):
    server: ScriptedCluster

    def do_GET(self) -> None:
        """Answer a list or a watch."""
        url = urlsplit(self.path)
        query = dict(parse_qsl(url.query))
        kind = url.path.rpartition("/")[2]
        if kind not in self.server.sizes:
            self.send_error(404)
        elif query.get("sendInitialEvents") == "true":
            self._stream(kind)
        elif query.get("watch"):
            self._watch(kind, float(query.get("timeoutSeconds", "30")))
        else:
            self._list(kind, int(query.get("continue", "0")), int(query.get("limit", _PAGE)))

    def do_POST(self) -> None:
        """Allow whatever an access review asks about."""
        self.request_body()
        allowed = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "status": {"allowed": True}}
        self.answer(_json(allowed), status=201)

    def _is_metadata(self) -> bool:
        return "PartialObjectMetadata" in self.headers.get("Accept", "")

    def _item(self, kind: str, number: int) -> dict[str, Any]:
        if kind == "nodes":
            return node(number)
        if self._is_metadata():
            return metadata(kind, number)
        if kind == "pods":
            return whole_pod(number, node_name(number % max(1, self.server.sizes["nodes"])))
        return service(number) if kind == "services" else replica_set(number)

    def _list(self, kind: str, start: int, limit: int) -> None:
        end = min(self.server.sizes[kind], start + limit)
        about = {"resourceVersion": _VERSION}
        if end < self.server.sizes[kind]:
            about["continue"] = str(end)
        items = [self._item(kind, number) for number in range(start, end)]
        group_version = urlsplit(self.path).path.removeprefix("/api/").removeprefix("/apis/").rpartition("/")[0]
        head = {"kind": _LISTS[kind], "apiVersion": group_version}
        if self._is_metadata():
            head = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"}
        self.answer(_json(head | {"metadata": about, "items": items}))

    def _stream(self, kind: str) -> None:
        """Send the objects as events, up to the bookmark that ends them (KEP-3157)."""
        self._begin_chunks()
        its_kind = "PartialObjectMetadata" if self._is_metadata() else _LISTS[kind].removesuffix("List")
        for number in range(self.server.sizes[kind]):
            self._chunk({"type": "ADDED", "object": self._item(kind, number)})
        end = {"resourceVersion": _VERSION, "annotations": {"k8s.io/initial-events-end": "true"}}
        self._chunk({"type": "BOOKMARK", "object": {"kind": its_kind, "metadata": end}})
        self.wfile.write(b"0\r\n\r\n")

    def _begin_chunks(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", JSON)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def _chunk(self, event: dict[str, Any]) -> None:
        line = _json(event) + b"\n"
        self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))

    def _watch(self, kind: str, seconds: float) -> None:
        self._begin_chunks()
        rate = self.server.heartbeats_per_second if kind == "nodes" else 0.0
        until, heartbeat = time.monotonic() + seconds, int(time.time())
        try:
            while time.monotonic() < until:
                time.sleep(1 / rate if rate else _NO_HEARTBEATS_POLL_SECONDS)
                if rate:
                    heartbeat += 1
                    changed = node(heartbeat % self.server.sizes["nodes"], heartbeat)
                    self._chunk({"type": "MODIFIED", "object": changed})
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            return


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until the process is ended."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scripted_cluster", description=__doc__)
    for kind in _KINDS:
        parser.add_argument(f"--{kind}", type=int, default=0)
    parser.add_argument("--heartbeats-per-second", type=float, default=0.0)
    options = parser.parse_args(arguments)
    sizes = {kind: getattr(options, kind) for kind in _KINDS} | dict.fromkeys(_NONE_OF, 0)
    server = ScriptedCluster(sizes, options.heartbeats_per_second)
    print(server.server_address[1], flush=True)
    server.serve_forever()


def _condition(kind: str, heartbeat: str) -> dict[str, str]:
    return {
        "type": kind,
        "status": "True" if kind == "Ready" else "False",
        "lastHeartbeatTime": heartbeat,
        "lastTransitionTime": "2025-01-01T00:00:00Z",
        "reason": "KubeletHasSufficientMemory",
        "message": "kubelet has sufficient memory available",
    }


def _fields(part: str) -> dict[str, Any]:
    return {part: {f"f:{number}": {} for number in range(30)}}


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


if __name__ == "__main__":
    main()
