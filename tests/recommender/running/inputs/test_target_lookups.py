"""Looking up targets: what is known of each, and how late or failing answers are treated."""

from __future__ import annotations

import sys
import threading
from dataclasses import replace

import pytest

from adapter.foundation.cluster.values.state import Observed, Unknown
from adapter.foundation.objects.resources import Resource
from adapter.foundation.sources.kubernetes.errors import (
    DeadlineError,
    ForbiddenError,
    KubernetesError,
    NotFoundError,
    ServerError,
    ThrottledError,
    UnauthorizedError,
)
from adapter.foundation.sources.kubernetes.writing import Reply
from adapter.foundation.time.clock import Clock
from recommender.decisions.inputs import TargetState
from recommender.decisions.record import TargetReference
from recommender.running.inputs.target_lookups import TargetLookups
from tests.recommender.running.inputs.lookups_harness import DAEMON_SETS, OBJECT, WEB, WHOLE, Harness
from tests.support.apiserver_kinds import DEPLOYMENTS, MACHINE_DEPLOYMENTS


def test_a_target_is_looked_up_with_its_time_and_uid() -> None:
    harness = Harness()
    found = harness.of()
    assert found == Observed(WHOLE, 1000.0)
    assert isinstance(found, Observed)
    assert found.value is not None
    assert found.value.uid == harness.lookups.uid(WEB)
    assert harness.lookups.uid(WEB).startswith("uid-")
    assert len(harness.paths) == 1
    assert harness.lookups.look([]) == {}
    assert harness.lookups.uid(WEB) == ""


