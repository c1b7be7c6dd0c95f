"""Puts the parts of a running recommender together, in the worker process."""

from __future__ import annotations

import logging
import threading
from functools import partial
from typing import TYPE_CHECKING

from adapter.foundation.files.file_contents import FilesError
from adapter.foundation.service.flags.parsing import UsageError
from adapter.foundation.service.runtime.logs import fields
from adapter.foundation.service.runtime.threads import DaemonThreads
from adapter.foundation.service.server.plain_port.plain_answers import PlainAnswer
from adapter.foundation.sources.kubernetes.kubernetes_telemetry import WatchMetrics
from adapter.foundation.time.clock import Clock
from adapter.foundation.time.pace import Pace
from adapter.foundation.web.allowed_hosts import only_hosts
from adapter.foundation.web.wsgi import wsgi_application
from recommender.commands.program import METRICS_PREFIX
from recommender.commands.run.cluster_environment import cluster_environment
from recommender.commands.run.configured_counters import ConfiguredCounters
from recommender.commands.run.folder_environment import folder_environment
from recommender.commands.run.followed_objects import without_objects
from recommender.commands.run.prometheus_inputs import PrometheusInputs, prometheus_inputs
from recommender.commands.run.shared_services import SharedServices
from recommender.configuration.changes import unchanged_names
from recommender.configuration.reading import ConfigurationFileError
from recommender.kinds.table import all_kinds
from recommender.leader_election.lease_events import LeaseMetrics
from recommender.outputs.metrics import RecommendationMetrics
from recommender.outputs.output_telemetry import RecommenderTelemetry
from recommender.page.handler import PageHandler
from recommender.running.configuration_reloader import ConfigurationReloader, ConfigurationSource
from recommender.running.history.cluster_recorder import RECORD_SECONDS, ClusterRecorder
from recommender.running.history.history_cache import HistoryCache
from recommender.running.inputs.due_targets import MOST_OBJECT_LOOK_UPS, DueTargets
from recommender.running.inputs.fair_threads import BackendThreads, FairThreads
from recommender.running.inputs.input_gathering import Gatherer, InputSources, LookUpThreads
from recommender.running.inputs.poll_plan import Plans
from recommender.running.objects.object_configuration import ObjectConfigurations
from recommender.running.polls.poll_decisions import PollDecisions
from recommender.running.polls.runner import Latest, Runner
from recommender.running.sizes.background_decisions import SizesInBackground
from recommender.running.sizes.followed_needs import FollowedNeeds
from recommender.running.sizes.plugin_hosts import PluginHosts
from recommender.running.sizes.reported_writes import WriteResults

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from adapter.foundation.service.server.context import WorkerContext
    from adapter.foundation.service.server.process import WsgiApp
    from recommender.commands.run.environment import RunEnvironment
    from recommender.commands.run.run_settings import RunSettings
    from recommender.configuration.recommender_configuration import Configuration
    from recommender.decisions.publication import Publication

_log = logging.getLogger(__name__)

LOOK_UP_THREADS = 6
SLOW_LOOK_UP_THREADS = 3
LOOK_UPS_OF_A_NAMESPACE = 2
"""The largest number of concurrent look-ups for the objects of one namespace."""
SIZE_THREADS = 2
"""The largest number of concurrent decisions on huge clusters. Each takes seconds, and one thread runs at a time."""
_ALLOW_HOST = "ask for localhost, or add the name to --allowed-hosts or listen.allowedHosts"


def make_worker(settings: RunSettings, source: ConfigurationSource, context: WorkerContext) -> WsgiApp:
    """Build the worker and start its tasks. Raises UsageError."""
    has_objects = source.current.objects.enabled and settings.objects.files is None
    plans = Plans(source.current)
    environment, parts = _surroundings(settings, context, plans)
    followed = without_objects()
    if has_objects:
        source = objects = ObjectConfigurations(source)
        followed = environment.follow_objects(objects)
    prometheus = prometheus_inputs(context, parts, source.current)
    metrics = RecommendationMetrics(environment.leadership.is_leader, all_kinds())

    def publish(publication: Publication) -> None:
        metrics.publish(publication)
        followed.publish(publication)

    latest = Latest(publish)
    gatherer = _gatherer(prometheus, plans, environment, has_objects=has_objects)
    decisions = PollDecisions(
        environment.memories,
        parts.clock,
        slow=_sizes(settings, context, parts),
        measure=parts.telemetry.observe_decision,
    )
    counters = ConfiguredCounters(lambda: plans.current().configuration, parts.telemetry)
    runner = _runner(plans, gatherer, decisions, environment, parts, latest, counters)
    counters.show()
    at_start = source.current

    def replace(configuration: Configuration) -> None:
        if unchanged_names(plans.current().configuration, configuration) is None:
            # A change of an object needs no warning.
            warn_of_restart(at_start, configuration)
        # First, so that no query of the new plan reaches a Prometheus of the former one.
        prometheus.use(configuration)
        plans.replace(configuration)
        environment.change(plans.current())
        # Afterwards, because calls that the change withdraws are counted for the entries that have gone.
        counters.show()
        parts.wake.set()

    source.on_change(replace)
    followed.start()
    context.add_metrics(lambda: (metrics.text(),))
    context.add_path("/healthz", lambda _query: PlainAnswer(200, b"ok\n"))
    context.health.add_first_lists(environment.has_tried_lists)
    context.tasks.running("history", parts.history.run)
    prometheus.keep_learning(context)
    context.tasks.periodic("configuration", source.check, every_seconds=1.0, deadline_seconds=30.0)
    context.tasks.running("recommendations", runner.run)
    recorder = ClusterRecorder(environment.cluster, at_start.state / "recording", parts.pace, parts.clock)
    _keep_recording(recorder, plans, context)
    return _page(settings, context, environment, parts, latest)


