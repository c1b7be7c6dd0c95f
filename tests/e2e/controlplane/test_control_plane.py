"""The suite's own basis: a control plane that runs, a node that behaves as a real one, a network with pods on it.

Nothing here is about the adapter; all other tests rely on what these tests show.
"""

from __future__ import annotations

import base64
import os
import signal
from functools import partial
from typing import TYPE_CHECKING

import pytest

from demo.machine.certificates import Authority
from tests.e2e.controlplane.client import ApiError
from tests.e2e.controlplane.cluster import KubectlError, process_of
from tests.e2e.controlplane.extension import GROUP, PORT
from tests.e2e.controlplane.pod_metrics import shared
from tests.e2e.support.installed import namespace_of_its_own

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.controlplane.client import Document
    from tests.e2e.controlplane.cluster import Cluster
    from tests.e2e.controlplane.pod_metrics import PodMetrics
    from tests.support.prometheus import ScrapedPrometheus

EXTENSION = "extension"
WHO = f"/apis/{GROUP}/v1/pods/any"


def deployment(namespace: str, name: str, replicas: int = 1, **pod: object) -> Document:
    labels = {"app": name}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "main", "image": "shop/web:1"}], **pod},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


def extension_container() -> Document:
    return {
        "name": "main",
        "image": "registry.example/e2e-extension:1@sha256:0123",
        "env": [
            {"name": "OWN_ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            {"name": "GREETING", "value": "at $(OWN_ADDRESS), $(NOBODY), $$(OWN_ADDRESS)"},
        ],
        "ports": [{"name": "https", "containerPort": PORT}],
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "https", "scheme": "HTTPS"}, "periodSeconds": 1},
        "securityContext": {
            "readOnlyRootFilesystem": True,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "serving", "mountPath": "/etc/extension/serving", "readOnly": True},
            {"name": "settings", "mountPath": "/etc/extension/settings"},
            {"name": "scratch", "mountPath": "/tmp"},
        ],
    }


def extension_objects(namespace: str, authority: Authority) -> list[Document]:
    def metadata(name: str) -> Document:
        return {"name": name, "namespace": namespace}

    pair = authority.server([f"{EXTENSION}.{namespace}.svc"], [])
    secret = {"tls.crt": pair.certificate_file.read_text(), "tls.key": pair.key_file.read_text()}
    volumes = [
        {"name": "serving", "secret": {"secretName": "serving", "defaultMode": 0o440}},
        {"name": "settings", "configMap": {"name": "settings"}},
        {"name": "scratch", "emptyDir": {"medium": "Memory"}},
    ]
    security = {"runAsNonRoot": True, "runAsUser": 10001, "fsGroup": 10001}
    running = deployment(
        namespace, EXTENSION, 2, containers=[extension_container()], volumes=volumes, securityContext=security
    )
    service = {"selector": {"app": EXTENSION}, "ports": [{"name": "https", "port": 443, "targetPort": "https"}]}
    aggregated = {
        "group": GROUP,
        "version": "v1",
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
        "service": metadata(EXTENSION),
        "caBundle": base64.b64encode(authority.ca_file.read_bytes()).decode(),
    }
    return [
        {"apiVersion": "v1", "kind": "Secret", "metadata": metadata("serving"), "stringData": secret},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata("settings"), "data": {"colour": "green"}},
        running,
        {"apiVersion": "v1", "kind": "Service", "metadata": metadata(EXTENSION), "spec": service},
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": f"v1.{GROUP}"},
            "spec": aggregated,
        },
    ]


