"""Missing data means that there is none only after Prometheus has been up for all that a query looks back over."""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.sources.prometheus.errors import (
    AnswerTooLargeError,
    AuthenticationRefusedError,
    PrometheusError,
    PrometheusTimeoutError,
    PrometheusUnreachableError,
    QueryRefusedError,
    UnexpectedAnswerError,
)
from adapter.foundation.sources.prometheus.queries.runtime import Started
from adapter.metrics.readings.prometheus_uptime import PrometheusUptime, collecting_since, may_stand_in
from tests.support.readings import START, FakeClock

if TYPE_CHECKING:
    from collections.abc import Callable

DOWN = PrometheusUnreachableError("q", "connection refused")
LATE = PrometheusTimeoutError("q", "no answer within 10 s")
FOREIGN = UnexpectedAnswerError("q", "a page for browsers")
DAY = 86400.0


class FakeStart:
    """The start time that Prometheus reports, and how often that was requested."""

    def __init__(self, answer: Started | PrometheusError) -> None:
        self.answer = answer
        self.times = 0

    def __call__(self, seconds: float) -> Started:
        assert 0 < seconds <= 2
        self.times += 1
        if isinstance(self.answer, PrometheusError):
            raise self.answer
        return self.answer


def wanted(clock: FakeClock, ask: Callable[[float], Started]) -> PrometheusUptime:
    uptime = PrometheusUptime(clock.clock, ask)
    uptime.wanted = True
    return uptime


def since(clock: FakeClock, uptime: PrometheusUptime) -> float:
    return uptime.seconds_at(clock.now)


@pytest.mark.parametrize(("steady", "may"), [(0, False), (359.9, False), (360, True), (DAY, True)])
def test_the_look_back_and_the_range_must_have_been_scraped(steady: float, may: bool) -> None:  # noqa: FBT001 - a table
    assert may_stand_in(steady, 300, 60) is may


def test_no_uptime_is_enough_for_a_range_that_is_not_known() -> None:
    assert not may_stand_in(math.inf, 300, math.inf)


@pytest.mark.parametrize(
    ("first_answer", "started", "since"),
    [
        (100, None, 100),
        (100, Started(10, 20), 20),
        (100, Started(10, 500), 100),
        (100, Started(150, 170), 170),
        (100, Started(90, -math.inf), -math.inf),
        (100, Started(150, -math.inf), 150),
    ],
    ids=["unknown", "long before", "a reload since", "a restart since", "new", "a restart that lost all data"],
)
def test_the_time_since_when_prometheus_collects(first_answer: float, started: Started | None, since: float) -> None:
    assert collecting_since(first_answer, started) == since


def test_without_a_start_time_prometheus_counts_from_its_first_answer() -> None:
    clock, fake_start = FakeClock(), FakeStart(UnexpectedAnswerError("q", "404"))
    uptime = wanted(clock, fake_start)
    assert since(clock, uptime) == 0
    uptime.note_answer()
    uptime.ask_start()
    clock.forward(50)
    uptime.ask_start()
    assert since(clock, uptime) == 50
    assert fake_start.times == 1, "in vain: not tried again for a minute"
    clock.forward(10)
    uptime.ask_start()
    assert fake_start.times == 2


def test_the_start_time_of_prometheus_reaches_back_before_the_first_answer() -> None:
    clock = FakeClock()
    uptime = wanted(clock, FakeStart(Started(START - DAY, START - 3600)))
    uptime.note_answer()
    uptime.ask_start()
    assert since(clock, uptime) == pytest.approx(3600), "it may have read its old data for most of that day"


def test_a_new_prometheus_misses_nothing_and_its_successor_may_have_lost_data() -> None:
    clock = FakeClock()
    fake_start = FakeStart(Started(START - 5, -math.inf))
    uptime = wanted(clock, fake_start)
    uptime.note_answer()
    uptime.ask_start()
    assert since(clock, uptime) == math.inf
    fake_start.answer = Started(START - 1, -math.inf)
    clock.forward(10)
    uptime.ask_start()
    assert since(clock, uptime) == pytest.approx(11)


def test_a_prometheus_that_replays_old_data_does_not_collect_meanwhile() -> None:
    clock = FakeClock()
    uptime = wanted(clock, FakeStart(Started(START - 720, START - 10)))
    uptime.note_answer()
    uptime.ask_start()
    assert since(clock, uptime) == pytest.approx(10)


