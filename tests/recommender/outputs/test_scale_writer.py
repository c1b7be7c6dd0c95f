from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from adapter.foundation.objects.resources import UnknownResourceError
from adapter.foundation.sources.kubernetes.errors import DeadlineError, ServerError, UnknownOutcomeError
from adapter.foundation.sources.kubernetes.writing import Fence
from adapter.foundation.time.clock import Clock
from recommender.decisions.record import Record, TargetAction, TargetReference
from recommender.leader_election.lease_rules import LeaseTiming
from recommender.outputs.scale_documents import ScaleDocumentError, replicas_of
from recommender.outputs.scale_results import ScaleResult
from recommender.outputs.scale_writer import ScaleEffects, ScaleHooks, ScaleLimits, ScaleWriter
from recommender.outputs.target_paths import target_path
from recommender.outputs.write_attempt import longest_fenced_write_seconds
from tests.recommender.outputs.scale_world import DB, POOL, WEB, World, decision, fails_once, resolve
from tests.support.apiserver_kinds import DEPLOYMENTS, MACHINE_DEPLOYMENTS, STATEFUL_SETS
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize(
    ("target", "kind"), [(WEB, DEPLOYMENTS), (DB, STATEFUL_SETS), (POOL, MACHINE_DEPLOYMENTS)], ids=str
)
@pytest.mark.parametrize("replicas", [0, 7])
def test_a_target_of_any_kind_gets_the_size(target: TargetReference, kind: tuple[str, str], replicas: int) -> None:
    world = World()
    world.decide(decision(replicas, target))
    assert world.size(kind, target.name) == replicas
    assert world.counted == [("web", ScaleResult.OK)]
    assert world.stored == ["web"]
    assert world.outcomes[0].before == 3
    assert world.outcomes[0].uid.startswith("uid-")


def test_a_target_that_already_has_the_size_is_not_written() -> None:
    world = World()
    world.store.change(DEPLOYMENTS, "shop", "web", lambda one: one["spec"].update(replicas=0))
    world.decide(decision(0))
    assert world.results == [ScaleResult.UNCHANGED]
    assert world.objects.puts == []
    assert world.stored == [], "nothing starts, so nothing is stored"


def test_the_memory_is_stored_before_a_scale_call() -> None:
    world = World()
    order: list[str] = []
    world.objects.before = lambda method, _path: order.append(f"{method} after {len(world.stored)} stores")
    world.decide(decision(5))
    assert order == ["GET after 0 stores", "PUT after 1 stores"]


def test_no_scale_call_is_sent_if_the_memory_cannot_be_stored() -> None:
    world = World(stores=False)
    world.decide(decision(5))
    assert world.objects.puts == []
    assert world.results == [ScaleResult.ERROR]
    assert "could not be stored" in world.outcomes[0].message
    world.stores = True
    world.wait(2)
    assert world.size() == 5


def test_the_target_is_read_again_after_a_conflict() -> None:
    world = World()

    def others(method: str, _path: str) -> None:
        if method == "PUT" and len(world.counted) == 0:
            world.store.change(DEPLOYMENTS, "shop", "web", lambda one: one["spec"].update(replicas=4))

    world.objects.before = others
    world.decide(decision(5))
    assert world.results == [ScaleResult.CONFLICT]
    world.wait(2)
    assert world.results == [ScaleResult.CONFLICT, ScaleResult.OK]
    assert world.outcomes[-1].before == 4


@pytest.mark.parametrize(
    ("decided_at", "found", "wanted", "is_written"),
    [
        (3, 3, 5, True),
        (3, 4, 5, True),
        (8, 6, 5, True),
        (3, 8, 5, False),
        (3, 2, 5, False),
        (8, 4, 5, False),
        (8, 9, 5, False),
        (None, 9, 5, True),
    ],
    ids=["same", "nearer", "nearer-down", "beyond", "farther", "below", "farther-down", "unknown"],
)
def test_a_write_changes_the_size_by_no_more_than_was_decided(
    decided_at: int | None, found: int, wanted: int, *, is_written: bool
) -> None:
    world = World()
    world.store.change(DEPLOYMENTS, "shop", "web", lambda one: one["spec"].update(replicas=found))
    world.decide(decision(wanted, current=decided_at))
    assert world.results == [ScaleResult.OK if is_written else ScaleResult.CONFLICT]
    assert world.size() == (wanted if is_written else found)
    if not is_written:
        assert world.outcomes[0].message == f"its size is now {found}, but {wanted} was decided at {decided_at}"
        assert world.stored == [], "nothing starts, so nothing is stored"


