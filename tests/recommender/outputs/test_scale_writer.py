from __future__ import annotations

import logging
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
from recommender.outputs.scale_documents import ScaleDocumentError, replicas_of, target_path
from recommender.outputs.scale_results import ScaleResult
from recommender.outputs.scale_writer import ScaleEffects, ScaleHooks, ScaleLimits, ScaleWriter
from recommender.outputs.write_attempt import longest_fenced_write_seconds
from tests.recommender.outputs.scale_harness import DB, POOL, WEB, Harness, decision, fails_once, resolve
from tests.support.apiserver_kinds import DEPLOYMENTS, MACHINE_DEPLOYMENTS, STATEFUL_SETS
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from recommender.outputs.pending_writes import PendingWrite


@pytest.mark.parametrize(
    ("target", "kind"), [(WEB, DEPLOYMENTS), (DB, STATEFUL_SETS), (POOL, MACHINE_DEPLOYMENTS)], ids=str
)
@pytest.mark.parametrize("replicas", [0, 7])
def test_a_target_of_any_kind_gets_the_size(target: TargetReference, kind: tuple[str, str], replicas: int) -> None:
    harness = Harness()
    harness.decide(decision(replicas, target))
    assert harness.size(kind, target.name) == replicas
    assert harness.counted == [("web", ScaleResult.OK)]
    assert harness.stored == ["web"]
    assert harness.outcomes[0].before == 3
    assert harness.outcomes[0].uid.startswith("uid-")


