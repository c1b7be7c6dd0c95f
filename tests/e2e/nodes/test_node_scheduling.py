"""The unmodified kube-scheduler with the configuration that the chart ships, and `nodes` as its extender."""

from __future__ import annotations

import json
import os
import re
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pytest

from demo.machine.certificates import Authority
from tests.e2e.nodes.load_aware import loaded_cluster, pod, scheduler_configuration, shipped
from tests.e2e.nodes.node_loads import NodeLoad
from tests.e2e.support.figures import state

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.e2e.controlplane.cluster import Cluster
    from tests.e2e.controlplane.control_plane import Scheduler
    from tests.e2e.nodes.load_aware import LoadedCluster, NodesProgram

__all__ = ["state"]

NAME: Final = "by-load"
ALONE: Final = "by-load-alone"
MANY: Final = "by-load-many"
KNOWN, UNAUTHENTICATED = "by-load-known", "by-load-unauthenticated"
"""Profiles of schedulers that a test starts beside the shared one."""
BESIDE: Final = "by-request"
"""A second profile of the same scheduler. Extenders are called for the pods of all profiles."""
PODS: Final = int(os.environ.get("SCHEDULED_PODS", "60"))
"""How many pods are placed with and without the extender; set it to 500 for published figures."""

# Pods are placed one after another, and the program is started again.
pytestmark = pytest.mark.timeout(180 + PODS)

NODES: Final = 100
_BINDING_SECONDS: Final = 120.0
POOLS: Final = {
    "target": [NodeLoad(0.2), NodeLoad(0.05), NodeLoad(0.85)],
    "full": [NodeLoad(0.9)],
    "off": [NodeLoad(0.9)],
    "beside": [NodeLoad(0.9)],
    "known": [NodeLoad(0.2), NodeLoad(0.05), NodeLoad(0.85)],
    "unauthenticated": [NodeLoad(0.9)],
    "many": [NodeLoad(0.05 + 0.006 * number) for number in range(NODES)],
}


@pytest.fixture(scope="module")
def loaded(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoadedCluster]:
    """Yield the nodes of all tests of this module."""
    with loaded_cluster(cluster, tmp_path_factory.mktemp("loaded"), "scheduling", POOLS) as found:
        yield found


def configuration() -> dict[str, object]:
    """Return the SchedulingConfiguration that the chart ships, for the pods of one profile."""
    return {**shipped("scheduler/scheduling.yaml"), "schedulerNames": [NAME, ALONE, MANY, KNOWN, UNAUTHENTICATED]}


@pytest.fixture(scope="module")
def program(loaded: LoadedCluster) -> Iterator[NodesProgram]:
    """Yield a program that no test stops."""
    with loaded.running(configuration()) as found:
        yield found


@pytest.fixture(scope="module")
def scheduler(cluster: Cluster, program: NodesProgram) -> Iterator[Scheduler]:
    """Yield a scheduler that asks `program`."""
    with cluster.start_scheduler(scheduler_configuration(program.url, NAME, BESIDE)) as found:
        yield found


@dataclass(frozen=True, slots=True)
class Pods:
    """The pods of a test."""

    cluster: Cluster
    namespace: str

    @property
    def path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods"

    def create(self, name: str, pool: str, cpu: str = "400m", scheduler: str = NAME) -> None:
        self.cluster.client.create(self.path, pod(name, pool, scheduler, cpu))

    def place_of(self, name: str) -> str:
        """Return the node that a pod is bound to, once it is."""

        def place() -> str:
            return str(self.cluster.client.get(f"{self.path}/{name}")["spec"].get("nodeName", ""))

        return self.cluster.wait_for(f"a node for {name}", place, why_not=lambda: self.refusals(name))

    def refusals(self, name: str) -> list[str]:
        """Return why a pod could not be placed, as `kubectl describe` shows it."""
        selector = f"involvedObject.name={name},reason=FailedScheduling"
        found = self.cluster.client.items(f"/api/v1/namespaces/{self.namespace}/events", fieldSelector=selector)
        return [event["message"] for event in found]

    def refusal_of(self, name: str) -> str:
        """Return why a pod could not be placed, once the scheduler has said so."""
        return self.cluster.wait_for(f"a refusal of {name}", lambda: self.refusals(name))[0]


@pytest.fixture
def pods(cluster: Cluster, namespace: str) -> Pods:
    """Return the pods of this test."""
    return Pods(cluster, namespace)


