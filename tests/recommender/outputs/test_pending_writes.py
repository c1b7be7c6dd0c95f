from __future__ import annotations

from dataclasses import replace

import pytest

from adapter.foundation.time.backoff import Backoff
from adapter.foundation.time.clock import Moment
from recommender.decisions.record import Record, Status, TargetAction, TargetOutcome, TargetReference
from recommender.outputs.pending_writes import PendingWrite, PendingWrites, pending_writes_of, refused_targets
from recommender.outputs.scale_results import ScaleResult
from tests.recommender.decisions.harness import sized

WEB = TargetReference("apps/v1", "Deployment", "shop", "web")
DNS = TargetReference("apps/v1", "Deployment", "kube-system", "coredns")
WRITE = PendingWrite("web", WEB, 5, valid_until=1060.0)
RETRIED = [ScaleResult.ERROR, ScaleResult.CONFLICT, ScaleResult.FENCED]


class Counted:
    def __init__(self) -> None:
        self.results: list[ScaleResult] = []
        self.pending = PendingWrites(
            lambda _name, result: self.results.append(result), lambda: Backoff(1.0, 60.0, jitter_ratio=0.0)
        )

    def attempt(self, seconds: float, *, suspects_too: bool = True) -> PendingWrite | None:
        start = self.pending.start(at(seconds), suspects_too=suspects_too)
        return None if start is None else start.write


def at(seconds: float) -> Moment:
    return Moment(seconds, 1000.0 + seconds)


def test_a_successful_write_is_attempted_once_and_then_forgotten() -> None:
    book = Counted()
    book.pending.put(WRITE, at(0))
    assert book.attempt(0) == WRITE
    assert book.attempt(0) is None, "an attempt is under way"
    book.pending.record_result(WRITE, ScaleResult.OK, at(1))
    assert book.attempt(9) is None
    assert len(book.pending) == 0
    assert book.results == []


@pytest.mark.parametrize("result", RETRIED)
def test_failed_attempts_are_repeated_with_back_off(result: ScaleResult) -> None:
    book = Counted()
    book.pending.put(replace(WRITE, valid_until=2000.0), at(0))
    now = 0.0
    for wait in (1.0, 2.0, 4.0, 8.0):
        assert book.attempt(now) is not None
        book.pending.record_result(WRITE, result, at(now))
        assert book.attempt(now + 0.99 * wait) is None
        now += wait


def test_the_wait_requested_by_the_server_is_respected() -> None:
    book = Counted()
    book.pending.put(WRITE, at(0))
    book.attempt(0)
    book.pending.record_result(WRITE, ScaleResult.ERROR, at(0), at_least_seconds=30.0)
    assert book.attempt(30.9) is None
    assert book.attempt(31.0) == WRITE


def test_a_newer_decision_supersedes_an_older_one_and_keeps_its_back_off() -> None:
    book = Counted()
    book.pending.put(WRITE, at(0))
    book.attempt(0)
    book.pending.record_result(WRITE, ScaleResult.ERROR, at(0), at_least_seconds=10.0)
    newer = replace(WRITE, replicas=6)
    book.pending.put(newer, at(1))
    assert book.results == [ScaleResult.SUPERSEDED]
    assert book.attempt(10.9) is None
    assert book.attempt(11.0) == newer


def test_a_repeated_decision_extends_its_write() -> None:
    book = Counted()
    book.pending.put(WRITE, at(0))
    book.pending.put(replace(WRITE, valid_until=1090.0), at(30))
    assert book.attempt(89) is not None
    assert book.results == []


def test_an_attempt_in_progress_is_superseded_before_it_is_sent() -> None:
    book = Counted()
    book.pending.put(WRITE, at(0))
    book.attempt(0)
    assert book.pending.may_send(WRITE, at(1)) is None
    newer = replace(WRITE, replicas=6)
    book.pending.put(newer, at(1))
    assert book.pending.may_send(WRITE, at(1)) is ScaleResult.SUPERSEDED
    assert book.results == [], "the attempt reports it"
    assert book.attempt(1) is None, "one attempt a target at a time"
    book.pending.record_result(WRITE, ScaleResult.SUPERSEDED, at(2))
    assert book.attempt(2) == newer


@pytest.mark.parametrize(
    ("monotonic", "wall"), [(60.0, 1001.0), (1.0, 1060.0)], ids=["wall-clock-set-back", "wall-clock-set-forward"]
)
def test_a_write_is_never_attempted_after_its_expiry_on_either_clock(monotonic: float, wall: float) -> None:
    book = Counted()
    book.pending.put(WRITE, at(0))
    assert book.pending.start(Moment(monotonic, wall)) is None
    assert book.results == [ScaleResult.EXPIRED]
    book.pending.put(WRITE, at(0))
    book.attempt(0)
    assert book.pending.may_send(WRITE, Moment(monotonic, wall)) is ScaleResult.EXPIRED


