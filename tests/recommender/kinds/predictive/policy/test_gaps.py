"""The window after gaps in decisions: restarts, outages of the load, and clocks that were wrong."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from recommender.kinds.predictive.policy.arithmetic import replicas_for
from recommender.kinds.predictive.policy.load_situation import LoadSituation
from recommender.kinds.predictive.policy.memory import PolicyMemory
from recommender.kinds.predictive.policy.sizing import size_of
from tests.recommender.kinds.predictive.policy.policy_harness import LIMIT, NOW, forecast, gently, polls, settings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from recommender.kinds.predictive.policy.sizing import Sized
    from recommender.kinds.predictive.predictive_settings import ScaleDown

DAY = 86_400.0


def sizes_at(
    scale_down: ScaleDown | None,
    seconds: Iterable[float],
    memory: PolicyMemory,
    *,
    writes: bool = True,
    replicas: float = 5.0,
    current: int = 40,
) -> list[int]:
    """Return the size of each decision at these times, each of which is carried out before the next one."""
    found: list[int] = []
    for second in seconds:
        situation = LoadSituation(
            replicas * LIMIT,
            forecast(replicas * LIMIT),
            current_replicas=current,
            last_replicas=current,
            writes_size=writes,
        )
        sized = size_of(settings(scale_down=scale_down), situation, memory, NOW + second)
        assert sized.replicas is not None
        current, memory = sized.replicas, sized.memory
        found.append(current)
    return found


def decided(replicas: float, seconds: float, *, window: float = DAY) -> PolicyMemory:
    """Return the memory of three decisions on this size, the last one at `NOW` and these seconds."""
    loads = [replicas * LIMIT] * 3
    return polls(settings(scale_down=gently(None, window)), loads, start=NOW + seconds - 20.0)[-1].memory


@pytest.mark.parametrize("decay", [None, 0.05], ids=["at once", "decay"])
@pytest.mark.parametrize("writes", [True, False], ids=["scale", "metric"])
@pytest.mark.parametrize("is_stored", [True, False], ids=["a restart", "the same process"])
@pytest.mark.parametrize("current", [40, 39], ids=["the last size", "a smaller size"])
@pytest.mark.parametrize("seconds", [3600.0, 2 * DAY])
def test_a_size_from_the_future_is_held_for_five_minutes_and_not_until_its_time(
    decay: float | None,
    seconds: float,
    current: int,
    *,
    writes: bool,
    is_stored: bool,
) -> None:
    """The clock was ahead when it was decided."""
    memory = decided(40.0, seconds)
    memory = memory.stored if is_stored else memory
    found = sizes_at(gently(decay, DAY), range(0, 1200, 10), memory, writes=writes, current=current)
    assert set(found[:30]) <= {39, 40}
    assert found[30] < 39
    assert found[-1] == 5


@pytest.mark.parametrize("writes", [True, False], ids=["scale", "metric"])
def test_sizes_before_the_clock_was_ahead_still_count_in_their_order(*, writes: bool) -> None:
    before = decided(40.0, -60.0, window=1200.0)
    memory = replace(before, time=NOW + 3600.0, desired_sizes=(*before.desired_sizes, (NOW + 3600.0, 20)))
    found = sizes_at(gently(None, 1200.0), range(0, 1300, 10), memory, writes=writes)
    assert found == [40] * 114 + [5] * 16, "1200 s after the time of the larger one"


def outages(*, good: float, outage: float, cycles: int) -> list[float]:
    """Return the times of decisions every 10 s if the load is known for some time and then unknown, in turn."""
    times: list[float] = []
    for cycle in range(cycles):
        began = cycle * (good + outage) + 10.0
        times += [began + 10.0 * step for step in range(int(good / 10.0))]
    return times


@pytest.mark.parametrize("writes", [True, False], ids=["scale", "metric"])
@pytest.mark.parametrize("window", [100.0, 300.0, 1200.0, DAY])
@pytest.mark.parametrize("outage", [50.0, 70.0, 600.0])
def test_outages_of_the_load_every_few_minutes_do_not_hold_a_size_for_ever(
    window: float, outage: float, *, writes: bool
) -> None:
    """The window stands still in an outage, so it ends after the load was known for that long."""
    good = 170.0
    times = outages(good=good, outage=outage, cycles=int(window / good) + 3)
    found = sizes_at(gently(None, window), times, decided(40.0, 0.0, window=window), writes=writes)
    held = 10.0 * sum(size == 40 for size in found)
    assert set(found) == {40, 5}
    assert found == sorted(found, reverse=True)
    assert held <= window


@pytest.mark.parametrize("window", [100.0, 300.0, 1200.0])
def test_a_long_outage_of_the_load_takes_nothing_of_the_window_but_renews_it_by_no_more_than_five_minutes(
    window: float,
) -> None:
    """What is measured right after an outage may be too low."""
    found = sizes_at(gently(None, window), [3600.0 + 10 * step for step in range(60)], decided(40.0, 0.0))
    held = int(min(window, 300.0) / 10.0)
    assert found[: held - 2] == [40] * (held - 2)
    assert found[held:] == [5] * (60 - held)


@pytest.mark.parametrize(
    ("interval", "gap", "replicas"),
    [(10.0, 60.0, 30), (10.0, 3600.0, 30), (60.0, 120.0, 22), (60.0, 150.0, 22), (60.0, 3600.0, 22)],
)
def test_a_gap_lowers_the_size_by_no_more_than_a_minute_or_two_intervals_do(
    interval: float, gap: float, replicas: int
) -> None:
    situation = LoadSituation(
        5.0 * LIMIT, forecast(5.0 * LIMIT), last_replicas=40, writes_size=False, interval_seconds=interval
    )
    sized = size_of(settings(scale_down=gently(0.05, 0.0)), situation, decided(40.0, 0.0, window=0.0), NOW + gap)
    assert sized.replicas == replicas


def test_a_published_size_decays_to_the_end_while_its_target_does_not_exist() -> None:
    memory, found = decided(5.0, 0.0, window=0.0), [5]
    for step in range(1, 41):
        situation = LoadSituation(LIMIT, forecast(LIMIT), is_absent=True, writes_size=False, last_replicas=found[-1])
        sized = size_of(settings(scale_down=gently(0.05, 0.0)), situation, memory, NOW + 10.0 * step)
        memory = sized.memory
        assert sized.replicas is not None
        found.append(sized.replicas)
    assert (found[4], found[5], found[-1]) == (5, 4, 1)


@pytest.mark.parametrize("is_stored", [True, False], ids=["a restart", "the same process"])
def test_only_a_restart_renews_a_window_that_has_nearly_passed(*, is_stored: bool) -> None:
    """A stored memory lacks later decisions that may have confirmed the size."""
    loads = [40.0 * LIMIT] + [5.0 * LIMIT] * 25
    memory = polls(settings(), loads)[-1].memory
    memory = memory.stored if is_stored else memory
    found = sizes_at(None, [250.0 + 70.0 + 10 * step for step in range(40)], memory)
    assert found.count(40) == (30 if is_stored else 5)


@pytest.mark.parametrize("writes", [True, False], ids=["scale", "metric"])
@pytest.mark.parametrize("jump", [30.0, 70.0, 3600.0, 2 * DAY])
def test_a_window_lasts_no_longer_than_an_interval_more_after_the_clock_was_set_forward(
    jump: float, *, writes: bool
) -> None:
    loads = [40.0 * LIMIT] + [5.0 * LIMIT] * 25
    memory = polls(settings(), loads)[-1].memory.prolonged(jump)
    found = sizes_at(None, [jump + 260.0 + 10 * step for step in range(40)], memory, writes=writes)
    held = 4 if jump < 60.0 else 5
    assert found == [40] * held + [5] * (40 - held), "300 s after the largest size, of which 250 s have passed"


def test_a_window_is_moved_anew_each_time_the_clock_is_set_forward() -> None:
    memory = polls(settings(), [40.0 * LIMIT, 5.0 * LIMIT])[-1].memory
    for jump in (3600.0, 7200.0):
        sized = size_of(
            settings(),
            LoadSituation(5.0 * LIMIT, forecast(5.0 * LIMIT), current_replicas=40, last_replicas=40),
            memory.prolonged(3600.0),
            NOW + jump + 20.0,
        )
        memory = sized.memory
        time, replicas = memory.desired_sizes[0]
        assert (replicas, NOW + jump <= time <= NOW + jump + 10.0) == (40, True)


def unread(memory: PolicyMemory, seconds: float, load: float, *, writes: bool = True) -> Sized:
    """Return the decision about a target whose size cannot be read."""
    last = None if memory.capacity is None else replicas_for(memory.capacity, 1.0)
    situation = LoadSituation(load, forecast(load), last_replicas=last, writes_size=writes)
    return size_of(settings(scale_down=gently(0.05, 0.0)), situation, memory, NOW + seconds)


@pytest.mark.parametrize("seconds", [10.0, 70.0], ids=["each poll", "an outage of the load"])
def test_a_published_size_does_not_fall_faster_if_the_size_of_the_target_can_never_be_read(seconds: float) -> None:
    found = {}
    for writes in (True, False):
        memory, sizes = PolicyMemory(), []
        for step, load in enumerate([40.0 * LIMIT] + [5.0 * LIMIT] * 12):
            sized = unread(memory, step * seconds, load, writes=writes)
            memory = sized.memory
            sizes.append(sized.replicas)
        found[writes] = sizes
    assert found[True] == found[False]


def test_a_restart_lets_the_published_size_of_such_a_target_fall_no_faster() -> None:
    before = unread(PolicyMemory(), 0.0, 40.0 * LIMIT)
    last, memory, found = before.replicas, before.memory.stored, []
    for seconds in (10.0, 20.0, 90.0):
        situation = LoadSituation(5.0 * LIMIT, forecast(5.0 * LIMIT), last_replicas=last, writes_size=True)
        sized = size_of(settings(scale_down=gently(0.05, 0.0)), situation, memory, NOW + seconds)
        last, memory = sized.replicas, sized.memory.stored
        found.append(last)
    assert found == [38, 37, 28]


@pytest.mark.parametrize("is_stored", [True, False], ids=["a restart", "the same process"])
def test_a_size_that_can_be_read_at_last_is_where_lowering_begins(*, is_stored: bool) -> None:
    memory = unread(unread(PolicyMemory(), 0.0, 5.0 * LIMIT).memory, 10.0, 5.0 * LIMIT).memory
    memory = memory.stored if is_stored else memory
    found = sizes_at(gently(0.05, 0.0), [20.0, 30.0], memory, current=40)
    assert found == [38, 37]


def test_a_size_that_somebody_has_set_in_an_outage_of_the_load_is_held_for_a_window() -> None:
    memory = decided(5.0, 0.0, window=300.0)
    sized = size_of(
        settings(),
        LoadSituation(5.0 * LIMIT, forecast(0.0), current_replicas=40, last_replicas=5, writes_size=True),
        memory,
        NOW + 70.0,
    )
    assert sized.begins_at == 40
    found = sizes_at(None, [80.0 + 10 * step for step in range(40)], sized.memory)
    assert found == [40] * 29 + [5] * 11


@pytest.mark.parametrize(
    ("situation", "seconds", "replicas"),
    [
        pytest.param(LoadSituation(None, current_replicas=20), 3600.0, 20, id="somebody has set it in a gap"),
        pytest.param(LoadSituation(None, current_replicas=20), 10.0, 10, id="without a gap, a write may be under way"),
        pytest.param(LoadSituation(None, is_absent=True), 3600.0, 10, id="the target does not exist"),
    ],
)
def test_a_size_that_is_kept_without_a_load_is_that_of_the_target_after_a_gap(
    situation: LoadSituation, seconds: float, replicas: int
) -> None:
    situation = dataclasses.replace(situation, last_replicas=10, writes_size=True)
    assert size_of(settings(), situation, decided(10.0, 0.0), NOW + seconds).replicas == replicas


@pytest.mark.parametrize("window", [0.0, 300.0])
@pytest.mark.parametrize(
    ("remembered", "uid", "replicas"),
    [
        pytest.param("a", "a", 10, id="the same target"),
        pytest.param("a", "b", 2, id="created again"),
        pytest.param("", "b", 10, id="of an unknown target before"),
        pytest.param("a", "", 10, id="of an unknown target now"),
    ],
)
def test_a_target_that_was_created_again_does_not_get_its_former_size(
    remembered: str, uid: str, replicas: int, window: float
) -> None:
    memory = PolicyMemory(time=NOW - 10.0, capacity=10.0, desired_sizes=((NOW - 10.0, 10),), uid=remembered)
    situation = LoadSituation(LIMIT, forecast(LIMIT), current_replicas=2, last_replicas=10, uid=uid, writes_size=True)
    assert size_of(settings(scale_down=gently(0.05, window)), situation, memory, NOW).replicas == replicas
