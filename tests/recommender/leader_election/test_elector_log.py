"""What an elector logs about an API server that does not answer."""

from __future__ import annotations

import pytest

from adapter.foundation.sources.kubernetes.errors import DeadlineError
from adapter.foundation.sources.kubernetes.writing import Reply
from recommender.leader_election.elector import LeaseElector
from recommender.leader_election.lease_settings import LeaseSettings


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


@pytest.mark.parametrize(("answers", "lines"), [("xxx", 1), ("xx.xx", 2), ("...", 0)])
def test_a_follower_logs_each_outage_once(answers: str, lines: int, caplog: pytest.LogCaptureFixture) -> None:
    settings = LeaseSettings(namespace="shop", name="leader", identity="follower")
    elector = LeaseElector(Answers(answers), settings)  # type: ignore[arg-type]
    elector.run(Rounds(len(answers)))  # type: ignore[arg-type]
    assert caplog.messages.count("the Lease cannot be read or renewed") == lines
