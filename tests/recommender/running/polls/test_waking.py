"""Pods that are created at random times, and a loop on a simulated clock that must consider each of them in time."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.foundation.cluster.values.state import ClusterState, Observed
from adapter.foundation.time.clock import Clock
from recommender.configuration.reading import read_configuration
from recommender.kinds.cluster_size.model.answer import answer_of
from recommender.kinds.cluster_size.scale_up.pending_pods import SETTLING_SECONDS
from recommender.running.inputs.input_gathering import Gatherer, InputSources, LookUpThreads
from recommender.running.inputs.poll_plan import plan_of
from recommender.running.memory.memories import Memories
from recommender.running.polls.poll_decisions import PollDecisions
from recommender.running.polls.runner import Latest, Runner
from recommender.running.sizes.background_decisions import SizesInBackground
from recommender.running.sizes.reported_writes import WriteResults
from tests.recommender.configuration.files import entry, whole
from tests.recommender.kinds.cluster_size.builders import pod
from tests.recommender.kinds.cluster_size.test_decide import cluster
from tests.recommender.running.polls.test_runner import Harness
from tests.recommender.running.sizes.test_background_decisions import NoPlugins

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapter.foundation.cluster.values.state import ClusterPod
    from recommender.configuration.recommender_configuration import Configuration
    from recommender.decisions.loop import Decision

START: Final = 1_800_000_000.0
TOLERANCE: Final = 0.02
"""Polls come 10 ms later than they are due, as clocks differ."""
GROUP: Final = {"name": "a", "max": 90, "selector": {"pool": "a"}, "template": {"cpu": "4", "memory": "16Gi"}}


@dataclass
class Simulated:
    """Time that passes only while the loop sleeps, and new pods that wake the loop."""

    pods: Sequence[ClusterPod]
    end: float
    now: float = 0.0
    """Seconds since the start on the monotonic clock."""
    wake: _Wake = field(init=False)
    stop: _Stop = field(init=False)

    def __post_init__(self) -> None:
        self.wake, self.stop = _Wake(self), _Stop(self)

    def came(self) -> tuple[ClusterPod, ...]:
        return tuple(one for one in self.pods if created(one) - START <= self.now)

    def next_arrival(self, until: float) -> float | None:
        return min((time for one in self.pods if self.now < (time := created(one) - START) <= until), default=None)

    def pass_until(self, time: float) -> None:
        if self.next_arrival(time) is not None:
            self.wake.set()
        self.now = max(self.now, time)
        if self.now >= self.end:
            self.stop.set()


class _Wake(threading.Event):
    def __init__(self, time: Simulated) -> None:
        super().__init__()
        self._time = time

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        if not self.is_set():
            until = self._time.now + timeout
            arrival = self._time.next_arrival(until)
            self._time.pass_until(until if arrival is None else arrival)
        return self.is_set()


class _Stop(threading.Event):
    def __init__(self, time: Simulated) -> None:
        super().__init__()
        self._time = time

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self._time.pass_until(self._time.now + timeout)
        return self.is_set()


@dataclass
class Cluster(Harness):
    """A recommender's loop with a cluster in which nothing else happens."""

    decisions: list[tuple[float, frozenset[str]]] = field(default_factory=list)
    """The time of each decision, and the pods that were too young for it."""

    def act(self, configuration: Configuration, decisions: Sequence[Decision], now: float) -> None:
        del configuration
        [decision] = decisions
        answer = answer_of(decision.record)
        assert answer is not None, decision.record.message
        self.decisions.append((now, frozenset(one.name for one in answer.waiting)))


def created(one: ClusterPod) -> float:
    assert one.facts is not None
    assert one.facts.created is not None
    return one.facts.created


