"""`tidewatch-recommender proportional` with the rights and the command line of cluster-proportional-autoscaler."""

from __future__ import annotations

import json
import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.e2e.support.figures import state
from tests.e2e.support.recommenders import Pool, Workload, autoscaler, rule, service_account
from tests.support.recommenders import Recommender, started

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.e2e.controlplane.client import Document
    from tests.e2e.controlplane.cluster import Cluster

__all__ = ["state"]

MANY: Final = 500
POLL_SECONDS: Final = 10.0
"""The default of `--poll-period-seconds`."""
BUSY_SECONDS: Final = 5.0
"""How much longer than the product needs a test waits on a busy machine."""
COREDNS: Final = {
    "linear": {
        "coresPerReplica": 256,
        "nodesPerReplica": 16,
        "preventSinglePointFailure": True,
        "includeUnschedulableNodes": True,
    }
}

# The rules of that project's chart (`clusterrole.yaml`, `role.yaml`), and what its examples add.
CPA_EVERYWHERE: Final = [rule([""], ["nodes"], "list watch")]
CPA_HERE: Final = [
    rule([""], ["replicationcontrollers/scale"], "get update"),
    rule(["extensions", "apps"], ["deployments/scale", "replicasets/scale"], "get update"),
]
GET_CONFIG_MAPS: Final = rule([""], ["configmaps"], "get")
GET_AND_CREATE_CONFIG_MAPS: Final = rule([""], ["configmaps"], "get create")
READ_AUTOSCALERS: Final = rule(["autoscaling"], ["horizontalpodautoscalers"], "list watch")