@pytest.mark.usefixtures("scheduler")
def test_a_node_is_filled_up_to_its_target_and_the_hot_one_is_avoided(
    cluster: Cluster, pods: Pods, program: NodesProgram
) -> None:
    """A pod is expected to take 15% of a node: the node at 20% comes nearest to the target of 40% without passing it.

    A second pod would pass the target there, though no metrics show the first one yet; so it goes to the node at 5%,
    and so does a third.
    """
    places = []
    for number in range(3):
        before = program.scores("target-load-packing", "400m")
        pods.create(f"web-{number}", "target")
        places.append(pods.place_of(f"web-{number}"))

        def counted(place: str = places[-1], before: dict[str, float] = before) -> bool:
            return program.scores("target-load-packing", "400m")[place] != before[place]

        cluster.wait_for("scores with the new pod", counted)
    assert places == ["target-0", "target-1", "target-1"]


@pytest.mark.usefixtures("scheduler")
def test_a_node_that_would_be_above_its_limit_is_refused_and_the_event_says_why(pods: Pods) -> None:
    pods.create("large", "full", "400m")
    assert "cpu 15m average 90 percent and this pod 10 percent over the limit 95 percent" in pods.refusal_of("large")
    pods.create("small", "full", "100m")
    assert pods.place_of("small") == "full-0"


@pytest.mark.usefixtures("scheduler")
def test_pods_of_another_profile_are_placed_as_without_an_extender(pods: Pods) -> None:
    pods.create("ours", "beside")
    assert "over the limit" in pods.refusal_of("ours")
    pods.create("theirs", "beside", scheduler=BESIDE)
    assert pods.place_of("theirs") == "beside-0"


def test_pods_are_placed_while_the_extender_is_down_and_by_load_again_when_it_is_back(
    cluster: Cluster, loaded: LoadedCluster, pods: Pods
) -> None:
    with (
        loaded.running(configuration()) as program,
        cluster.start_scheduler(scheduler_configuration(program.url, ALONE)) as alone,
    ):
        pods.create("before", "off", scheduler=ALONE)
        assert "over the limit" in pods.refusal_of("before")
        assert program.asked("filter") >= 1
        assert "Skipping extender" not in log_of(alone)

        program.process.kill()
        pods.create("without", "off", scheduler=ALONE)
        assert pods.place_of("without") == "off-0"
        # The scheduler counts the attempt once the API server has answered, which shows the pod's node before.
        cluster.wait_for("the scheduler's count", lambda: placed(alone) >= 1)
        assert "Skipping extender as it returned error and has ignorable flag set" in log_of(alone)
        with pytest.raises(urllib.error.URLError):
            program.get("/metrics")

        port = int(program.url.rpartition(":")[2])
        with loaded.running(configuration(), port=port) as again:
            pods.create("after", "off", scheduler=ALONE)
            assert "over the limit" in pods.refusal_of("after")
            assert again.asked("filter") >= 1


def test_a_scheduler_with_a_certificate_is_answered_and_one_without_is_refused_and_schedules_all_the_same(
    cluster: Cluster, loaded: LoadedCluster, pods: Pods, tmp_path: Path
) -> None:
    authority = Authority(tmp_path / "authority")
    with loaded.running(configuration(), authority=authority) as program:
        own = authority.client("kube-scheduler")
        certificate = {"certFile": str(own.certificate_file), "keyFile": str(own.key_file)}
        with cluster.start_scheduler(over_tls(program, KNOWN, authority, certificate)) as known:
            pods.create("known", "known", scheduler=KNOWN)
            assert pods.place_of("known") == "known-0"
            assert "Skipping extender" not in log_of(known)
        answered = program.asked("filter")
        assert answered >= 1
        assert program.asked("prioritize") >= 1

        with cluster.start_scheduler(over_tls(program, UNAUTHENTICATED, authority, {})) as unauthenticated:
            pods.create("unauthenticated", "unauthenticated", scheduler=UNAUTHENTICATED)
            assert pods.place_of("unauthenticated") == "unauthenticated-0"
            assert "Skipping extender as it returned error and has ignorable flag set" in log_of(unauthenticated)
            assert "code 401" in log_of(unauthenticated)
        assert program.asked("filter") == answered
        assert refusal_of(program) == (401, "a client certificate is required")


