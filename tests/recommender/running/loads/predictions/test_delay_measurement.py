"""Delays are the measured ones, and the usual ones before any are measured."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from recommender.decisions.loads.control_delays import Delay, DelaySource
from recommender.running.loads.predictions.delay_measurement import DelayMeter
from tests.recommender.running.loads.load_harness import need

if TYPE_CHECKING:
    from recommender.running.loads.load_needs import LoadNeed

NEED = need("load")
PATIENT = replace(NEED, stale_after_seconds=400.0)
"""A load whose operator allows samples to be minutes old."""


def test_the_scrape_delay_is_measured_from_changes_of_the_load() -> None:
    meter = DelayMeter()
    for poll in range(60):
        delays = meter.take_loads(NEED, total=poll // 3, time=poll * 10.0)

    assert str(delays) == "scrape 30 s measured, refresh 10 s measured, HPA 15 s assumed"


def test_usual_delays_are_assumed_before_any_are_measured() -> None:
    assert str(DelayMeter().delays(NEED)) == "scrape 15 s assumed, refresh 10 s assumed, HPA 15 s assumed"


def test_frequent_polls_imply_a_short_assumed_scrape_interval() -> None:
    delays = DelayMeter().delays(replace(NEED, poll_interval_seconds=1.0))
    assert str(delays) == "scrape 1.5 s assumed, refresh 1 s assumed, HPA 15 s assumed"


def test_without_an_hpa_there_are_two_delays() -> None:
    delays = DelayMeter().delays(replace(NEED, is_published=False))

    assert delays.total_seconds == 25.0
    assert str(delays) == "scrape 15 s assumed, refresh 10 s assumed"


def test_a_steady_load_and_an_outage_measure_nothing() -> None:
    meter = DelayMeter()
    for poll in range(10):
        delays = meter.take_loads(NEED, total=5.0, time=poll * 3600.0)

    assert delays == DelayMeter().delays(NEED)


def test_a_load_that_often_stays_the_same_is_not_mistaken_for_one_that_is_rarely_scraped() -> None:
    meter, time = DelayMeter(), 0.0
    for total, scrapes in enumerate([1, 2, 10, 1, 31, 1, 5, 2, 1, 18, 1, 3, 1]):
        for _ in range(scrapes):
            delays = meter.take_loads(NEED, total=float(total), time=time)
            time += 15.0

    assert delays.scrape == Delay(30.0, DelaySource.MEASURED)


def test_the_delay_of_late_samples_is_their_age_when_they_are_read() -> None:
    meter = DelayMeter()
    for poll in range(60):
        age = 180.0 + poll % 3 * 10.0
        delays = meter.take_loads(PATIENT, total=poll // 3, time=poll * 10.0, ages_seconds=[age])

    assert delays.scrape == Delay(200.0, DelaySource.MEASURED)


def test_a_few_late_targets_do_not_delay_the_others() -> None:
    meter = DelayMeter()
    for poll in range(60):
        delays = meter.take_loads(PATIENT, total=poll // 3, time=poll * 10.0, ages_seconds=[5.0, 5.0, 5.0, 250.0])

    assert delays.scrape == Delay(30.0, DelaySource.MEASURED)


@pytest.mark.parametrize(
    ("wanted", "age"), [(NEED, 180.0), (PATIENT, 300.0), (PATIENT, -5.0)], ids=["stale", "bound", "future"]
)
def test_an_age_that_is_ignored_or_not_measured_adds_no_delay(wanted: LoadNeed, age: float) -> None:
    meter = DelayMeter()
    for poll in range(60):
        delays = meter.take_loads(wanted, total=poll // 3, time=poll * 10.0, ages_seconds=[age])

    assert delays.scrape == Delay(30.0, DelaySource.MEASURED)
