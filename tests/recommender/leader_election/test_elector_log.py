"""What an elector logs about an API server that does not answer."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, cast

import pytest

from adapter.foundation.sources.kubernetes.errors import ConflictError, DeadlineError
from adapter.foundation.sources.kubernetes.writing import Fence, GetsAndWrites, Reply
from recommender.leader_election.elector import LeaseElector
from recommender.leader_election.lease_settings import LeaseSettings

if TYPE_CHECKING:
    import threading
    from collections.abc import Mapping


class Rounds:
    """A stop that ends an elector after some rounds, without waiting."""

    def __init__(self, most: int) -> None:
        self.left = most

    def is_set(self) -> bool:
        return self.left <= 0

    def wait(self, _seconds: float) -> None:
        self.left -= 1


class Answers:
    """An API server that answers or fails, round by round; another process holds the Lease and renews it."""

    def __init__(self, fails: str) -> None:
        self.fails = list(fails)
        self.renewals = 0

    def get(self, path: str, *, seconds: float) -> Reply:
        assert path.endswith("/leases/leader")
        assert seconds > 0
        if self.fails.pop(0) == "x":
            raise DeadlineError("GET: no answer")
        self.renewals += 1
        spec = {"holderIdentity": "other", "leaseDurationSeconds": 600, "renewTime": str(self.renewals)}
        return Reply({"metadata": {"resourceVersion": "1"}, "spec": spec})


def run_elector(server: object, stop: object, identity: str) -> LeaseElector:
    """Return an elector that has run until the stop, with a server that has only the methods that it calls."""
    elector = LeaseElector(
        cast("GetsAndWrites", server), LeaseSettings(namespace="shop", name="leader", identity=identity)
    )
    elector.run(cast("threading.Event", stop))
    return elector


@pytest.mark.parametrize(("answers", "lines"), [("xxx", 1), ("xx.xx", 2), ("...", 0)])
def test_a_follower_logs_each_outage_once(answers: str, lines: int, caplog: pytest.LogCaptureFixture) -> None:
    run_elector(Answers(answers), Rounds(len(answers)), "follower")
    assert caplog.messages.count("the Lease cannot be read or renewed") == lines


class Renewals:
    """An API server that answers or fails, round by round, with a Lease that the elector holds."""

    def __init__(self, fails: str) -> None:
        self.fails = fails
        self.round = 0
        self.spec: Mapping[str, Any] = {"holderIdentity": "leader", "leaseDurationSeconds": 600, "renewTime": "1"}

    def answer(self) -> dict[str, Any]:
        if self.fails[self.round] == "x":
            raise DeadlineError("PUT: no answer")
        return {"metadata": {"resourceVersion": "1"}, "spec": self.spec}

    def get(self, path: str, *, seconds: float) -> Reply:
        assert path.endswith("/leases/leader")
        assert seconds > 0
        return Reply(self.answer())

    def replace(self, path: str, document: Mapping[str, Any], fence: Fence) -> dict[str, Any]:
        assert path.endswith("/leases/leader")
        assert fence.seconds > 0
        self.spec = document["spec"]
        return self.answer()

    def is_set(self) -> bool:
        return self.round >= len(self.fails)

    def wait(self, _seconds: float) -> None:
        self.round += 1


@pytest.mark.parametrize(("answers", "lines"), [(".xxx", 1), (".x.xx.", 2), ("...", 0)])
def test_a_leader_logs_each_outage_once_as_well(answers: str, lines: int, caplog: pytest.LogCaptureFixture) -> None:
    server = Renewals(answers)
    elector = run_elector(server, server, "leader")
    assert elector.is_leader()
    assert caplog.messages.count("the Lease cannot be read or renewed") == lines


class Rival:
    """An API server with a released Lease, which another process acquires just before this one."""

    def __init__(self) -> None:
        self.holder = ""

    def get(self, path: str, *, seconds: float) -> Reply:
        assert path.endswith("/leases/leader")
        assert seconds > 0
        spec = {"holderIdentity": self.holder, "leaseDurationSeconds": 600, "renewTime": "1"}
        return Reply({"metadata": {"resourceVersion": "1"}, "spec": spec})

    def replace(self, path: str, _document: Mapping[str, Any], _fence: Fence) -> dict[str, Any]:
        self.holder = "rival"
        raise ConflictError(f"PUT {path}: 409 Conflict: the object has been modified", 409)


def test_losing_the_race_for_a_released_lease_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    elector = run_elector(Rival(), Rounds(2), "slower")
    assert [each.message for each in caplog.records if each.levelno > logging.INFO] == []
    assert elector.holder() == "rival"


def test_a_leader_whose_lease_others_write_logs_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    """Such as another process with the same identity."""

    class Disturbed(Renewals):
        def answer(self) -> dict[str, Any]:
            if self.fails[self.round] == "x":
                raise ConflictError("PUT: 409 Conflict: the object has been modified", 409)
            return super().answer()

    server = Disturbed(".xx")
    elector = run_elector(server, server, "leader")
    assert elector.is_leader()
    assert caplog.messages.count("the Lease cannot be read or renewed") == 1
