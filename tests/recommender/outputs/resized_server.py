"""A stand-in for the API server with pods that are resized."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from adapter.foundation.objects.resources import BUILT_IN, find_resource
from adapter.foundation.sources.kubernetes.errors import NotFoundError, StatusError
from adapter.foundation.sources.kubernetes.writing import Fence, Reply
from recommender.decisions.record import TargetReference
from recommender.outputs.pending_writes import PendingWrite, RequestedSize, Resizing
from recommender.outputs.resize import ResizeAttempt
from recommender.outputs.write_attempt import ScaleOutcome, SendingTerms

if TYPE_CHECKING:
    from collections.abc import Mapping

APPS = "/apis/apps/v1/namespaces/shop"
PODS = "/api/v1/namespaces/shop/pods"
LIMIT_RANGES = "/api/v1/namespaces/shop/limitranges"
QUOTAS = "/api/v1/namespaces/shop/resourcequotas"
AUTOSCALERS = "/apis/autoscaling.k8s.io/v1/namespaces/shop/verticalpodautoscalers"
HALF = RequestedSize("app", "cpu", 500)


@dataclass
class Server:
    """A server that has objects by path, and records what is written."""

    objects: dict[str, Any]
    refusals: dict[str, StatusError] = field(default_factory=dict)
    written: dict[str, dict[str, Any]] = field(default_factory=dict)

    def get(self, path: str, query: Mapping[str, str] | None = None, *, seconds: float | None = None) -> Reply:  # noqa: ARG002 - as the protocol has it
        if path not in self.objects:
            raise NotFoundError(f"GET {path}: not found", 404)
        return Reply(copy.deepcopy(self.objects[path]))

    def replace(self, path: str, document: Mapping[str, Any], fence: Fence) -> dict[str, Any]:  # noqa: ARG002 - as the protocol has it
        if path in self.refusals:
            raise self.refusals[path]
        self.written[path] = dict(document)
        return dict(document)

    def carry_out(self) -> None:
        """Show what was written as the pods that run."""
        pods = self.objects[PODS]["items"]
        pods = [self.written.get(f"{PODS}/{each['metadata']['name']}/resize", each) for each in pods]
        self.objects[PODS] = listed("Pod", *pods)


def pod(name: str, **changes: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of a container
    container = {"name": "app", "resources": {"requests": {"cpu": "1"}}} | changes
    return {
        "metadata": {"name": name, "ownerReferences": [{"controller": True, "uid": "w"}]},
        "spec": {"containers": [container]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


def listed(kind: str, *items: dict[str, Any], api_version: str = "v1") -> dict[str, Any]:
    return {"kind": f"{kind}List", "apiVersion": api_version, "metadata": {}, "items": list(items)}


def server(kind: str = "StatefulSet", *pods: dict[str, Any], in_place: bool = True, **workload: Any) -> Server:  # noqa: ANN401 - parts of the object
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": {"spec": pod("t")["spec"]}}
    document = {"kind": kind, "metadata": {"name": "web", "uid": "w", "generation": 1}, "spec": spec} | workload
    resources = [{"name": "pods"}, *([{"name": "pods/resize"}] if in_place else [])]
    return Server(
        {
            f"{APPS}/{kind.lower()}s/web": document,
            PODS: listed("Pod", *pods),
            "/api/v1": {"kind": "APIResourceList", "resources": resources},
            LIMIT_RANGES: listed("LimitRange"),
            QUOTAS: listed("ResourceQuota"),
        }
    )


def resize(at: Server, kind: str = "StatefulSet", *sizes: RequestedSize, wall: float = 0.0) -> ScaleOutcome:
    resizing = Resizing(sizes or (HALF,), 0.1, in_place=True, up=True, down=True, managers=())
    write = PendingWrite("sizes", TargetReference("apps/v1", kind, "shop", "web"), 0, 60.0, "why", resizing=resizing)
    attempt = ResizeAttempt(at, at, lambda group, name: find_resource(BUILT_IN, group, name), lambda: wall)
    return attempt(write, SendingTerms(lambda: None, lambda: True, Fence(5.0, lambda _: True)))