def test_a_decision_for_another_size_is_tried_once_and_the_next_one_is_written_at_once() -> None:
    world = World()
    world.store.change(DEPLOYMENTS, "shop", "web", lambda one: one["spec"].update(replicas=8))
    world.decide(decision(5, current=3))
    world.wait(20)
    assert world.results == [ScaleResult.CONFLICT]
    world.decide(decision(5, current=8))
    assert world.size() == 5
    assert world.results == [ScaleResult.CONFLICT, ScaleResult.OK]


def test_a_write_with_unknown_outcome_is_followed_by_a_read() -> None:
    world = World()

    def lost(_path: str) -> None:
        raise UnknownOutcomeError("PUT: sent, but no answer")

    world.objects.after_put = lost
    world.decide(decision(5))
    world.wait(2)
    assert [method for method, _ in world.objects.calls] == ["GET", "PUT", "GET"]
    assert world.results == [ScaleResult.ERROR, ScaleResult.UNCHANGED]


@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_a_failed_call_is_repeated_until_it_succeeds(method: str) -> None:
    world = World()
    world.objects.before = fails_once(method, ServerError("500", 500))
    world.decide(decision(5))
    assert world.results == [ScaleResult.ERROR]
    world.wait(2)
    assert world.results == [ScaleResult.ERROR, ScaleResult.OK]


@pytest.mark.parametrize(
    "target",
    [replace(WEB, kind="Gateway"), replace(WEB, name="none"), replace(WEB, api_version="v1")],
    ids=["no-such-kind", "no-such-object", "kind-of-another-group"],
)
def test_a_target_that_does_not_exist_is_an_error_only_for_itself(target: TargetReference) -> None:
    world = World()
    world.decide(decision(5, target, DB))
    assert sorted(world.results) == [ScaleResult.ERROR, ScaleResult.OK]
    assert world.size(STATEFUL_SETS, "db") == 5


def test_a_fenced_process_sends_nothing() -> None:
    world = World(permits=False)
    world.decide(decision(5))
    assert world.objects.puts == []
    assert world.results == [ScaleResult.FENCED]


def test_nothing_is_sent_after_the_decision_has_expired_during_the_attempt() -> None:
    world = World()

    def slow(method: str, _path: str) -> None:
        if method == "GET":
            world.now += 61.0

    world.objects.before = slow
    world.decide(decision(5))
    assert world.objects.puts == []
    assert world.results == [ScaleResult.EXPIRED]


def test_a_newer_decision_replaces_the_attempt_in_progress() -> None:
    world = World()

    def slow(method: str, _path: str) -> None:
        if method == "GET" and not world.counted and len(world.objects.calls) == 1:
            world.writer.decided("web", [(decision(9), world.wall() + 60.0)])

    world.objects.before = slow
    world.decide(decision(5))
    assert world.objects.puts == [("/apis/apps/v1/namespaces/shop/deployments/web/scale", 9)]
    assert world.results == [ScaleResult.SUPERSEDED, ScaleResult.OK]


@pytest.mark.parametrize(
    "newer",
    [decision(None), decision(5, action=TargetAction.NONE), decision(5, DB)],
    ids=["no-value", "no-action", "other"],
)
def test_a_failed_call_is_dropped_if_the_next_decision_does_not_repeat_it(newer: Record) -> None:
    world = World()
    world.objects.before = fails_once("GET", DeadlineError("no answer"))
    world.decide(decision(5))
    world.decide(newer)
    world.wait(70)
    assert world.size() == 3
    assert world.results.count(ScaleResult.SUPERSEDED) == 1


def test_calls_of_removed_recommendations_are_dropped() -> None:
    world = World()
    world.objects.before = fails_once("GET", DeadlineError("no answer"))
    world.decide(decision(5))
    world.writer.retain({"other"})
    world.wait(70)
    assert world.size() == 3
    world.objects.before = fails_once("GET", DeadlineError("no answer"))
    world.decide(decision(6))
    world.writer.clear()
    world.wait(70)
    assert world.size() == 3


def test_a_refused_target_is_counted_and_not_written() -> None:
    world = World()
    world.decide(decision(5, action=TargetAction.REFUSED))
    assert world.counted == [("web", ScaleResult.REFUSED)]
    assert world.objects.calls == []


def test_many_decisions_do_not_cause_many_failing_calls() -> None:
    world = World()

    def refuse(_method: str, _path: str) -> None:
        raise ServerError("500", 500)

    world.objects.before = refuse
    for replicas in range(1000):
        world.decide(decision(replicas))
        world.now += 0.01
    assert len(world.objects.calls) <= 7, "10 s of decisions, and the back-off doubles from half a second"