def test_a_withdrawn_write_is_not_attempted() -> None:
    book = Counted()
    book.pending.put(WRITE, at(0))
    book.pending.put(replace(WRITE, target=DNS, recommendation="dns"), at(0))
    book.pending.withdraw(lambda write: write.recommendation == "dns")
    assert book.results == [ScaleResult.SUPERSEDED]
    found = book.attempt(0)
    assert found is not None
    assert found.recommendation == "dns"
    assert book.attempt(0) is None


def test_a_back_off_outlives_the_write_that_caused_it() -> None:
    book = Counted()
    book.pending.put(WRITE, at(0))
    book.attempt(0)
    book.pending.record_result(WRITE, ScaleResult.ERROR, at(0), at_least_seconds=10.0)
    book.pending.withdraw(lambda _: False)
    book.pending.put(WRITE, at(1))
    assert book.attempt(10.9) is None
    book.pending.withdraw(lambda _: False)
    assert book.attempt(11.0) is None
    assert len(book.pending) == 0, "nothing is remembered for ever"


def test_suspect_targets_leave_room_for_others() -> None:
    book = Counted()
    book.pending.put(WRITE, at(0))
    book.attempt(0)
    book.pending.record_result(WRITE, ScaleResult.ERROR, at(0))
    other = replace(WRITE, target=DNS)
    book.pending.put(other, at(2))
    assert book.attempt(2, suspects_too=False) == other
    assert book.attempt(2, suspects_too=False) is None
    assert book.attempt(3) == WRITE


@pytest.mark.parametrize("is_under_way", [False, True])
def test_another_write_does_not_wait_for_one_that_was_undone(*, is_under_way: bool) -> None:
    book, newer = Counted(), replace(WRITE, replicas=6)
    book.pending.put(WRITE, at(0))
    assert book.attempt(0) == WRITE
    if is_under_way:
        book.pending.put(newer, at(1))
        assert book.attempt(1) is None, "one attempt a target at a time"
    book.pending.record_result(WRITE, ScaleResult.ERROR, at(2), is_undone=True)
    book.pending.put(newer, at(2))
    assert book.attempt(2, suspects_too=False) == newer
    failures = 1 if is_under_way else 2
    book.pending.record_result(newer, ScaleResult.ERROR, at(2))
    assert book.attempt(2 + 0.99 * failures) is None
    assert book.attempt(2 + failures) == newer, "the back-off goes on"


def test_the_same_write_waits_after_it_was_undone_but_its_server_is_not_suspect() -> None:
    book, write = Counted(), replace(WRITE, valid_until=1090.0)
    book.pending.put(write, at(0))
    for now, wait in ((0.0, 1.0), (1.0, 2.0), (3.0, 4.0)):
        assert book.attempt(now, suspects_too=False) == write
        book.pending.record_result(write, ScaleResult.ERROR, at(now), is_undone=True)
        book.pending.put(replace(write, reason="decided again"), at(now))
        write = replace(write, reason="decided again")
        assert book.attempt(now + 0.99 * wait) is None


def test_after_a_failure_of_the_server_every_write_waits_although_one_was_undone_before() -> None:
    book = Counted()
    book.pending.put(WRITE, at(0))
    book.attempt(0)
    book.pending.record_result(WRITE, ScaleResult.ERROR, at(0), is_undone=True)
    book.attempt(1)
    book.pending.record_result(WRITE, ScaleResult.ERROR, at(1))
    book.pending.put(replace(WRITE, replicas=6), at(1))
    assert book.attempt(2.9) is None


RECORD = Record(
    name="web",
    type="proportional",
    time=1.0,
    status=Status.OK,
    message="16 nodes a replica",
    replicas=5,
    targets=(
        TargetOutcome(WEB, 3, TargetAction.SCALE, recommended_replicas=5),
        TargetOutcome(DNS, 3, TargetAction.REFUSED, "HorizontalPodAutoscaler shop/web", recommended_replicas=5),
    ),
)


def test_a_record_determines_the_scale_calls_and_their_reasons() -> None:
    assert pending_writes_of(RECORD, 60.0) == (PendingWrite("web", WEB, 5, 60.0, "16 nodes a replica", known_size=3),)
    assert refused_targets([RECORD]) == (("web", DNS),)


@pytest.mark.parametrize(
    "record",
    [
        sized(RECORD, None),
        replace(
            RECORD,
            targets=(
                TargetOutcome(WEB, 5, TargetAction.NONE, recommended_replicas=5),
                TargetOutcome(DNS, 3, TargetAction.METRIC, recommended_replicas=5),
            ),
        ),
    ],
)
def test_other_records_request_no_scale_call(record: Record) -> None:
    assert pending_writes_of(record, 60.0) == ()
