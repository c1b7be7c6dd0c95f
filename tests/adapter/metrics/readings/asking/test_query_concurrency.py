"""Queries that take long, or fail because of it, affect only the requests for them."""

from __future__ import annotations

import itertools
import logging
import threading
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from adapter.commands.backend_clients import QUERY_THREADS
from adapter.foundation.objects.selectors import EVERYTHING, parse_selector
from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from adapter.foundation.time.clock import Clock
from adapter.foundation.time.pace import Pace
from adapter.metrics.readings.answers import BySelector
from adapter.metrics.readings.asking.asking_state import AskingState
from adapter.metrics.readings.asking.demand import DemandedRequest
from adapter.metrics.readings.asking.namespace_fair_queue import HALF_LIFE_SECONDS, FairQueue, QueryTimes
from adapter.metrics.readings.asking.queries import Lane
from adapter.metrics.readings.asking.query_scheduler import QueryScheduler
from adapter.metrics.readings.asking.query_upkeep import sweep
from adapter.metrics.readings.catalogue.rule_health import RuleHealthLog
from adapter.metrics.readings.errors import SourceSlowError
from adapter.metrics.readings.failure import Failure
from adapter.metrics.readings.readings_settings import ReadingSettings
from adapter.metrics.readings.readings_telemetry import ReadingsTelemetry
from adapter.metrics.readings.samples.object_reading import Evaluation, ObjectReading
from tests.support.readings import FakeClock, ScriptedPrometheus, make_harness

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from adapter.metrics.readings.asking.demand import DemandEntry
    from adapter.metrics.readings.asking.queries import Query


T = TypeVar("T")

STEP = 0.125
"""At most the pause of the process between two looks at which readings are due."""


class Simulation:
    """A scheduler whose queries each take a given time."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.catalogue = make_harness(ScriptedPrometheus(), clock=self.clock).readings.catalogue
        self.running: list[tuple[float, Query]] = []
        self.most_running = 0
        self.begun = 0
        self.state = AskingState(
            settings=ReadingSettings(),
            clock=self.clock.clock,
            telemetry=ReadingsTelemetry(CollectorRegistry()),
            states=RuleHealthLog(lambda: self.clock.now),
            launch=self.launch,
            launch_trial=lambda _trial: None,
        )
        self.scheduler = QueryScheduler(self.state)
        self.slow = 10.0

    def launch(self, query: Query) -> None:
        self.begun += 1
        self.running.append((self.clock.now + self.seconds(query), query))

    def seconds(self, query: Query) -> float:
        return self.slow if "only_exact" in query.key.planned.text else 0.05

    def ask(self, name: str, number: int = 0, namespace: str = "shop") -> DemandEntry:
        metric = self.catalogue.find_custom("pods", namespaced=True, name=name)
        assert metric is not None
        which = BySelector(parse_selector(f"app=web{number}"))
        return self.scheduler.entry(metric, DemandedRequest(metric.qualified, namespace, which, EVERYTHING))

    def step(self) -> None:
        until = self.clock.now + STEP
        self.most_running = max(self.most_running, len(self.running))
        while self.running and min(self.running, key=lambda pair: pair[0])[0] <= until:
            pair = min(self.running, key=lambda pair: pair[0])
            self.running.remove(pair)
            self.clock.now = pair[0]
            self.scheduler.settle(pair[1], self.outcome(pair[1]))
        self.clock.now = until
        self.scheduler.take_due()

    def outcome(self, query: Query) -> ObjectReading | Failure:
        if self.seconds(query) >= 10:
            return Failure(SourceSlowError, "no answer within 10 s")
        wall, monotonic = self.clock.clock.wall(), self.clock.now
        return ObjectReading(Evaluation(wall - 0.05, monotonic - 0.05))

    def ages(self, entry: DemandEntry, seconds: float) -> float:
        """Return the largest age of the entry's reading within so many seconds."""
        largest = 0.0
        for _ in range(round(seconds / STEP)):
            self.step()
            reading = entry.scope.query.reading
            age = 1e9 if reading is None else self.clock.now - reading.evaluated.monotonic
            largest = max(largest, age)
        return largest


