"""daily-peaks: numbers of crane-scheduler's formula, and where this policy differs from it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from adapter.nodes.model.scheduling_settings import DailyPeaksArgs
from adapter.nodes.model.usage import USAGE_NAMES, UsageName
from adapter.nodes.scores.loads.daily_peaks import score
from tests.adapter.nodes.scores.builder import CPU, Node, columns, listed, pod, rows

if TYPE_CHECKING:
    from collections.abc import Mapping

CAPACITY = {"cpu": 10_000, "memory": 2**33}
QUIET_NOW = {UsageName.CPU_5M: 0.1, UsageName.CPU_1H: 0.2, UsageName.CPU_1D: 0.9}
STEADY = {UsageName.CPU_5M: 0.4, UsageName.CPU_1H: 0.4, UsageName.CPU_1D: 0.4}
CPU_ALONE = DailyPeaksArgs({UsageName.CPU_5M: 0.2, UsageName.CPU_1H: 0.3, UsageName.CPU_1D: 0.5})


def scores(
    *usages: Mapping[UsageName, float], args: DailyPeaksArgs = CPU_ALONE, cpu_milli: int = 0
) -> list[float | None]:
    nodes = [Node(f"n{row}", CAPACITY, usage=usage) for row, usage in enumerate(usages)]
    return listed(score(pod({"cpu": cpu_milli}), columns(*nodes), rows(len(nodes)), args))


def test_a_node_with_a_high_daily_peak_scores_lower_even_if_it_is_quiet_now() -> None:
    # 0.2 x 0.9 + 0.3 x 0.8 + 0.5 x 0.1 = 0.47, and 1 - 0.4 = 0.6 (crane-scheduler, `getNodeScore`).
    assert scores(QUIET_NOW, STEADY) == [47.0, 60.0]


def test_cpu_and_memory_have_equal_weights_by_default() -> None:
    memory = {UsageName.MEMORY_5M: 0.8, UsageName.MEMORY_1H: 0.8, UsageName.MEMORY_1D: 0.8}
    assert scores({**STEADY, **memory}, args=DailyPeaksArgs()) == [40.0]


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        pytest.param({UsageName.CPU_5M: 0.4}, 60.0, id="five minutes alone"),
        pytest.param({UsageName.CPU_1D: 0.9}, 10.0, id="a day alone"),
        pytest.param({}, None, id="nothing"),
        pytest.param({UsageName.CPU_5M: 1.0, UsageName.CPU_1H: 1.0, UsageName.CPU_1D: 1.0}, 0.0, id="full"),
    ],
)
def test_unknown_windows_count_neither_for_nor_against_a_node(
    usage: Mapping[UsageName, float], expected: float | None
) -> None:
    assert scores(usage) == [expected]


def test_the_requests_of_this_and_recent_pods_are_added() -> None:
    assert scores(STEADY, cpu_milli=1000) == [50.0]
    nodes = columns(Node("n0", CAPACITY, usage=STEADY, recent_requests={CPU: 3000}, recent_usage_requests={CPU: 2000}))
    assert listed(score(pod({"cpu": 1000}), nodes, rows(1), CPU_ALONE)) == [30.0]


def test_the_reason_names_the_window_that_replaces_an_unknown_one() -> None:
    nodes = columns(Node("n0", CAPACITY, usage=STEADY))
    short = np.array([USAGE_NAMES.index(UsageName.CPU_5M)], dtype=np.int8)
    hour = np.array([USAGE_NAMES.index(UsageName.CPU_1H)], dtype=np.int8)
    sources = {UsageName.CPU_5M: short, UsageName.CPU_1H: hour, UsageName.CPU_1D: hour}
    reason = score(pod(), replace(nodes, usage_from=sources), rows(1), CPU_ALONE).reason(0)
    assert reason.startswith(
        "cpu 5m average 40%, cpu 1h peak of five minutes 40%, "
        "cpu 1h peak of five minutes 40% in place of cpu 1d peak of five minutes, each with"
    )


def test_the_reason_names_each_usage() -> None:
    nodes = columns(Node("n0", CAPACITY, usage=QUIET_NOW))
    reason = score(pod(), nodes, rows(1), CPU_ALONE).reason(0)
    assert reason.startswith("cpu 5m average 10%, cpu 1h peak of five minutes 20%, cpu 1d peak of five minutes 90%")
    assert np.isfinite(score(pod(), nodes, rows(1), CPU_ALONE).values).all()
