from __future__ import annotations

import json
import logging
import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from adapter.foundation.objects.pod_requests import ContainerResources, PodResources
from adapter.foundation.web.http import Request, Response
from adapter.foundation.web.wsgi import wsgi_application
from adapter.nodes.extender.handlers import Extender
from adapter.nodes.extender.protocol import LARGEST_BODY_BYTES
from adapter.nodes.model.columns import PendingPod
from adapter.nodes.model.loads import LoadResource
from adapter.nodes.model.scheduling_settings import (
    DEFAULT_ARGS,
    FilterSettings,
    PolicyName,
    PolicySettings,
    SchedulingSettings,
    TargetLoadPackingArgs,
)
from tests.adapter.foundation.web.wsgi import call, environ
from tests.adapter.nodes.extender.snapshots import NAN, nodes_snapshot

if TYPE_CHECKING:
    from adapter.nodes.model.nodes_snapshot import NodesSnapshot, ScoreBasis

CPU = LoadResource.CPU
FILTER_80 = SchedulingSettings(filter=FilterSettings({CPU: 0.8}))
NAMES = ["node-1", "node-2", "node-3"]


def pending_of(raw: bytes) -> PendingPod:
    """Return the pending pod for a Pod that states its CPU as `spec.cpu`."""
    spec = msgspec.json.decode(raw)["spec"]
    if "broken" in spec:
        raise ValueError("spec.cpu is not a quantity")
    cpu = spec.get("cpu", 0)
    resources = PodResources({"cpu": cpu}, {}, {"cpu": cpu or 100}, (ContainerResources(cpu),))
    return PendingPod(scheduler_name=spec.get("schedulerName", "default-scheduler"), resources=resources)


@dataclass
class Scheduler:
    """A client that asks as kube-scheduler does."""

    snapshot: NodesSnapshot
    settings: SchedulingSettings = field(default_factory=SchedulingSettings)

    def __post_init__(self) -> None:
        self.routes = {each.path: each for each in Extender(lambda: self.snapshot, pending_of, self.settings).routes()}

    def send(self, path: str, body: bytes) -> Response:
        return self.routes[path].handle(Request("POST", path, body=body))

    def ask(self, path: str, names: list[str] | None = None, **spec: object) -> Any:  # noqa: ANN401 # JSON of two shapes
        body = {"Pod": {"metadata": {"name": "web"}, "spec": spec}, "Nodes": None, "NodeNames": names or NAMES}
        response = self.send(path, json.dumps(body).encode())
        assert response.status == 200
        return json.loads(response.body)

    def scores(self, path: str = "/scheduler/prioritize", names: list[str] | None = None, **spec: object) -> list[int]:
        answer = self.ask(path, names, **spec)
        assert [each["Host"] for each in answer] == (names or NAMES)
        return [each["Score"] for each in answer]


def test_nodes_over_a_limit_are_filtered_and_may_be_resolved_by_preemption() -> None:
    answer = Scheduler(nodes_snapshot({"cpu": [0.5, 0.9, 0.7]}), FILTER_80).ask("/scheduler/filter", cpu=600)
    assert answer == {
        "Nodes": None,
        "NodeNames": ["node-1"],
        "FailedNodes": {
            "node-2": "cpu 15m average 90 percent and this pod 15 percent over the limit 80 percent",
            "node-3": "cpu 15m average 70 percent and this pod 15 percent over the limit 80 percent",
        },
        "FailedAndUnresolvableNodes": {},
        "Error": "",
    }


@pytest.mark.parametrize("settings", [SchedulingSettings(), FILTER_80])
@pytest.mark.parametrize("averages", [[NAN, NAN, NAN], []])
def test_missing_metrics_filter_no_node_and_are_not_an_error(
    settings: SchedulingSettings, averages: list[float]
) -> None:
    answer = Scheduler(nodes_snapshot({"cpu": averages}, basis="none"), settings).ask("/scheduler/filter", cpu=4000)
    assert (answer["NodeNames"], answer["FailedNodes"], answer["Error"]) == (NAMES, {}, "")


