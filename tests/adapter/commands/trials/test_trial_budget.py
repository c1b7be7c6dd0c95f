"""The time for the queries of one change: Prometheus servers that hang leave time for the others."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from adapter.commands.trials.queries import CHANGE_SECONDS, TRIAL_SECONDS, TrialBudget
from adapter.foundation.sources.prometheus.backends.backend import Backend
from adapter.foundation.sources.prometheus.errors import PrometheusTimeoutError
from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from tests.support.readings import ScriptedPrometheus

if TYPE_CHECKING:
    from adapter.foundation.sources.prometheus.answers.decoding import InstantAnswer


@dataclass
class Backends:
    """Prometheus servers that answer instantly, or never, and a clock that shows the time they took."""

    now: float = 0.0
    asked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.budget = TrialBudget(lambda: self.now)

    def ask(self, name: str, *, hangs: bool) -> None:
        backend = Backend.of(name, PrometheusSettings(f"http://{name}:9090"))
        self.budget.ask(_Timed(self, name, hangs=hangs), backend, "up")


class _Timed(ScriptedPrometheus):
    def __init__(self, backends: Backends, name: str, *, hangs: bool) -> None:
        super().__init__()
        self._backends, self._name, self._hangs = backends, name, hangs

    def instant(self, query: str, *, timeout_seconds: float, at: float | None = None) -> InstantAnswer:
        self._backends.asked.append(self._name)
        if self._hangs:
            self._backends.now += timeout_seconds
            raise PrometheusTimeoutError(query, "no answer")
        return super().instant(query, timeout_seconds=timeout_seconds, at=at or 1.0)


@pytest.mark.parametrize("hanging", [1, 2, 3, 10])
def test_hanging_backends_leave_time_for_a_good_one_and_are_not_queried_twice(hanging: int) -> None:
    backends = Backends()
    for number in range(hanging):
        for _ in range(5):
            with pytest.raises(PrometheusTimeoutError):
                backends.ask(f"b{number}", hangs=True)
        # Rules of the good one stand between those of the others.
        backends.ask("good", hangs=False)
    assert backends.asked.count("good") == hanging
    assert len(backends.asked) == 2 * hanging
    assert TRIAL_SECONDS <= backends.now < CHANGE_SECONDS