@pytest.mark.parametrize("error", [DOWN, AuthenticationRefusedError("q", "401")])
def test_an_outage_counts_from_its_end(error: PrometheusError) -> None:
    clock = FakeClock()
    uptime = wanted(clock, FakeStart(Started(START - DAY, START - DAY)))
    uptime.note_answer()
    uptime.ask_start()
    uptime.note_failure(error, clock.now)
    clock.forward(85)
    assert since(clock, uptime) == 0
    uptime.note_answer()
    clock.forward(40)
    uptime.note_answer()
    assert since(clock, uptime) == 40


def test_the_start_time_is_fetched_after_each_outage_and_every_few_seconds() -> None:
    clock, fake_start = FakeClock(), FakeStart(Started(START - DAY, START - DAY))
    uptime = wanted(clock, fake_start)
    for _ in range(3):
        uptime.note_answer()
        uptime.ask_start()
    assert fake_start.times == 1
    uptime.note_failure(DOWN, clock.now)
    uptime.note_answer()
    uptime.ask_start()
    assert fake_start.times == 2
    clock.forward(5)
    uptime.ask_start()
    assert fake_start.times == 3


def test_a_restart_between_two_queries_is_detected() -> None:
    clock, fake_start = FakeClock(), FakeStart(Started(START - DAY, START - DAY))
    uptime = wanted(clock, fake_start)
    uptime.note_answer()
    uptime.ask_start()
    clock.forward(100)
    fake_start.answer = Started(START + 98, START + 99)
    uptime.note_answer()
    uptime.ask_start()
    assert since(clock, uptime) == pytest.approx(1)
    # Of two servers behind one address the younger counts.
    fake_start.answer = Started(START - DAY, START - DAY)
    clock.forward(10)
    uptime.ask_start()
    assert since(clock, uptime) == pytest.approx(11)


def test_a_restart_is_detected_after_the_clocks_were_set_back() -> None:
    clock, fake_start = FakeClock(), FakeStart(Started(START - 3600, START - 3600))
    uptime = wanted(clock, fake_start)
    uptime.note_answer()
    uptime.ask_start()
    clock.wall_offset -= DAY
    clock.forward(100)
    fake_start.answer = Started(START + 98 - DAY, START + 99 - DAY)
    uptime.note_answer()
    uptime.ask_start()
    assert since(clock, uptime) == pytest.approx(1)


def test_clocks_that_are_set_back_are_not_a_restart() -> None:
    clock, fake_start = FakeClock(), FakeStart(Started(START - 3600, START - 3600))
    uptime = wanted(clock, fake_start)
    replicas = fake_start.answer, Started(START - 1800, START - 1800)
    for back in (0.0, DAY):
        clock.wall_offset -= back
        for fake_start.answer in replicas * 2:
            uptime.note_answer()
            uptime.ask_start()
            clock.forward(10)
    assert since(clock, uptime) == pytest.approx(1800 + 80)


def test_a_start_time_in_the_future_counts_from_when_it_was_fetched() -> None:
    """The clock of Prometheus is ahead, or was when it started."""
    clock, fake_start = FakeClock(), FakeStart(Started(START + DAY, START + DAY))
    uptime = wanted(clock, fake_start)
    uptime.note_answer()
    uptime.ask_start()
    clock.forward(600)
    uptime.note_answer()
    uptime.ask_start()
    assert since(clock, uptime) == pytest.approx(600)
    fake_start.answer = Started(START + 650, START + 650)
    clock.forward(60)
    uptime.ask_start()
    assert since(clock, uptime) == pytest.approx(10)


def test_a_restart_is_detected_by_all_queries_that_end_at_the_same_time() -> None:
    clock, seen = FakeClock(), list[float]()
    answer = [Started(START - DAY, START - DAY)]

    def another_query() -> None:
        uptime.ask_start()
        seen.append(since(clock, uptime))

    other = threading.Thread(target=another_query, daemon=True)

    def ask(_seconds: float) -> Started:
        if len(answer) > 1:
            other.start()
            # If it does not wait for this answer, it ends now.
            other.join(0.2)
        return answer[-1]

    uptime = wanted(clock, ask)
    uptime.note_answer()
    uptime.ask_start()
    clock.forward(100)
    answer.append(Started(START + 98, START + 99))
    uptime.note_answer()
    uptime.ask_start()
    other.join(10)
    assert seen == [pytest.approx(1)]