def test_scores_are_those_of_the_policy_divided_by_ten() -> None:
    """With the pod the nodes are at 35%, 60% and 95%, which the table of TargetLoadPacking scores with 93, 27 and 3."""
    assert Scheduler(nodes_snapshot({"cpu": [0.2, 0.45, 0.8]})).scores(cpu=400) == [9, 3, 0]


def test_several_policies_are_weighted() -> None:
    policies = (
        PolicySettings(PolicyName.TARGET_LOAD_PACKING, 3, TargetLoadPackingArgs()),
        PolicySettings(PolicyName.MOST_ALLOCATED, 1, DEFAULT_ARGS[PolicyName.MOST_ALLOCATED]),
    )
    scheduler = Scheduler(nodes_snapshot({"cpu": [0.2, 0.45, 0.8]}), SchedulingSettings(policies))
    by_load = scheduler.scores("/scheduler/target-load-packing/prioritize", cpu=400)
    by_requests = scheduler.scores("/scheduler/most-allocated/prioritize", cpu=400)
    assert by_load == [9, 3, 0]
    assert len(set(by_requests)) == 1
    assert scheduler.scores(cpu=400) == [7, 2, 0]


def test_one_policy_takes_its_arguments_from_the_configuration() -> None:
    args = TargetLoadPackingArgs(target_utilization_percent=80)
    policies = (PolicySettings(PolicyName.TARGET_LOAD_PACKING, 5, args),)
    path = "/scheduler/target-load-packing/prioritize"
    assert (
        Scheduler(nodes_snapshot({"cpu": [0.65, 0.3, 0.9]}), SchedulingSettings(policies)).scores(path, cpu=400)[0]
        == 10
    )
    assert Scheduler(nodes_snapshot({"cpu": [0.65, 0.3, 0.9]})).scores(path, cpu=400)[0] == 1


