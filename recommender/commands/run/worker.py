"""Puts the parts of a running recommender together, in the worker process."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from adapter.options.clients import prometheus_client
from adapter.service.runtime.errors import StartError
from adapter.service.runtime.threads import DaemonThreads
from adapter.service.server.plain import PlainAnswer
from adapter.sources.kubernetes.telemetry import LeaseMetrics
from adapter.timing.clock import Clock
from adapter.timing.file_contents import FilesError
from adapter.timing.pace import Pace
from adapter.web.wsgi import wsgi_application
from recommender.commands.program import METRICS_PREFIX
from recommender.commands.run.cluster import cluster_world
from recommender.commands.run.folder import folder_world
from recommender.configuration.reading import ConfigurationError
from recommender.outputs.metrics import RecommendationCollector
from recommender.outputs.telemetry import RecommenderTelemetry
from recommender.page.handler import PageHandler
from recommender.running.configuration_reloader import ConfigurationReloader
from recommender.running.gathering import Gatherer, Sources
from recommender.running.history_cache import HistoryCache
from recommender.running.plans import plan_of
from recommender.running.query_values import QueryValues
from recommender.running.runner import Latest, Runner, RunnerParts

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from adapter.cluster.state import Observed, Unknown
    from adapter.service.server.context import WorkerContext
    from adapter.service.server.process import WsgiApp
    from recommender.commands.run.settings import RunSettings
    from recommender.commands.run.world import World
    from recommender.configuration.model import Configuration
    from recommender.running.plans import Plan

LOOK_UP_THREADS = 8
READY_WITHOUT_LISTS_SECONDS = 10.0
"""Readiness must not depend on the API server: metrics and page are served in any case."""


def make_worker(settings: RunSettings, path: Path, context: WorkerContext) -> WsgiApp:
    """Build the worker and start its tasks; raises StartError."""
    reloader = _reloader(path, context)
    plans = Plans(reloader.current)
    clock, pace = Clock(), Pace()
    telemetry = RecommenderTelemetry(context.registry)
    history = HistoryCache(reloader.current.state / "history.sqlite", telemetry.history_failed)
    lease_metrics = LeaseMetrics(context.registry, METRICS_PREFIX)
    make = cluster_world if settings.objects.files is None else folder_world
    world = make(settings, context, plans.current, telemetry, lease_metrics, history, pace, clock)
    lease_metrics.show(world.leadership.is_leader)
    latest = Latest()
    sources = Sources(world.cluster, _query(reloader.current, context, pace), world.config_map, world.targets)
    runner = Runner(
        RunnerParts(
            plan=plans.current,
            gatherer=Gatherer(sources, DaemonThreads("look-up", LOOK_UP_THREADS).submit),
            leadership=world.leadership,
            memory_store=world.memory_store,
            effects=world.effects,
            latest=latest,
            telemetry=telemetry,
            clock=clock,
        )
    )
    world.connect(runner)

    def replace(configuration: Configuration) -> None:
        plans.replace(configuration)
        world.change(plans.current())
        runner.wake()

    reloader.on_change(replace)
    context.registry.register(RecommendationCollector(latest.get, world.leadership.is_leader))
    context.add_path("/healthz", lambda _query: PlainAnswer(200, b"ok\n"))
    _be_ready(context, world)
    context.tasks.running("history", lambda stop: history.run(stop.event))
    context.tasks.periodic("configuration", reloader.check, every_seconds=1.0, deadline_seconds=30.0)
    context.tasks.running("recommendations", lambda stop: runner.run(stop.event))
    page = PageHandler(latest.get, history, context.options.version)
    return wsgi_application(page.not_found, routes=page.routes())


class Plans:
    """The plan of the configuration in force. Replaced in one place."""

    def __init__(self, configuration: Configuration) -> None:
        self._plan = plan_of(configuration)

    def current(self) -> Plan:
        """Return the plan."""
        return self._plan

    def replace(self, configuration: Configuration) -> None:
        """Replace the plan."""
        self._plan = plan_of(configuration)


def _reloader(path: Path, context: WorkerContext) -> ConfigurationReloader:
    try:
        return ConfigurationReloader(path, context.registry, METRICS_PREFIX)
    except (FilesError, ConfigurationError) as error:
        raise StartError(str(error)) from error


def _query(
    configuration: Configuration, context: WorkerContext, pace: Pace
) -> Callable[[str], Observed[float] | Unknown]:
    """Return how queries are answered; without `prometheus:` no entry with a query can be used."""
    if configuration.prometheus is None:
        return without_prometheus
    client = prometheus_client(configuration.prometheus, context, pace)
    return QueryValues(client, pace, timeout_seconds=5.0).value


def _be_ready(context: WorkerContext, world: World) -> None:
    started = time.monotonic()

    def probe() -> str | None:
        if world.has_tried_lists() or time.monotonic() - started >= READY_WITHOUT_LISTS_SECONDS:
            return None
        return "the first lists of objects have not arrived yet"

    context.health.add_ready("objects", probe)
