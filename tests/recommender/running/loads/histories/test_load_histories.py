"""The history of a load joins what was downloaded and what polls saw, on one grid."""

from __future__ import annotations

from array import array
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from adapter.foundation.sources.prometheus.answers.ranges import RangeAnswer, RangeSeries
from adapter.foundation.sources.prometheus.errors import AnswerTooLargeError, PrometheusError, QueryRefusedError
from recommender.decisions.record import TargetReference
from recommender.kinds.predictive.predictive_settings import ForEach
from recommender.running.loads.histories.downloads import CHECK_SECONDS, Downloads
from recommender.running.loads.histories.load_histories import TargetHistory
from tests.recommender.running.loads.load_harness import Clocks, need

if TYPE_CHECKING:
    from collections.abc import Callable

HOUR = 3600.0
NEED = need("load", history_seconds=14 * 86_400.0)
START = 1_000_000 * 60.0
STEP = 10.0
"""The step of a history of an hour."""
STEPS_OF_TWO_WEEKS = 20_160


def history_of(*polls: tuple[float, float]) -> TargetHistory:
    """Return a history of polls, each given by its seconds after the start and its value."""
    history = TargetHistory(NEED, 1)
    for seconds, value in polls:
        history.note({None: value}, START + seconds)
    return history


def values(history: TargetHistory, seconds: float) -> list[float | None]:
    found = history.history([None], START + seconds).values[0]
    return [None if np.isnan(value) else float(value) for value in found]


def test_the_first_poll_after_each_grid_time_is_its_sample() -> None:
    history = history_of((0.0, 1.0), (10.0, 2.0), (59.0, 3.0), (61.0, 4.0), (71.0, 5.0))

    assert values(history, 61.0) == [1.0, 4.0]


def test_a_late_poll_leaves_its_grid_time_to_a_range_query() -> None:
    history = history_of((0.0, 1.0), (100.0, 2.0), (121.0, 3.0))

    assert values(history, 121.0) == [1.0, None, 3.0]
    assert history.missing_times(START + 181.0)[-1] == (1_000_001, 1_000_001)


def test_an_outage_is_missing_until_it_is_downloaded() -> None:
    history = history_of((0.0, 1.0), (60.0, 1.0), (600.0, 1.0))
    gap = history.missing_times(START + 661.0)[-1]
    history.fill(gap, [RangeSeries({}, array("d", [START + 300.0]), array("d", [7.0]))])

    assert gap == (1_000_002, 1_000_009)
    assert values(history, 300.0)[-1] == 7.0
    # Recent grid times without any sample are doubted: their samples may arrive late.
    assert history.missing_times(START + 661.0)[-1] == (1_000_006, 1_000_009)


def test_nonexistent_samples_are_not_requested_forever() -> None:
    history = history_of((0.0, 1.0), (600.0, 1.0))
    history.fill((0, 1_000_009), [])

    assert history.missing_times(START + 12 * HOUR)[0][0] == 1_000_011


def test_successive_series_are_one_load_and_simultaneous_ones_are_unknown() -> None:
    history = history_of((240.0, 9.0))
    first = RangeSeries({"instance": "a"}, array("d", [START, START + 60]), array("d", [1.0, 2.0]))
    second = RangeSeries({"instance": "b"}, array("d", [START + 60, START + 120]), array("d", [3.0, 4.0]))
    history.fill((1_000_000, 1_000_003), [first, second])

    assert values(history, 240.0) == [1.0, None, 4.0, None, 9.0]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0])
def test_a_sample_that_cannot_be_a_load_is_unknown(value: float) -> None:
    history = history_of((120.0, 9.0))
    history.fill((1_000_000, 1_000_001), [RangeSeries({}, array("d", [START]), array("d", [value]))])

    assert values(history, 120.0) == [9.0]


class Server:
    """A client with given answers."""

    def __init__(self, *answers: RangeAnswer | PrometheusError) -> None:
        self.answers = list(answers)
        self.requested: list[int] = []
        """The number of points of each request."""
        self.before: Callable[[], None] = lambda: None
        """Called before each answer."""

    def range(self, _query: str, *, start: float, end: float, step_seconds: float, **_options: object) -> RangeAnswer:
        self.before()
        self.requested.append(round((end - start) / step_seconds) + 1)
        answer = self.answers.pop(0) if self.answers else EMPTY
        if isinstance(answer, PrometheusError):
            raise answer
        return answer


EMPTY = RangeAnswer((), ())
PARTIAL = replace(EMPTY, warnings=("a store was not reached",))


def downloads(server: Server, clocks: Clocks, results: list[str]) -> Downloads:
    return Downloads(
        lambda _need: server,  # type: ignore[arg-type,return-value]  # the part of a client that is used
        lambda _name, result: results.append(result),
        lambda: clocks.monotonic,
        lambda: clocks.wall,
    )


def test_two_weeks_are_downloaded_newest_first_in_pieces_that_prometheus_allows() -> None:
    server, clocks, results = Server(), Clocks(wall=START + 1), list[str]()
    under_test, history = downloads(server, clocks, results), history_of((0.0, 1.0))
    while under_test.step(history):
        clocks.monotonic += 1.0

    assert server.requested == [10_000, 10_000, STEPS_OF_TWO_WEEKS - 20_000 - 1]
    assert results == ["ok"] * 3


