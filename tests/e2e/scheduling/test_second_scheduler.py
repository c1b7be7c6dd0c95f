"""The second scheduler of the chart: the unmodified program with the rendered configuration and rights."""

from __future__ import annotations

import base64
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import yaml

from demo.machine.ports import free_port
from demo.machine.processes import start
from tests.helm.chart import component_of, render
from tests.helm.nodes import NODE_CASES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.e2e.controlplane.client import Document
    from tests.e2e.controlplane.cluster import Cluster
    from tests.helm.chart import Release

NAME: Final = "tidewatch-scheduler"
RIGHTS: Final = ("ServiceAccount", "Role", "RoleBinding", "ClusterRoleBinding")
BINDINGS: Final = "/apis/rbac.authorization.k8s.io/v1"


@contextmanager
def granted(cluster: Cluster, release: Release) -> Iterator[None]:
    """Give the scheduler's account its rights, and remove those that outlive the namespace."""
    rights = [one for one in release.objects if component_of(one) == "scheduler" and one["kind"] in RIGHTS]
    cluster.apply(*rights)
    try:
        yield
    finally:
        for one in rights:
            name = one["metadata"]["name"]
            if one["kind"] == "ClusterRoleBinding":
                cluster.client.delete(f"{BINDINGS}/clusterrolebindings/{name}")
            elif one["metadata"]["namespace"] == "kube-system":
                cluster.client.delete(f"{BINDINGS}/namespaces/kube-system/rolebindings/{name}")


def kubeconfig(cluster: Cluster, namespace: str, account: str, path: Path) -> Path:
    """Write a kubeconfig that calls the API server with the token of a service account."""
    reached = {"server": cluster.url, "certificate-authority": str(cluster.ca_file)}
    user = {"token": cluster.service_account_token(namespace, account)}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "e2e", "cluster": reached}],
        "users": [{"name": "e2e", "user": user}],
        "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": "e2e"}}],
        "current-context": "e2e",
    }
    path.write_text(yaml.safe_dump(document))
    return path


def command_of(program: Path, configuration: Document, account: Path, folder: Path) -> list[str]:
    """Return the command of the scheduler, which also verifies its own callers with the rights of this account."""
    file = folder / "scheduler.yaml"
    file.write_text(yaml.safe_dump(configuration))
    identity = (f"--{kind}-kubeconfig={account}" for kind in ("authentication", "authorization"))
    return [str(program), f"--config={file}", *identity, "--bind-address=127.0.0.1", f"--secure-port={free_port()}"]


def deployment(namespace: str, scheduler: str) -> Document:
    """Return a Deployment whose pods wait for this scheduler."""
    labels = {"app": "web"}
    container = {"name": "main", "image": "shop/web:1", "resources": {"requests": {"cpu": "10m"}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"schedulerName": scheduler, "containers": [container]},
            },
        },
    }


def written_certificates(release: Release, mounted: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Write what the chart has made to files, as its volumes do; return the current path of each mounted file."""
    found = {}
    for key, path in mounted.items():
        secret = "serving" if key == "caFile" else "client"
        data = release.one("Secret", f"tidewatch-nodes-{secret}")["data"]
        file = folder / f"{secret}-{Path(path).name}"
        file.write_bytes(base64.b64decode(data[Path(path).name]))
        found[key] = str(file)
    return found


def test_its_rights_suffice_and_without_the_extender_it_schedules_all_the_same(
    cluster: Cluster, namespace: str, kubernetes_programs: Mapping[str, Path], tmp_path: Path
) -> None:
    release = render(NODE_CASES["a second scheduler"], namespace=namespace)
    configuration = yaml.safe_load(release.one("ConfigMap", NAME)["data"]["scheduler.yaml"])
    # Nobody listens there, as when Tidewatch is down.
    (extender,) = configuration["extenders"]
    extender["urlPrefix"] = f"https://127.0.0.1:{free_port()}/scheduler"
    extender["tlsConfig"] = written_certificates(release, extender["tlsConfig"], tmp_path)
    with ExitStack() as stack:
        stack.enter_context(granted(cluster, release))
        account = kubeconfig(cluster, namespace, release.scheduler["serviceAccountName"], tmp_path / "kubeconfig")
        configuration["clientConnection"] = {"kubeconfig": str(account)}
        cluster.apply(deployment(namespace, "tidewatch"))
        log = tmp_path / "scheduler.log"
        command = command_of(kubernetes_programs["kube-scheduler"], configuration, account, tmp_path)
        stack.enter_context(start(command, log_path=log, name=NAME))
        pods = cluster.wait_until_ready(namespace, "web")
        lease = cluster.client.get(f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{NAME}")
        events = cluster.client.items(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")
    assert all(pod["spec"]["nodeName"] for pod in pods)
    assert lease["spec"]["holderIdentity"]
    assert {one["reportingController"] for one in events if one["reason"] == "Scheduled"} == {"tidewatch"}
    written = log.read_text()
    assert "ignorable" in written
    assert "forbidden" not in written
