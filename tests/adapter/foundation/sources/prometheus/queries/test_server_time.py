"""A Prometheus that says that its own clock is ahead or behind is not believed, whatever the `Date` of its answers."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.sources.deadlines import Deadline
from adapter.foundation.sources.prometheus.errors import (
    AuthenticationRefusedError,
    ClockError,
    PrometheusError,
    PrometheusTimeoutError,
    PrometheusUnreachableError,
    QueryRefusedError,
    UnexpectedAnswerError,
)
from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from adapter.foundation.sources.prometheus.queries.server_time import ServerTime, StatedTime, stated_time
from adapter.foundation.time.pace import UNPACED
from tests.support.recording_proxy import RecordingProxy, recording_proxy
from tests.support.waiting import until

if TYPE_CHECKING:
    from tests.support.prometheus import ScrapedPrometheus

SECONDS = 10.0


def answer(timestamp: str, value: str, *, times: int = 1) -> bytearray:
    samples = ",".join([f'{{"metric":{{}},"value":[{timestamp},"{value}"]}}'] * times)
    return bytearray(f'{{"status":"success","data":{{"resultType":"vector","result":[{samples}]}}}}'.encode())


@dataclass
class Harness:
    """A server and both of our clocks, in seconds."""

    ahead: float = 0.0
    failure: PrometheusError | None = None
    now: float = 0.0
    asked: list[float] = field(default_factory=list)
    """How many seconds each check was allowed."""

    def __post_init__(self) -> None:
        self.times = ServerTime(self._ask, lambda: 1e9 + self.now, lambda: self.now)

    def _ask(self, seconds: float) -> float:
        self.asked.append(seconds)
        if self.failure is not None:
            raise self.failure
        return 1e9 + self.now + self.ahead

    def refused(self, seconds: float = SECONDS) -> str:
        """Return why a query's answer is refused; empty if it is believed."""
        try:
            self.times.refuse_if_wrong("up", Deadline(seconds, lambda: self.now))
        except ClockError as e:
            return e.cause
        return ""


class TestDecision:
    @pytest.mark.parametrize("ahead", [59.0, 0.0, -30.0, -59.0])
    def test_a_server_whose_clock_is_nearly_ours_is_believed(self, ahead: float) -> None:
        assert Harness(ahead).refused() == ""

    @pytest.mark.parametrize(
        ("ahead", "words"),
        [
            (61.0, "61 s behind"),
            (3600.0, "3600 s behind"),
            (-61.0, "61 s ahead of"),
            (-200.0, "200 s ahead of"),
        ],
    )
    def test_a_server_that_is_far_ahead_or_behind_is_not(self, ahead: float, words: str) -> None:
        assert words in Harness(ahead).refused()

    def test_a_pause_of_this_process_during_the_check_is_no_difference(self) -> None:
        times = iter([1e9, 1e9 + 600])
        clock = ServerTime(lambda _: 1e9 + 1, lambda: next(times), lambda: 0.0)
        clock.refuse_if_wrong("up", Deadline(SECONDS, lambda: 0.0))

    def test_the_time_is_checked_once_a_minute_and_only_for_queries(self) -> None:
        harness = Harness()
        for harness.now in (0.0, 10.0, 59.9, 60.0, 61.0, 119.0, 7200.0):
            harness.refused()
        assert len(harness.asked) == 3

    @pytest.mark.parametrize("ahead", [3600.0, -3600.0])
    def test_while_it_is_wrong_every_answer_is_refused_until_a_check_agrees_seconds_later(self, ahead: float) -> None:
        harness = Harness(ahead)
        assert harness.refused()
        harness.ahead = 0.0
        harness.now = 4.9
        assert harness.refused()
        harness.now = 5.0
        assert not harness.refused()
        assert len(harness.asked) == 2

    @pytest.mark.parametrize(
        ("failure", "seconds"),
        [
            (QueryRefusedError("q", "bad_data", "no"), 60.0),
            (AuthenticationRefusedError("q", "no"), 60.0),
            (UnexpectedAnswerError("q", "no time"), 60.0),
            (PrometheusUnreachableError("q", "gone"), 5.0),
        ],
        ids=lambda row: type(row).__name__,
    )
    def test_a_check_that_fails_refuses_nothing_and_is_repeated_soon_if_the_server_was_away(
        self, failure: PrometheusError, seconds: float
    ) -> None:
        harness = Harness(3600.0, failure)
        assert [harness.refused() for harness.now in (0.0, seconds - 0.1)] == ["", ""]
        assert len(harness.asked) == 1
        harness.failure, harness.now = None, seconds
        assert "behind" in harness.refused()

    def test_nothing_is_believed_while_the_first_checks_time_out_but_for_the_third_in_a_row(self) -> None:
        harness = Harness(3600.0, PrometheusTimeoutError("q", "late"))
        for harness.now, checks in ((0.0, 1), (4.9, 1), (5.0, 2), (9.9, 2)):
            assert "its clock may be wrong" in harness.refused()
            assert len(harness.asked) == checks
        assert [harness.refused() for harness.now in (10.0, 14.9, 15.0)] == ["", "", ""]
        assert len(harness.asked) == 4
        harness.failure, harness.now = None, 20.0
        assert "behind" in harness.refused()

    def test_a_server_that_answered_a_check_is_believed_while_later_ones_time_out(self) -> None:
        for failure in (None, QueryRefusedError("q", "bad_data", "no")):
            harness = Harness(0.0, failure)
            assert not harness.refused()
            harness.failure = PrometheusTimeoutError("q", "late")
            assert [harness.refused() for harness.now in (60.0, 64.9, 65.0)] == ["", "", ""]
            assert len(harness.asked) == 3
            harness.failure, harness.ahead, harness.now = None, 3600.0, 70.0
            assert "behind" in harness.refused()

    def test_a_server_that_never_answers_is_asked_every_five_seconds_for_a_minute_alone(self) -> None:
        harness = Harness(0.0, PrometheusTimeoutError("q", "late"))
        for second in range(3600):
            harness.now = float(second)
            harness.refused()
        assert len(harness.asked) == 12 + 59

    def test_a_check_that_fails_makes_no_server_right_that_was_wrong(self) -> None:
        harness = Harness(3600.0)
        assert harness.refused()
        harness.failure, harness.now = PrometheusTimeoutError("q", "late"), 3600.0
        assert harness.refused()

    @pytest.mark.parametrize(
        ("seconds", "first", "later"),
        [(0.05, 0.05, 0.05), (0.2, 0.2, 0.1), (2.0, 2.0, 0.5), (4.0, 4.0, 1.0), (60.0, 5.0, 2.0)],
    )
    def test_a_check_takes_a_small_share_of_the_remaining_time_but_for_the_first_one(
        self, seconds: float, first: float, later: float
    ) -> None:
        harness = Harness()
        for harness.now in (0.0, 60.0):
            harness.refused(seconds)
        assert harness.asked == pytest.approx([first, later])