def test_kube_scheduler_scales_a_score_to_its_own_range() -> None:
    """kubernetes/kubernetes, `pkg/scheduler/schedule_one.go`, adds score * weight * (100 / 10), and never clamps it."""
    policy = PolicySettings(PolicyName.TARGET_LOAD_PACKING, 1, TargetLoadPackingArgs(target_utilization_percent=40))
    # Half of the target: 70 of 100.
    (answer,) = Scheduler(nodes_snapshot({"cpu": [0.2]}), SchedulingSettings(policies=(policy,))).ask(
        "/scheduler/prioritize", ["node-1"]
    )
    weight = 3
    assert answer == {"Host": "node-1", "Score": 7}
    assert answer["Score"] * weight * (100 // 10) == 210


def test_an_unknown_node_gets_the_median_score() -> None:
    assert Scheduler(nodes_snapshot({"cpu": [0.2, 0.45, 0.8]})).scores(names=[*NAMES, "nobody"], cpu=400) == [
        9,
        3,
        0,
        3,
    ]


@pytest.mark.parametrize("names", [[], ["nobody"], [f"node-{number}" for number in range(5000)]])
def test_each_name_of_a_request_gets_one_score(names: list[str]) -> None:
    scheduler = Scheduler(nodes_snapshot({"cpu": [0.2, 0.45, 0.8]}))
    body = json.dumps({"Pod": {"spec": {}}, "NodeNames": names}).encode()
    answer = json.loads(scheduler.send("/scheduler/prioritize", body).body)
    assert [each["Host"] for each in answer] == names
    assert all(type(each["Score"]) is int and 0 <= each["Score"] <= 10 for each in answer)


@pytest.mark.parametrize("basis", ["metrics", "none", "requests"])
def test_the_basis_of_the_scores_is_in_a_header(basis: ScoreBasis) -> None:
    scheduler = Scheduler(nodes_snapshot({"cpu": [0.2, 0.45, 0.8]}, basis=basis))
    response = scheduler.send("/scheduler/prioritize", b'{"Pod":{"spec":{}},"NodeNames":["node-1"]}')
    assert dict(response.headers) == {"Tidewatch-Basis": basis}


def test_without_metrics_every_node_gets_the_middle_score() -> None:
    assert Scheduler(nodes_snapshot({"cpu": [NAN] * 3}, basis="none")).scores(cpu=400) == [5, 5, 5]


@pytest.mark.parametrize(
    ("named", "scheduler_name", "applies"),
    [
        ((), "default-scheduler", True),
        ((), "other", True),
        (("tidewatch",), "tidewatch", True),
        (("tidewatch", "batch"), "batch", True),
        (("tidewatch",), "default-scheduler", False),
    ],
)
def test_pods_of_other_schedulers_are_neither_filtered_nor_scored(
    named: tuple[str, ...], scheduler_name: str, *, applies: bool
) -> None:
    settings = SchedulingSettings(filter=FilterSettings({CPU: 0.8}), scheduler_names=frozenset(named))
    scheduler = Scheduler(nodes_snapshot({"cpu": [0.2, 0.45, 0.9]}), settings)
    failed = scheduler.ask("/scheduler/filter", schedulerName=scheduler_name)["FailedNodes"]
    scores = scheduler.ask("/scheduler/prioritize", schedulerName=scheduler_name)
    assert (bool(failed), bool(scores)) == (applies, applies)


def test_equal_scores_are_logged_once_for_each_set_of_policies(caplog: pytest.LogCaptureFixture) -> None:
    scheduler = Scheduler(nodes_snapshot({"cpu": [0.3, 0.3, 0.3]}))
    for path in ["/scheduler/prioritize", "/scheduler/most-allocated/prioritize"] * 3:
        scheduler.scores(path, cpu=400)
    messages = [record.getMessage() for record in caplog.records]
    assert [message.partition(" were")[0] for message in messages] == [
        "the scores of target-load-packing",
        "the scores of most-allocated",
    ]


def test_whole_nodes_are_returned_and_their_cost_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    scheduler = Scheduler(nodes_snapshot({"cpu": [0.2, 0.9]}), FILTER_80)
    nodes = [{"metadata": {"name": name}, "status": {"capacity": {"cpu": "4"}}} for name in ("node-1", "node-2")]
    body = json.dumps({"Pod": {"spec": {}}, "Nodes": {"metadata": {}, "items": nodes}, "NodeNames": None}).encode()
    for _ in range(2):
        answer = json.loads(scheduler.send("/scheduler/filter", body).body)
        assert (answer["Nodes"]["items"], answer["NodeNames"]) == (nodes[:1], None)
    assert [each["Host"] for each in json.loads(scheduler.send("/scheduler/prioritize", body).body)] == [
        "node-1",
        "node-2",
    ]
    assert len([1 for record in caplog.records if "nodeCacheCapable" in record.getMessage()]) == 1


@pytest.mark.parametrize("path", ["/scheduler/filter", "/scheduler/prioritize", "/scheduler/peaks/prioritize"])
@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"{", "the body is not"),
        (b'{"NodeNames":[]}', "the body has no Pod"),
        (b'{"Pod":{"spec":{"broken":1}},"NodeNames":[]}', "Pod cannot be read: spec.cpu is not a quantity"),
    ],
)
def test_a_broken_request_is_refused_and_logged_once(
    path: str, body: bytes, problem: str, caplog: pytest.LogCaptureFixture
) -> None:
    scheduler = Scheduler(nodes_snapshot({"cpu": [0.2]}), FILTER_80)
    for _ in range(2):
        response = scheduler.send(path, body)
        document = json.loads(response.body)
        assert (response.status, document["kind"]) == (400, "Error")
        assert document["message"].startswith(problem)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


@pytest.mark.parametrize("policy", ["gpu-clustering", "least-allocated", "x%2Fy"])
def test_the_error_for_an_unknown_policy_lists_the_known_ones(policy: str) -> None:
    application = wsgi_application(
        lambda _: Response(418, b""), routes=list(Scheduler(nodes_snapshot({"cpu": [0.1]})).routes.values())
    )
    status, _, body = call(application, environ("POST", f"/scheduler/{policy}/prioritize"))
    assert status.startswith("404")
    assert all(name in json.loads(body)["message"] for name in PolicyName)


def test_every_policy_has_its_path() -> None:
    scheduler = Scheduler(nodes_snapshot({"cpu": [0.2, 0.45, 0.8], "memory": [0.1, 0.2, 0.3]}))
    for name in PolicyName:
        assert len(scheduler.scores(f"/scheduler/{name}/prioritize", cpu=400)) == 3