@pytest.mark.parametrize("error", [LATE, FOREIGN])
def test_one_failing_query_among_good_ones_is_not_an_outage(error: PrometheusError) -> None:
    clock = FakeClock()
    uptime = PrometheusUptime(clock.clock)
    for _ in range(40):
        uptime.note_answer()
        clock.forward(8)
        uptime.note_failure(error, clock.now - 10)
        clock.forward(2)
    assert since(clock, uptime) == 400


@pytest.mark.parametrize(("quiet", "counted"), [(14.5, 14.5), (15.0, 0.0), (100.0, 0.0)])
def test_an_odd_answer_long_after_the_last_good_one_is_an_outage(quiet: float, counted: float) -> None:
    clock = FakeClock()
    uptime = PrometheusUptime(clock.clock)
    uptime.note_answer()
    clock.forward(quiet)
    uptime.note_failure(FOREIGN, clock.now)
    uptime.note_answer()
    assert since(clock, uptime) == counted


@pytest.mark.parametrize("error", [LATE, FOREIGN])
def test_a_server_that_answers_no_query_is_away(error: PrometheusError) -> None:
    clock = FakeClock()
    uptime = PrometheusUptime(clock.clock)
    uptime.note_failure(error, clock.now - 10)
    assert since(clock, uptime) == 0
    uptime.note_answer()
    clock.forward(400)
    uptime.note_failure(error, clock.now - 10)
    uptime.note_answer()
    clock.forward(3)
    assert since(clock, uptime) == 3


@pytest.mark.parametrize("error", [QueryRefusedError("q", "bad_data", "parse error"), AnswerTooLargeError("q", "big")])
def test_a_server_that_refuses_a_query_is_up(error: PrometheusError) -> None:
    clock = FakeClock()
    uptime = PrometheusUptime(clock.clock)
    uptime.note_failure(error, clock.now)
    clock.forward(7)
    assert since(clock, uptime) == 7


def test_a_server_that_hangs_between_two_answers_is_away() -> None:
    clock = FakeClock()
    uptime = PrometheusUptime(clock.clock)
    for _ in range(40):
        uptime.note_answer()
        clock.forward(10)
    uptime.note_failure(LATE, clock.now - 9.9)
    uptime.note_answer()
    assert since(clock, uptime) == 0


def test_the_start_time_is_not_fetched_unless_a_rule_needs_it() -> None:
    clock, fake_start = FakeClock(), FakeStart(Started(START - DAY, START - DAY))
    uptime = PrometheusUptime(clock.clock, fake_start)
    uptime.note_answer()
    uptime.ask_start()
    assert (fake_start.times, since(clock, uptime)) == (0, 0)


def test_a_wall_clock_that_jumps_does_not_lengthen_the_uptime() -> None:
    clock = FakeClock()
    uptime = wanted(clock, FakeStart(Started(START - 20, START - 20)))
    uptime.note_answer()
    uptime.ask_start()
    clock.wall_offset += 3600
    assert since(clock, uptime) == pytest.approx(20)


@pytest.mark.parametrize(("unseen", "counted"), [(300, 330), (301, 30), (3 * DAY, 30)])
def test_without_a_start_time_prometheus_may_have_been_away_between_queries(unseen: float, counted: float) -> None:
    clock = FakeClock()
    uptime = PrometheusUptime(clock.clock)
    uptime.note_answer()
    clock.forward(unseen)
    uptime.note_answer()
    clock.forward(30)
    uptime.note_answer()
    assert since(clock, uptime) == counted


def test_with_a_start_time_prometheus_was_up_between_queries() -> None:
    clock = FakeClock()
    uptime = wanted(clock, FakeStart(Started(START - DAY, START - DAY)))
    uptime.note_answer()
    uptime.ask_start()
    clock.forward(3 * DAY)
    uptime.note_answer()
    uptime.ask_start()
    assert since(clock, uptime) == pytest.approx(4 * DAY)


@pytest.mark.parametrize(("asleep", "counted"), [(299, DAY + 30), (302, 20), (3600, 20)])
def test_no_samples_are_collected_while_the_machine_sleeps(asleep: float, counted: float) -> None:
    clock = FakeClock()
    uptime = wanted(clock, FakeStart(Started(START - DAY, START - DAY)))
    uptime.note_answer()
    uptime.ask_start()
    # The monotonic clock stands still then.
    clock.wall_offset += asleep
    clock.forward(10)
    uptime.note_answer()
    uptime.ask_start()
    clock.forward(20)
    assert since(clock, uptime) == pytest.approx(counted)
