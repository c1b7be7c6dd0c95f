"""The commands of `sizes -o patch`, run by kubectl as they are printed."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any, Final

from recommender.commands.sizes.size_patches import as_patches
from recommender.commands.sizes.size_reading import Sizes
from recommender.kinds.resources.size_record import ResourceSize, SizeRecord, SizeStatus
from recommender.kinds.resources.sizing import SizingOptions
from recommender.kinds.resources.workloads import SizedWorkload
from recommender.running.usage.usage_window import SizeWindow

if TYPE_CHECKING:
    from tests.e2e.controlplane.client import Document
    from tests.e2e.controlplane.cluster import Cluster

MIB: Final = 2**20
STATED: Final = {"requests": {"cpu": "1", "memory": "256Mi"}, "limits": {"cpu": "2", "memory": "256Mi"}}
RESOURCES: Final = {
    "Deployment": ("apps/v1", "/apis/apps/v1", "deployments"),
    "StatefulSet": ("apps/v1", "/apis/apps/v1", "statefulsets"),
    "DaemonSet": ("apps/v1", "/apis/apps/v1", "daemonsets"),
    "CronJob": ("batch/v1", "/apis/batch/v1", "cronjobs"),
}


def workload(kind: str) -> Document:
    """Return an object that has no pods."""
    labels = {"app": kind.lower()}
    containers = [{"name": name, "image": "none", "resources": STATED} for name in ("app", "sidecar")]
    pod: Document = {"nodeSelector": {"nowhere": "yes"}, "containers": containers}
    template = {"metadata": {"labels": labels}, "spec": pod}
    job = {"template": {"spec": pod | {"restartPolicy": "Never"}}}
    specs: dict[str, Document] = {
        "CronJob": {"schedule": "0 0 1 1 *", "suspend": True, "jobTemplate": {"spec": job}},
        "DaemonSet": {"selector": {"matchLabels": labels}, "template": template},
        "StatefulSet": {
            "replicas": 0, "serviceName": "none", "selector": {"matchLabels": labels}, "template": template,
        },
        "Deployment": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template},
    }  # fmt: skip
    return {"apiVersion": RESOURCES[kind][0], "kind": kind, "metadata": {"name": kind.lower()}, "spec": specs[kind]}


def record(namespace: str, kind: str) -> SizeRecord:
    cpu = ResourceSize(1000, 2000, 100, 250, 300, None, None, None, 750)
    memory = ResourceSize(256 * MIB, 256 * MIB, 300 * MIB, 310 * MIB, 400 * MIB, None, None, 310 * MIB, -54 * MIB)
    name = SizedWorkload(namespace, kind, kind.lower())
    return SizeRecord(name, "app", SizeStatus.OK, "", 1, 86_400.0, 288, 1, cpu, memory)


def containers_of(document: Document, kind: str) -> dict[str, Any]:
    spec = document["spec"]["jobTemplate"]["spec"] if kind == "CronJob" else document["spec"]
    return {each["name"]: each["resources"] for each in spec["template"]["spec"]["containers"]}


def test_kubectl_accepts_each_command_and_only_the_sizes_change(cluster: Cluster, namespace: str) -> None:
    paths = {kind: f"{group}/namespaces/{namespace}/{plural}" for kind, (_, group, plural) in RESOURCES.items()}
    for kind, path in paths.items():
        cluster.client.create(path, workload(kind))
    records = tuple(record(namespace, kind) for kind in RESOURCES)
    printed = as_patches(Sizes(SizeWindow(0.0, 86_400.0), SizingOptions(), records, (), {}))
    commands = [words for line in printed.splitlines() if (words := shlex.split(line, comments=True))]
    assert len(commands) == len(RESOURCES)
    for program, *arguments in commands:
        assert program == "kubectl"
        cluster.kubectl(*arguments)
    for kind, path in paths.items():
        found = containers_of(cluster.client.get(f"{path}/{kind.lower()}"), kind)
        assert found == {
            "app": {"requests": {"cpu": "250m", "memory": "310Mi"}, "limits": {"cpu": "2", "memory": "310Mi"}},
            "sidecar": STATED,
        }
