"""Assembles the parts of `serve` in the worker process. All background work is done by named tasks."""

from __future__ import annotations

import functools
import gc
import logging
import time
from typing import TYPE_CHECKING

from adapter.commands.backend_clients import QUERY_THREADS, BackendClient
from adapter.commands.followed_certificate import follow_certificate, follow_given_certificate
from adapter.commands.program import PROGRAM
from adapter.commands.serve.certificates import keep_certificate
from adapter.commands.serve.identity import make_access_control
from adapter.commands.serve.rule_objects import serve_rule_objects
from adapter.commands.serve.rule_reloader import RuleReloader
from adapter.commands.serve.serve_settings import METRICS_PREFIX, ServeSettings
from adapter.commands.trials.queries import QueryTrials
from adapter.foundation.documents.load import DocumentError
from adapter.foundation.files.file_contents import FilesError
from adapter.foundation.objects.resources import BUILT_IN, find_resource
from adapter.foundation.options.clients import object_source, prometheus_client
from adapter.foundation.service.flags.parsing import UsageError
from adapter.foundation.service.runtime.logs import fields
from adapter.foundation.service.runtime.process_telemetry import exposition
from adapter.foundation.service.runtime.threads import DaemonThreads
from adapter.foundation.sources.kubernetes.kubernetes_telemetry import WatchMetrics
from adapter.foundation.sources.prometheus.backends.backend_telemetry import BackendTelemetry
from adapter.foundation.sources.prometheus.prometheus_telemetry import PrometheusTelemetry
from adapter.foundation.time.pace import Pace
from adapter.foundation.web.wsgi import wsgi_application
from adapter.metrics.apis.apis_telemetry import Telemetry
from adapter.metrics.apis.handler import Handler
from adapter.metrics.apis.routing import is_frequent
from adapter.metrics.apis.services import ApiServices
from adapter.metrics.readings.readings import Readings
from adapter.metrics.readings.readings_telemetry import ReadingsTelemetry
from adapter.metrics.rulebook.model import Rulebook, all_rules

if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Event

    from adapter.foundation.service.server.context import WorkerContext
    from adapter.foundation.service.server.process import WsgiApp
    from adapter.foundation.sources.objects import ObjectSource
    from adapter.foundation.sources.prometheus.backends.backend import Backend

_log = logging.getLogger(__name__)

PODS = find_resource(BUILT_IN, "", "pods")
READY_WITHOUT_PODS_SECONDS = 0.5
"""The time after which the process is ready even without the list of pods. In a large cluster, the list takes seconds,
during which all other metrics can be answered. A request that needs the list waits for it, and gets status 503 with the
reason if the wait takes too long.
"""
READY_WITHOUT_METRICS_SECONDS = 0.5
"""How long readiness waits for the first look-ups of series. This helps rolling updates, since requests must wait in a
process that knows fewer metrics than its predecessor. It is short because readiness must not depend on Prometheus."""
LONGEST_REFRESH_PAUSE_SECONDS = 0.2
REQUEST_DURATION_NAME = "prometheus_adapter_prometheus_client_request_duration_seconds"
"""The metric name of prometheus-adapter for the duration of requests to Prometheus, on which dashboards rely."""
PREPARE_SECONDS = 0.1
"""The maximum time until discovery lists a newly found metric. Its values are served immediately."""


def make_worker(settings: ServeSettings, context: WorkerContext) -> WsgiApp:
    """Return the application of the worker, and start its tasks. Raises UsageError."""
    pace = Pace()
    watches = WatchMetrics(context.registry, METRICS_PREFIX)
    access_control = make_access_control(settings.identity, context, watches)
    _log_certificate_authority(settings)
    objects = object_source(settings.objects, context, pace, watches)
    configuration = _configuration(settings, context, objects)
    readings = _readings(settings, context, objects, pace, configuration)
    if settings.rule_objects is not None:
        serve_rule_objects(settings.rule_objects, context, readings, objects.resource, pace, watches)
    _start_tasks(settings, context, configuration, readings)
    _be_ready_when_pods_are_known(context, objects)
    handler = Handler(
        ApiServices(
            authorizer=access_control,
            provider=readings,
            resolve=objects.resource,
            health=lambda path, query: context.health.answer(path, query) or (404, f"{path} is not a health check\n"),
            metrics=lambda: exposition(context.registry),
            telemetry=Telemetry(context.registry),
            version=settings.server.version,
            explain_command=f"{PROGRAM} explain",
            empty_is_error=settings.empty_is_error,
            compatibility=settings.compatibility,
        )
    )
    are_listed = functools.partial(_are_listed, readings, handler)
    context.health.add_ready("metrics", metrics_probe(are_listed))
    prepare = functools.partial(handler.prepare, pace)
    context.tasks.periodic(
        "lists of metrics", prepare, every_seconds=PREPARE_SECONDS, deadline_seconds=60.0, reads_only=True
    )
    return wsgi_application(handler.handle, routes=handler.routes(), refuse=handler.refuse, is_frequent=is_frequent)


