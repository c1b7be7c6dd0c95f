"""A server that answers Helm when a template looks an object up in the cluster."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_KINDS: Final = {
    "v1": {"Namespace": ("namespaces", False), "Secret": ("secrets", True)},
    "apiregistration.k8s.io/v1": {"APIService": ("apiservices", False)},
    "rbac.authorization.k8s.io/v1": {"Role": ("roles", True), "ClusterRoleBinding": ("clusterrolebindings", False)},
}
"""Plural of each kind that the chart looks up, and whether its objects are in namespaces."""


def of_release(namespace: str, name: str) -> dict[str, str]:
    """Return the annotations by which Helm knows the objects of a release."""
    return {"meta.helm.sh/release-namespace": namespace, "meta.helm.sh/release-name": name}


@contextmanager
def cluster(folder: Path, *objects: dict[str, Any] | None) -> Iterator[Path]:
    """Answer requests for these objects; yield a kubeconfig."""
    answers = _discovery() | {"/api/v1/namespaces/kube-system": {"metadata": {"name": "kube-system"}}}
    answers |= {_path(one): one for one in objects if one is not None}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            answer = answers.get(path, {"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404})
            body = json.dumps({"apiVersion": "v1", "kind": "Namespace"} | answer).encode()
            self.send_response(200 if path in answers else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *_: object) -> None:  # noqa: A002 - the name that it has there
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield _kubeconfig(folder / "config", f"http://127.0.0.1:{server.server_address[1]}")
        finally:
            server.shutdown()
            thread.join()


def _base(api_version: str) -> str:
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


def _path(one: dict[str, Any]) -> str:
    plural, _ = _KINDS[one["apiVersion"]][one["kind"]]
    namespace = one["metadata"].get("namespace")
    inside = f"/namespaces/{namespace}" if namespace else ""
    return f"{_base(one['apiVersion'])}{inside}/{plural}/{one['metadata']['name']}"


def _discovery() -> dict[str, dict[str, Any]]:
    groups = [version.partition("/") for version in _KINDS if "/" in version]
    found: dict[str, dict[str, Any]] = {
        "/version": {"major": "1", "minor": "36", "gitVersion": "v1.36.0"},
        "/api": {"kind": "APIVersions", "versions": ["v1"]},
        "/apis": {
            "kind": "APIGroupList",
            "groups": [
                {"name": group, "versions": [{"groupVersion": f"{group}/{version}", "version": version}]}
                for group, _, version in groups
            ],
        },
    }
    for version, kinds in _KINDS.items():
        resources = [
            {"name": plural, "kind": kind, "namespaced": namespaced, "verbs": ["get"], "singularName": ""}
            for kind, (plural, namespaced) in kinds.items()
        ]
        found[_base(version)] = {"kind": "APIResourceList", "groupVersion": version, "resources": resources}
    return found


def _kubeconfig(file: Path, server: str) -> Path:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {}}],
    }
    file.write_text(yaml.safe_dump(config))
    return file
