"""`tidewatch-adapter serve`: where its parts are put together.

Flags become settings before a port is opened. The parts are made in the worker, after the fork, and what runs beside
requests is a named task of it.
"""

from __future__ import annotations

import functools
import gc
import logging
import os
import sys
import time
from typing import TYPE_CHECKING

from adapter.apis.handler import Handler, Parts
from adapter.apis.routing import is_frequent
from adapter.apis.telemetry import Telemetry
from adapter.commands.program import PROGRAM
from adapter.commands.serve.certificates import keep_certificate
from adapter.commands.serve.flags import SERVE
from adapter.commands.serve.identity import make_gate
from adapter.commands.serve.rule_reloader import RuleReloader
from adapter.commands.serve.settings import METRICS_PREFIX, serve_settings
from adapter.commands.trials.queries import QueryTrials
from adapter.documents.load import DocumentError
from adapter.objects.resources import BUILT_IN, find_resource
from adapter.options.logs import configure_logs_by
from adapter.readings.readings import Readings
from adapter.readings.telemetry import ReadingsTelemetry
from adapter.service.flags.parsing import UsageError, exit_for_usage, flags_or_exit
from adapter.service.runtime.errors import StartError
from adapter.service.runtime.logs import StateLog, fields
from adapter.service.runtime.telemetry import exposition
from adapter.service.runtime.threads import DaemonThreads
from adapter.service.server.process import serve_forever
from adapter.service.watched import FilesError
from adapter.sources.files import FileObjects
from adapter.sources.kubernetes.access import access
from adapter.sources.kubernetes.client import KubernetesClient
from adapter.sources.kubernetes.cluster import ClusterObjects
from adapter.sources.kubernetes.errors import KubernetesError
from adapter.sources.kubernetes.settings import WatchSettings
from adapter.sources.kubernetes.telemetry import WatchMetrics
from adapter.sources.objects import ObjectsError
from adapter.sources.prometheus.client import PrometheusClient
from adapter.sources.prometheus.connection import check_connection
from adapter.sources.prometheus.errors import PrometheusError, SettingsError
from adapter.sources.prometheus.telemetry import PrometheusTelemetry
from adapter.timing.pace import Pace
from adapter.timing.rate_limit import RateLimit
from adapter.web.wsgi import wsgi_application

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from adapter.commands.serve.settings import SelfMade, ServeSettings
    from adapter.service.runtime.tasks import Stop
    from adapter.service.server.context import WorkerContext
    from adapter.service.server.process import WsgiApp
    from adapter.sources.kubernetes.telemetry import WatchTelemetry
    from adapter.sources.objects import ObjectSource
    from adapter.sources.prometheus.settings import PrometheusSettings

_log = logging.getLogger(__name__)

PODS = find_resource(BUILT_IN, "", "pods")
READY_WITHOUT_PODS_SECONDS = 10.0
"""A cluster whose pods cannot be listed must not take the APIService away: then requests say what is wrong."""
READY_WITHOUT_METRICS_SECONDS = 0.5
"""A moment for the first look-ups, which a rolling update is thankful for: a process that knows fewer metrics than the
one before answers 404. No longer, because readiness must not hang on Prometheus."""
QUERY_THREADS = 30
"""More than the queries, look-ups and trials that `ReadingSettings` and `readings/asking/lanes` let run at once."""
LONGEST_REFRESH_PAUSE_SECONDS = 0.2
CONNECTION_CHECK_SECONDS = 30.0
PREPARE_SECONDS = 0.1
"""How soon discovery lists what has been found; its values are served at once."""


def serve(arguments: Sequence[str]) -> None:
    """Run the command; leaves by SystemExit."""
    values = flags_or_exit(SERVE, arguments, os.environ)
    configure_logs_by(values, queued=True)
    try:
        settings = serve_settings(values)
    except UsageError as error:
        exit_for_usage(PROGRAM, str(error))
    except StartError as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)  # noqa: T201 - the one line on stderr
        sys.exit(1)
    for warning in settings.warnings:
        _log.warning("%s", warning)
    serve_forever(settings.server, functools.partial(make_worker, settings))


def make_worker(settings: ServeSettings, context: WorkerContext) -> WsgiApp:
    """Build the worker and start its tasks; raises StartError."""
    pace = Pace()
    watches = WatchMetrics(context.registry, METRICS_PREFIX)
    gate = make_gate(settings.identity, context, watches)
    _tell_certificate(settings)
    objects = _objects(settings, context, pace, watches)
    configuration = _configuration(settings, context, objects)
    threads = DaemonThreads("query", QUERY_THREADS)
    prometheus = _prometheus(settings, context, pace)
    readings = Readings(
        rulebook=configuration.rulebook,
        objects=objects,
        prometheus=prometheus,
        submit=threads.submit,
        pace=pace,
        telemetry=ReadingsTelemetry(context.registry),
        settings=settings.readings,
        started=prometheus.started,
    )
    configuration.on_change(readings.replace_rulebook, QueryTrials(prometheus, objects.resource))
    _start_tasks(settings, context, configuration, readings)
    _be_ready_when_pods_are_known(context, objects)
    context.health.add_ready("metrics", metrics_probe(readings.has_looked_up_all))
    handler = Handler(
        Parts(
            authorizer=gate,
            provider=readings,
            resolve=objects.resource,
            health=lambda path, query: context.health.answer(path, query) or (404, f"{path} is no health check\n"),
            metrics=lambda: exposition(context.registry)[0],
            telemetry=Telemetry(context.registry),
            version=settings.server.version,
            empty_is_error=settings.empty_is_error,
            compatibility=settings.compatibility,
        )
    )
    prepare = functools.partial(handler.prepare, pace.slices)
    context.tasks.periodic("lists of metrics", prepare, every_seconds=PREPARE_SECONDS, deadline_seconds=60.0)
    return wsgi_application(handler.handle, routes=handler.routes(), refuse=handler.refuse, is_frequent=is_frequent)


