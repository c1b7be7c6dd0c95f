"""README's own commands, as a new user runs them: copied from the page, with Prometheus where they say it is."""

from __future__ import annotations

import json
import re
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import pytest
import yaml

from tests.e2e.controlplane.cluster import KubectlError
from tests.e2e.controlplane.pod_metrics import each
from tests.e2e.support.figures import state
from tests.e2e.support.installed import APIS, REGISTERED
from tests.e2e.support.readers import namespaces, prometheus_at, shell, small_deployment
from tests.helm.chart import helm
from tests.support.checkout import CHECKOUT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.e2e.controlplane.client import Document
    from tests.e2e.controlplane.cluster import Cluster
    from tests.e2e.controlplane.pod_metrics import PodMetrics
    from tests.e2e.support.readers import Shell

__all__ = ["shell", "state"]

pytestmark = [pytest.mark.needs_pods, pytest.mark.timeout(300)]

README: Final = (CHECKOUT / "README.md").read_text()
NAMESPACE: Final = "monitoring"
CHAT: Final = "chat"
CONNECTIONS: Final = 9000.0
RAW: Final = f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/{CHAT}/pods/*/websocket_connections"
_START_SECONDS: Final = 120.0
NOT_HERE: Final = {
    "logs": "the stand-in for the kubelet serves no logs",
    "port-forward": "the stand-in for the kubelet forwards no ports, and the command does not end",
}
"""Commands of the notes that cannot run here, and why."""


def install_command() -> str:
    """Return README's `helm install`, without the line breaks."""
    (found,) = re.findall(r"^ {4}(helm install (?:.*\\\n)*.*)$", README, re.MULTILINE)
    return re.sub(r"\\\n\s*", "", found)


def doctor_command() -> str:
    """Return README's `tidewatch-adapter doctor`."""
    (found,) = re.findall(r"^ {4}(tidewatch-adapter doctor [^#\n]*\S)", README, re.MULTILINE)
    return str(found)


def autoscaler() -> Document:
    """Return README's HPA."""
    blocks = re.findall(r"^```yaml\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    (found,) = [block for block in map(yaml.safe_load, blocks) if block["kind"] == "HorizontalPodAutoscaler"]
    return dict(found)


def prometheus_of_the_command() -> str:
    """Return the address of Prometheus that README's command names."""
    return str(re.findall(r"prometheus\.url=(\S+)", install_command())[0])


def commands_of(notes: str) -> list[str]:
    """Return the commands that the notes tell the user to run, reduced to those that can run here."""
    found = re.findall(r"^ {5}(kubectl .*)$", notes, re.MULTILINE)
    return [command for command in found if not NOT_HERE.keys() & set(command.split())]


def values(cluster: Cluster) -> set[tuple[str, str]]:
    """Return metric and value of each pod, as `kubectl get --raw` prints them; nothing if the command fails."""
    try:
        printed = cluster.kubectl("get", "--raw", RAW)
    except KubectlError:
        return set()
    return {(item["metric"]["name"], item["value"]) for item in json.loads(printed)["items"]}


def test_readme_s_commands_give_readme_s_hpa_its_metric_and_the_notes_say_what_works_next(
    cluster: Cluster,
    pod_metrics: PodMetrics,
    shell: Shell,
    state: Callable[[str, str], None],
    tmp_path: Path,
) -> None:
    with (
        namespaces(cluster, NAMESPACE, CHAT),
        prometheus_at(cluster, pod_metrics, tmp_path / "prometheus", prometheus_of_the_command()),
    ):
        cluster.apply(small_deployment(CHAT, "gateway"))
        cluster.wait_until_ready(CHAT, "gateway")
        pod_metrics.of_pods("websocket_connections", CHAT, "app=gateway", each(CONNECTIONS))
        began = time.monotonic()
        installed = shell(install_command())
        try:
            assert (installed.returncode, installed.stderr) == (0, "")
            cluster.apply(autoscaler())
            served = cluster.wait_for("README's metric", lambda: values(cluster), _START_SECONDS)
            state("from README's helm install to the value in kubectl get --raw", f"{time.monotonic() - began:.1f} s")
            assert served == {("websocket_connections", "9k")}
            notes = installed.stdout.partition("\nNOTES:\n")[2]
            commands = commands_of(notes)
            assert len(commands) == 8
            failed = {command: done.stderr for command in commands if (done := shell(command)).returncode}
            assert failed == {}
            found = shell(doctor_command())
            assert found.returncode == 0, found.stdout + found.stderr
            path = f"/apis/autoscaling/v2/namespaces/{CHAT}/horizontalpodautoscalers/gateway"
            cluster.wait_for("README's HPA", lambda: current_of(cluster.client.get(path)) == "9k")
        finally:
            pod_metrics.forget_pods("websocket_connections", CHAT, "app=gateway")
            uninstall(cluster)


def test_an_installation_that_failed_blocks_no_namespace_once_the_doctor_has_removed_what_it_left(
    cluster: Cluster, namespace: str, shell: Shell
) -> None:
    with namespaces(cluster, NAMESPACE), nothing_left_behind(cluster):
        assert shell(f"{install_command()} --set replicas=1 --set extraArguments={{--no-such-flag}}").returncode == 0
        path = f"/api/v1/namespaces/{NAMESPACE}"
        cluster.wait_for("the crash", lambda: [pod for pod in cluster.pods(NAMESPACE) if restarts_of(pod)])
        cluster.client.delete(path)
        cluster.client.delete(f"/api/v1/namespaces/{namespace}")
        cluster.wait_for("a namespace that cannot go", lambda: is_blocked(cluster, namespace))
        found = shell(f"tidewatch-adapter doctor --remove --kubeconfig {cluster.kubeconfig}")
        assert (found.returncode, found.stderr) == (0, "")
        assert all(f"ok: apiservice/{name}: removed: no pod is ready" in found.stdout for name in APIS)
        cluster.wait_for(
            "the end of the other namespace", lambda: not cluster.client.find(f"/api/v1/namespaces/{namespace}")
        )
        assert [name for name in APIS if cluster.client.find(f"{REGISTERED}/{name}")] == []


@contextmanager
def nothing_left_behind(cluster: Cluster) -> Iterator[None]:
    """Remove, at the end, the cluster-scoped objects of a release that Helm has forgotten with its namespace."""
    kinds = "clusterroles,clusterrolebindings,roles,rolebindings"
    try:
        yield
    finally:
        label = "app.kubernetes.io/instance=tidewatch"
        cluster.kubectl("delete", kinds, "--selector", label, "--namespace", "kube-system")


def restarts_of(pod: Document) -> int:
    return sum(one["restartCount"] for one in pod["status"].get("containerStatuses") or [])


def is_blocked(cluster: Cluster, namespace: str) -> bool:
    """Return whether the API server says that an APIService keeps it from deleting this namespace."""
    conditions = cluster.client.get(f"/api/v1/namespaces/{namespace}")["status"].get("conditions") or []
    failures = {one["type"] for one in conditions if one["status"] == "True"}
    return "NamespaceDeletionDiscoveryFailure" in failures


def current_of(autoscaler: Document) -> str:
    """Return the average value that an HPA read last; empty before it has read one."""
    metrics = autoscaler.get("status", {}).get("currentMetrics") or [{}]
    return str(metrics[0].get("pods", {}).get("current", {}).get("averageValue", ""))


def uninstall(cluster: Cluster) -> None:
    helm("uninstall", "tidewatch", "--ignore-not-found", "--namespace", NAMESPACE, kubeconfig=cluster.kubeconfig)
    assert [name for name in APIS if cluster.client.find(f"{REGISTERED}/{name}")] == []
