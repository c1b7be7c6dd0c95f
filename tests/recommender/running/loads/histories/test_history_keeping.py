"""Histories are created and removed with their recommendations."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

from recommender.running.loads.histories.history_files import LoadFiles
from recommender.running.loads.histories.history_keeping import HistoryKeeper
from recommender.running.loads.load_telemetry import LoadTelemetry
from recommender.running.memory.store_protocol import stored_name
from tests.recommender.running.loads.load_harness import Clocks, need

if TYPE_CHECKING:
    from pathlib import Path

    from recommender.running.loads.load_needs import LoadNeed


def named(name: str) -> LoadNeed:
    return replace(need("sum(load)"), name=name, namespace="shop")


def keeper(folder: Path, clocks: Clocks) -> HistoryKeeper:
    return HistoryKeeper(lambda _need: None, LoadFiles(folder), LoadTelemetry(CollectorRegistry()), clocks.clock())


def test_a_load_that_arrives_after_its_recommendation_was_removed_starts_no_history(tmp_path: Path) -> None:
    clocks = Clocks()
    histories = keeper(tmp_path, clocks)
    histories.use(frozenset({named("shop/web"), named("shop/api")}))
    histories.note(named("shop/web"), {None: 1.0}, clocks.wall)
    histories.use(frozenset({named("shop/api")}))
    histories.note(named("shop/web"), {None: 2.0}, clocks.wall)
    histories.note(named("shop/api"), {None: 3.0}, clocks.wall)
    histories.work()
    assert [each.need.name for each in histories.all()] == ["shop/api"]
    assert [file.name for file in tmp_path.iterdir()] == [f"{stored_name('shop/api')}.load"]


def test_nothing_is_kept_of_removed_recommendations(tmp_path: Path) -> None:
    clocks = Clocks()
    histories = keeper(tmp_path, clocks)
    for number in range(50):
        present = named(f"shop/job-{number}")
        histories.use(frozenset({present}))
        histories.note(present, {None: 1.0}, clocks.wall)
        histories.work()
    held = [value for value in vars(histories).values() if isinstance(value, dict)]
    assert max(map(len, held)) == 1