@dataclass(frozen=True, slots=True)
class Scene:
    """A Deployment, its nodes, and the place for the program that scales it."""

    cluster: Cluster
    namespace: str
    folder: Path
    dns: Workload
    pool: Pool

    @property
    def config_map(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/configmaps/dns-autoscaler"

    def parameters(self, **modes: str | None) -> None:
        """Write modes into the ConfigMap; None removes one."""
        if self.cluster.client.find(self.config_map):
            self.cluster.client.merge(self.config_map, {"data": modes})
        else:
            body = {"metadata": {"name": "dns-autoscaler"}, "data": modes}
            self.cluster.client.create(self.config_map.rpartition("/")[0], body)

    @contextmanager
    def running(self, config_maps: Document, *flags: str, more: tuple[Document, ...] = ()) -> Iterator[Recommender]:
        """Run the program with that project's rights and flags, and with further flags."""
        here = [*CPA_HERE, config_maps, *more]
        with ExitStack() as stack:
            kubeconfig = stack.enter_context(
                service_account(
                    self.cluster, self.namespace, "autoscaler", self.folder, here=here, everywhere=CPA_EVERYWHERE
                )
            )
            command = [
                "proportional",
                f"--namespace={self.namespace}",
                "--configmap=dns-autoscaler",
                "--target=Deployment/dns",
                f"--nodelabels={self.pool.selector}",
                "--logtostderr=true",
                "--v=2",
                *flags,
            ]
            environment = {"KUBECONFIG": str(kubeconfig)}
            found = started(self.folder / "autoscaler.log", *command, environment=environment)
            stack.enter_context(found.process)
            yield found

    def refused_requests(self) -> Counter[str]:
        """Return how often the program's requests were forbidden, by verb and resource."""
        account = f"system:serviceaccount:{self.namespace}:autoscaler"
        events = [event for event in self.cluster.audit_events() if event.user == account and event.code == 403]
        return Counter(f"{event.verb} {event.resource}" for event in events)


@pytest.fixture
def scene(cluster: Cluster, namespace: str, tmp_path: Path) -> Iterator[Scene]:
    dns, pool = Workload(cluster, namespace, "dns"), Pool(cluster)
    dns.create()
    yield Scene(cluster, namespace, tmp_path, dns, pool)
    pool.remove()


def test_a_deployment_follows_500_nodes_and_back_within_one_poll(
    scene: Scene, state: Callable[[str, str], None]
) -> None:
    """The parameters are the defaults, from which the program makes the ConfigMap."""
    scene.pool.add(1)
    with scene.running(GET_AND_CREATE_CONFIG_MAPS, f"--default-params={json.dumps(COREDNS)}") as program:
        made = scene.cluster.wait_for("the ConfigMap", lambda: scene.cluster.client.find(scene.config_map))
        assert {mode: json.loads(text) for mode, text in made["data"].items()} == COREDNS
        scene.cluster.wait_for("the first poll", lambda: program.get("/last-poll", plain=True)[0] == 200)
        assert program.get("/healthz", plain=True)[0] == 200
        scene.pool.add(MANY - 1)
        begin = time.monotonic()
        scene.dns.wait_for(32, POLL_SECONDS + BUSY_SECONDS)
        up = time.monotonic() - begin
        scene.pool.remove(keep=1)
        begin = time.monotonic()
        scene.dns.wait_for(1, POLL_SECONDS + BUSY_SECONDS)
        down = time.monotonic() - begin
        assert program.log.count("may not be read, so it is scaled even if one of them scales it too") == 1
    assert len(scene.dns.writes_of_all_changes()) == scene.dns.changes()
    assert set(scene.refused_requests()) <= {
        "list horizontalpodautoscalers",
        "get deployments",
        "create events",
    }
    state("proportional, 1 to 500 nodes", f"{up:.1f} s after the last node; back to 1: {down:.1f} s")


def test_parameters_may_change_break_and_disappear(scene: Scene) -> None:
    scene.pool.add(4)
    scene.parameters(linear='{"nodesPerReplica": 1}')
    with scene.running(GET_CONFIG_MAPS, "--poll-period-seconds=1") as program:
        scene.dns.wait_for(4)
        scene.parameters(linear=None, ladder='{"nodesToReplicas": [[1, 1], [3, 7], [5, 9]]}')
        scene.dns.wait_for(7)
        scene.parameters(ladder='{"nodesToReplicas": [[1, 1], [3, 7], [5, 9]],}')
        scene.cluster.wait_for(
            "a word about the ConfigMap", lambda: "ladder" in program.items()["dns-autoscaler"]["message"]
        )
        scene.pool.add(1)
        scene.dns.wait_for(9)
        scene.cluster.client.delete(scene.config_map)
        scene.cluster.wait_for("its absence", lambda: "does not exist" in program.items()["dns-autoscaler"]["message"])
        scene.pool.remove(keep=4)
        scene.dns.wait_for(7)
        scene.parameters(linear='{"nodesPerReplica": 2}')
        scene.dns.wait_for(2)
        assert program.items()["dns-autoscaler"]["binding"] == "linear/nodes"
    assert len(scene.dns.writes_of_all_changes()) == scene.dns.changes()


def test_a_target_of_an_autoscaler_is_refused_where_autoscalers_may_be_read(scene: Scene) -> None:
    scene.pool.add(3)
    scene.parameters(linear='{"nodesPerReplica": 1}')
    path = f"/apis/autoscaling/v2/namespaces/{scene.namespace}/horizontalpodautoscalers"
    scene.cluster.client.create(path, autoscaler("dns"))
    with scene.running(GET_CONFIG_MAPS, "--poll-period-seconds=1", more=(READ_AUTOSCALERS,)) as program:

        def refused() -> dict[str, Any] | None:
            items = program.items()
            targets = items["dns-autoscaler"]["targets"] if items else []
            return targets[0] if targets and targets[0]["action"] == "refused" else None

        target = scene.cluster.wait_for("the refusal", refused)
        assert target["owner"] == f"HorizontalPodAutoscaler {scene.namespace}/dns"
        assert scene.dns.writes() == []
        scene.cluster.client.delete(f"{path}/dns")
        scene.dns.wait_for(3)


def test_too_many_failed_polls_end_the_program(scene: Scene) -> None:
    scene.pool.add(2)
    with scene.running(GET_CONFIG_MAPS, "--poll-period-seconds=1", "--max-sync-failures=6") as program:
        scene.cluster.wait_for("a failed poll", lambda: program.get("/last-poll", plain=True)[0] == 500)
        assert "dns-autoscaler" in program.get("/last-poll", plain=True)[1]
        assert program.get("/healthz", plain=True)[0] == 200
        assert program.process.wait(30.0) == 1
        assert "6 consecutive polls have failed" in program.log
    assert scene.dns.writes() == []