def test_a_target_lookup_without_a_thread_is_sent_once_in_the_next_poll(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_thread(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    harness = Harness()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", no_thread)
        for _ in range(2):
            found = harness.of()
            assert isinstance(found, Unknown)
            assert "can't start new thread" in found.reason
            assert found.is_awaited
    assert harness.of() == Observed(WHOLE, 1000.0)
    assert len(harness.paths) == 1


def test_a_target_that_does_not_exist_is_known_to_be_absent() -> None:
    assert Harness().of(replace(WEB, name="none")) == Observed(None, 1000.0)


def test_a_target_that_exists_and_has_no_size_is_not_absent() -> None:
    harness = Harness()
    agent = TargetReference("apps/v1", "DaemonSet", "shop", "agent")
    harness.objects.put(DAEMON_SETS, "shop", "agent", {"kind": "DaemonSet", "metadata": {}, "spec": {}})

    def without_scale(path: str) -> None:
        if path.endswith("/scale"):
            raise NotFoundError("not found", 404)

    harness.before = without_scale
    assert harness.of(agent) == Unknown("it exists, and its kind has no scale subresource")


def test_scale_is_requested_if_the_spec_of_a_kind_has_no_size() -> None:
    harness = Harness()
    harness.objects.put(MACHINE_DEPLOYMENTS, "shop", "pool", {"kind": "MachineDeployment", "spec": {"replicas": 3}})
    pool = TargetReference("cluster.x-k8s.io/v1beta1", "MachineDeployment", "shop", "pool")
    harness.objects.change(MACHINE_DEPLOYMENTS, "shop", "pool", lambda one: one["spec"].update(replicas=True))
    assert isinstance(harness.of(pool), Unknown)
    assert harness.paths[-1].endswith("/machinedeployments/pool/scale")


class Databases:
    """An API server with an object whose kind has its size in `spec.instances`."""

    def get(self, path: str, *, seconds: float) -> Reply:  # noqa: ARG002 - as the protocol has it
        metadata = {"name": "orders", "annotations": {"tidewatch.io/paused": "down"}, "generation": 2}
        if path.endswith("/scale"):
            return Reply({"kind": "Scale", "metadata": {"name": "orders"}, "spec": {"replicas": 3}})
        return Reply(
            {
                "kind": "Database",
                "metadata": metadata,
                "spec": {"instances": 3},
                "status": {"observedGeneration": 1, "replicas": 3},
            }
        )


def test_a_kind_whose_size_is_in_scale_can_be_paused_and_rolled_out() -> None:
    databases = Resource("db.example.com", "v1", "databases", "database", "Database", True)  # noqa: FBT003
    lookups = TargetLookups(Databases(), lambda _group, _name: databases, clock=Clock(lambda: 0.0, lambda: 1000.0))
    orders = TargetReference("db.example.com/v1", "Database", "shop", "orders")
    assert lookups.look([orders])[orders] == Observed(TargetState(3, True, "down", ()), 1000.0)  # noqa: FBT003


PROMETHEUSES = Resource("monitoring.coreos.com", "v1", "prometheuses", "prometheus", "Prometheus", True)  # noqa: FBT003
PROMETHEUS = TargetReference("monitoring.coreos.com/v1", "Prometheus", "shop", "k8s")


class Prometheuses:
    """An API server with an object whose scale is `spec.shards`, and whose `spec.replicas` mean something else."""

    def __init__(self, scale: Reply | KubernetesError) -> None:
        self.scale = scale
        self.paths: list[str] = []

    def get(self, path: str, *, seconds: float) -> Reply:  # noqa: ARG002 - as the protocol has it
        self.paths.append(path)
        if not path.endswith("/scale"):
            return Reply({"kind": "Prometheus", "metadata": {"name": "k8s"}, "spec": {"replicas": 2, "shards": 5}})
        if isinstance(self.scale, KubernetesError):
            raise self.scale
        return self.scale


@pytest.mark.parametrize(
    ("scale", "replicas", "times"),
    [
        (Reply({"kind": "Scale", "metadata": {}, "spec": {"replicas": 5}}), 5, 3),
        (ForbiddenError("403", 403), 2, 1),
        (NotFoundError("not found", 404), 2, 3),
    ],
)
def test_the_size_of_a_custom_kind_is_that_of_its_scale_if_it_can_be_read(
    scale: Reply | KubernetesError, replicas: int, times: int
) -> None:
    server = Prometheuses(scale)
    clock = Clock(lambda: 0.0, lambda: 1000.0)
    lookups = TargetLookups(server, lambda _group, _name: PROMETHEUSES, clock=clock)
    for _ in range(3):
        found = lookups.look([PROMETHEUS])[PROMETHEUS]
        assert isinstance(found, Observed)
        assert found.value is not None
        assert found.value.replicas == replicas
    # What may not be read is not asked for in each poll.
    assert len([path for path in server.paths if path.endswith("/scale")]) == times


def test_the_size_of_a_custom_kind_is_unknown_while_its_scale_does_not_answer() -> None:
    clock = Clock(lambda: 0.0, lambda: 1000.0)
    server = Prometheuses(ServerError("503", 503))
    found = TargetLookups(server, lambda _group, _name: PROMETHEUSES, clock=clock).look([PROMETHEUS])[PROMETHEUS]
    assert isinstance(found, Unknown)
    assert found.is_awaited


@pytest.mark.parametrize("target", [replace(WEB, kind="Gateway"), replace(WEB, api_version="v1")])
def test_a_target_of_a_kind_that_is_not_served_is_unknown(target: TargetReference) -> None:
    found = Harness().of(target)
    assert isinstance(found, Unknown)


def test_a_failed_lookup_of_one_target_does_not_affect_others() -> None:
    harness = Harness()
    harness.objects.put(DEPLOYMENTS, "shop", "bad", OBJECT)

    def fail(path: str) -> None:
        if path.endswith("/bad"):
            raise DeadlineError("GET: no answer in time")

    harness.before = fail
    bad = replace(WEB, name="bad")
    found = harness.lookups.look([bad, WEB])
    assert found == {
        bad: Unknown("GET: no answer in time", is_awaited=True),
        WEB: Observed(WHOLE, 1000.0),
    }


def test_targets_that_hang_do_not_delay_others_and_are_requested_once_at_a_time() -> None:
    harness = Harness(seconds=1.0)
    released = threading.Event()
    hung = [replace(WEB, name=f"hang-{number}") for number in range(6)]

    def hang(path: str) -> None:
        if "hang" in path:
            released.wait(20.0)

    harness.before = hang
    try:
        for _ in range(3):
            found = harness.lookups.look([*hung, WEB])
            assert found[WEB] == Observed(WHOLE, 1000.0)
            late = Unknown("the API server did not answer within 1 s", is_awaited=True)
            assert all(found[one] == late for one in hung)
        assert len([path for path in harness.paths if "hang" in path]) == len(hung)
    finally:
        released.set()


def test_late_answers_do_not_disturb_the_next_lookup() -> None:
    harness = Harness(seconds=0.0)
    targets = [replace(WEB, name=f"web-{number}") for number in range(600)]
    for target in targets:
        harness.objects.put(DEPLOYMENTS, "shop", target.name, OBJECT)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        # Each look ends at once, and the answers to its new targets arrive during the following ones.
        for count in range(200, len(targets), 8):
            assert len(harness.lookups.look(targets[:count])) == count
    finally:
        sys.setswitchinterval(before)


@pytest.mark.parametrize(
    "error", [DeadlineError("late"), ServerError("503", 503), ThrottledError("429", 429), UnauthorizedError("401", 401)]
)
def test_the_last_answer_is_used_with_its_time_while_the_api_server_fails(error: KubernetesError) -> None:
    harness = Harness()
    assert harness.of() == Observed(WHOLE, 1000.0)

    def fail(_path: str) -> None:
        raise error

    harness.before, harness.now = fail, 20.0
    kept = harness.of()
    assert kept == Observed(WHOLE, 1000.0)
    assert isinstance(kept, Observed)
    assert kept.failure == str(error)
    harness.lookups.look([])
    assert harness.of() == Observed(WHOLE, 1000.0)
    harness.before = lambda _path: None
    assert harness.of() == Observed(WHOLE, 1020.0)


def test_a_refusal_by_the_api_server_takes_effect_at_once() -> None:
    harness = Harness()
    assert isinstance(harness.of(), Observed)
    harness.objects.deny("get", "deployments")
    harness.objects.deny("get", "deployments/scale")
    found = harness.of()
    assert isinstance(found, Unknown)
    assert not found.is_awaited


def test_a_target_that_never_answered_is_awaited_for_a_limited_time() -> None:
    harness = Harness()

    def fail(_path: str) -> None:
        raise DeadlineError("no answer in time")

    harness.before = fail
    waited = []
    for harness.now in (0.0, 30.0, 61.0):
        found = harness.of()
        assert isinstance(found, Unknown)
        waited.append(found.is_awaited)
    assert waited == [True, True, False]