def _tell_certificate(settings: ServeSettings) -> None:
    ca_file = settings.certificate.ca_file
    if ca_file is not None:
        _log.info(
            "a self-made certificate is shown: its CA is what an APIService's caBundle needs",
            extra=fields(ca_file=ca_file),
        )


def _objects(settings: ServeSettings, context: WorkerContext, pace: Pace, telemetry: WatchTelemetry) -> ObjectSource:
    if settings.objects is not None:
        return _file_objects(settings, context, pace)
    try:
        connect, limit = access(_text(settings.kubeconfig), settings.context), settings.asking
        turns = RateLimit(limit.per_second, limit.burst) if limit else None
        client = KubernetesClient(connect, may_ask=turns.take) if turns else KubernetesClient(connect)
    except KubernetesError as error:
        raise StartError(f"{error}; or give --objects DIR to do without a cluster") from error
    watches = WatchSettings(pace=pace, telemetry=telemetry)
    return ClusterObjects(client, lambda name, run: context.tasks.running(name, lambda stop: run(stop.event)), watches)


def _file_objects(settings: ServeSettings, context: WorkerContext, pace: Pace) -> FileObjects:
    try:
        objects = FileObjects(settings.objects or "", pace, report=lambda problem: _log.error("%s", problem))
        objects.refresh()
    except ObjectsError as error:
        raise StartError(str(error)) from error
    context.tasks.periodic("objects", objects.refresh, every_seconds=1.0, deadline_seconds=60.0)
    return objects


def _text(path: object) -> str | None:
    return None if path is None else str(path)


def _configuration(settings: ServeSettings, context: WorkerContext, objects: ObjectSource) -> RuleReloader:
    try:
        return RuleReloader(settings.configuration, objects.resource, context.registry, METRICS_PREFIX)
    except (FilesError, DocumentError) as error:
        raise StartError(str(error)) from error


def _prometheus(settings: ServeSettings, context: WorkerContext, pace: Pace) -> PrometheusClient:
    try:
        telemetry = PrometheusTelemetry(
            context.registry,
            METRICS_PREFIX,
            # The name of prometheus-adapter, on which dashboards rely.
            request_duration_name="prometheus_adapter_prometheus_client_request_duration_seconds",
        )
        client = PrometheusClient(settings.prometheus, telemetry=telemetry, pace=pace)
    except SettingsError as error:
        raise StartError(str(error)) from error
    context.on_stop(client.close)
    context.tasks.running(
        "prometheus connection", functools.partial(_tell_connection, settings.prometheus, client.address)
    )
    return client


def _tell_connection(settings: PrometheusSettings, address: str, stop: Stop) -> None:
    """Say once whether there is a Prometheus, and once when there is one at last."""
    state = StateLog(_log)
    while not stop.requested:
        try:
            found = check_connection(settings, timeout_seconds=5.0)
        except (PrometheusError, SettingsError) as error:
            state.failed("connection", f"Prometheus at {address} does not answer: {error}")
            stop.wait(CONNECTION_CHECK_SECONDS)
        else:
            _log.info("Prometheus answers", extra=fields(address=address, version=found))
            stop.event.wait()


def _start_tasks(
    settings: ServeSettings, context: WorkerContext, configuration: RuleReloader, readings: Readings
) -> None:
    def refresh(stop: Stop) -> None:
        while not stop.requested:
            stop.wait(min(readings.run_due(), LONGEST_REFRESH_PAUSE_SECONDS))

    context.tasks.running("refresh", refresh)
    context.tasks.periodic("configuration", configuration.check, every_seconds=1.0, deadline_seconds=30.0)
    if settings.kept:
        keep_certificate(settings.kept, context)
    if settings.self_made:
        renew = functools.partial(_renew, settings.self_made)
        context.tasks.periodic("serving certificate", renew, every_seconds=3600.0, deadline_seconds=60.0)


def _renew(self_made: SelfMade) -> None:
    """Renew the certificate where it is near its end; the TLS layer takes the files in by their time of change."""
    self_made.renew()


def _be_ready_when_pods_are_known(context: WorkerContext, objects: ObjectSource) -> None:
    started = time.monotonic()

    def probe() -> str | None:
        waited = time.monotonic() - started
        if objects.synced(PODS) or waited >= READY_WITHOUT_PODS_SECONDS:
            return None
        return f"pods are not listed yet, after {waited:.0f} s"

    def settle(stop: Stop) -> None:
        """Take the pods' metadata out of the collector's sight once it is there: it would walk it again and again."""
        while not objects.synced(PODS) and not stop.wait(0.5):
            pass
        gc.freeze()
        stop.event.wait()

    context.health.add_ready("pods", probe)
    context.tasks.running("settle", settle)


def metrics_probe(
    looked_up: Callable[[], bool], clock: Callable[[], float] = time.monotonic
) -> Callable[[], str | None]:
    """Return the check that passes once the series of all rules were looked up, be it in vain, or soon in any case."""
    started = clock()

    def probe() -> str | None:
        if looked_up() or clock() - started >= READY_WITHOUT_METRICS_SECONDS:
            return None
        return "series have not been looked up yet"

    return probe