def decisions_during(arrivals: Sequence[float], delay: float, poll_seconds: float, seconds: float) -> Cluster:
    """Return the decisions of so many seconds in a cluster whose pods were created at these times after the start."""
    pods = [
        pod(f"p{number}", "3", "1Gi", namespace="shop", controller="web", created=START + after)
        for number, after in enumerate(arrivals)
    ]
    time, harness = Simulated(pods, seconds), Cluster({})
    sized = {"nodeGroups": [GROUP], "newPodScaleUpDelay": f"{delay}s", "scaleDown": {"enabled": False}}
    text = whole(entry("workers", kind=f"clusterSize: {json.dumps(sized)}"), top=f"pollInterval: {poll_seconds}s\n")
    configuration = read_configuration(text, "r.yaml")
    assert not configuration.refused
    plan, clock = plan_of(configuration), Clock(lambda: time.now, lambda: START + time.now)

    def seen() -> ClusterState:
        state = cluster(START + time.now)
        assert isinstance(state.pods, Observed)
        return replace(state, pods=Observed((*state.pods.value, *time.came()), START + time.now))

    nothing = InputSources(seen, lambda _: None, lambda *_: None, lambda _: {})  # type: ignore[arg-type, return-value]
    at_once, memories = LookUpThreads(lambda work: work(), lambda work: work()), Memories(harness, clock.monotonic)
    slow = SizesInBackground(
        submit=lambda work: work(),
        plugins=NoPlugins(),
        wake=time.wake.set,
        measure=lambda *_: None,
        results=WriteResults(),
        writes=False,
        has_lease=False,
        clock=clock.monotonic,
    )
    runner = Runner(
        plan=lambda: plan,
        gatherer=Gatherer(nothing, at_once, at_once, clock.monotonic),
        decisions=PollDecisions(memories, clock, slow=slow),
        leadership=harness,
        memories=memories,
        effects=harness,
        latest=Latest(),
        clock=clock,
        wake=time.wake,
    )
    runner.run(time.stop)
    return harness


def first_considered_at(harness: Cluster, name: str, came: float) -> float:
    """Return when the pod was first considered, in seconds from the start."""
    return next(now - START for now, young in harness.decisions if now >= START + came and name not in young)


@pytest.mark.parametrize(
    ("arrivals", "delay", "decided"),
    [
        pytest.param((3.4,), 0, (0.0, 4.4, 5.4, 15.4), id="it-settles-while-changes-are-collected"),
        pytest.param((3.4,), 4, (0.0, 4.4, 7.4, 17.4), id="the-delay"),
        pytest.param((3.4, 5.0), 4, (0.0, 4.4, 6.0, 7.4, 9.0, 19.0), id="each-by-its-own-age"),
        pytest.param((3.4, 3.6), 4, (0.0, 4.4, 7.4, 8.4, 18.4), id="two-within-a-second"),
        pytest.param((3.4,), 30, (0.0, 4.4, 14.4, 24.4, 33.4), id="later-than-the-next-poll"),
        pytest.param((3.4, 7.2), 4, (0.0, 4.4, 7.4, 11.2, 21.2), id="a-change-just-before-it-counts"),
        pytest.param((), 0, (0.0, 10.0, 20.0), id="nothing-comes"),
    ],
)
def test_a_decision_is_made_as_soon_as_a_pod_counts_and_otherwise_at_the_interval(
    arrivals: tuple[float, ...], delay: float, decided: tuple[float, ...]
) -> None:
    harness = decisions_during(arrivals, delay, 10, decided[-1] + 1)
    assert [now - START for now, _ in harness.decisions] == pytest.approx(decided, abs=TOLERANCE)


def test_a_pod_that_arrives_in_an_idle_cluster_does_not_wait_for_the_interval() -> None:
    harness = decisions_during((7.3,), 0, 60, 59)
    assert first_considered_at(harness, "p0", 7.3) == pytest.approx(7.3 + SETTLING_SECONDS, abs=TOLERANCE)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.floats(0.01, 8), max_size=6),
    st.sampled_from([0, 0.4, 2.5, 6]),
    st.sampled_from([1, 10, 60]),
)
def test_decisions_are_a_second_apart_and_consider_each_pod_within_a_second_after_it_counts(
    arrivals: list[float], delay: float, poll_seconds: float
) -> None:
    harness = decisions_during(arrivals, delay, poll_seconds, 18)
    times = [now for now, _ in harness.decisions]
    assert all(later - earlier > 1 - 1e-3 for earlier, later in pairwise(times))
    # The pods stay, so only the first ones settle.
    settled = min(arrivals, default=0.0) + SETTLING_SECONDS
    for number, came in enumerate(arrivals):
        counts = max(came + delay, settled)
        assert first_considered_at(harness, f"p{number}", came) <= counts + 1 + TOLERANCE