class TestThreads:
    def test_all_queries_wait_for_the_first_check_and_one_of_them_sends_it(self) -> None:
        asked, go_on = threading.Semaphore(0), threading.Event()
        calls: list[float] = []

        def ask(seconds: float) -> float:
            calls.append(seconds)
            asked.release()
            assert go_on.wait(SECONDS)
            return 1e9 + 3600.0

        times = ServerTime(ask, lambda: 1e9)

        def refused(_number: int) -> bool:
            try:
                times.refuse_if_wrong("up", Deadline(SECONDS))
            except ClockError:
                return True
            return False

        with ThreadPoolExecutor(8) as pool:
            results = [pool.submit(refused, number) for number in range(8)]
            assert asked.acquire(timeout=SECONDS)
            assert not any(result.done() for result in results)
            go_on.set()
            assert all(result.result() for result in results)
        assert len(calls) == 1

    def test_a_query_that_waits_for_a_check_ends_by_its_own_deadline(self) -> None:
        asked, go_on = threading.Event(), threading.Event()

        def ask(_seconds: float) -> float:
            asked.set()
            assert go_on.wait(SECONDS)
            return 1e9

        times = ServerTime(ask, lambda: 1e9)
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(times.refuse_if_wrong, "up", Deadline(SECONDS))
            assert asked.wait(SECONDS)
            with pytest.raises(ClockError, match="its clock may be wrong"):
                times.refuse_if_wrong("up", Deadline(0.01))
            go_on.set()
            first.result()

    def test_queries_wait_for_the_check_that_follows_one_that_timed_out(self) -> None:
        asked, go_on = threading.Event(), threading.Event()
        now = 0.0

        def ask(_seconds: float) -> float:
            if now == 0.0:
                raise PrometheusTimeoutError("q", "late")
            asked.set()
            assert go_on.wait(SECONDS)
            return 1e9

        times = ServerTime(ask, lambda: 1e9, lambda: now)
        with pytest.raises(ClockError, match="its clock may be wrong"):
            times.refuse_if_wrong("up", Deadline(SECONDS))
        now = 5.0
        with ThreadPoolExecutor(1) as pool:
            checking = pool.submit(times.refuse_if_wrong, "up", Deadline(SECONDS))
            assert asked.wait(SECONDS)
            try:
                with pytest.raises(ClockError, match="its clock may be wrong"):
                    times.refuse_if_wrong("up", Deadline(0.01))
            finally:
                go_on.set()
            checking.result()

    @pytest.mark.parametrize(("silent_seconds", "expected"), [(60.0, ""), (3600.0, "timeout")])
    def test_the_last_result_is_used_during_the_next_check_unless_it_is_old(
        self, silent_seconds: float, expected: str
    ) -> None:
        asked, go_on = threading.Event(), threading.Event()
        go_on.set()
        now = 0.0

        def ask(_seconds: float) -> float:
            asked.set()
            assert go_on.wait(SECONDS)
            return 1e9

        times = ServerTime(ask, lambda: 1e9, lambda: now)

        def result(seconds: float) -> str:
            try:
                times.refuse_if_wrong("up", Deadline(seconds))
            except PrometheusError as e:
                return e.result
            return ""

        assert result(SECONDS) == ""
        go_on.clear()
        asked.clear()
        now = silent_seconds
        with ThreadPoolExecutor(1) as pool:
            checking = pool.submit(result, SECONDS)
            assert asked.wait(SECONDS)
            try:
                assert result(0.01) == expected
            finally:
                go_on.set()
            assert checking.result() == ""


