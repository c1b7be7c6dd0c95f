"""README's own commands, as a stranger runs them: copied out of the page, with Prometheus where they say it is.

The stand-in for the kubelet resolves names of headless Services, so the Service `prometheus` in `monitoring` is one.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import pytest
import yaml

from demo.machine.prometheus import Access, PrometheusProcess
from tests.e2e.controlplane.cluster import KubectlError
from tests.e2e.controlplane.pod_metrics import each
from tests.e2e.support.figures import state
from tests.e2e.support.installed import APIS, REGISTERED
from tests.helm.chart import helm
from tests.support.checkout import CHECKOUT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.e2e.controlplane.client import Document
    from tests.e2e.controlplane.cluster import Cluster
    from tests.e2e.controlplane.pod_metrics import PodMetrics
    from tests.e2e.controlplane.programs import Programs

__all__ = ["state"]

pytestmark = [pytest.mark.needs_pods, pytest.mark.timeout(300)]

README: Final = (CHECKOUT / "README.md").read_text()
NAMESPACE: Final = "monitoring"
CHAT: Final = "chat"
CONNECTIONS: Final = 9000.0
RAW: Final = f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/{CHAT}/pods/*/websocket_connections"
_START_SECONDS: Final = 120.0
NOT_HERE: Final = {
    "logs": "the stand-in for the kubelet has no door for logs",
    "port-forward": "the stand-in for the kubelet has no door for ports, and the command does not end",
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


@pytest.fixture
def shell(
    cluster: Cluster, kubernetes_programs: Programs, tmp_path: Path
) -> Callable[[str], subprocess.CompletedProcess[str]]:
    """Run a command line in the checkout as its owner would, with an administrator's ~/.kube/config."""
    kubectl = Path(kubernetes_programs["kubectl"])
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "config").symlink_to(cluster.kubeconfig)
    path = f"{kubectl.parent}:{sys.prefix}/bin:{os.environ['PATH']}"
    environment = {"PATH": path, "HOME": str(tmp_path), "no_proxy": "*"}

    def run(command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-c", command],
            cwd=CHECKOUT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run


@contextmanager
def namespaces(cluster: Cluster, *names: str) -> Iterator[None]:
    """Make namespaces of these names; the block ends when they are gone."""
    paths = [f"/api/v1/namespaces/{name}" for name in names]
    for name, path in zip(names, paths, strict=True):
        cluster.client.create("/api/v1/namespaces", {"metadata": {"name": name}})
        account = partial(cluster.client.find, f"{path}/serviceaccounts/default")
        cluster.wait_for(f"the service account of {name}", account)
    try:
        yield
    finally:
        for path in paths:
            cluster.client.delete(path)
        cluster.wait_for("the end of the namespaces", lambda: not any(map(cluster.client.find, paths)))


@contextmanager
def prometheus_of_the_command(cluster: Cluster, pod_metrics: PodMetrics, folder: Path) -> Iterator[None]:
    """Run a Prometheus at the address that README's command names."""
    url = urlsplit(re.findall(r"prometheus\.url=(\S+)", install_command())[0])
    name, namespace = str(url.hostname).split(".")
    folder.mkdir()
    prometheus = PrometheusProcess(folder, [], Access(host=cluster.network.host))
    prometheus.port = url.port or 80
    scrape = {"scrape_interval": "1s", "scrape_timeout": "1s"}
    prometheus.configure({"global": scrape, "scrape_configs": [pod_metrics.scrape_config()]})
    prometheus.start_again()
    labels = {"kubernetes.io/service-name": name}
    try:
        cluster.apply(
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": name, "namespace": namespace},
                "spec": {"clusterIP": "None", "ports": [{"port": url.port}]},
            },
            {
                "apiVersion": "discovery.k8s.io/v1",
                "kind": "EndpointSlice",
                "metadata": {"name": name, "namespace": namespace, "labels": labels},
                "addressType": "IPv4",
                "endpoints": [{"addresses": [cluster.network.host]}],
                "ports": [{"port": url.port}],
            },
        )
        yield
    finally:
        prometheus.stop()


def gateway() -> Document:
    """Return the Deployment that README's HPA scales."""
    labels = {"app": "gateway"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "gateway", "namespace": CHAT},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "gateway", "image": "gateway"}]},
            },
        },
    }


def commands_of(notes: str) -> list[str]:
    """Return the commands that the notes tell the user to run, those that can run here."""
    found = re.findall(r"^ {5}(kubectl .*)$", notes, re.MULTILINE)
    return [command for command in found if not NOT_HERE.keys() & set(command.split())]


def values(cluster: Cluster) -> set[tuple[str, str]]:
    """Return metric and value of each pod, as `kubectl get --raw` prints them; nothing where it fails."""
    try:
        printed = cluster.kubectl("get", "--raw", RAW)
    except KubectlError:
        return set()
    return {(item["metric"]["name"], item["value"]) for item in json.loads(printed)["items"]}


def test_readme_s_commands_give_readme_s_hpa_its_metric_and_the_notes_say_what_works_next(
    cluster: Cluster,
    pod_metrics: PodMetrics,
    shell: Callable[[str], subprocess.CompletedProcess[str]],
    state: Callable[[str, str], None],
    tmp_path: Path,
) -> None:
    with namespaces(cluster, NAMESPACE, CHAT), prometheus_of_the_command(cluster, pod_metrics, tmp_path / "prometheus"):
        cluster.apply(gateway())
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
    cluster: Cluster, namespace: str, shell: Callable[[str], subprocess.CompletedProcess[str]]
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
    """Remove, at the end, what a release whose namespace was deleted has outside of it: Helm has forgotten it."""
    kinds = "clusterroles,clusterrolebindings,roles,rolebindings"
    try:
        yield
    finally:
        label = "app.kubernetes.io/instance=tidewatch"
        cluster.kubectl("delete", kinds, "--selector", label, "--namespace", "kube-system")


def restarts_of(pod: Document) -> int:
    return sum(one["restartCount"] for one in pod["status"].get("containerStatuses") or [])


def is_blocked(cluster: Cluster, namespace: str) -> bool:
    """Tell whether the API server says that an APIService keeps it from deleting this namespace."""
    conditions = cluster.client.get(f"/api/v1/namespaces/{namespace}")["status"].get("conditions") or []
    failures = {one["type"] for one in conditions if one["status"] == "True"}
    return "NamespaceDeletionDiscoveryFailure" in failures


def current_of(autoscaler: Document) -> str:
    """Return the average value that an HPA has read last; empty before it has one."""
    metrics = autoscaler.get("status", {}).get("currentMetrics") or [{}]
    return str(metrics[0].get("pods", {}).get("current", {}).get("averageValue", ""))


def uninstall(cluster: Cluster) -> None:
    helm("uninstall", "tidewatch", "--ignore-not-found", "--namespace", NAMESPACE, kubeconfig=cluster.kubeconfig)
    assert [name for name in APIS if cluster.client.find(f"{REGISTERED}/{name}")] == []
