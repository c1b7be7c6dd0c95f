"""`tidewatch-recommender cpva` and `pod-nanny` with the rights and command lines of the programs that they replace."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pytest

from demo.machine.processes import start
from tests.e2e.controlplane.nodes import PATH as NODES
from tests.e2e.support.recommenders import Pool, rule, service_account
from tests.support.recommenders import PROGRAM, Recommender

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tests.e2e.controlplane.client import Document
    from tests.e2e.controlplane.cluster import Cluster

CPVA_EVERYWHERE: Final = [
    rule([""], ["nodes"], "list"),
    rule(["apps", "extensions"], ["deployments"], "patch"),
]
"""The ClusterRole of cluster-proportional-vertical-autoscaler's `examples/RBAC`, at 3b97ec8."""
NANNY_EVERYWHERE: Final = [rule([""], ["nodes"], "list")]
NANNY_HERE: Final = [rule([""], ["pods"], "get"), rule(["apps"], ["deployments"], "get patch", "nanny-v1")]
"""The ClusterRole and the Role of addon-resizer's `deploy/example.yaml`, at 55c37cd."""
SIZES: Final = ("--cpu=300m", "--extra-cpu=20m", "--memory=200Mi", "--extra-memory=10Mi", "--threshold=5")
"""The flags of the Deployment in the same file."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A Deployment that is resized, and the place for the program that does it."""

    cluster: Cluster
    namespace: str
    folder: Path
    pool: Pool

    @property
    def deployment(self) -> str:
        return f"/apis/apps/v1/namespaces/{self.namespace}/deployments/nanny-v1"

    def create(self, **resources: object) -> None:
        """Make the Deployment; its pods run in the stand-in for the kubelet."""
        labels = {"app": "nanny"}
        container = {"name": "main", "image": "shop/dns:1", "resources": resources}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
        spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
        self.cluster.client.create(
            self.deployment.rpartition("/")[0],
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "nanny-v1"}, "spec": spec},
        )

    @property
    def nodes(self) -> int:
        return len(self.cluster.client.items(NODES))

    def sizes(self) -> tuple[dict[str, Any], int]:
        """Return the resources of the container, and how often the Deployment was changed."""
        found = self.cluster.client.get(self.deployment)
        resources: dict[str, Any] = found["spec"]["template"]["spec"]["containers"][0]["resources"]
        return resources, found["metadata"]["generation"] - 1

    def wait_for(self, section: str, sizes: dict[str, str]) -> None:
        self.cluster.wait_for(f"{section} {sizes}", lambda: self.sizes()[0].get(section) == sizes, why_not=self.sizes)

    def pod(self, besides: str = "") -> str:
        """Return the name of the only pod that is not `besides`."""

        def found() -> str:
            pods = self.cluster.pods(self.namespace, "app=nanny")
            present = [pod["metadata"]["name"] for pod in pods if "deletionTimestamp" not in pod["metadata"]]
            return present[0] if len(present) == 1 and present[0] != besides else ""

        return self.cluster.wait_for("one pod", found)

    @contextmanager
    def running(
        self, *arguments: str, here: Sequence[Document] = (), everywhere: Sequence[Document]
    ) -> Iterator[Recommender]:
        """Run a command with only these rights."""
        account = service_account(
            self.cluster, self.namespace, "resizer", self.folder, here=here, everywhere=everywhere
        )
        with account as kubeconfig:
            # One that is started again has a log of its own, which has no address of the former one.
            log = self.folder / f"{len(list(self.folder.glob('*.log')))}.log"
            with start([PROGRAM, *arguments], log_path=log, environment={"KUBECONFIG": str(kubeconfig)}) as process:
                yield Recommender(process)

    def refused_requests(self) -> list[str]:
        account = f"system:serviceaccount:{self.namespace}:resizer"
        events = self.cluster.audit_events()
        return [f"{event.verb} {event.uri}" for event in events if event.user == account and event.code == 403]


@pytest.fixture
def scene(cluster: Cluster, namespace: str, tmp_path: Path) -> Iterator[Scene]:
    pool = Pool(cluster)
    yield Scene(cluster, namespace, tmp_path, pool)
    pool.remove()


