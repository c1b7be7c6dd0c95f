"""The axes of drawn dashboards have few ticks, which are round in their units."""

from __future__ import annotations

import pytest

from tests.helm.drawn_panels import tick_step, with_unit


@pytest.mark.parametrize(
    ("top", "unit", "ticks"),
    [
        (1_000_000.0, "s", ["0 s", "5 day", "10 day"]),
        (400_000.0, "s", ["0 s", "1 day", "2 day", "3 day", "4 day"]),
        (9000.0, "s", ["0 s", "30 min", "1 hour", "1.5 hour", "2 hour", "2.5 hour"]),
        (100.0, "s", ["0 s", "30 s", "1 min", "1.5 min"]),
        (0.013, "s", ["0 s", "5 ms", "10 ms"]),
        (250.0 * 2**20, "bytes", ["0 MiB", "64 MiB", "128 MiB", "192 MiB"]),
        (3.0 * 2**30, "bytes", ["0 MiB", "1024 MiB", "2048 MiB", "3072 MiB"]),
    ],
)
def test_ticks_are_round_in_the_unit_of_the_panel(top: float, unit: str, ticks: list[str]) -> None:
    step = tick_step(top, unit)
    assert step is not None
    assert [with_unit(step * number, unit) for number in range(int(top / step) + 1)] == ticks


@pytest.mark.parametrize(("top", "unit"), [(3.0, "short"), (0.0, "s"), (1e12, "s")])
def test_other_axes_keep_their_ticks(top: float, unit: str) -> None:
    assert tick_step(top, unit) is None