@pytest.mark.parametrize("slow", [8.0, 10.0], ids=["late answers", "no answers"])
def test_many_slow_queries_do_not_delay_the_answers_of_others(slow: float, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    simulation = Simulation()
    simulation.slow = slow
    quick = simulation.ask("http_rps")
    simulation.ages(quick, 1)
    for number in range(200):
        simulation.ask("only_exact", number)

    assert simulation.ages(quick, 300) < 11
    assert simulation.most_running <= 16


def test_a_first_request_does_not_wait_for_slow_background_queries() -> None:
    simulation = Simulation()
    for number in range(50):
        simulation.ask("only_exact", number)
        for _ in range(8):
            simulation.step()
    for _ in range(round(60 / STEP)):
        simulation.step()
    entry = simulation.ask("http_rps")
    simulation.step()

    assert entry.scope.query.reading is not None


def test_a_thousand_quick_queries_are_each_refreshed_when_due() -> None:
    simulation = Simulation()
    simulation.slow = 0.01
    entries = [simulation.ask("only_exact", number) for number in range(1000)]
    for _ in range(round(60 / STEP)):
        simulation.step()

    readings = [entry.scope.query.reading for entry in entries]
    assert all(readings)
    assert max(simulation.clock.now - reading.evaluated.monotonic for reading in readings if reading) < 13


@pytest.mark.parametrize("seconds", [0.3, 1.9, 9.0], ids=["quick", "nearly slow", "slow"])
def test_a_namespace_with_two_thousand_queries_does_not_delay_another(seconds: float) -> None:
    simulation = Simulation()
    simulation.slow = seconds
    victim = simulation.ask("http_rps", namespace="bank")
    simulation.ages(victim, 1)
    entries = [simulation.ask("only_exact", number) for number in range(1990)]

    oldest = 0.0
    for _ in range(12):
        entries += [simulation.ask("only_exact", number) for number in range(1990)]
        simulation.ask("http_rps", namespace="bank")
        oldest = max(oldest, simulation.ages(victim, 10))
    assert oldest < 12
    assert simulation.most_running <= 19


def test_a_first_request_of_a_namespace_does_not_wait_for_those_of_another() -> None:
    simulation = Simulation()
    simulation.slow = 9.0
    for number in range(1990):
        simulation.ask("only_exact", number)
    simulation.step()
    entry = simulation.ask("http_rps", namespace="bank")
    simulation.step()

    assert entry.scope.query.reading is not None


@pytest.mark.parametrize(("queries", "oldest"), [(2, 7.0), (12, 30.0)], ids=["few: at their pace", "many: with pauses"])
def test_a_slow_query_pauses_between_runs_only_if_many_others_run(queries: int, oldest: float) -> None:
    simulation = Simulation()
    simulation.slow = 3.0
    entries = [simulation.ask("only_exact", number) for number in range(queries)]
    for _ in range(8):
        for number in range(queries):
            simulation.ask("only_exact", number)
        simulation.ages(entries[0], 5)
    begun = simulation.begun
    for _ in range(4):
        for number in range(queries):
            simulation.ask("only_exact", number)
        assert simulation.ages(entries[0], 5) <= oldest

    share = (simulation.begun - begun) * simulation.slow / 20 / queries
    assert share > 0.8 if queries == 2 else share <= 0.5


def test_threads_and_connections_suffice_for_all_concurrent_queries() -> None:
    """A query that waits for either keeps its place in the lane, and the lanes' metrics would not show it."""
    settings = ReadingSettings()
    lanes = (
        settings.max_concurrent_first_queries
        + settings.max_concurrent_refreshes
        + settings.max_concurrent_slow_queries
        + len(Lane)
    )
    trials_and_a_cross_check = 3
    at_once = lanes + settings.max_concurrent_look_ups + trials_and_a_cross_check

    assert at_once < QUERY_THREADS
    assert at_once < PrometheusSettings("http://127.0.0.1:9090").pool_size


@pytest.mark.parametrize("look", [1, 2])
def test_a_request_that_arrives_during_a_sweep_of_demand_is_refreshed(look: int) -> None:
    """The sweep begins when the request reads the clock for the n-th time."""
    simulation = Simulation()
    seen, admitted = threading.Event(), threading.Event()
    looks = itertools.count(1)

    class Held(Pace):
        def slices(self, items: Iterable[T], size: int = 1) -> Iterator[list[T]]:
            held = list(items)
            seen.set()
            assert admitted.wait(10)
            yield held[:size]

    sweeping = threading.Thread(target=lambda: sweep(simulation.state, Held(sleep=lambda _: None)))

    def time_is_read() -> float:
        now = simulation.clock.now
        if threading.current_thread() is not sweeping and next(looks) == look:
            simulation.clock.forward(0.001)
            sweeping.start()
            seen.wait(0.2)
        return now

    clock = simulation.clock.clock
    simulation.state.clock = Clock(monotonic=time_is_read, wall=clock.wall)
    entry = simulation.ask("http_rps")
    admitted.set()
    sweeping.join()

    assert simulation.ages(entry, 1) > 0
    assert simulation.ages(entry, 60) < 13


@pytest.mark.parametrize("payers", [[], ["a", "b"], ["b"]])
def test_a_shared_query_is_charged_to_the_payer_with_the_least_time_spent(payers: list[str]) -> None:
    query_times = QueryTimes()
    query_times.charge("a", 5.0, 0.0)
    query_times.charge("b", 4.0, 0.0)

    assert query_times.cheapest(payers) == ("b" if payers else None)


def test_spent_time_halves_each_minute_and_is_forgotten_eventually() -> None:
    query_times = QueryTimes()
    query_times.charge("a", 8.0, 0.0)
    query_times.charge("b", 1.0, 3 * HALF_LIFE_SECONDS)

    assert query_times.seconds("a") == pytest.approx(1.0)
    query_times.charge("b", 1.0, 100 * HALF_LIFE_SECONDS)
    assert query_times.rank("a") == 0.0


def test_time_is_charged_after_weeks_of_uptime_or_of_silence() -> None:
    # The monotonic clock counts from the start of the machine.
    query_times = QueryTimes()
    query_times.charge("a", 8.0, 30_000 * HALF_LIFE_SECONDS)
    assert query_times.seconds("a") == pytest.approx(8.0)

    query_times.charge("b", 1.0, 60_000 * HALF_LIFE_SECONDS)
    assert query_times.rank("a") == 0.0
    assert query_times.seconds("b") == pytest.approx(1.0)


def test_the_payer_with_less_time_spent_comes_first_with_its_queries_in_due_order() -> None:
    query_times = QueryTimes()
    queue: FairQueue[str] = FairQueue(query_times)
    for key, payer, due in (("a2", "a", 2.0), ("b1", "b", 9.0), ("a1", "a", 1.0)):
        queue.put(key, payer, due)
    query_times.charge("a", 1.0, 0.0)

    assert [queue.pop(lambda _payer, _key: True) for _ in range(4)] == ["b1", "a1", "a2", None]


def test_waiting_queries_keep_their_order_when_the_unit_of_time_changes() -> None:
    query_times = QueryTimes()
    queue: FairQueue[str] = FairQueue(query_times)
    hour = 60 * HALF_LIFE_SECONDS
    query_times.charge("a", 1.0, 0.0)
    query_times.charge("a", 1.0, hour / 2)
    queue.put("a1", "a", hour / 2)
    # After an hour, the seconds of all payers are stated in a new unit.
    query_times.charge("b", 5.0, hour)
    queue.put("b1", "b", hour)

    assert query_times.rank("a") < query_times.rank("b")
    assert [queue.pop(lambda _payer, _key: True) for _ in range(2)] == ["a1", "b1"]


def test_a_query_that_is_not_admitted_keeps_its_place() -> None:
    queue: FairQueue[str] = FairQueue(QueryTimes())
    queue.put("a1", "a", 1.0)
    queue.put("b1", "b", 2.0)

    assert queue.pop(lambda payer, _key: payer == "b") == "b1"
    assert queue.pop(lambda payer, _key: payer == "b") is None
    assert queue.pop(lambda _payer, _key: True) == "a1"


steps = st.lists(
    st.tuples(st.sampled_from(["put", "discard", "pop", "charge"]), st.integers(0, 9), st.integers(-3, 9)), max_size=80
)


@given(steps)
def test_a_fair_queue_agrees_with_a_plain_list(operations: list[tuple[str, int, int]]) -> None:
    query_times = QueryTimes()
    queue: FairQueue[int] = FairQueue(query_times)
    model: dict[int, float] = {}
    for what, key, number in operations:
        payer = str(key % 3)
        if what == "put":
            queue.put(key, payer, number)
            model[key] = number
        elif what == "discard":
            queue.discard(key)
            model.pop(key, None)
        elif what == "charge":
            query_times.charge(payer, number, 0.0)
            queue.reorder(payer)
        else:
            found = queue.pop(lambda _payer, _key: True)
            assert (found is None) == (not model)
            if found is not None:
                least = min(query_times.rank(str(one % 3)) for one in model)
                assert query_times.rank(str(found % 3)) == least
                assert model[found] == min(due for one, due in model.items() if one % 3 == found % 3)
                del model[found]
        assert len(queue) == len(model)


@dataclass
class SimulatedLane:
    """A lane with places that queries occupy for a time; the greedy payer always has another query."""

    places: int
    costs: list[float]
    """Seconds that the greedy payer's queries take, repeated in this order."""

    def longest_wait(self, cost: float, pause: float, rounds: int) -> float:
        """Return the longest wait of a payer who sends one query of this cost with this pause between."""
        query_times = QueryTimes()
        queue: FairQueue[str] = FairQueue(query_times)
        now, number, due, waited = 0.0, 0, 0.0, 0.0
        running: list[tuple[float, str]] = []
        served = Counter[str]()
        while served["modest"] < rounds:
            while len(queue) < 50:
                number += 1
                queue.put(f"greedy/{number}", "greedy", now)
            if due <= now and "modest" not in queue and all(key != "modest" for _, key in running):
                queue.put("modest", "modest", due)
            while len(running) < self.places and (key := queue.pop(lambda _payer, _key: True)) is not None:
                payer = key.partition("/")[0]
                seconds = cost if payer == "modest" else self.costs[number % len(self.costs)]
                query_times.charge(payer, seconds, now)
                running.append((now + seconds, key))
                served[payer] += 1
                if payer == "modest":
                    waited, due = max(waited, now - due), now + pause
            end = min(running)[0]
            now = min(end, due) if now < due < end and "modest" not in queue else end
            running = [(until, key) for until, key in running if until > now]
        return waited


@given(st.integers(1, 8), st.lists(st.floats(0.1, 10.0), min_size=1, max_size=5), st.floats(0.01, 0.5))
def test_a_modest_payer_waits_for_at_most_one_query_of_a_greedy_one(
    places: int, costs: list[float], cost: float
) -> None:
    assert SimulatedLane(places, costs).longest_wait(cost, pause=10.0, rounds=10) <= max(costs) + cost
