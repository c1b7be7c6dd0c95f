"""How long sessions last, as far as the pods that take no new ones show it."""

from __future__ import annotations

import pytest

from recommender.decisions.loads.load_inputs import PodConnections
from recommender.kinds.predictive.policy.memory import SessionMemory
from recommender.kinds.predictive.policy.sessions import after_watching_pods, session_seconds

BEFORE = SessionMemory((("a", 100.0),), 500.0, 5.0)


def closed(name: str, connections: float | None) -> PodConnections:
    return PodConnections(connections, is_ready=False, name=name)


@pytest.mark.parametrize(
    ("pod", "found"),
    [
        pytest.param(closed("a", 98.0), SessionMemory((("a", 98.0),), 1490.0, 7.0), id="two have ended"),
        pytest.param(closed("a", 100.0), SessionMemory((("a", 100.0),), 1500.0, 5.0), id="none has ended"),
        pytest.param(closed("a", 101.0), SessionMemory((("a", 101.0),), 500.0, 5.0), id="it was ready in between"),
        pytest.param(closed("b", 98.0), SessionMemory((("b", 98.0),), 500.0, 5.0), id="seen for the first time"),
        pytest.param(closed("", 98.0), SessionMemory((), 500.0, 5.0), id="without a name"),
        pytest.param(closed("a", None), SessionMemory((), 500.0, 5.0), id="without a sample"),
        pytest.param(
            PodConnections(98.0, is_ready=True, name="a"), SessionMemory((), 500.0, 5.0), id="it takes new ones again"
        ),
    ],
)
def test_only_pods_that_took_no_new_sessions_since_the_last_look_show_ends(
    pod: PodConnections, found: SessionMemory
) -> None:
    assert after_watching_pods(BEFORE, [pod], 10.0) == found


def test_nothing_ended_within_an_unknown_time() -> None:
    found = after_watching_pods(BEFORE, [closed("a", 90.0)], 0.0)
    assert found == SessionMemory((("a", 90.0),), 500.0, 5.0)


def test_older_evidence_counts_less_and_the_length_of_sessions_stays_the_same() -> None:
    much = SessionMemory((("a", 100.0),), 300_000.0, 3000.0)
    assert after_watching_pods(much, [closed("a", 100.0)], 0.0) == much
    found = after_watching_pods(much, [closed("a", 0.0)], 20.0)
    assert found == SessionMemory((("a", 0.0),), 150_500.0, 1550.0)


@pytest.mark.parametrize(("ended", "seconds"), [(0.0, None), (29.0, None), (30.0, 100.0)])
def test_the_length_of_sessions_is_unknown_until_enough_have_ended(ended: float, seconds: float | None) -> None:
    assert session_seconds(SessionMemory((), 3000.0, ended)) == seconds