class TestStatedTime:
    def test_the_stated_time_is_that_of_the_sample_even_if_evaluated_in_the_past(
        self,
    ) -> None:
        assert stated_time(answer("1800000000.5", "1800000000.5")) == StatedTime(1800000000.5, 1800000000.5)
        assert stated_time(answer("1800000000", "1799999970")) == StatedTime(1800000000.0, 1799999970.0)
        assert stated_time(answer("1800000000", "1799996400")) == StatedTime(1800000000.0, 1799996400.0)

    @pytest.mark.parametrize(
        "body",
        [
            answer("1800000000", "1"),
            answer("1800000000", "1799996399"),
            answer("1800000000", "NaN"),
            answer("1800000000", "+Inf"),
            answer("1800000000", "1800000000", times=0),
            answer("1800000000", "1800000000", times=2),
            bytearray(b"<html>"),
            bytearray(b'{"status":"success"}'),
            bytearray(b'{"status":"success","data":{"resultType":"matrix","result":[]}}'),
        ],
    )
    def test_an_unusable_answer_is_an_error(self, body: bytearray) -> None:
        with pytest.raises(PrometheusError):
            stated_time(body)


@pytest.fixture(scope="module")
def prometheus(start_prometheus: Callable[..., ScrapedPrometheus]) -> ScrapedPrometheus:
    return start_prometheus()


@contextmanager
def asking(url: str, ahead: float) -> Iterator[tuple[PrometheusClient, RecordingProxy]]:
    with recording_proxy(url) as proxy, PrometheusClient(PrometheusSettings(proxy.url)) as client:
        proxy.server_seconds_ahead = ahead
        yield client, proxy


def read_instant(client: PrometheusClient) -> None:
    list(client.instant("vector(1)", timeout_seconds=SECONDS).batches(UNPACED))


def read_range(client: PrometheusClient) -> None:
    client.range("vector(1)", start=1e9, end=1e9 + 60, step_seconds=60, timeout_seconds=SECONDS)


def read_series(client: PrometheusClient) -> None:
    list(client.series("up", start=1e9, timeout_seconds=SECONDS).batches(UNPACED))


class TestClient:
    """A client of a real Prometheus behind a gateway that writes a `Date` of its own, which is right."""

    @pytest.mark.parametrize("read", [read_instant, read_range, read_series])
    @pytest.mark.parametrize(("ahead", "words"), [(3600.0, "behind"), (-200.0, "ahead of")])
    def test_no_answer_of_a_server_whose_clock_is_wrong_is_believed(
        self, prometheus: ScrapedPrometheus, read: Callable[[PrometheusClient], None], ahead: float, words: str
    ) -> None:
        with asking(prometheus.url, ahead) as (client, _), pytest.raises(UnexpectedAnswerError) as raised:
            read(client)
        stated = re.search(rf"([0-9]+) s {words}", str(raised.value))
        assert stated is not None, raised.value
        # The real clock goes on while an answer is under way, which takes no longer than the query may.
        assert abs(int(stated[1]) - abs(ahead)) <= SECONDS

    @pytest.mark.parametrize("ahead", [-50.0, 0.0, 50.0])
    def test_a_server_that_is_right_is_asked_for_its_time_once(
        self, prometheus: ScrapedPrometheus, ahead: float
    ) -> None:
        with asking(prometheus.url, ahead) as (client, proxy):
            for read in (read_series, read_instant, read_range, read_series):
                read(client)
        assert [request.all("query") for request in proxy.requests if request.is_of_present] == [["vector(time())"]]
        assert len(proxy.requests) == 5

    def test_nothing_is_refused_if_the_server_does_not_state_its_time(self, prometheus: ScrapedPrometheus) -> None:
        with asking(prometheus.url, 0.0) as (client, proxy):
            proxy.no_time = True
            read_instant(client)
            read_instant(client)
        assert len(proxy.requests) == 3

    def test_the_time_of_a_failing_server_is_not_queried(self) -> None:
        with asking("http://127.0.0.1:9", 0.0) as (client, proxy):
            with pytest.raises(PrometheusError):
                read_instant(client)
            until(lambda: len(proxy.requests) == 1, SECONDS)
