"""Requests that wait for one Prometheus leave room for those that wait for another one."""

from __future__ import annotations

import pytest

from adapter.foundation.sources.prometheus.backends.backend import Backend
from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from adapter.metrics.readings.answering.waiting_requests import NO_PROMETHEUS, Awaited, WaitingRequests, limits_of
from adapter.metrics.readings.readings_settings import ReadingSettings

SETTINGS = ReadingSettings()
MOST = SETTINGS.max_waiting_requests


def backend(number: int) -> Backend:
    return Backend.of(f"b{number}", PrometheusSettings(f"http://b{number}:9090"))


def crowd(waiting: WaitingRequests, awaited: Awaited, namespace: str | None = None) -> int:
    """Let many requests wait, each of another namespace unless one is given; return how many found room."""
    return sum(waiting.has_joined(awaited, namespace or f"ns-{number}") for number in range(100))


@pytest.mark.parametrize("backends", range(1, 40))
def test_many_requests_for_one_backend_leave_room_for_the_others(backends: int) -> None:
    waiting = WaitingRequests(SETTINGS, lambda: 1 + backends)
    limits = limits_of(1 + backends, SETTINGS)
    assert crowd(waiting, backend(0)) == limits.most
    others = [NO_PROMETHEUS, None, *map(backend, range(1, backends))]
    found = [sum(waiting.has_joined(other, "shop") for _ in range(limits.kept)) for other in others[: MOST - 1]]
    assert set(found) == {limits.kept}
    for other in others:
        crowd(waiting, other)
    assert waiting.total() <= MOST


def test_a_namespace_may_wait_for_several_backends() -> None:
    waiting = WaitingRequests(SETTINGS, lambda: 2)
    assert crowd(waiting, backend(0), "shop") == limits_of(2, SETTINGS).most_per_namespace
    assert waiting.has_joined(None, "shop")
    assert waiting.has_joined(backend(0), "bank")


def test_a_single_prometheus_may_use_all_waiting_places() -> None:
    waiting = WaitingRequests(SETTINGS, lambda: 1)
    assert crowd(waiting, None) == MOST
    assert not waiting.has_joined(NO_PROMETHEUS, "shop")


def test_waiting_places_are_released_and_nothing_is_kept_of_them() -> None:
    waiting = WaitingRequests(SETTINGS, lambda: 2)
    for number in range(3 * MOST):
        assert waiting.has_joined(backend(number), "shop")
        waiting.leave(backend(number), "shop")
    assert waiting.total() == 0
    assert not waiting._waiting
    assert not waiting._of_namespaces


def test_waiting_places_that_a_removed_backend_holds_are_not_assigned_twice() -> None:
    sources = [3]
    waiting = WaitingRequests(SETTINGS, lambda: sources[0])
    held = crowd(waiting, backend(0)) + crowd(waiting, backend(1))
    sources[0] = 1
    assert held + crowd(waiting, None) == MOST