def test_cpva_follows_the_nodes_with_one_patch_each_and_through_an_outage(scene: Scene) -> None:
    scene.create(limits={"memory": "1Gi"})
    file = scene.folder / "nginx-autoscaler"
    file.write_text('{"main": {"requests": {"cpu": {"base": "100m", "step": "100m", "nodesPerStep": 1}}}}')
    flags = ("--target=deployment/nanny-v1", f"--namespace={scene.namespace}", "--logtostderr=true", "--v=2")
    ports = ("--poll-period-seconds=1", "--plain-bind-address=127.0.0.1:0")
    nodes = scene.nodes
    with scene.running("cpva", *flags, *ports, f"--config-file={file}", everywhere=CPVA_EVERYWHERE) as program:
        scene.wait_for("requests", {"cpu": f"{100 * nodes + 100}m"})
        assert program.get("/healthz", plain=True)[0] == 200
        scene.pool.add(1)
        scene.wait_for("requests", {"cpu": f"{100 * nodes + 200}m"})
        scene.cluster.restart_api_server()
        scene.pool.add(1)
        scene.wait_for("requests", {"cpu": f"{100 * nodes + 300}m"})
        resources, changes = scene.sizes()
        assert (resources["limits"], changes) == ({"memory": "1Gi"}, 3)
        scene.cluster.wait_for("a good poll", lambda: program.get("/last-poll", plain=True)[0] == 200)
        file.write_text('{"nobody": {"requests": {"cpu": {"base": "1"}}}}')
        scene.cluster.wait_for("the refusal", lambda: program.get("/last-poll", plain=True)[0] == 500)
        assert "422 Invalid" in program.get("/last-poll", plain=True)[1]
    assert scene.sizes()[1] == 3
    # An API server that has just started refuses everybody until it has read its roles.
    assert set(scene.refused_requests()) <= {"list /api/v1/nodes?limit=200"}


def test_pod_nanny_resizes_its_deployment_only_beyond_the_threshold(scene: Scene) -> None:
    small = {"cpu": "100m", "memory": "100Mi"}
    scene.create(requests=small, limits=small)
    first = scene.pod()
    flags = ("--deployment=nanny-v1", "--container=main", f"--namespace={scene.namespace}", *SIZES)
    run = ("pod-nanny", *flags, "--poll-period=1000", "--healthcheck-address=127.0.0.1:0")
    scene.pool.add(9)
    nodes = scene.nodes
    wanted = {"cpu": f"{300 + 20 * nodes}m", "memory": f"{200 + 10 * nodes}Mi"}
    rights = {"here": NANNY_HERE, "everywhere": NANNY_EVERYWHERE}
    with scene.running(*run, f"--pod={first}", **rights) as program:
        scene.wait_for("requests", wanted)
        assert scene.sizes() == ({"requests": wanted, "limits": wanted}, 1)
        # The pod that this process watches goes with the rollout, as its own pod does in a cluster.
        second = scene.pod(besides=first)
        scene.cluster.wait_for("the loss", lambda: program.get("/last-poll", plain=True)[0] == 500)
        assert program.get("/health-check", plain=True)[:2] == (200, "OK")
    scene.pool.add(1)
    with scene.running(*run, f"--pod={second}", **rights) as program:
        within = 'addon_resizer_execution_outcome{outcome="resources_within_limits"}'
        scene.cluster.wait_for("a poll without a change", lambda: program.metric(within))
        assert scene.sizes()[1] == 1
        # Only one: a poll between several nodes would resize for some of them, and the others might not be enough then.
        scene.pool.add(1)
        wanted = {"cpu": f"{340 + 20 * nodes}m", "memory": f"{220 + 10 * nodes}Mi"}
        scene.wait_for("limits", wanted)
    assert scene.sizes()[1] == 2
    assert scene.refused_requests() == []


def test_pod_nanny_counts_by_the_metrics_of_the_api_server(scene: Scene) -> None:
    scene.create(requests={"cpu": "50m"}, limits={"cpu": "50m"})
    flags = ("--deployment=nanny-v1", "--container=main", f"--namespace={scene.namespace}", "--poll-period=1000")
    sizes = ("--extra-cpu=100m", "--cpu=50m", "--use-metrics", "--healthcheck-address=127.0.0.1:0")
    metrics = {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}
    # The rights are known to be there once nodes may be listed.
    everywhere = [metrics, *NANNY_EVERYWHERE]
    with scene.running("pod-nanny", *flags, *sizes, here=NANNY_HERE, everywhere=everywhere):
        # The API server counts its objects once a minute at most, so the nodes of other tests may be counted, too.
        scene.cluster.wait_for(
            "a size by a count of nodes",
            lambda: re.fullmatch(r"[1-9]\d*50m", scene.sizes()[0]["limits"]["cpu"]),
            90.0,
            why_not=scene.sizes,
        )
    assert not [line for line in scene.refused_requests() if "/metrics" in line]


def test_the_api_server_takes_no_storage_of_a_container(scene: Scene) -> None:
    scene.create()
    flags = ("--deployment=nanny-v1", "--container=main", f"--namespace={scene.namespace}", "--poll-period=1000")
    sizes = ("--storage=1Gi", "--cpu=1", "--healthcheck-address=127.0.0.1:0")
    with scene.running("pod-nanny", *flags, *sizes, here=NANNY_HERE, everywhere=NANNY_EVERYWHERE) as program:
        scene.cluster.wait_for("the refusal", lambda: program.get("/last-poll", plain=True)[0] == 500)
        assert "422 Invalid" in program.get("/last-poll", plain=True)[1]
        assert "--storage: no API server takes the resource `storage` of a container" in program.log
    assert scene.sizes()[1] == 0
