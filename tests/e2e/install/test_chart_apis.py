"""The chart does not take over an API that belongs to somebody else."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.e2e.install.chart_values import RESOURCE
from tests.helm.cases import RULE, resource_rules
from tests.helm.chart import NAME, NAMESPACE, HelmError, render

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

EXTERNAL = "v1beta1.external.metrics.k8s.io"
GROUP = "/apis/apiregistration.k8s.io/v1"


def apiservice(
    service: dict[str, str] | None, annotations: dict[str, str] | None = None, name: str = EXTERNAL
) -> dict[str, Any]:
    version, _, group = name.partition(".")
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": {"group": group, "version": version, "service": service},
    }


def of_release(namespace: str, name: str) -> dict[str, str]:
    return {"meta.helm.sh/release-namespace": namespace, "meta.helm.sh/release-name": name}


@contextmanager
def cluster(folder: Path, registered: dict[str, Any] | None) -> Iterator[Path]:
    """Answer Helm's requests when a template looks an APIService up; yield a kubeconfig."""
    common = {"namespaced": False, "verbs": ["get"], "singularName": ""}
    resource = {"name": "apiservices", "kind": "APIService", **common}
    namespaces = {"name": "namespaces", "kind": "Namespace", **common}
    versions = [{"groupVersion": "apiregistration.k8s.io/v1", "version": "v1"}]
    answers: dict[str, dict[str, Any]] = {
        "/version": {"major": "1", "minor": "36", "gitVersion": "v1.36.0"},
        "/api": {"kind": "APIVersions", "versions": ["v1"]},
        "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": [namespaces]},
        "/apis": {"kind": "APIGroupList", "groups": [{"name": "apiregistration.k8s.io", "versions": versions}]},
        GROUP: {"kind": "APIResourceList", "groupVersion": "apiregistration.k8s.io/v1", "resources": [resource]},
        "/api/v1/namespaces/kube-system": {"kind": "Namespace", "metadata": {"name": "kube-system"}},
    }
    if registered:
        answers[f"{GROUP}/apiservices/{registered['metadata']['name']}"] = registered

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            answer = answers.get(path, {"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404})
            body = json.dumps({"apiVersion": "v1"} | answer).encode()
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
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_address[1]}"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "users": [{"name": "u", "user": {}}],
        }
        (folder / "config").write_text(yaml.safe_dump(config))
        try:
            yield folder / "config"
        finally:
            server.shutdown()
            thread.join()


KEDA = {"namespace": "keda", "name": "keda-operator-metrics-apiserver"}
FOREIGN = {
    "a service": (apiservice(KEDA), f"{EXTERNAL} belongs to the service keda/keda-operator-metrics-apiserver, and"),
    "a release": (
        apiservice(KEDA, of_release("keda", "scaling")),
        "keda-operator-metrics-apiserver, of the Helm release keda/scaling, and",
    ),
    "the API server": (apiservice(None), f"{EXTERNAL} belongs to kube-apiserver itself, and"),
}
OURS = {
    "our service": apiservice({"namespace": NAMESPACE, "name": NAME}),
    "an earlier name of this release": apiservice(KEDA, of_release(NAMESPACE, "tidewatch")),
}


@pytest.mark.parametrize(("registered", "message"), FOREIGN.values(), ids=FOREIGN)
def test_an_api_that_is_somebody_else_s_is_not_taken(registered: dict[str, Any], message: str, tmp_path: Path) -> None:
    with cluster(tmp_path, registered) as config:
        with pytest.raises(HelmError) as refused:
            render({}, "--dry-run=server", kubeconfig=config)
        assert message in str(refused.value)
        assert "leave it there with --set apiServices.external.v1beta1=false" in str(refused.value)
        left = render({"apiServices": {"external": {"v1beta1": False}}}, "--dry-run=server", kubeconfig=config)
        taken = render({"apiServices": {"force": True}}, "--dry-run=server", kubeconfig=config)
    assert (len(left.all("APIService")), len(taken.all("APIService"))) == (2, 3)


@pytest.mark.parametrize("registered", OURS.values(), ids=OURS)
def test_an_api_that_is_ours_already_stays_ours(registered: dict[str, Any], tmp_path: Path) -> None:
    with cluster(tmp_path, registered) as config:
        assert len(render({}, "--dry-run=server", kubeconfig=config).all("APIService")) == 3


METRICS_SERVER = {"namespace": "kube-system", "name": "metrics-server"}
TAKING = {
    "as it is": {},
    "by force": {"apiServices": {"force": True}},
    "without looking": {"apiServices": {"force": True, "resource": {"unchecked": True}}},
    "by rules of one's own": {
        "rules": {"existing": "mine", "resource": {}},
        "apiServices": {"resource": {"v1beta1": True}},
    },
}


OWNERS = [{}, of_release("kube-system", "ms"), of_release(NAMESPACE, "tidewatch")]
"""Annotations by which Helm would tell who owns the registration of another server."""


@pytest.mark.parametrize("annotations", OWNERS)
@pytest.mark.parametrize("values", TAKING.values(), ids=TAKING)
def test_the_resource_metrics_of_another_server_are_never_taken(
    values: dict[str, Any], annotations: dict[str, str], tmp_path: Path
) -> None:
    given = {"rules": {"resource": resource_rules()}} | values
    with (
        cluster(tmp_path, apiservice(METRICS_SERVER, annotations, RESOURCE)) as config,
        pytest.raises(HelmError) as refused,
    ):
        render(given, "--dry-run=server", kubeconfig=config)
    assert f"the APIService {RESOURCE} belongs to the service kube-system/metrics-server, " in str(refused.value)
    assert f"remove that server first (kubectl delete apiservice {RESOURCE}" in str(refused.value)
    assert "rules.resource={}" in str(refused.value)


LEAVING = {
    "no resource rules": {"rules": {"custom": [RULE]}},
    "no registration": {"rules": {"resource": resource_rules()}, "apiServices": {"resource": {"v1beta1": False}}},
}


@pytest.mark.parametrize("annotations", OWNERS)
@pytest.mark.parametrize("values", LEAVING.values(), ids=LEAVING)
def test_without_a_claim_to_them_the_chart_installs_beside_another_server(
    values: dict[str, Any], annotations: dict[str, str], tmp_path: Path
) -> None:
    with cluster(tmp_path, apiservice(METRICS_SERVER, annotations, RESOURCE)) as config:
        assert len(render(values, "--dry-run=server", kubeconfig=config).all("APIService")) == 3


@pytest.mark.parametrize(
    "registered",
    [None, apiservice({"namespace": NAMESPACE, "name": NAME}, name=RESOURCE)],
    ids=["nobody's", "ours already"],
)
def test_resource_metrics_that_are_nobody_else_s_are_registered(
    registered: dict[str, Any] | None, tmp_path: Path
) -> None:
    values = {"rules": {"resource": resource_rules()}}
    with cluster(tmp_path, registered) as config:
        release = render(values, "--dry-run=server", kubeconfig=config)
    assert release.one("APIService", RESOURCE)["spec"]["service"]["name"] == NAME
    assert len(release.all("APIService")) == 4
