"""The clients of a serving process, made of what its flags say. Names of metrics begin with the process's prefix."""

from __future__ import annotations

import functools
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapter.service.runtime.errors import StartError
from adapter.service.runtime.logs import StateLog, fields
from adapter.sources.files import FileObjects
from adapter.sources.kubernetes.access import access
from adapter.sources.kubernetes.client import KubernetesClient
from adapter.sources.kubernetes.cluster import ClusterObjects
from adapter.sources.kubernetes.errors import KubernetesError
from adapter.sources.kubernetes.settings import WatchSettings
from adapter.sources.objects import ObjectsError
from adapter.sources.prometheus.client import PrometheusClient
from adapter.sources.prometheus.connection import check_connection
from adapter.sources.prometheus.errors import PrometheusError, SettingsError
from adapter.sources.prometheus.telemetry import PrometheusTelemetry
from adapter.timing.rate_limit import RateLimit

if TYPE_CHECKING:
    from pathlib import Path

    from adapter.service.runtime.tasks import Stop
    from adapter.service.server.context import WorkerContext
    from adapter.sources.kubernetes.telemetry import WatchTelemetry
    from adapter.sources.objects import ObjectSource
    from adapter.sources.prometheus.settings import PrometheusSettings
    from adapter.timing.pace import Pace

_log = logging.getLogger(__name__)

CONNECTION_CHECK_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class AskingLimit:
    """How often the API server may be asked for objects."""

    per_second: float
    burst: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectSettings:
    """Where objects come from."""

    files: Path | None
    """Folder of manifests that stands in for a cluster; None: a cluster."""
    kubeconfig: Path | None
    """None: in a pod, the pod's own cluster."""
    context: str | None
    limit: AskingLimit | None
    """None: the cluster is asked as often as is needed."""


def kubernetes_client(settings: ObjectSettings) -> KubernetesClient:
    """Return a client of the cluster that keeps to the limit; raises KubernetesError."""
    connect = access(None if settings.kubeconfig is None else str(settings.kubeconfig), settings.context)
    if settings.limit is None:
        return KubernetesClient(connect)
    return KubernetesClient(connect, may_ask=RateLimit(settings.limit.per_second, settings.limit.burst).take)


def object_source(
    settings: ObjectSettings, context: WorkerContext, pace: Pace, telemetry: WatchTelemetry
) -> ObjectSource:
    """Return the objects, from files or by watches, and start the tasks that keep them fresh; raises StartError."""
    if settings.files is not None:
        return _file_objects(settings.files, context, pace)
    try:
        client = kubernetes_client(settings)
    except KubernetesError as error:
        raise StartError(f"{error}; or give --objects DIR to do without a cluster") from error
    watches = WatchSettings(pace=pace, telemetry=telemetry)
    return ClusterObjects(client, lambda name, run: context.tasks.running(name, lambda stop: run(stop.event)), watches)


def prometheus_client(
    settings: PrometheusSettings, context: WorkerContext, pace: Pace, *, request_duration_name: str | None = None
) -> PrometheusClient:
    """Return a client whose connection is checked in the background and that the worker closes; raises StartError.

    `request_duration_name` is another program's name for durations, on which dashboards rely; None if none does.
    """
    try:
        telemetry = PrometheusTelemetry(
            context.registry, context.options.metrics_prefix, request_duration_name=request_duration_name
        )
        client = PrometheusClient(settings, telemetry=telemetry, pace=pace)
    except SettingsError as error:
        raise StartError(str(error)) from error
    context.on_stop(client.close)
    context.tasks.running("prometheus connection", functools.partial(_log_connection, settings, client.address))
    return client


def _file_objects(files: Path, context: WorkerContext, pace: Pace) -> FileObjects:
    try:
        objects = FileObjects(files, pace, report=lambda problem: _log.error("%s", problem))
        objects.refresh()
    except ObjectsError as error:
        raise StartError(str(error)) from error
    context.tasks.periodic("objects", objects.refresh, every_seconds=1.0, deadline_seconds=60.0)
    return objects


def _log_connection(settings: PrometheusSettings, address: str, stop: Stop) -> None:
    """Log once that Prometheus does not answer, if so, and once that it does."""
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
