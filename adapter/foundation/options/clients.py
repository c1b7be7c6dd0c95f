"""Clients of the cluster and of Prometheus, made from flags: for servers, and for commands that run once.

The metrics of a server's clients begin with the server's prefix.
"""

from __future__ import annotations

import functools
import logging
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapter.foundation.options.prometheus import prometheus_settings
from adapter.foundation.service.flags.parsing import UsageError
from adapter.foundation.service.runtime.logs import StateLog, fields
from adapter.foundation.sources.kubernetes.client import KubernetesClient, RequestDeadlines
from adapter.foundation.sources.kubernetes.credentials.access import access
from adapter.foundation.sources.kubernetes.errors import KubernetesError
from adapter.foundation.sources.kubernetes.lists.list_watch import WatchSettings
from adapter.foundation.sources.kubernetes.watches.cluster import ClusterObjects, StartTask
from adapter.foundation.sources.object_folder import FileObjects
from adapter.foundation.sources.objects import ObjectsError, ObjectSource
from adapter.foundation.sources.prometheus.errors import PrometheusError, SettingsError
from adapter.foundation.sources.prometheus.prometheus_telemetry import PrometheusTelemetry
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from adapter.foundation.sources.prometheus.queries.connection import check_connection
from adapter.foundation.time.pace import UNPACED, Pace
from adapter.foundation.time.rate_limit import RateLimit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from adapter.foundation.options.cluster import ClusterSettings
    from adapter.foundation.service.flags.table import FlagValues
    from adapter.foundation.service.server.context import WorkerContext
    from adapter.foundation.sources.kubernetes.kubernetes_telemetry import WatchTelemetry
    from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
    from adapter.foundation.sources.prometheus.prometheus_telemetry import QueryTelemetry

_log = logging.getLogger(__name__)

CONNECTION_CHECK_SECONDS = 30.0
DEADLINES = RequestDeadlines()


@dataclass(frozen=True, slots=True)
class AskingLimit:
    """A limit on the requests that a client sends to the API server."""

    per_second: float
    burst: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectSettings:
    """The source of objects: a folder of manifests, or a cluster."""

    files: Path | None
    """Folder of manifests that stands in for a cluster; None to use the cluster."""
    cluster: ClusterSettings
    limit: AskingLimit | None = None
    """Limit on requests to the API server; None for no limit."""


def kubernetes_client(
    settings: ClusterSettings, deadlines: RequestDeadlines = DEADLINES, limit: AskingLimit | None = None
) -> KubernetesClient:
    """Return a client of the cluster that keeps to the limit; raises KubernetesError."""
    connect = access(None if settings.kubeconfig is None else str(settings.kubeconfig), settings.context)
    if limit is None:
        return KubernetesClient(connect, deadlines)
    return KubernetesClient(connect, deadlines, may_ask=RateLimit(limit.per_second, limit.burst).take)


@contextmanager
def objects_for_one_run(settings: ObjectSettings) -> Iterator[ObjectSource]:
    """Yield the objects for a command that runs once; they come from files, or from watches that end with the block.

    Raises ObjectsError if the files cannot be read, and KubernetesError if the cluster cannot be reached.
    """
    if settings.files is not None:
        files = FileObjects(settings.files, UNPACED)
        files.refresh()
        yield files
        return
    stop = threading.Event()

    def start(name: str, run: Callable[[threading.Event], None]) -> None:
        threading.Thread(target=run, args=(stop,), name=name, daemon=True).start()

    try:
        yield _cluster_objects(settings, start, WatchSettings(retries_first_list=True))
    finally:
        stop.set()


def object_source(
    settings: ObjectSettings, context: WorkerContext, pace: Pace, telemetry: WatchTelemetry
) -> ObjectSource:
    """Return the objects, from files or watches, and start the tasks that keep them current; raises UsageError."""
    if settings.files is not None:
        return _file_objects(settings.files, context, pace)

    start = functools.partial(context.tasks.running, reads_only=True)
    try:
        return _cluster_objects(settings, start, WatchSettings(pace=pace, telemetry=telemetry))
    except KubernetesError as error:
        raise UsageError(f"{error}; or set --objects to a folder to run without a cluster") from error


def prometheus_client_for_one_run(values: FlagValues) -> PrometheusClient:
    """Return a client for a command that runs once; the caller closes it. Raises UsageError."""
    try:
        return PrometheusClient(prometheus_settings(values))
    except SettingsError as error:
        raise UsageError(str(error)) from error


def prometheus_client(
    settings: PrometheusSettings, context: WorkerContext, pace: Pace, telemetry: QueryTelemetry | None = None
) -> PrometheusClient:
    """Return a client, checked in the background and closed by the worker; raises UsageError.

    `telemetry` counts the client's queries; None creates new telemetry for this process.

    Credentials that cannot be read are an error at the start of the process alone. In a worker that replaces another
    one, they are read again with later queries: if it ended, the process would end with it, and all APIs.
    """
    try:
        telemetry = telemetry or PrometheusTelemetry(context.registry, context.options.metrics_prefix)
        client = PrometheusClient(settings, telemetry=telemetry, pace=pace, awaits_credentials=context.is_replacement)
    except SettingsError as error:
        raise UsageError(str(error)) from error
    if settings.access_files is not None and settings.access_files.notice:
        _log.warning("%s", settings.access_files.notice)
    context.on_stop(client.close)
    context.tasks.running(
        "prometheus connection", functools.partial(_log_connection, settings, client.address), reads_only=True
    )
    return client


def _cluster_objects(settings: ObjectSettings, start: StartTask, watches: WatchSettings) -> ClusterObjects:
    return ClusterObjects(kubernetes_client(settings.cluster, limit=settings.limit), start, watches)


def _file_objects(files: Path, context: WorkerContext, pace: Pace) -> FileObjects:
    try:
        objects = FileObjects(files, pace, report=lambda problem: _log.error("%s", problem))
        objects.refresh()
    except ObjectsError as error:
        raise UsageError(str(error)) from error
    context.tasks.periodic("objects", objects.refresh, every_seconds=1.0, deadline_seconds=60.0, reads_only=True)
    return objects


def _log_connection(settings: PrometheusSettings, address: str, stop: threading.Event) -> None:
    """Log if Prometheus does not answer, and log once when it does; it is not checked any more after that."""
    state = StateLog(_log)
    while not stop.is_set():
        try:
            found = check_connection(settings, timeout_seconds=5.0)
        except (PrometheusError, SettingsError) as error:
            state.failed("connection", f"Prometheus at {address} does not answer: {error}")
            stop.wait(CONNECTION_CHECK_SECONDS)
        else:
            _log.info("Prometheus answers", extra=fields(address=address, version=found))
            stop.wait()
