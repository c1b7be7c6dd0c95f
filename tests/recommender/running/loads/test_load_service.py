"""The loads of a running recommender begin when anything first needs them."""

from __future__ import annotations

import threading
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client import CollectorRegistry

from adapter.foundation.cluster.values.state import Unknown
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from adapter.foundation.time.clock import Clock
from recommender.configuration.reading import read_configuration
from recommender.running.loads.load_needs import load_needs_of
from recommender.running.loads.load_service import LoadService
from recommender.running.loads.load_telemetry import LoadTelemetry
from recommender.running.queries.backend_queries import BackendQueries, connections_of
from tests.recommender.configuration.files import entry, whole
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from recommender.child_processes.parent import ChildLimits
    from recommender.configuration.recommender_configuration import Configuration

TARGETS = "targets: [{apiVersion: apps/v1, kind: Deployment, namespace: shop, name: web}]"
FORECAST = "predictive: {load: sum(x), loadPerReplica: 10, horizon: 2m, model: linear, maxReplicas: 9}"


def configuration_of(*names: str) -> Configuration:
    entries = (entry(name, TARGETS, kind=FORECAST) for name in names)
    return read_configuration(whole(*entries, top="prometheus: {url: 'http://127.0.0.1:9'}\n"), "r.yaml")


class Service:
    def __init__(self, state: Path) -> None:
        self.registry = CollectorRegistry()
        self.queries = BackendQueries(lambda _backend, settings: PrometheusClient(settings), 5.0)
        self.loads = LoadService(self.queries, state, self.registry, Clock(), no_child)

    def use(self, *names: str) -> None:
        configuration = configuration_of(*names)
        self.queries.use(connections_of(configuration))
        self.loads.use(configuration)

    @property
    def has_begun(self) -> bool:
        return any(True for _ in self.registry.collect())


def no_child(name: str, function: Callable[..., Any], arguments: tuple[Any, ...], limits: ChildLimits) -> Any:  # noqa: ANN401, ARG001 - as RunChild has it
    raise AssertionError("nothing is learned of a load without a history")


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    made = Service(tmp_path)
    with closing(made.queries):
        yield made


def test_a_configuration_alone_does_not_start_the_service(service: Service) -> None:
    service.use("web")
    assert not service.has_begun, "a start does not wait for numpy"


def test_the_first_lookup_starts_the_service(service: Service) -> None:
    service.use("web")
    [need] = load_needs_of(configuration_of("web"))
    assert isinstance(service.loads.load(need), Unknown)
    assert service.has_begun


def test_the_service_starts_once_the_configuration_needs_a_history(service: Service) -> None:
    stop = threading.Event()
    keeping = threading.Thread(target=service.loads.keep_histories, args=(stop,), daemon=True)
    keeping.start()
    try:
        service.use()
        assert not service.has_begun
        service.use("web")
        until(lambda: service.has_begun)
    finally:
        stop.set()
        keeping.join(10.0)
    assert not keeping.is_alive()


def test_a_recommendation_removed_before_its_history_starts_leaves_no_metric() -> None:
    registry = CollectorRegistry()
    telemetry = LoadTelemetry(registry)
    for name in ("web", "gone"):
        telemetry.set_series_left_out(name, 0)
    telemetry.keep({"web"})
    families = [family for family in registry.collect() if family.name.endswith("series_left_out")]
    assert [sample.labels for family in families for sample in family.samples] == [{"recommendation": "web"}]