@pytest.mark.parametrize("policy", PolicyName)
def test_every_policy_scores_unknown_nodes_with_5(policy: PolicyName) -> None:
    scheduler = Scheduler(nodes_snapshot({"cpu": [0.2], "memory": [0.1]}))
    for names in ([], ["nobody"], ["nobody", "no one"]):
        body = json.dumps({"Pod": {"spec": {}}, "NodeNames": names}).encode()
        answer = json.loads(scheduler.send(f"/scheduler/{policy}/prioritize", body).body)
        assert answer == [{"Host": name, "Score": 5} for name in names]


DAEMON_SET = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "cni", "uid": "uid-cni", "controller": True}


@pytest.mark.parametrize(
    ("pod", "fails"),
    [
        ({"spec": {}}, True),
        ({"metadata": {"ownerReferences": [{"kind": "ReplicaSet", "name": "web"}]}, "spec": {"priority": 1000}}, True),
        ({"metadata": {"ownerReferences": [DAEMON_SET]}, "spec": {}}, False),
        # Attacks: the creator of a pod writes its owners, so that no limit applies to it.
        ({"metadata": {"ownerReferences": [DAEMON_SET | {"apiVersion": "evil.io/v1"}]}, "spec": {}}, True),
        ({"metadata": {"ownerReferences": [DAEMON_SET | {"apiVersion": "evil.io/apps/v1"}]}, "spec": {}}, True),
        ({"metadata": {"ownerReferences": [DAEMON_SET | {"apiVersion": "v1"}]}, "spec": {}}, True),
        ({"metadata": {"ownerReferences": [DAEMON_SET | {"controller": False}]}, "spec": {}}, True),
        ({"metadata": {"ownerReferences": [DAEMON_SET | {"uid": "made-up"}]}, "spec": {}}, True),
        ({"metadata": {"ownerReferences": None}, "spec": {"priority": 2_000_001_000}}, False),
        ({"metadata": None, "spec": {"priority": None}}, True),
    ],
)
def test_daemon_set_and_critical_pods_are_never_filtered(pod: dict[str, object], *, fails: bool) -> None:
    scheduler = Scheduler(replace(nodes_snapshot({"cpu": [0.9]}), daemon_sets=frozenset({"uid-cni"})), FILTER_80)
    body = json.dumps({"Pod": pod, "NodeNames": ["node-1"]}).encode()
    assert bool(json.loads(scheduler.send("/scheduler/filter", body).body)["FailedNodes"]) is fails


@pytest.mark.parametrize("name", ["\\ud800", "\\u0000", "ü", "a b"])
def test_no_node_name_breaks_the_answer(name: str) -> None:
    response = Scheduler(nodes_snapshot({"cpu": [0.2]})).send(
        "/scheduler/prioritize", f'{{"Pod":{{"spec":{{}}}},"NodeNames":["{name}"]}}'.encode()
    )
    assert response.status in {200, 400}
    assert json.loads(response.body)


def test_bodies_of_at_most_64_mib_are_read() -> None:
    routes = Scheduler(nodes_snapshot({"cpu": [0.2]})).routes
    assert {routes[path].largest_body_bytes for path in ("/scheduler/filter", "/scheduler/prioritize")} == {64 << 20}
    assert LARGEST_BODY_BYTES == 64 << 20


def test_four_requests_are_answered_at_once_and_a_fifth_gets_503() -> None:
    begun, may_end = threading.Semaphore(0), threading.Event()

    def slow(raw: bytes) -> PendingPod:
        begun.release()
        assert may_end.wait(20)
        return pending_of(raw)

    current = nodes_snapshot({"cpu": [0.2]})
    routes = {each.path: each for each in Extender(lambda: current, slow, SchedulingSettings()).routes()}
    request = Request("POST", "/scheduler/prioritize", body=b'{"Pod":{"spec":{}},"NodeNames":["node-1"]}')
    statuses: list[int] = []
    threads = [
        threading.Thread(target=lambda: statuses.append(routes["/scheduler/prioritize"].handle(request).status))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    assert all(begun.acquire(timeout=20) for _ in threads)
    assert routes["/scheduler/peaks/prioritize"].handle(request).status == 503
    may_end.set()
    for thread in threads:
        thread.join(20)
    assert statuses == [200] * 4
    assert routes["/scheduler/prioritize"].handle(request).status == 200