def _gatherer(
    prometheus: PrometheusInputs, plans: Plans, environment: RunEnvironment, *, has_objects: bool
) -> Gatherer:
    sources = InputSources(
        FollowedNeeds(plans.current, environment.cluster, environment.change).cluster,
        prometheus.value,
        environment.config_map,
        environment.targets,
        prometheus.loads.load,
        prometheus.usage.inputs,
        environment.refusals,
        environment.failures,
        environment.settled,
    )

    def known() -> Collection[str]:
        return plans.current().configuration.backends

    return Gatherer(
        sources,
        BackendThreads(partial(_threads, "query", has_objects=has_objects), known).of,
        _threads("ConfigMap"),
        load_threads=BackendThreads(partial(_threads, "load", has_objects=has_objects), known).of,
    )


def _runner(
    plans: Plans,
    gatherer: Gatherer,
    decisions: PollDecisions,
    environment: RunEnvironment,
    parts: SharedServices,
    latest: Latest,
    counters: ConfiguredCounters,
) -> Runner:
    return Runner(
        plan=plans.current,
        gatherer=gatherer,
        leadership=environment.leadership,
        decisions=decisions,
        memories=environment.memories,
        effects=environment.effects,
        latest=latest,
        clock=parts.clock,
        wake=parts.wake,
        due_targets=DueTargets(with_own_size=environment.with_own_size),
        object_targets=DueTargets(MOST_OBJECT_LOOK_UPS, environment.with_own_size),
        count_poll=parts.telemetry.record_poll,
        # What was under way for an entry that has gone may have been counted since the change.
        report_poll=lambda _records: counters.show(),
    )


def _keep_recording(recorder: ClusterRecorder, plans: Plans, context: WorkerContext) -> None:
    """Start the task that records what replays need and keeps it for as long as the configuration says."""
    context.tasks.periodic(
        "recording",
        lambda: recorder.record(plans.current().configuration.record_seconds),
        every_seconds=RECORD_SECONDS,
        deadline_seconds=60.0,
    )
    context.on_stop(recorder.close)


def _sizes(settings: RunSettings, context: WorkerContext, parts: SharedServices) -> SizesInBackground:
    context.on_stop(parts.providers.close)
    return SizesInBackground(
        submit=DaemonThreads("cluster size", SIZE_THREADS).submit,
        plugins=parts.providers,
        wake=parts.wake.set,
        measure=parts.telemetry.observe_decision,
        results=parts.size_writes,
        writes=settings.writes,
        has_lease=parts.plan().configuration.leader_election.enabled,
    )


def _page(
    settings: RunSettings, context: WorkerContext, environment: RunEnvironment, parts: SharedServices, latest: Latest
) -> WsgiApp:
    page = PageHandler(
        lambda: latest.get().as_of(parts.clock.wall(), leads=environment.leadership.is_leader()),
        parts.history.read,
        context.options.version,
    )
    application = wsgi_application(page.not_found, routes=page.routes())
    return only_hosts(application, settings.page_hosts, _ALLOW_HOST)


def _surroundings(settings: RunSettings, context: WorkerContext, plans: Plans) -> tuple[RunEnvironment, SharedServices]:
    telemetry = RecommenderTelemetry(context.registry)
    state, wake = plans.current().configuration.state, threading.Event()
    parts = SharedServices(
        plan=plans.current,
        wake=wake,
        telemetry=telemetry,
        watches=WatchMetrics(context.registry, METRICS_PREFIX),
        lease_metrics=LeaseMetrics(context.registry, METRICS_PREFIX, wake.set),
        history=HistoryCache(state / "history.sqlite", telemetry.count_history_failure),
        pace=Pace(),
        clock=Clock(),
        providers=PluginHosts(),
        size_writes=WriteResults(),
    )
    make = cluster_environment if settings.objects.files is None else folder_environment
    environment = make(settings, context, parts)
    parts.lease_metrics.show(environment.leadership.is_leader)
    return environment, parts


def follow_file(path: Path, context: WorkerContext) -> ConfigurationReloader:
    """Return the configuration of a file; raises UsageError if it cannot be used."""
    try:
        return ConfigurationReloader(path, context.registry, METRICS_PREFIX, context.kept)
    except (FilesError, ConfigurationFileError) as error:
        raise UsageError(str(error)) from error


def warn_of_restart(at_start: Configuration, now: Configuration) -> None:
    """Log which changed keys take effect only after a restart."""
    read_once = {
        "leaderElection": at_start.leader_election != now.leader_election,
        "listen": at_start.listen != now.listen,
        "recommendationObjects.enabled": at_start.objects.enabled != now.objects.enabled,
        "state": at_start.state != now.state,
    }
    keys = [key for key, has_changed in read_once.items() if has_changed]
    if keys:
        _log.warning(
            "a changed key takes effect only at the start: restart the process", extra=fields(keys=", ".join(keys))
        )


def _threads(what: str, *, has_objects: bool = False) -> LookUpThreads:
    usual, slow = DaemonThreads(what, LOOK_UP_THREADS), DaemonThreads(f"slow {what}", SLOW_LOOK_UP_THREADS)
    if not has_objects:
        return LookUpThreads(usual.submit, slow.submit)
    fair = FairThreads(f"{what} of objects", LOOK_UP_THREADS, LOOK_UPS_OF_A_NAMESPACE)
    return LookUpThreads(usual.submit, slow.submit, fair.submit)
