"""Electors with an API server that is cut off, slow or stopped, or loses answers: there are never two holders."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from prometheus_client import CollectorRegistry

from adapter.foundation.sources.kubernetes.client import KubernetesClient, RequestDeadlines
from adapter.foundation.sources.kubernetes.credentials.access import from_kubeconfig
from adapter.foundation.sources.kubernetes.writing import ObjectClient
from recommender.leader_election.elector import LeaseElector, since_boot
from recommender.leader_election.lease_events import LeaseEvents, LeaseMetrics
from recommender.leader_election.lease_rules import LeaseTiming
from recommender.leader_election.lease_settings import LeaseSettings, unique_identity
from tests.support.apiserver_kinds import LEASES
from tests.support.apiserver_objects import ObjectStore
from tests.support.fake_apiserver import TOKEN, Fault
from tests.support.object_apiserver import ObjectApiServer
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.apiserver_faults import Mishap
    from tests.support.apiserver_store import Json

TIMING = LeaseTiming(lease_seconds=1, renew_deadline_seconds=0.7, retry_seconds=0.1)
STEADY = LeaseTiming(lease_seconds=8, renew_deadline_seconds=6.0, retry_seconds=0.1)
"""The timing for tests that never wait for the lease to end: even on a busy machine its holder keeps it."""


@dataclass
class Candidate(LeaseEvents):
    """An elector with a server of its own, over the objects that all share; it records the events that it reports."""

    server: ObjectApiServer
    elector: LeaseElector
    claims: list[tuple[float, float]] = field(default_factory=list)
    """The times between which it may have led."""
    changes: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    def acquired(self) -> None:
        self.changes.append("acquired")

    def renewed(self, until: float) -> None:
        self.claims.append((since_boot(), until))

    def lost(self) -> None:
        self.changes.append("lost")

    def failed(self, error: str) -> None:
        self.failures.append(error)

    def release(self) -> bool:
        at = since_boot()
        self.claims = [(begin, min(end, at)) for begin, end in self.claims]
        return self.elector.release(5.0)


class Candidates:
    """Starts electors, and checks in the end whether two have led at the same time."""

    def __init__(self, folder: Path) -> None:
        self.objects = ObjectStore()
        self.all: list[Candidate] = []
        self._folder = folder
        self._threads: list[threading.Thread] = []

    def start(self, name: str, timing: LeaseTiming = TIMING) -> Candidate:
        server = ObjectApiServer(self.objects)
        server.start()
        config = server.kubeconfig(self._folder / name)
        client = KubernetesClient(from_kubeconfig(str(config)), RequestDeadlines(2.0, 1.0, 4.0))
        candidate = Candidate(server, None)  # type: ignore[arg-type]  # set in the next line
        candidate.elector = LeaseElector(
            ObjectClient(client),
            LeaseSettings(namespace="shop", name="leader", identity=name, timing=timing),
            candidate,
        )
        thread = threading.Thread(target=candidate.elector.run, args=(candidate.stop,), daemon=True)
        thread.start()
        self.all.append(candidate)
        self._threads.append(thread)
        return candidate

    def end(self) -> None:
        for candidate in self.all:
            candidate.stop.set()
            candidate.server.stop()
        for thread in self._threads:
            thread.join(10.0)
            assert not thread.is_alive()
        assert overlaps([candidate.claims for candidate in self.all]) == []

    def lease(self) -> Json:
        found = self.objects.find(LEASES, "shop", "leader")
        assert found is not None
        return found


def overlaps(claims: list[list[tuple[float, float]]]) -> list[tuple[float, float]]:
    """Return the times in which two candidates have led by their claims."""
    marked = sorted((begin, end, who) for who, own in enumerate(claims) for begin, end in own if begin < end)
    return [
        (second[0], min(first[1], second[1]))
        for i, first in enumerate(marked)
        for second in marked[i + 1 :]
        if second[0] < first[1] and second[2] != first[2]
    ]


@pytest.fixture
def candidates(tmp_path: Path) -> Iterator[Candidates]:
    made = Candidates(tmp_path)
    yield made
    made.end()


def leads(candidate: Candidate) -> Callable[[], bool]:
    return candidate.elector.is_leader


def test_overlaps_are_detected() -> None:
    assert overlaps([[(0.0, 2.0), (1.0, 3.0)], [(3.0, 4.0)]]) == []
    assert overlaps([[(0.0, 2.0)], [(1.5, 4.0)]]) == [(1.5, 2.0)]


def test_one_elector_leads_and_a_release_lets_the_next_lead(candidates: Candidates) -> None:
    first = candidates.start("first", STEADY)
    until(leads(first))
    spec = candidates.lease()["spec"]
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"]) == ("first", 8, 0)
    second = candidates.start("second", STEADY)
    until(lambda: second.elector.holder() == "first")
    assert not second.elector.is_leader()
    assert not second.elector.may_write(0.0)
    assert first.elector.may_write(0.1)
    assert not first.elector.may_write(8.0)
    assert first.release()
    assert not first.elector.is_leader()
    assert not first.elector.may_write(0.0)
    until(leads(second))
    assert candidates.lease()["spec"]["leaseTransitions"] == 1
    assert [first.changes, second.changes] == [["acquired", "lost"], ["acquired"]]


def test_a_released_lease_has_the_same_fields_as_with_client_go(candidates: Candidates) -> None:
    only = candidates.start("only")
    until(leads(only))
    assert only.release()
    spec = candidates.lease()["spec"]
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"]) == ("", 1)
    assert spec["renewTime"] == spec["acquireTime"]


def test_a_follower_does_not_release_the_lease(candidates: Candidates) -> None:
    first = candidates.start("first")
    until(leads(first))
    second = candidates.start("second")
    until(lambda: second.elector.holder() == "first")
    assert second.release()
    assert candidates.lease()["spec"]["holderIdentity"] == "first"


@pytest.mark.parametrize("what", ["cut off", "paused", "drip", "hang", "lost", "silence"])
def test_a_leader_that_cannot_renew_is_replaced_by_the_other(candidates: Candidates, what: str) -> None:
    first = candidates.start("first")
    until(leads(first))
    second = candidates.start("second")
    until(lambda: second.elector.holder() == "first")
    if what == "cut off":
        first.server.stop()
    elif what == "paused":
        first.server.pause()
    else:
        mishap: Mishap = what  # type: ignore[assignment]  # one of the table
        first.server.faults += [Fault(verb, mishap, times=1000) for verb in ("update", "get")]
    if what == "lost":
        # Its renewals are carried out all the same, so it never learns more than that it may have led.
        until(lambda: "lost" in first.changes)
        assert not second.elector.is_leader()
        first.server.stop()
    until(leads(second))
    assert not first.elector.is_leader()
    # Its thread says so when it runs again, which may be later.
    until(lambda: first.changes[-1] == "lost")
    assert first.elector.holder() != "first", "nobody is sent to a process that cannot renew the Lease"
    assert first.failures
    # What the server did late changes nothing.
    first.server.resume()
    assert candidates.lease()["spec"]["holderIdentity"] == "second"


def test_a_long_retry_after_does_not_prevent_leading_again(candidates: Candidates) -> None:
    one = candidates.start("one")
    until(leads(one))
    waits = {"Retry-After": "300"}
    one.server.faults += [Fault("update", "status", 429, waits), Fault("get", "status", 503, waits)]
    until(lambda: not one.server.faults)
    before = len(one.claims)
    until(lambda: len(one.claims) > before)


def test_the_loss_of_leadership_is_noticed_while_a_request_hangs(candidates: Candidates) -> None:
    only = candidates.start("only")
    until(leads(only))
    only.server.pause()
    until(lambda: not only.elector.is_leader())
    until(lambda: only.changes[-1] == "lost")
    only.server.resume()
    until(leads(only))
    until(lambda: only.changes[-1] == "acquired")
    assert candidates.lease()["spec"]["leaseTransitions"] == 0


def test_a_renewal_without_an_answer_does_not_end_leadership(candidates: Candidates) -> None:
    only = candidates.start("only", STEADY)
    until(leads(only))
    only.server.faults.append(Fault("update", "lost"))
    until(lambda: only.failures == ["UnknownOutcomeError"])
    claims = len(only.claims)
    until(lambda: len(only.claims) > claims + 1)
    assert only.changes == ["acquired"]


def test_a_release_ends_in_time_even_if_the_server_hangs(candidates: Candidates) -> None:
    only = candidates.start("only", STEADY)
    until(leads(only))
    only.server.pause()
    assert not only.elector.release(0.3)
    assert not only.elector.is_leader()


def test_leadership_is_kept_when_credentials_are_renewed(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    with ObjectApiServer() as server:
        config = server.kubeconfig(tmp_path / "config", {"tokenFile": str(token)})
        registry = CollectorRegistry()
        metrics = LeaseMetrics(registry, "example")
        elector = LeaseElector(
            ObjectClient(KubernetesClient(from_kubeconfig(str(config)))),
            LeaseSettings(namespace="shop", name="leader", identity=unique_identity("pod-0"), timing=STEADY),
            metrics,
        )
        metrics.show(elector.is_leader)
        stop = threading.Event()
        thread = threading.Thread(target=elector.run, args=(stop,), daemon=True)
        thread.start()
        until(lambda: registry.get_sample_value("tidewatch_leader"))
        server.tokens = {"new"}
        token.write_text("new")
        label = {"error": "UnauthorizedError"}
        until(lambda: registry.get_sample_value("example_lease_failures_total", label))
        renewals = len(server.requests)
        until(lambda: len(server.requests) > renewals + 2)
        stop.set()
        thread.join(10.0)
    assert registry.get_sample_value("example_lease_changes_total", {"change": "acquired"}) == 1


def test_each_process_has_a_unique_identity() -> None:
    assert unique_identity("pod-0") != unique_identity("pod-0")


def test_a_process_that_was_suspended_no_longer_leads_when_it_continues(tmp_path: Path) -> None:
    journals = [tmp_path / name for name in ("a.journal", "b.journal")]
    processes: list[subprocess.Popen[bytes]] = []

    def claims(which: int) -> list[tuple[float, float]]:
        lines = journals[which].read_text().splitlines() if journals[which].exists() else []
        return [(float(begin), float(end)) for begin, end in (line.split()[1:] for line in lines)]

    with ObjectApiServer() as server:
        config = server.kubeconfig(tmp_path / "config")

        def start(which: int) -> None:
            command = [sys.executable, "-m", "tests.recommender.leader_election.lease_process", str(config)]
            timing = ["1", "0.7", "0.15"]
            processes.append(subprocess.Popen([*command, f"elector-{which}", str(journals[which]), *timing]))

        try:
            start(0)
            until(lambda: claims(0), 30.0)
            start(1)
            os.kill(processes[0].pid, signal.SIGSTOP)
            until(lambda: claims(1), 30.0)
            os.kill(processes[0].pid, signal.SIGCONT)
            # It sees that it is late, and waits until the other stands still in turn.
            led = len(claims(0))
            renewed = len(claims(1))
            until(lambda: len(claims(1)) > renewed + 2)
            os.kill(processes[1].pid, signal.SIGSTOP)
            until(lambda: len(claims(0)) > led + 1)
            os.kill(processes[1].pid, signal.SIGCONT)
        finally:
            for process in processes:
                process.kill()
                process.wait(10.0)
    assert overlaps([claims(0), claims(1)]) == []