def _readings(
    settings: ServeSettings, context: WorkerContext, objects: ObjectSource, pace: Pace, configuration: RuleReloader
) -> Readings:
    """Return the readings, which serve the rules in force and follow changes of the rule files."""
    telemetry = PrometheusTelemetry(context.registry, METRICS_PREFIX, request_duration_name=REQUEST_DURATION_NAME)
    by_backend = BackendTelemetry(context.registry, METRICS_PREFIX, telemetry)
    prometheus = prometheus_client(settings.prometheus, context, pace, by_backend.of_flags())
    readings = Readings(
        rulebook=configuration.rulebook,
        objects=objects,
        prometheus=prometheus,
        submit=DaemonThreads("query", QUERY_THREADS).submit,
        pace=pace,
        telemetry=ReadingsTelemetry(context.registry),
        settings=settings.readings,
        started=prometheus.fetch_start,
        connect=functools.partial(_backend_client, settings, by_backend, pace),
    )
    configuration.on_change(
        functools.partial(_replace, readings, by_backend, telemetry, settings.prometheus.endpoint.shown),
        QueryTrials(readings.prometheus_of, objects.resource),
    )
    return readings


def _backend_client(
    settings: ServeSettings, telemetry: BackendTelemetry, pace: Pace, backend: Backend
) -> BackendClient:
    """Return a client of a backend that rules name. If the backend has no matchers, those from the flags apply."""
    found = backend.with_matchers(settings.readings.matchers)
    return BackendClient(backend.name, found, telemetry.of(backend.name), pace)


def _replace(
    readings: Readings,
    by_backend: BackendTelemetry,
    telemetry: PrometheusTelemetry,
    server_of_flags: str,
    rulebook: Rulebook,
) -> None:
    """Put another rulebook in force, and forget the metrics of backends that no rule names any longer."""
    readings.replace_rulebook(rulebook)
    backends = [rule.backend for rule in all_rules(rulebook) if rule.backend is not None]
    by_backend.keep({backend.name for backend in backends})
    telemetry.keep_servers({server_of_flags, *(backend.settings.endpoint.shown for backend in backends)})


def _are_listed(readings: Readings, handler: Handler) -> bool:
    return readings.has_looked_up_all() and handler.is_prepared()


def _log_certificate_authority(settings: ServeSettings) -> None:
    ca_file = settings.certificate.ca_file
    if ca_file is not None:
        _log.info(
            "the serving certificate is self-signed: put its CA into the caBundle of the APIServices",
            extra=fields(ca_file=ca_file),
        )


def _configuration(settings: ServeSettings, context: WorkerContext, objects: ObjectSource) -> RuleReloader:
    try:
        return RuleReloader(settings.configuration, objects.resource, context.registry, METRICS_PREFIX, context.kept)
    except (FilesError, DocumentError) as error:
        raise UsageError(str(error)) from error


def _start_tasks(
    settings: ServeSettings, context: WorkerContext, configuration: RuleReloader, readings: Readings
) -> None:
    def refresh(stop: Event) -> None:
        while not stop.is_set():
            stop.wait(min(readings.run_due(), LONGEST_REFRESH_PAUSE_SECONDS))

    context.tasks.running("refresh", refresh, reads_only=True)
    context.tasks.periodic(
        "configuration", configuration.check, every_seconds=1.0, deadline_seconds=30.0, reads_only=True
    )
    if settings.kept:
        keep_certificate(settings.kept, context)
    elif settings.renew_self_made:
        # If the certificate expires soon, it is renewed; the TLS layer notices the new modification time of the files.
        follow_certificate(settings.renew_self_made, context)
    elif settings.server.tls:
        follow_given_certificate(settings.server.tls, context)


def _be_ready_when_pods_are_known(context: WorkerContext, objects: ObjectSource) -> None:
    started = time.monotonic()

    def probe() -> str | None:
        waited = time.monotonic() - started
        if objects.is_synced(PODS) or waited >= READY_WITHOUT_PODS_SECONDS:
            return None
        return f"pods are not listed yet, after {waited:.1f} s"

    def settle(stop: Event) -> None:
        """Exempt the metadata of pods from garbage collection once it is listed, so that it is not scanned again."""
        while not objects.is_synced(PODS) and not stop.wait(0.5):
            pass
        gc.freeze()
        stop.wait()

    context.health.add_ready("pods", probe)
    context.tasks.running("settle", settle, reads_only=True)


def metrics_probe(
    are_listed: Callable[[], bool], clock: Callable[[], float] = time.monotonic
) -> Callable[[], str | None]:
    """Return a check that passes once all metrics found by look-ups are listed, or when the time is up.

    A failed look-up counts as one that found nothing.
    """
    started = clock()

    def probe() -> str | None:
        if are_listed() or clock() - started >= READY_WITHOUT_METRICS_SECONDS:
            return None
        return "series have not been looked up yet"

    return probe