def over_tls(program: NodesProgram, name: str, authority: Authority, certificate: dict[str, str]) -> dict[str, Any]:
    """Return the configuration of a scheduler that verifies the extender, and presents this certificate."""
    found = scheduler_configuration(program.url, name)
    tls = {"caFile": str(authority.ca_file), **certificate}
    found["extenders"][0] |= {"enableHTTPS": True, "tlsConfig": tls}
    return found


def refusal_of(program: NodesProgram) -> tuple[int, str]:
    """Return status and message of the answer to a caller without a scheduler's certificate."""
    body = urllib.request.Request(f"{program.url}/scheduler/filter", data=b"{}", method="POST")
    try:
        with urllib.request.urlopen(body, timeout=5, context=program.context) as answer:
            return answer.status, ""
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())["message"]


def log_of(scheduler: Scheduler) -> str:
    return scheduler.process.log_path.read_text()


def placed(scheduler: Scheduler, profile: str = ALONE) -> float:
    """Return how many pods a scheduler has placed, by its own metrics."""
    return metric(scheduler, f'scheduler_schedule_attempts_total{{profile="{profile}",result="scheduled"}}')


def metric(scheduler: Scheduler, series: str) -> float:
    """Return the value of a series of a scheduler; 0 if there is no such series."""
    text = scheduler.client.ask("GET", "/metrics").body.decode()
    found = re.search(rf"^{re.escape(series)} (\S+)$", text, re.MULTILINE)
    return float(found[1]) if found else 0.0


def test_placing_many_pods_takes_the_extender_little_time(
    pods: Pods, program: NodesProgram, state: Callable[[str, str], None]
) -> None:
    whole = scheduler_configuration(program.url, MANY)
    asked = program.asked("prioritize")
    seconds = {}
    for name, given in {"without": {"profiles": whole["profiles"]}, "with": whole}.items():
        with waiting_pods(pods, f"{name}-") as bound, pods.cluster.start_scheduler(given) as scheduler:
            seconds[name] = bound()
            algorithm = 1000 * metric(scheduler, "scheduler_scheduling_algorithm_duration_seconds_sum")
            mean = algorithm / metric(scheduler, "scheduler_scheduling_algorithm_duration_seconds_count")
        state(
            f"{PODS} pods over {NODES} nodes, {name} the extender",
            f"{PODS / seconds[name]:.0f} pods a second, {mean:.2f} ms for the choice of a node",
        )
    asked = program.asked("prioritize") - asked
    assert 1 <= asked <= PODS
    means = ", ".join(f"{verb} {1000 * program.mean_seconds(verb):.2f} ms" for verb in ("filter", "prioritize"))
    state("the extender", f"{asked:.0f} requests for the scores of {PODS} pods; its own time for a request: {means}")


@contextmanager
def waiting_pods(pods: Pods, prefix: str) -> Iterator[Callable[[], float]]:
    """Make pods that wait for a scheduler; yield a function for the seconds from the first binding to the last."""
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda number: pods.create(f"{prefix}{number}", "many", "100m", MANY), range(PODS)))
        version = pods.cluster.client.get(pods.path)["metadata"]["resourceVersion"]
        bound = threads.submit(_seconds_to_bind, pods, prefix, version)
        yield lambda: bound.result(_BINDING_SECONDS)


def _seconds_to_bind(pods: Pods, prefix: str, version: str) -> float:
    """Return the seconds from the first binding to the last, of the pods that wait at this version."""
    times: dict[str, float] = {}
    end = time.monotonic() + _BINDING_SECONDS
    while time.monotonic() < end:
        # The API server closes a watch that falls behind.
        with pods.cluster.client.watch(pods.path, version) as events:
            for event in events:
                found = event["object"]
                version = found["metadata"]["resourceVersion"]
                if found["metadata"]["name"].startswith(prefix) and found["spec"].get("nodeName"):
                    times.setdefault(found["metadata"]["name"], time.monotonic())
                if len(times) == PODS:
                    return max(times.values()) - min(times.values())
    raise AssertionError(f"{len(times)} of {PODS} pods are bound")


def test_the_rights_that_the_chart_ships_are_enough(loaded: LoadedCluster, program: NodesProgram) -> None:
    assert program.document("/nodes/unmapped")
    assert {"watch nodes", "watch pods"} <= loaded.asked_requests()
    assert loaded.refused_requests() == set()
