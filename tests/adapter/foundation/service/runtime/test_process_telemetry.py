from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.service.runtime.garbage_collector import no_collections, rare_collections, settle_collector
from adapter.foundation.service.runtime.process_telemetry import (
    ConnectionCollector,
    TaskMetrics,
    exposition,
    new_registry,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def test_tasks_have_metrics_before_their_first_run() -> None:
    registry = new_registry("1.2.3")
    metrics = TaskMetrics(registry, "tidewatch_adapter")
    late = False
    metrics.add_task("refresh", lambda: late)
    assert registry.get_sample_value("tidewatch_adapter_task_runs_total", {"task": "refresh", "result": "error"}) == 0
    assert registry.get_sample_value("tidewatch_adapter_task_overdue", {"task": "refresh"}) == 0
    late = True
    assert registry.get_sample_value("tidewatch_adapter_task_overdue", {"task": "refresh"}) == 1


def test_a_failure_does_not_set_the_time_of_the_last_success() -> None:
    registry = new_registry("1.2.3")
    metrics = TaskMetrics(registry, "x")
    metrics.add_task("refresh", lambda: False)
    metrics.record_run("refresh", "error")
    assert not registry.get_sample_value("x_task_last_success_timestamp_seconds", {"task": "refresh"})
    metrics.record_run("refresh", "late")
    assert registry.get_sample_value("x_task_last_success_timestamp_seconds", {"task": "refresh"})


class Counts:
    dropped: Mapping[str, int] = {"head_timeout": 3}

    def open_connections(self) -> Mapping[str, int]:
        return {"idle": 2}


def test_connections_are_read_when_scraped() -> None:
    registry = new_registry("1.2.3")
    registry.register(ConnectionCollector(Counts(), "x"))
    assert registry.get_sample_value("x_connections", {"stage": "idle"}) == 2
    assert registry.get_sample_value("x_connections_dropped_total", {"reason": "head_timeout"}) == 3


def test_counters_have_no_created_series() -> None:
    text = exposition(new_registry("1.2.3"))
    assert b'version="1.2.3"' in text
    assert b"_created" not in text


@pytest.fixture
def collector_restored() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*before)


@pytest.mark.usefixtures("collector_restored")
def test_a_settled_garbage_collector_ignores_existing_objects() -> None:
    settle_collector()
    assert gc.get_freeze_count() > 1000
    assert gc.get_threshold()[0] > 700


@pytest.mark.usefixtures("collector_restored")
def test_garbage_collections_are_rare_until_a_command_has_ended() -> None:
    gc.set_threshold(700, 10, 10)
    before = gc.get_threshold()
    with rare_collections():
        assert gc.get_freeze_count() > 1000
        assert gc.get_threshold()[0] > before[0]
    assert gc.get_freeze_count() == 0
    assert gc.get_threshold() == before


@pytest.mark.parametrize("is_enabled", [True, False])
def test_garbage_collection_is_off_during_a_decision_and_restored_afterwards(*, is_enabled: bool) -> None:
    was_enabled = gc.isenabled()
    try:
        (gc.enable if is_enabled else gc.disable)()
        with no_collections():
            assert not gc.isenabled()
            made = [[number] for number in range(1000)]
        assert gc.isenabled() == is_enabled
        assert gc.get_freeze_count() >= len(made), "the next collection does not walk what was made"
    finally:
        gc.unfreeze()
        (gc.enable if was_enabled else gc.disable)()
