"""Decisions of an elector, without a server: tables of cases, and two electors with random events."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.foundation.sources.kubernetes.errors import UnexpectedResponseError
from recommender.leader_election.lease_rules import (
    Action,
    Create,
    LeaseRecord,
    LeaseTiming,
    Read,
    Standing,
    Wait,
    Write,
    record_of,
)

WALL = datetime(2026, 11, 21, 6, 0, 0, 123, tzinfo=UTC)
STAMP = "2026-11-21T06:00:00.000123Z"
TIMING = LeaseTiming()
NEW = Standing("me", TIMING)


def lease(holder: str, seconds: int | None = 15, transitions: int = 3, renewed: str = "old") -> dict[str, Any]:
    spec = {
        "holderIdentity": holder,
        "leaseDurationSeconds": seconds,
        "acquireTime": "begun",
        "renewTime": renewed,
        "leaseTransitions": transitions,
    }
    return {"metadata": {"name": "leader", "resourceVersion": "7"}, "spec": {**spec, "strategy": "kept"}}


def action(standing: Standing, now: float) -> Action:
    return standing.next_action(now, WALL)


def test_nothing_is_decided_before_the_lease_was_read() -> None:
    assert action(NEW, 0.0) == Read()


@pytest.mark.parametrize(
    ("found", "later", "expected"),
    [
        (None, 0.0, Create(LeaseRecord("me", 15, STAMP, STAMP, 0))),
        (lease("other"), 0.0, Wait()),
        (lease("other"), 14.999, Wait()),
        (lease("other"), 15.0, LeaseRecord("me", 15, STAMP, STAMP, 4)),
        (lease("other", seconds=40), 39.0, Wait()),
        (lease("other", seconds=None), 0.0, LeaseRecord("me", 15, STAMP, STAMP, 4)),
        (lease(""), 0.0, LeaseRecord("me", 15, STAMP, STAMP, 4)),
        (lease("", seconds=1), 0.0, LeaseRecord("me", 15, STAMP, STAMP, 4)),
        (lease("me"), 0.0, LeaseRecord("me", 15, "begun", STAMP, 3)),
        ({"metadata": {}}, 0.0, LeaseRecord("me", 15, STAMP, STAMP, 1)),
    ],
)
def test_the_lease_that_was_read_determines_the_action(
    found: dict[str, Any] | None, later: float, expected: object
) -> None:
    decided = action(NEW.observed(found, 100.0), 100.0 + later)
    assert (decided.record if isinstance(decided, Write) else decided) == expected


def test_the_lease_of_another_is_timed_by_changes_of_its_record_and_not_by_its_clock() -> None:
    standing = NEW.observed(lease("other", renewed="2099-01-01T00:00:00.000000Z"), 0.0)
    standing = standing.failed().observed(lease("other", renewed="1999-01-01T00:00:00.000000Z"), 10.0)
    assert action(standing, 24.0) == Wait()
    # An unchanged record is no sign of life.
    standing = standing.failed().observed(lease("other", renewed="1999-01-01T00:00:00.000000Z"), 24.0)
    assert isinstance(action(standing, 25.0), Write)


def test_a_lease_deleted_while_it_was_held_is_created_only_after_its_duration() -> None:
    standing = NEW.observed(lease("other"), 0.0).failed().observed(None, 1.0)
    assert action(standing, 14.9) == Wait()
    assert isinstance(action(standing, 15.0), Create)


def test_leadership_lasts_from_the_time_at_which_the_renewal_was_sent() -> None:
    standing = NEW.wrote(lease("me"), sent_at=100.0, now=104.0)
    assert standing.leads(109.9)
    assert not standing.leads(110.0)
    late = NEW.wrote(lease("me"), sent_at=100.0, now=111.0)
    assert not late.leads(111.0)


@pytest.mark.parametrize(
    ("now", "seconds", "allowed"),
    [
        (100.0, 5.0, True),
        # The Lease lives until 115, and clocks may be 0.75 s apart.
        (100.0, 14.2, True),
        (100.0, 14.25, False),
        (109.9, 4.0, True),
        (109.9, 4.4, False),
        (110.0, 0.0, False),
    ],
)
def test_a_write_must_end_before_another_elector_may_lead(now: float, seconds: float, allowed: bool) -> None:  # noqa: FBT001 - a table
    assert NEW.wrote(lease("me"), sent_at=100.0, now=100.0).may_write(now, seconds) == allowed


@pytest.mark.parametrize(
    ("read_at", "now", "seconds"),
    [(100.0, 100.0, 4.4), (100.0, 113.0, 2.0), (100.0, 114.5, 0.5), (100.0, 115.0, 4.4), (100.0, 130.0, 4.4)],
    ids=["just seen", "near its end", "at its end", "ended", "ended long ago"],
)
def test_a_follower_reads_the_lease_again_when_it_ends(read_at: float, now: float, seconds: float) -> None:
    """After a leader was killed, the next one leads at the latest 4.4 + 15 s after the last renewal."""
    follower = Standing("b", TIMING).observed(lease("a"), read_at)
    assert follower.seconds_to_next_round(now, share=1.0) == pytest.approx(seconds)


def test_a_leader_reads_the_lease_again_when_its_leadership_ends() -> None:
    leader = replace(Standing("a", TIMING).observed(lease("a"), 100.0), renewed_at=100.0)
    assert leader.seconds_to_next_round(100.0, share=0.0) == pytest.approx(2.0)
    assert leader.seconds_to_next_round(109.5, share=0.0) == pytest.approx(0.5)


def test_an_elector_that_never_led_may_not_write() -> None:
    assert not NEW.may_write(0.0, 0.0)
    assert not NEW.observed(lease("me"), 0.0).may_write(0.0, 0.0)


@pytest.mark.parametrize("found", [None, lease("other"), lease("")])
def test_a_leader_that_reads_another_holder_no_longer_leads(found: dict[str, Any] | None) -> None:
    assert not NEW.wrote(lease("me"), 0.0, 0.0).observed(found, 1.0).leads(1.0)


def test_a_leader_renews_without_a_read_and_all_others_read_first() -> None:
    leading = NEW.wrote(lease("me"), 0.0, 0.0)
    decided = action(leading.begun(2.0), 2.0)
    assert isinstance(decided, Write)
    assert decided.document()["spec"] == {**lease("me", renewed=STAMP)["spec"], "leaseDurationSeconds": 15}
    assert decided.document()["metadata"] == lease("me")["metadata"]
    assert action(leading.begun(10.0), 10.0) == Read()
    assert action(leading.failed().begun(2.0), 2.0) == Read()


def test_a_lease_is_released_as_by_client_go() -> None:
    write = NEW.wrote(lease("me"), 0.0, 0.0).release_write(WALL)
    assert write is not None
    assert write.record == LeaseRecord("", 1, STAMP, STAMP, 3)
    assert NEW.release_write(WALL) is None
    assert NEW.observed(lease("other"), 0.0).release_write(WALL) is None


@pytest.mark.parametrize(
    "timing",
    [
        {"lease_seconds": 10, "renew_deadline_seconds": 10.0},
        {"renew_deadline_seconds": 2.4},
        {"retry_seconds": 0.0},
        {"retry_seconds": 9.0},
    ],
)
def test_durations_that_cannot_work_are_refused(timing: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be longer than"):
        LeaseTiming(**timing)


def test_a_request_takes_less_than_half_of_the_renew_deadline() -> None:
    assert TIMING.request_seconds < TIMING.renew_deadline_seconds / 2


@pytest.mark.parametrize(("leads", "shortest", "longest"), [(True, 1.6, 2.0), (False, 2.0, 4.4)])
def test_delays_between_tries_are_jittered(leads: bool, shortest: float, longest: float) -> None:  # noqa: FBT001 - one of a table
    delays = sorted(TIMING.delay(leads=leads, share=share) for share in (0.0, 1.0))
    assert delays == pytest.approx([shortest, longest])


@pytest.mark.parametrize("spec", [{"holderIdentity": 3}, {"leaseDurationSeconds": "15"}, {"leaseTransitions": True}])
def test_a_malformed_lease_is_refused(spec: dict[str, Any]) -> None:
    with pytest.raises(UnexpectedResponseError):
        record_of({"spec": spec})


# Electors and a server as the network may lead them: requests come late or never, answers get lost, processes stand
# still, clocks differ by where they begin and by a hundredth in their speed.


@dataclass
class Server:
    version: int = 1
    kept: dict[str, Any] | None = None

    def carry_out(self, request: Create | Write) -> dict[str, Any] | None:
        """Return the changed Lease; None for a conflict."""
        if isinstance(request, Create):
            if self.kept is not None:
                return None
            document: dict[str, Any] = {"metadata": {}, "spec": request.record.spec()}
        else:
            if self.kept is None or self.kept["metadata"]["resourceVersion"] != self.known(request):
                return None
            document = request.document()
        self.version += 1
        self.kept = {**document, "metadata": {"resourceVersion": str(self.version)}}
        return self.kept

    @staticmethod
    def known(request: Write) -> str:
        version: str = request.lease["metadata"]["resourceVersion"]
        return version


@dataclass
class Elector:
    standing: Standing
    offset: float
    rate: float
    sent: tuple[Action, float] | None = None
    answer: tuple[dict[str, Any] | None] | None = None
    late: list[Create | Write] = field(default_factory=list)
    """Writes that the candidate no longer waits for, and that may still arrive."""

    def clock(self, now: float) -> float:
        return self.offset + self.rate * now

    def leads(self, now: float) -> bool:
        return self.standing.leads(self.clock(now))

    def begin(self, now: float) -> None:
        if self.sent is None:
            self.standing = self.standing.begun(self.clock(now))

    def send(self, now: float) -> None:
        if self.sent is None:
            decided = self.standing.next_action(self.clock(now), WALL.replace(microsecond=int(now * 1000) % 10**6))
            if not isinstance(decided, Wait):
                self.sent = decided, self.clock(now)

    def arrive(self, server: Server) -> None:
        """Let the request reach the server."""
        if self.sent is not None and self.answer is None:
            request = self.sent[0]
            found = server.carry_out(request) if isinstance(request, Create | Write) else server.kept
            self.answer = (found,)

    def receive(self, now: float) -> None:
        """Deliver the answer."""
        if self.sent is None or self.answer is None:
            return
        (request, sent_at), (found,) = self.sent, self.answer
        self.sent = self.answer = None
        if isinstance(request, Read):
            self.standing = self.standing.observed(found, self.clock(now))
        elif found is None:
            self.standing = self.standing.failed()
        else:
            self.standing = self.standing.wrote(found, sent_at, self.clock(now))

    def give_up(self) -> None:
        if self.sent is not None:
            request = self.sent[0]
            if self.answer is None and isinstance(request, Create | Write):
                self.late.append(request)
            self.sent = self.answer = None
            self.standing = self.standing.failed()

    def arrive_late(self, server: Server) -> None:
        for request in self.late:
            server.carry_out(request)
        self.late.clear()


STEPS = ["round"] * 5 + ["begin", "send", "send", "arrive", "arrive", "receive", "receive", "give up", "late"]
WAITS = [0.0, 0.0, 0.01, 1.0, 2.0, 3.0, 5.0, 9.0, 16.0]
HISTORIES = 20


def take(step: str, elector: Elector, server: Server, now: float) -> None:
    match step:
        case "begin":
            elector.begin(now)
        case "send":
            elector.send(now)
        case "arrive":
            elector.arrive(server)
        case "receive":
            elector.receive(now)
        case "give up":
            elector.give_up()
        case "late":
            elector.arrive_late(server)
        case _:
            elector.begin(now)
            for _ in range(2):
                elector.send(now)
                elector.arrive(server)
                elector.receive(now)


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32))
def test_two_electors_never_lead_at_the_same_time(seed: int) -> None:
    # A seed instead of drawn steps: thousands of histories in the time of some hundred.
    chance = random.Random(seed)
    for _ in range(HISTORIES):
        server, now = Server(), 0.0
        electors = [
            Elector(Standing(name, TIMING), chance.uniform(0, 1000), chance.uniform(0.99, 1.01)) for name in "ab"
        ]
        for _ in range(60):
            now += chance.choice(WAITS)
            take(chance.choice(STEPS), chance.choice(electors), server, now)
            assert [elector.leads(now) for elector in electors].count(True) <= 1


def test_the_remaining_elector_leads_once_the_lease_of_the_other_ends() -> None:
    server = Server()
    first, second = (Elector(Standing(name, TIMING), 0.0, 1.0) for name in "ab")
    take("round", first, server, 0.0)
    assert first.leads(0.0)
    leading = []
    for now in range(0, 60, 2):
        take("round", second, server, float(now))
        leading.append((first.leads(now), second.leads(now)))
    assert leading[:5] == [(True, False)] * 5
    assert leading[5:8] == [(False, False)] * 3
    assert leading[8:] == [(False, True)] * 22
    assert second.standing.seen is not None
    assert second.standing.seen.transitions == 1


def test_the_simulation_can_detect_two_leaders() -> None:
    # An elector that counts from the answer's arrival, which may be late, overlaps with the next.
    server = Server()
    first, second = (Elector(Standing(name, TIMING), 0.0, 1.0) for name in "ab")
    first.send(0.0)
    first.arrive(server)
    first.receive(0.0)
    first.send(0.0)
    first.arrive(server)
    assert first.sent is not None
    first.sent = first.sent[0], 14.0
    first.receive(14.0)
    take("round", second, server, 0.0)
    take("round", second, server, 16.0)
    assert first.leads(16.0)
    assert second.leads(16.0)
    assert replace(first.standing, renewed_at=0.0).leads(16.0) is False
