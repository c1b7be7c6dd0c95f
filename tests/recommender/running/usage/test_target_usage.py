"""The usage of a recommendation's targets, as it grows part by part."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from recommender.kinds.resources.bounds import SizeSettings
from recommender.kinds.resources.sizing import SizingOptions
from recommender.kinds.resources.usage import CollectedCpu, ContainerRows, UsageSamples
from recommender.kinds.resources.workloads import MEMORY, ClusterFacts, PodContainer, SizedWorkload, WorkloadContainer
from recommender.running.usage import target_usage
from recommender.running.usage.target_usage import KnownUsage, UsagePart

if TYPE_CHECKING:
    from recommender.kinds.resources.size_record import SizeRecord

DAY = 86_400.0
PART = 1200.0
GIBIBYTE = 2.0**30
POD = PodContainer("shop", "web-1", "web")
WEB = WorkloadContainer(SizedWorkload("shop", "Deployment", "web"), "web")


def part(end: float, *, peak: float | None, request: float = 0.0) -> UsagePart:
    """Return the usage of a container that is killed in each part because it is out of memory."""
    rows = ContainerRows((WEB,), {POD: 0})
    cpu = CollectedCpu.empty(rows, 1, end)
    times = np.array([end - PART + 300.0, end])
    cpu.add(0, [UsageSamples(POD, times, np.array([0.1, 0.1]))])
    facts = ClusterFacts(requests={MEMORY: {POD: request}})
    peaks = {} if peak is None else {POD: peak}
    return UsagePart(end - PART, end, cpu, peaks, frozenset({POD}), frozenset({POD}), facts)


def memory_target(usage: KnownUsage) -> int:
    (record,) = usage.sizes(SizingOptions(SizeSettings(has_interval=False)))
    assert record.memory is not None
    return record.memory.target


def usage_after(parts: int, *, peak: float | None, request: float = 0.0) -> KnownUsage:
    usage = KnownUsage.empty(3)
    for number in range(1, parts + 1):
        usage.add(part(number * PART, peak=peak, request=request))
    return usage


@pytest.mark.parametrize(
    ("peak", "request_bytes"),
    [(GIBIBYTE, 0.0), (GIBIBYTE, GIBIBYTE), (None, GIBIBYTE)],
    ids=["without a request", "at its request", "killed before its memory is measured"],
)
def test_repeated_kills_of_a_container_do_not_raise_its_target_each_time(
    peak: float | None, request_bytes: float
) -> None:
    few, many = (usage_after(parts, peak=peak, request=request_bytes) for parts in (4, 70))
    assert memory_target(many) == memory_target(few)


def test_a_kill_at_more_memory_raises_the_target() -> None:
    usage = usage_after(4, peak=GIBIBYTE)
    before = memory_target(usage)
    usage.add(part(5 * PART, peak=2 * GIBIBYTE))
    assert memory_target(usage) > 1.9 * before


def test_a_kill_counts_on_the_next_day_even_if_memory_was_never_measured() -> None:
    usage = usage_after(4, peak=None, request=GIBIBYTE)
    before = memory_target(usage)
    usage.add(part(DAY + PART, peak=0.1 * GIBIBYTE, request=GIBIBYTE))
    assert memory_target(usage) == before


@pytest.mark.parametrize(
    ("seconds", "expected"), [(300.0, 1.2 * GIBIBYTE), (1200.0, 0.6 * GIBIBYTE)], ids=["just before", "long after"]
)
def test_a_kill_just_before_midnight_counts_with_the_peak_of_that_day(seconds: float, expected: float) -> None:
    usage = KnownUsage.empty(3)
    usage.add(replace(part(DAY, peak=GIBIBYTE), kills=frozenset()))
    # kube-state-metrics is asked after the kill, when the container has started again.
    usage.add(part(DAY + seconds, peak=0.5 * GIBIBYTE))
    (kill,) = usage.kills[0].values()
    assert kill.needs_bytes == pytest.approx(expected)


def test_the_pods_that_ended_first_are_dropped_if_a_day_has_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target_usage, "MOST_PODS", 2)
    usage = KnownUsage.empty(3)
    for number in range(1, 5):
        lives = part(number * PART, peak=GIBIBYTE)
        job = POD._replace(pod=f"job-{number}")
        lives.cpu.rows = ContainerRows((WEB,), {POD: 0, job: 0})
        usage.add(replace(lives, peaks={POD: GIBIBYTE, job: GIBIBYTE}, kills=frozenset()))
    assert {pod.pod for pod in usage.peaks} == {"web-1", "job-4"}


def test_the_largest_peak_of_a_day_counts_until_it_ends() -> None:
    usage = KnownUsage.empty(3)
    for number, peak in enumerate((GIBIBYTE, *[0.3 * GIBIBYTE] * 3), start=1):
        usage.add(replace(part(number * PART, peak=peak), kills=frozenset()))
    assert memory_target(usage) >= GIBIBYTE


def test_a_container_that_was_killed_is_not_hidden_by_many_that_use_less() -> None:
    usage, others = KnownUsage.empty(3), [POD._replace(pod=f"other-{number}") for number in range(40)]
    for number in range(1, 5):
        now = part(number * PART, peak=None)
        now.cpu.rows = ContainerRows((WEB,), {POD: 0, **dict.fromkeys(others, 0)})
        usage.add(replace(now, peaks={POD: GIBIBYTE, **dict.fromkeys(others, 0.3 * GIBIBYTE)}))
    assert memory_target(usage) >= 1.2 * GIBIBYTE


def test_a_container_that_a_workload_no_longer_has_is_not_sized() -> None:
    usage = KnownUsage.empty(3)
    for number, name in enumerate(("old", "web", "web"), start=1):
        renamed, pod = WEB._replace(container=name), POD._replace(container=name)
        now = part(number * PART, peak=None)
        now.cpu.rows = ContainerRows((renamed,), {pod: 0})
        usage.add(replace(now, peaks={pod: GIBIBYTE}, kills=frozenset(), running=frozenset({pod})))
    found = usage.sizes(SizingOptions(SizeSettings(has_interval=False)))
    assert [record.container for record in found] == ["web"]


def usage_of_days(peaks: tuple[float | None, ...], *, last: float = DAY) -> SizeRecord:
    """Return the size of a container with CPU on each day, and memory on the days with a peak; `last` ends the last."""
    usage = KnownUsage.empty(9)
    for day, peak in enumerate(peaks):
        seconds = last if day == len(peaks) - 1 else DAY
        end = day * DAY + seconds
        rows = ContainerRows((WEB,), {POD: 0})
        cpu = CollectedCpu.empty(rows, 1, end)
        times = np.arange(day * DAY + 300.0, end + 1.0, 300.0)
        cpu.add(0, [UsageSamples(POD, times, np.full(len(times), 0.1))])
        known = {} if peak is None else {POD: peak}
        usage.add(UsagePart(day * DAY, end, cpu, known, frozenset(), frozenset({POD}), ClusterFacts()))
    (record,) = usage.sizes(SizingOptions(SizeSettings(has_interval=False)))
    return record


def usage_between(*spans: tuple[float, float], pods: int = 1) -> KnownUsage:
    """Return the usage of pods that were measured from the start to the end of each span, which lies in one day."""
    usage = KnownUsage.empty(9)
    places = {POD._replace(pod=f"web-{number}"): 0 for number in range(pods)}
    for start, end in spans:
        cpu = CollectedCpu.empty(ContainerRows((WEB,), places), 1, end)
        times = np.arange(start + 300.0, end + 1.0, 300.0)
        cpu.add(0, [UsageSamples(pod, times, np.full(len(times), 0.1)) for pod in places])
        peaks = dict.fromkeys(places, GIBIBYTE)
        usage.add(UsagePart(start, end, cpu, peaks, frozenset(), frozenset(places), ClusterFacts()))
    return usage


@pytest.mark.parametrize("pods", [1, 20])
def test_a_gap_in_the_history_does_not_count_as_measured(pods: int) -> None:
    usage = usage_between((0.0, PART), (DAY + PART, DAY + 2 * PART), pods=pods)
    (record,) = usage.sizes(SizingOptions(SizeSettings(has_interval=False)))
    assert (record.history_seconds, record.measured_seconds) == (DAY + 2 * PART, 2 * PART)


def test_without_a_gap_all_of_the_history_counts_as_measured() -> None:
    usage = usage_between((0.0, DAY), (DAY, DAY + PART), pods=2)
    (record,) = usage.sizes(SizingOptions(SizeSettings(has_interval=False)))
    assert record.history_seconds == record.measured_seconds == DAY + PART


def test_days_that_are_no_longer_kept_do_not_count_as_measured() -> None:
    usage = usage_between((0.0, DAY), (DAY, DAY + PART), *((day * DAY, day * DAY + PART) for day in range(4, 11)))
    (record,) = usage.sizes(SizingOptions(SizeSettings(has_interval=False)))
    assert record.measured_seconds == 7 * PART


@pytest.mark.parametrize(
    ("peaks", "last", "is_short"),
    [
        ((None,) * 7 + (GIBIBYTE,), 7200.0, True),
        ((None,) * 6 + (GIBIBYTE,) * 2, 7200.0, True),
        ((None,) * 5 + (GIBIBYTE,) * 3, 7200.0, False),
        ((GIBIBYTE,) * 8, 7200.0, False),
        ((GIBIBYTE,) * 12, 7200.0, False),
        ((GIBIBYTE, None, GIBIBYTE), 7200.0, False),
        ((GIBIBYTE,) * 2, 300.0, False),
    ],
    ids=["today", "since yesterday", "a whole day", "always", "longer than is kept", "a gap", "as long as CPU"],
)
def test_memory_measured_for_less_than_a_day_has_a_wider_range_than_cpu(
    peaks: tuple[float | None, ...],
    last: float,
    is_short: bool,  # noqa: FBT001 - a column of the table
) -> None:
    record = usage_of_days(peaks, last=last)
    assert record.memory is not None
    assert (record.memory_history_seconds < DAY) is is_short
    assert (record.memory.upper > 5 * record.memory.target) is is_short
    assert record.history_seconds >= DAY