def test_attempts_start_at_a_limited_rate() -> None:
    world = World()
    targets = [replace(WEB, name=f"web-{number}") for number in range(100)]
    world.writer = ScaleWriter(
        world.objects,
        resolve,
        Fence(2.0, lambda _: True),
        ScaleHooks(before_write=lambda _: True, count=lambda _name, _result: None, on_result=lambda _: None),
        limits=ScaleLimits(per_second=10.0, burst=20),
        effects=ScaleEffects(Clock(lambda: world.now, world.wall), lambda work: work()),
    )
    world.decide(decision(5, *targets))
    assert len(world.objects.calls) == 20
    world.now += 1.0
    world.writer.step()
    assert len(world.objects.calls) == 30


def test_an_attempt_without_a_thread_is_repeated() -> None:
    world = World()
    failures = [RuntimeError("can't start new thread")] * 30

    def start(work: Callable[[], None]) -> None:
        if failures:
            raise failures.pop()
        work()

    world.writer._effects = ScaleEffects(Clock(lambda: world.now, world.wall), start)
    world.decide(decision(5), seconds=10_000.0)
    assert world.results == [ScaleResult.ERROR]
    world.wait(2000)
    assert world.size() == 5


def test_a_target_that_hangs_does_not_delay_the_others() -> None:
    world = World()
    released, stop = threading.Event(), threading.Event()
    hangs = {f"hang-{number}" for number in range(4)}

    def hang(_method: str, path: str) -> None:
        if path.split("/")[-2] in hangs:
            released.wait(20.0)

    attempts: list[threading.Thread] = []

    def start(attempt: Callable[[], None]) -> None:
        attempts.append(threading.Thread(target=attempt))
        attempts[-1].start()

    world.objects.before = hang
    writer = ScaleWriter(
        world.objects,
        resolve,
        Fence(2.0, lambda _: True),
        ScaleHooks(before_write=lambda _: True, count=lambda _name, _result: None, on_result=lambda _: None),
        limits=ScaleLimits(at_once=6, suspects_at_once=3),
        effects=ScaleEffects(Clock(wall=world.wall), start),
    )
    loop = threading.Thread(target=writer.run, args=(stop,))
    loop.start()
    try:
        hung = decision(5, *(replace(WEB, name=name) for name in sorted(hangs)), name="hung")
        writer.decided(hung.name, [(hung, 2000.0)])
        both = decision(5, WEB, DB)
        writer.decided(both.name, [(both, 2000.0)])
        until(lambda: world.size() == 5 and world.size(STATEFUL_SETS, "db") == 5)
    finally:
        released.set()
        stop.set()
        for thread in (loop, *attempts):
            thread.join(10.0)
    assert not loop.is_alive()


def test_a_fenced_write_ends_before_the_lease_does() -> None:
    timing = LeaseTiming()
    seconds = longest_fenced_write_seconds(timing)
    assert seconds > 2.0
    assert timing.renew_deadline_seconds + 1.5 * seconds + timing.slack_seconds <= timing.lease_seconds


@pytest.mark.parametrize(
    "document",
    [{}, {"kind": "Deployment", "spec": {"replicas": 1}}, {"kind": "Scale", "spec": {"replicas": True}}]
    + [{"kind": "Scale", "spec": wrong} for wrong in ({"replicas": -1}, {"replicas": "3"}, {"replicas": 2**31}, [1])],
)
def test_a_document_that_is_not_a_scale_is_refused(document: dict[str, Any]) -> None:
    with pytest.raises(ScaleDocumentError):
        replicas_of(document)


def test_the_path_of_a_target_names_its_version() -> None:
    controller = TargetReference("v1", "ReplicationController", "shop", "old")
    assert target_path(controller, resolve) == "/api/v1/namespaces/shop/replicationcontrollers/old"
    assert (
        target_path(replace(POOL, api_version="cluster.x-k8s.io/v1beta2"), resolve)
        == "/apis/cluster.x-k8s.io/v1beta2/namespaces/shop/machinedeployments/pool"
    )
    with pytest.raises(UnknownResourceError, match="check apiVersion"):
        target_path(replace(WEB, api_version="v1"), resolve)


@pytest.mark.parametrize("kind", ["deployment", "deployments", "DEPLOYMENT"])
def test_a_misspelled_kind_is_refused(kind: str) -> None:
    with pytest.raises(UnknownResourceError, match="write 'Deployment'"):
        target_path(replace(WEB, kind=kind), resolve)
