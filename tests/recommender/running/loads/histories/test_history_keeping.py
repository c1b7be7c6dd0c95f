"""Histories are created and removed with their recommendations."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

from recommender.decisions.record import TargetReference
from recommender.running.loads.histories.history_files import LoadFiles
from recommender.running.loads.histories.history_keeping import HistoryKeeper
from recommender.running.loads.load_telemetry import LoadTelemetry
from recommender.running.memory.store_protocol import stored_name
from tests.recommender.running.loads.load_harness import FOR_EACH, Clocks, need

if TYPE_CHECKING:
    from pathlib import Path

    from recommender.running.loads.load_needs import LoadNeed

MINUTE = 60.0
TWO_HOURS = need("sum by (namespace, deployment) (load)", for_each=FOR_EACH, history_seconds=120 * MINUTE)
WEB, API = (TargetReference("apps/v1", "Deployment", "shop", name) for name in ("web", "api"))


def named(name: str) -> LoadNeed:
    return replace(need("sum(load)"), name=name, namespace="shop")


def keeper(folder: Path, clocks: Clocks, registry: CollectorRegistry | None = None) -> HistoryKeeper:
    telemetry = LoadTelemetry(registry or CollectorRegistry())
    return HistoryKeeper(lambda _need: None, LoadFiles(folder), telemetry, clocks.clock())


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


def test_metrics_show_how_much_of_a_history_is_known_and_how_much_was_not_requested(tmp_path: Path) -> None:
    clocks, registry = Clocks(wall=1_000_000 * MINUTE), CollectorRegistry()
    histories, load = keeper(tmp_path, clocks, registry), replace(named("shop/web"), settings=TWO_HOURS.settings)
    histories.use(frozenset({load}))
    # The first load only makes the history.
    histories.note(load, {WEB: 1.0}, clocks.wall - 30 * MINUTE)
    histories.work()
    for poll in range(181):
        histories.note(load, {WEB: 1.0, API: 2.0} if poll >= 60 else {WEB: 1.0}, clocks.wall + (poll - 180) * 10.0)
    clocks.pass_seconds(600.0)
    histories.work()
    labels = {"recommendation": "shop/web"}
    names = ("targets", "history_samples", "history_seconds", "history_lacking_seconds")
    found = {name: registry.get_sample_value(f"tidewatch_recommender_load_{name}", labels) for name in names}
    assert found == {"targets": 2, "history_samples": 302, "history_seconds": 1800.0, "history_lacking_seconds": 5390.0}