@pytest.mark.parametrize(
    ("answer", "stored"),
    [({}, 5), ({"spec": {"replicas": 4}}, 4), ({"spec": "?"}, None)],
    ids=["as it was sent", "changed by an admission webhook", "not readable"],
)
def test_the_outcome_states_the_size_that_the_server_stored(
    answer: dict[str, Any], stored: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    harness = Harness()
    harness.objects.answer = lambda document: {**document, **answer}
    harness.decide(decision(5))
    assert harness.results == [ScaleResult.OK]
    assert harness.outcomes[0].stored == stored
    (scaled,) = (each for each in caplog.records if each.message == "scaled")
    assert scaled.__dict__["fields"].get("stored") == (4 if stored == 4 else None)


def test_a_target_that_already_has_the_size_is_not_written() -> None:
    harness = Harness()
    harness.store.change(DEPLOYMENTS, "shop", "web", lambda one: one["spec"].update(replicas=0))
    harness.decide(decision(0))
    assert harness.results == [ScaleResult.UNCHANGED]
    assert harness.objects.puts == []
    assert harness.stored == [], "nothing starts, so nothing is stored"


def test_the_memory_is_stored_before_a_scale_call() -> None:
    harness = Harness()
    order: list[str] = []
    harness.objects.before = lambda method, _path: order.append(f"{method} after {len(harness.stored)} stores")
    harness.decide(decision(5))
    assert order == ["GET after 0 stores", "PUT after 1 stores"]


def test_no_scale_call_is_sent_if_the_memory_cannot_be_stored() -> None:
    harness = Harness(stores=False)
    harness.decide(decision(5))
    assert harness.objects.puts == []
    assert harness.results == [ScaleResult.ERROR]
    assert "could not be stored" in harness.outcomes[0].message
    harness.stores = True
    harness.wait(2)
    assert harness.size() == 5


def test_the_target_is_read_again_after_a_conflict() -> None:
    harness = Harness()

    def others(method: str, _path: str) -> None:
        if method == "PUT" and len(harness.counted) == 0:
            harness.store.change(DEPLOYMENTS, "shop", "web", lambda one: one["spec"].update(replicas=4))

    harness.objects.before = others
    harness.decide(decision(5))
    assert harness.results == [ScaleResult.CONFLICT]
    harness.wait(2)
    assert harness.results == [ScaleResult.CONFLICT, ScaleResult.OK]
    assert harness.outcomes[-1].before == 4


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
    harness = Harness()
    harness.store.change(DEPLOYMENTS, "shop", "web", lambda one: one["spec"].update(replicas=found))
    harness.decide(decision(wanted, current=decided_at))
    assert harness.results == [ScaleResult.OK if is_written else ScaleResult.CONFLICT]
    assert harness.size() == (wanted if is_written else found)
    if not is_written:
        assert harness.outcomes[0].message == f"its size is now {found}, but {wanted} was decided at {decided_at}"
        assert harness.stored == [], "nothing starts, so nothing is stored"


def test_a_decision_for_another_size_is_tried_once_and_the_next_one_is_written_at_once() -> None:
    harness = Harness()
    harness.store.change(DEPLOYMENTS, "shop", "web", lambda one: one["spec"].update(replicas=8))
    harness.decide(decision(5, current=3))
    harness.wait(20)
    assert harness.results == [ScaleResult.CONFLICT]
    harness.decide(decision(5, current=8))
    assert harness.size() == 5
    assert harness.results == [ScaleResult.CONFLICT, ScaleResult.OK]


def test_a_write_with_unknown_outcome_is_followed_by_a_read() -> None:
    harness = Harness()

    def lost(_path: str) -> None:
        raise UnknownOutcomeError("PUT: sent, but no answer")

    harness.objects.after_put = lost
    harness.decide(decision(5))
    harness.wait(2)
    assert [method for method, _ in harness.objects.calls] == ["GET", "PUT", "GET"]
    assert harness.results == [ScaleResult.ERROR, ScaleResult.UNCHANGED]


@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_a_failed_call_is_repeated_until_it_succeeds(method: str) -> None:
    harness = Harness()
    harness.objects.before = fails_once(method, ServerError("500", 500))
    harness.decide(decision(5))
    assert harness.results == [ScaleResult.ERROR]
    harness.wait(2)
    assert harness.results == [ScaleResult.ERROR, ScaleResult.OK]


@pytest.mark.parametrize(
    "target",
    [replace(WEB, kind="Gateway"), replace(WEB, name="none"), replace(WEB, api_version="v1")],
    ids=["no-such-kind", "no-such-object", "kind-of-another-group"],
)
def test_a_target_that_does_not_exist_is_an_error_only_for_itself(target: TargetReference) -> None:
    harness = Harness()
    harness.decide(decision(5, target, DB))
    assert sorted(harness.results) == [ScaleResult.ERROR, ScaleResult.OK]
    assert harness.size(STATEFUL_SETS, "db") == 5


def test_a_fenced_process_sends_nothing() -> None:
    harness = Harness(permits=False)
    harness.decide(decision(5))
    assert harness.objects.puts == []
    assert harness.results == [ScaleResult.FENCED]


def test_nothing_is_sent_after_the_decision_has_expired_during_the_attempt() -> None:
    harness = Harness()

    def slow(method: str, _path: str) -> None:
        if method == "GET":
            harness.now += 61.0

    harness.objects.before = slow
    harness.decide(decision(5))
    assert harness.objects.puts == []
    assert harness.results == [ScaleResult.EXPIRED]


def test_nothing_is_sent_after_the_decision_has_expired_while_the_memory_was_stored() -> None:
    harness = Harness()

    def slow(_write: PendingWrite) -> bool:
        harness.now += 61.0
        return True

    harness.writer._hooks = replace(harness.writer._hooks, before_write=slow)
    harness.decide(decision(5))
    assert harness.objects.puts == []
    assert harness.results == [ScaleResult.EXPIRED]


def test_a_newer_decision_replaces_the_attempt_in_progress() -> None:
    harness = Harness()

    def slow(method: str, _path: str) -> None:
        if method == "GET" and not harness.counted and len(harness.objects.calls) == 1:
            harness.writer.follow_decision("web", [(decision(9), harness.wall() + 60.0)])

    harness.objects.before = slow
    harness.decide(decision(5))
    assert harness.objects.puts == [("/apis/apps/v1/namespaces/shop/deployments/web/scale", 9)]
    assert harness.results == [ScaleResult.SUPERSEDED, ScaleResult.OK]


@pytest.mark.parametrize(
    "newer",
    [decision(None), decision(5, action=TargetAction.NONE), decision(5, DB)],
    ids=["no-value", "no-action", "other"],
)
def test_a_failed_call_is_dropped_if_the_next_decision_does_not_repeat_it(newer: Record) -> None:
    harness = Harness()
    harness.objects.before = fails_once("GET", DeadlineError("no answer"))
    harness.decide(decision(5))
    harness.decide(newer)
    harness.wait(70)
    assert harness.size() == 3
    assert harness.results.count(ScaleResult.SUPERSEDED) == 1


def test_calls_of_removed_recommendations_are_dropped() -> None:
    harness = Harness()
    harness.objects.before = fails_once("GET", DeadlineError("no answer"))
    harness.decide(decision(5))
    harness.writer.retain({"other"})
    harness.wait(70)
    assert harness.size() == 3
    harness.objects.before = fails_once("GET", DeadlineError("no answer"))
    harness.decide(decision(6))
    harness.writer.clear()
    harness.wait(70)
    assert harness.size() == 3


def test_a_refused_target_is_counted_and_not_written() -> None:
    harness = Harness()
    harness.decide(decision(5, action=TargetAction.REFUSED))
    assert harness.counted == [("web", ScaleResult.REFUSED)]
    assert harness.objects.calls == []


def test_many_decisions_do_not_cause_many_failing_calls() -> None:
    harness = Harness()

    def refuse(_method: str, _path: str) -> None:
        raise ServerError("500", 500)

    harness.objects.before = refuse
    for replicas in range(1000):
        harness.decide(decision(replicas))
        harness.now += 0.01
    assert len(harness.objects.calls) <= 7, "10 s of decisions, and the back-off doubles from half a second"


def test_attempts_start_at_a_limited_rate() -> None:
    harness = Harness()
    targets = [replace(WEB, name=f"web-{number}") for number in range(100)]
    harness.writer = ScaleWriter(
        harness.objects,
        resolve,
        Fence(2.0, lambda _: True),
        ScaleHooks(before_write=lambda _: True, count=lambda _name, _result: None, on_result=lambda _: None),
        limits=ScaleLimits(per_second=10.0, burst=20),
        effects=ScaleEffects(Clock(lambda: harness.now, harness.wall), lambda work: work()),
    )
    harness.decide(decision(5, *targets))
    assert len(harness.objects.calls) == 20
    harness.now += 1.0
    harness.writer.step()
    assert len(harness.objects.calls) == 30


def test_attempts_at_the_same_time_are_limited() -> None:
    harness = Harness()
    attempts: list[Callable[[], None]] = []
    harness.writer._limits = ScaleLimits(per_second=1000.0, burst=1000, at_once=3)
    harness.writer._effects = ScaleEffects(Clock(lambda: harness.now, harness.wall), attempts.append)
    harness.decide(decision(5, *(replace(WEB, name=f"web-{number}") for number in range(10))))
    assert len(attempts) == 3
    attempts[0]()
    harness.writer.step()
    assert len(attempts) == 4


def test_an_attempt_without_a_thread_is_repeated() -> None:
    harness = Harness()
    failures = [RuntimeError("can't start new thread")] * 30

    def start(work: Callable[[], None]) -> None:
        if failures:
            raise failures.pop()
        work()

    harness.writer._effects = ScaleEffects(Clock(lambda: harness.now, harness.wall), start)
    harness.decide(decision(5), seconds=10_000.0)
    assert harness.results == [ScaleResult.ERROR]
    harness.wait(2000)
    assert harness.size() == 5


def test_a_target_that_hangs_does_not_delay_the_others() -> None:
    harness = Harness()
    released, stop = threading.Event(), threading.Event()
    hangs = {f"hang-{number}" for number in range(4)}

    def hang(_method: str, path: str) -> None:
        if path.split("/")[-2] in hangs:
            released.wait(20.0)

    attempts: list[threading.Thread] = []

    def start(attempt: Callable[[], None]) -> None:
        attempts.append(threading.Thread(target=attempt))
        attempts[-1].start()

    harness.objects.before = hang
    writer = ScaleWriter(
        harness.objects,
        resolve,
        Fence(2.0, lambda _: True),
        ScaleHooks(before_write=lambda _: True, count=lambda _name, _result: None, on_result=lambda _: None),
        limits=ScaleLimits(at_once=6, suspects_at_once=3),
        effects=ScaleEffects(Clock(wall=harness.wall), start),
    )
    loop = threading.Thread(target=writer.run, args=(stop,))
    loop.start()
    try:
        hung = decision(5, *(replace(WEB, name=name) for name in sorted(hangs)), name="hung")
        writer.follow_decision(hung.name, [(hung, 2000.0)])
        both = decision(5, WEB, DB)
        writer.follow_decision(both.name, [(both, 2000.0)])
        until(lambda: harness.size() == 5 and harness.size(STATEFUL_SETS, "db") == 5)
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