def test_a_pause_between_two_pieces_does_not_end_a_download() -> None:
    server, clocks = Server(), Clocks(wall=START + 1)
    server.before = lambda: clocks.pass_seconds(5.0)
    under_test, history = downloads(server, clocks, []), history_of((0.0, 1.0))

    assert under_test.step(history)
    assert under_test.step(history), "more pieces follow, although none is due yet"
    assert len(server.requested) == 1


def test_a_history_that_replaces_another_is_downloaded_from_the_beginning() -> None:
    server, clocks = Server(), Clocks(wall=START + 1)
    under_test = downloads(server, clocks, [])
    under_test.step(history_of((0.0, 1.0)))
    short = TargetHistory(need("load", history_seconds=HOUR), 1)
    short.note({None: 1.0}, START)

    assert not under_test.step(short), "a single piece has the whole history"
    assert server.requested == [10_000, round(HOUR / STEP) - 1]


@pytest.mark.parametrize(
    "error", [AnswerTooLargeError("load", "too large"), QueryRefusedError("load", "execution", "too many samples")]
)
def test_a_piece_that_is_too_large_is_halved(error: PrometheusError) -> None:
    server, clocks = Server(*[error] * 6), Clocks(wall=START + 1)
    under_test, history = downloads(server, clocks, []), history_of((0.0, 1.0))
    for _ in range(7):
        under_test.step(history)
        clocks.monotonic += 2 * CHECK_SECONDS

    assert server.requested[0] == 10_000
    assert server.requested[-1] == 6_250


def test_a_partial_answer_is_not_used_and_is_requested_again() -> None:
    server, clocks, results = Server(PARTIAL), Clocks(wall=START + 1), list[str]()
    under_test, history = downloads(server, clocks, results), history_of((0.0, 1.0))
    before = history.missing_times(clocks.wall)
    under_test.step(history)
    assert history.missing_times(clocks.wall) == before

    assert not under_test.step(history)
    assert results == ["partial"]
    clocks.monotonic += 2 * CHECK_SECONDS
    assert under_test.step(history)
    assert results == ["partial", "ok"]


def test_a_clock_far_ahead_for_one_poll_causes_only_another_download() -> None:
    history = TargetHistory(need("load", history_seconds=3600.0), 1)
    for poll in range(30):
        history.note({None: 5.0}, START + poll * STEP)
    history.note({None: 5.0}, START + 400 * 86_400.0)
    history.is_downloaded = True
    now = START + 300.0
    history.note({None: 6.0}, now)

    assert history.history([None], now).values[0, -1] == 6.0
    assert history.known_seconds([None], now)[0] >= 0.0
    assert history.missing_times(now)
    assert not history.is_downloaded


def test_a_small_clock_correction_loses_no_samples() -> None:
    history = TargetHistory(need("load", history_seconds=3600.0), 1)
    for poll in range(30):
        history.note({None: 5.0}, START + poll * STEP)
    history.note({None: 6.0}, START + 250.0)

    assert np.isfinite(history.history([None], START + 250.0).values).all()


def test_a_piece_in_the_future_does_not_count_as_downloaded() -> None:
    history = TargetHistory(need("load", history_seconds=3600.0), 1)
    history.note({None: 5.0}, START)
    before = history.missing_times(START + STEP)
    first = int(START / STEP) + 10
    history.fill((first, first + 200), [])

    assert history.missing_times(START + STEP) == before


@pytest.mark.parametrize("load", [1e39, 1e308])
def test_a_load_that_the_history_cannot_hold_is_unknown(load: float) -> None:
    history = TargetHistory(need("load", history_seconds=3600.0), 1)
    history.note({None: load}, START)
    index = int(START / STEP)
    history.fill((index - 1, index - 1), [RangeSeries({}, array("d", [START - STEP]), array("d", [load]))])

    assert np.isnan(history.history([None], START).values).all()


def of_each(most: int, *polls: tuple[str, ...]) -> TargetHistory:
    """Return a history of polls ten seconds apart, each with its targets as `NAMESPACE/NAME`."""
    settings = replace(NEED.settings, for_each=ForEach("namespace", "app", max_targets=most))
    history = TargetHistory(replace(NEED, settings=settings), most)
    for number, names in enumerate(polls):
        history.note({reference(each): 1.0 for each in names}, START + 60.0 * number)
    return history


def reference(name: str) -> TargetReference:
    namespace, _, own = name.partition("/")
    return TargetReference("apps/v1", "Deployment", namespace, own)


def test_targets_whose_names_change_with_each_poll_do_not_accumulate() -> None:
    polls = [tuple(f"evil/{poll}-{each}" for each in range(3)) for poll in range(50)]
    history = of_each(5, *polls)

    assert len(history.targets()) == 5
    assert {reference(each) for each in polls[-1]} <= set(history.targets())


def test_a_namespace_with_changing_names_does_not_evict_the_history_of_another() -> None:
    polls = [tuple(f"evil/{poll}-{each}" for each in range(3)) for poll in range(50)]
    history = of_each(5, ("shop/web",), *polls)

    assert reference("shop/web") in history.targets()
