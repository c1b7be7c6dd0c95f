"""The days before the one that the demo shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from prometheus_api_client import PrometheusConnect

from demo.history import DAYS, METRIC, Calendar, calendar_of, past_samples, record_past
from demo.load import NIGHT_BEGINS, day_of
from demo.machine.prometheus import running_prometheus
from demo.settings import PREDICTIVE, Settings

if TYPE_CHECKING:
    from pathlib import Path

NOW = 1_790_000_000.0
SETTINGS = Settings()


def test_the_last_evening_is_now_and_its_night_is_left_for_the_set_up() -> None:
    calendar = calendar_of(SETTINGS, NOW)
    left = calendar.begins - NOW
    assert 40 < left < (1 - NIGHT_BEGINS) * SETTINGS.seconds


@pytest.mark.parametrize(("late_seconds", "days"), [(-5.0, 0), (0.0, 0), (0.1, 1), (140.0, 1), (141.0, 2)])
def test_a_set_up_that_takes_longer_costs_whole_days(late_seconds: float, days: int) -> None:
    assert Calendar(NOW, 140.0).next_beginning(NOW + late_seconds) == NOW + 140.0 * days


def test_the_days_before_are_of_other_seeds_and_end_now() -> None:
    calendar = calendar_of(SETTINGS, NOW)
    samples = dict(past_samples(SETTINGS, calendar, NOW))
    assert min(samples) == calendar.begins - DAYS * SETTINGS.seconds
    assert NOW - 1 < max(samples) <= NOW
    noon = calendar.begins + 0.38 * SETTINGS.seconds // 1
    of_days = {samples[noon - ago * SETTINGS.seconds] for ago in range(1, DAYS + 1)}
    assert len(of_days) > 5
    assert day_of(SETTINGS.seconds, seed=SETTINGS.seed).connections(noon - calendar.begins) not in of_days


def test_a_prometheus_that_starts_with_them_knows_them(tmp_path: Path) -> None:
    calendar = calendar_of(SETTINGS, NOW)
    record_past(tmp_path / "prometheus" / "data", PREDICTIVE, SETTINGS, calendar, NOW)
    expected = dict(past_samples(SETTINGS, calendar, NOW))
    with running_prometheus(tmp_path / "prometheus", retention="100y") as prometheus:
        witness = PrometheusConnect(url=prometheus.url)
        for ago in (1.0, 500.0, 1200.0):
            at = max(time for time in expected if time <= NOW - ago)
            (row,) = witness.custom_query(f'{METRIC}{{namespace="{PREDICTIVE}"}}', params={"time": at})
            assert float(row["value"][1]) == expected[at]
