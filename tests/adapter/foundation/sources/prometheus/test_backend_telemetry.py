"""The counters by backend, of the Prometheus of the flags and of those that rules name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from prometheus_client import CollectorRegistry

from adapter.foundation.sources.prometheus.backends.backend_telemetry import BackendTelemetry

if TYPE_CHECKING:
    from adapter.foundation.sources.prometheus.prometheus_telemetry import QueryTelemetry

FLAGS = "--prometheus-url"


class Counted:
    """Telemetry whose registry is read."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.telemetry = BackendTelemetry(self.registry, "t")
        self.flags = self.telemetry.of_flags()

    def ups(self) -> dict[str, float | None]:
        return {
            name: self.registry.get_sample_value("t_prometheus_backend_up", {"backend": name})
            for name in (FLAGS, "fleet")
        }


def ask(counter: QueryTelemetry, result: str) -> None:
    counter.record_query(kind="instant", path="/", server="s", result=result, seconds=0.1)


@pytest.fixture(name="counted")
def _counted() -> Counted:
    return Counted()


def test_the_prometheus_of_the_flags_is_counted_separately_from_backends(counted: Counted) -> None:
    """Otherwise its outage would be hidden behind the answers of the others."""
    ask(counted.telemetry.of("fleet"), "ok")
    ask(counted.flags, "unreachable")
    assert counted.ups() == {FLAGS: 0.0, "fleet": 1.0}
    labels = {"backend": FLAGS, "kind": "instant", "result": "unreachable"}
    assert counted.registry.get_sample_value("t_prometheus_backend_queries_total", labels) == 1
    del labels["backend"]
    assert counted.registry.get_sample_value("t_prometheus_queries_total", labels) == 1


def test_without_backends_the_prometheus_of_the_flags_has_no_name(counted: Counted) -> None:
    ask(counted.flags, "ok")
    assert counted.ups() == {FLAGS: None, "fleet": None}


def test_the_prometheus_of_the_flags_keeps_its_name_until_no_rule_names_a_backend(counted: Counted) -> None:
    for name in ("fleet", "edge"):
        ask(counted.telemetry.of(name), "ok")
    ask(counted.flags, "ok")
    counted.telemetry.keep({"edge"})
    assert counted.ups() == {FLAGS: 1.0, "fleet": None}
    counted.telemetry.keep(())
    ask(counted.flags, "ok")
    assert counted.ups() == {FLAGS: None, "fleet": None}