@pytest.fixture(scope="module")
def extension_namespace(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the namespace of two pods of an extension API server, behind an APIService that is Available."""
    path = f"/apis/apiregistration.k8s.io/v1/apiservices/v1.{GROUP}"
    with namespace_of_its_own(cluster, EXTENSION) as namespace:
        cluster.apply(*extension_objects(namespace, Authority(tmp_path_factory.mktemp("extension") / "ca")))
        cluster.wait_until_ready(namespace, EXTENSION)
        cluster.wait_for("the APIService", lambda: is_available(cluster.client.get(path)))
        yield namespace
        cluster.client.delete(path)


@pytest.fixture
def extension(cluster: Cluster, extension_namespace: str) -> list[Document]:
    """Return the current pods of the extension: each test leaves both Ready, but may have replaced them."""
    return cluster.wait_until_ready(extension_namespace, EXTENSION)


def is_available(service: Document) -> bool:
    conditions = service.get("status", {}).get("conditions") or []
    return any(condition["type"] == "Available" and condition["status"] == "True" for condition in conditions)


def answers(cluster: Cluster, count: int = 20) -> list[Document]:
    return [cluster.client.get(WHO) for _ in range(count)]


def test_kubectl_speaks_to_the_server_of_the_same_version(cluster: Cluster) -> None:
    lines = cluster.kubectl("version").splitlines()
    versions = {line.partition(": ")[0]: line.partition(": ")[2] for line in lines}
    assert versions["Client Version"] == versions["Server Version"]
    assert versions["Server Version"].startswith(f"v{cluster.plane.options.kubernetes}.")


def test_a_user_may_do_what_a_role_allows_and_nothing_else(cluster: Cluster, namespace: str) -> None:
    user = cluster.user("ann", ["readers"])
    with pytest.raises(KubectlError, match='User "ann" cannot list resource "pods"'):
        cluster.kubectl("get", "pods", "-n", namespace, user=user)
    cluster.kubectl("create", "rolebinding", "readers", "--clusterrole=view", "--group=readers", "-n", namespace)
    cluster.wait_for("the binding", lambda: user.client.get(f"/api/v1/namespaces/{namespace}/pods"))
    with pytest.raises(ApiError, match="cannot list resource"):
        user.client.get("/api/v1/namespaces/default/pods")


def test_ordinary_pods_become_ready_and_disappear_when_they_are_deleted(cluster: Cluster, namespace: str) -> None:
    cluster.apply(deployment(namespace, "web", 3))
    pods = cluster.wait_until_ready(namespace, "web")
    assert len({pod["status"]["podIP"] for pod in pods}) == 3
    cluster.kubectl("scale", "deployment", "web", "--replicas=1", "-n", namespace)
    cluster.wait_until_ready(namespace, "web")
    path = f"/api/v1/namespaces/{namespace}/pods"
    cluster.wait_for("the others' end", lambda: len(cluster.client.items(path)) == 1)


def test_an_annotation_keeps_an_ordinary_pod_from_being_ready(cluster: Cluster, namespace: str) -> None:
    cluster.apply(deployment(namespace, "web"))
    (pod,) = cluster.wait_until_ready(namespace, "web")
    name = pod["metadata"]["name"]
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/web"
    cluster.kubectl("annotate", "pod", name, "e2e.tidewatch.io/ready=false", "-n", namespace)
    cluster.wait_for("unreadiness", lambda: not cluster.client.get(path)["status"].get("readyReplicas"))
    cluster.kubectl("annotate", "pod", name, "e2e.tidewatch.io/ready-", "-n", namespace)
    assert cluster.wait_until_ready(namespace, "web")


def test_a_namespace_disappears_when_it_is_deleted(cluster: Cluster, namespace: str) -> None:
    # The namespace controller looks again after half of the longest grace period.
    cluster.apply(deployment(namespace, "web", terminationGracePeriodSeconds=1))
    cluster.wait_until_ready(namespace, "web")
    path = f"/api/v1/namespaces/{namespace}"
    cluster.client.delete(path)
    cluster.wait_for("its end", lambda: cluster.client.find(path) is None)


def test_the_autoscaler_says_that_there_is_no_metrics_api(cluster: Cluster, namespace: str) -> None:
    metric = {"type": "External", "external": {"metric": {"name": "m"}, "target": {"type": "Value", "value": "1"}}}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    autoscaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {"scaleTargetRef": target, "minReplicas": 0, "maxReplicas": 5, "metrics": [metric]},
    }
    cluster.apply(deployment(namespace, "web"), autoscaler)
    path = f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers/web"

    def reasons() -> set[str]:
        return {condition["reason"] for condition in cluster.client.get(path)["status"].get("conditions") or []}

    cluster.wait_for("the autoscaler's verdict", lambda: "FailedGetExternalMetric" in reasons(), why_not=reasons)


def test_the_api_server_comes_back_with_all_that_it_knew(cluster: Cluster, namespace: str) -> None:
    cluster.apply(deployment(namespace, "web"))
    cluster.wait_until_ready(namespace, "web")
    cluster.restart_api_server()
    cluster.kubectl("scale", "deployment", "web", "--replicas=2", "-n", namespace)
    assert len(cluster.wait_until_ready(namespace, "web")) == 2


def test_prometheus_sees_the_series_of_the_pods_that_exist(
    cluster: Cluster, namespace: str, pod_metrics: PodMetrics, prometheus: ScrapedPrometheus
) -> None:
    cluster.apply(deployment(namespace, "web", 2))
    cluster.wait_until_ready(namespace, "web")
    pod_metrics.of_pods("connections", namespace, "app=web", shared(300))
    expected = {pod["metadata"]["name"]: 150.0 for pod in cluster.pods(namespace)}
    cluster.wait_for("the series", lambda: values_of(prometheus, f'connections{{namespace="{namespace}"}}') == expected)
    pod_metrics.forget_pods("connections", namespace, "app=web")


def values_of(prometheus: ScrapedPrometheus, expression: str) -> dict[str, float]:
    result = prometheus.query(expression)
    return {sample["metric"]["pod"]: float(sample["value"][1]) for sample in result}


@pytest.mark.needs_pods
def test_replicas_of_a_pod_that_runs_answer_through_the_aggregator(cluster: Cluster, extension: list[Document]) -> None:
    names = {pod["metadata"]["name"] for pod in extension}
    assert len({pod["status"]["podIP"] for pod in extension}) == len(names) == 2
    seen: set[str] = set()

    def everybody_answered() -> bool:
        seen.update(answer["pod"] for answer in answers(cluster))
        return seen == names

    cluster.wait_for("answers of both", everybody_answered)
    groups = [["X-Remote-Group", "system:authenticated"], ["X-Remote-Group", "system:masters"]]
    assert cluster.client.get(WHO)["remote"] == [*groups, ["X-Remote-User", "e2e-admin"]]


@pytest.mark.needs_pods
def test_a_pod_that_runs_finds_what_its_specification_promises(cluster: Cluster, extension: list[Document]) -> None:
    found = cluster.client.get(WHO)
    (pod,) = [pod for pod in extension if pod["metadata"]["name"] == found["pod"]]
    address = pod["status"]["podIP"]
    environment = found["environment"]
    assert environment["GREETING"] == f"at {address}, $(NOBODY), $(OWN_ADDRESS)"
    assert environment["KUBERNETES_SERVICE_HOST"] == "10.96.0.1"
    # A service of the namespace, as Docker's links told it.
    assert environment["EXTENSION_SERVICE_PORT_HTTPS"] == "443"
    assert "HOME" not in environment
    assert "/" not in found["writable"]
    assert "/tmp" in found["writable"]
    assert found["settings"] == {"colour": "green"}
    assert found["account"]["namespace"] == pod["metadata"]["namespace"]
    account = cluster.client_with_token(found["account"]["token"])
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    user = account.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", review)["status"]["userInfo"]
    assert user["username"] == f"system:serviceaccount:{pod['metadata']['namespace']}:default"
    assert user["extra"]["authentication.kubernetes.io/pod-name"] == [found["pod"]]


@pytest.mark.needs_pods
def test_a_pod_that_runs_sees_a_changed_configuration(cluster: Cluster, extension: list[Document]) -> None:
    namespace = extension[0]["metadata"]["namespace"]
    path = f"/api/v1/namespaces/{namespace}/configmaps/settings"

    def all_see(settings: dict[str, str]) -> bool:
        return all(answer["settings"] == settings for answer in answers(cluster))

    for data in ({"colour": None, "shape": "round"}, {"colour": "green", "shape": None}):
        cluster.client.merge(path, {"data": data})
        cluster.wait_for("the new settings", partial(all_see, {key: value for key, value in data.items() if value}))


@pytest.mark.needs_pods
def test_a_process_that_crashes_is_started_again_at_the_same_address(
    cluster: Cluster, extension: list[Document]
) -> None:
    before = extension[0]
    path = f"/api/v1/namespaces/{before['metadata']['namespace']}/pods/{before['metadata']['name']}"
    restarts = before["status"]["containerStatuses"][0]["restartCount"]
    os.kill(process_of(before), signal.SIGKILL)

    def restarted() -> Document | None:
        pod = cluster.client.get(path)
        (status,) = pod["status"]["containerStatuses"]
        return pod if status["restartCount"] == restarts + 1 and status["ready"] else None

    after = cluster.wait_for("the restart", restarted)
    (status,) = after["status"]["containerStatuses"]
    assert status["lastState"]["terminated"]["exitCode"] == 137
    assert after["status"]["podIP"] == before["status"]["podIP"]


@pytest.mark.needs_pods
def test_a_deleted_pod_gets_sigterm_and_is_replaced(cluster: Cluster, extension: list[Document]) -> None:
    gone = extension[0]
    namespace, name = gone["metadata"]["namespace"], gone["metadata"]["name"]
    pid = process_of(gone)
    cluster.client.delete(f"/api/v1/namespaces/{namespace}/pods/{name}")
    path = f"/api/v1/namespaces/{namespace}/pods/{name}"
    cluster.wait_for("its end", lambda: cluster.client.find(path) is None)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert len(cluster.wait_until_ready(namespace, EXTENSION)) == 2


@pytest.mark.needs_pods
def test_a_pod_whose_specification_is_not_known_in_full_never_starts(cluster: Cluster, namespace: str) -> None:
    container = {**extension_container(), "volumeMounts": [], "stdin": True}
    cluster.apply(deployment(namespace, EXTENSION, containers=[container]))

    def complaint() -> str | None:
        statuses = [status for pod in cluster.pods(namespace) for status in pod["status"].get("containerStatuses", [])]
        return statuses[0]["state"]["waiting"]["message"] if statuses else None

    assert cluster.wait_for("a refusal", complaint) == "container main: not supported here: stdin"


@pytest.mark.needs_pods
def test_the_aggregator_goes_on_when_its_authority_is_rotated(cluster: Cluster, extension: list[Document]) -> None:
    assert extension
    path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
    key = "requestheader-client-ca-file"
    before = cluster.client.get(path)["data"][key]
    newest = cluster.rotate_request_header_ca().ca_file.read_text().strip()
    assert newest not in before
    assert newest in cluster.client.get(path)["data"][key]
    assert cluster.client.get(WHO)


@pytest.mark.needs_pods
def test_every_request_of_a_pod_is_audited_with_the_pods_name_its_answer_and_time(
    cluster: Cluster, extension: list[Document]
) -> None:
    answer = cluster.client.get(WHO)
    token = answer["account"]["token"]
    user = f"system:serviceaccount:{extension[0]['metadata']['namespace']}:default"
    with pytest.raises(ApiError, match="forbidden"):
        cluster.client_with_token(token).get("/api/v1/secrets")
    (event,) = [event for event in cluster.audit_events() if event.user == user and event.resource == "secrets"]
    assert (event.verb, event.code, event.pod) == ("list", 403, answer["pod"])
    assert event.seconds > 0
