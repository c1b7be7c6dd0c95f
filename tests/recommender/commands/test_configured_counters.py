"""Counters of removed entries do not return, however a poll, a scale call and a change of the configuration meet."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter

from recommender.commands.run.configured_counters import ConfiguredCounters
from recommender.configuration.reading import read_configuration
from recommender.outputs.output_telemetry import RecommenderTelemetry
from recommender.outputs.scale_results import ScaleResult
from tests.recommender.configuration.files import TARGET, entry, whole
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    import pytest

    from recommender.configuration.recommender_configuration import Configuration


class WatchedLock:
    """A lock that knows whether a thread waits for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.is_awaited = False

    def __enter__(self) -> None:
        self.is_awaited = not self._lock.acquire(blocking=False)
        if self.is_awaited:
            self._lock.acquire()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._lock.release()


class Meeting:
    """Work that another thread begins in the middle of the test's, once, and that ends then unless a lock stops it."""

    def __init__(self, work: Callable[[], None], lock: WatchedLock) -> None:
        self._thread = threading.Thread(target=work, daemon=True)
        self._lock = lock
        self._has_begun = False

    def happen(self) -> None:
        if self._has_begun:
            return
        self._has_begun = True
        self._thread.start()
        until(lambda: self._lock.is_awaited or not self._thread.is_alive())

    def end(self) -> None:
        assert self._has_begun
        self._thread.join(10.0)
        assert not self._thread.is_alive()


def counted(registry: CollectorRegistry) -> set[str]:
    """Return the recommendations that have counters."""
    found = (sample.labels.get("recommendation") for family in registry.collect() for sample in family.samples)
    return {name for name in found if name}


def configuration_of(name: str) -> Configuration:
    return read_configuration(whole(entry(name, f"targets: [{TARGET}]", "outputs: [metric, scale]")), "r.yaml")


def test_a_call_that_is_counted_while_its_entry_is_removed_leaves_no_counter(monkeypatch: pytest.MonkeyPatch) -> None:
    registry, lock = CollectorRegistry(auto_describe=True), WatchedLock()
    telemetry = RecommenderTelemetry(registry)
    monkeypatch.setattr(telemetry, "_lock", lock)
    meeting, labels = Meeting(lambda: telemetry.keep(["web"], None), lock), Counter.labels

    def meeting_labels(counter: Counter, *values: Any, **named: Any) -> Counter:  # noqa: ANN401 - handed on
        meeting.happen()
        return labels(counter, *values, **named)

    monkeypatch.setattr(Counter, "labels", meeting_labels)
    telemetry.count_scale_call("former", ScaleResult.OK)
    meeting.end()
    telemetry.keep(["web"], None)
    assert counted(registry) == set()


def test_a_poll_that_began_before_a_change_does_not_drop_the_counters_of_new_entries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    registry, lock = CollectorRegistry(auto_describe=True), WatchedLock()
    in_force = [configuration_of("former")]

    def current() -> Configuration:
        found = in_force[0]
        in_force[0] = configuration_of("new")
        meeting.happen()
        return found

    counters = ConfiguredCounters(current, RecommenderTelemetry(registry))
    monkeypatch.setattr(counters, "_lock", lock)
    meeting = Meeting(counters.show, lock)
    counters.show()
    meeting.end()
    assert counted(registry) == {"new"}
