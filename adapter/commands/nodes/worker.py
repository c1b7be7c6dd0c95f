"""Assembles the parts of `nodes` in the worker process. All background work is done by named tasks."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from adapter.commands.nodes.answers import Answers, not_found, own_routes
from adapter.commands.nodes.cluster import LONGEST_WAIT_SECONDS, NodeSource, node_source
from adapter.commands.nodes.extender_telemetry import ExtenderMetrics
from adapter.commands.nodes.nodes_settings import COMMON_THREADS, METRICS_PREFIX, NodesSettings
from adapter.commands.nodes.reader_access import OPEN_PATHS, WATCHER_PATHS, plan_by_routes, protected_routes
from adapter.commands.nodes.refresh_loop import NodeRefreshLoop, follow_changes
from adapter.foundation.files.file_contents import FilesError
from adapter.foundation.files.gzip_format import Piece, compress
from adapter.foundation.options.clients import prometheus_client
from adapter.foundation.service.flags.parsing import UsageError
from adapter.foundation.service.runtime.process_telemetry import exposition
from adapter.foundation.service.server.plain_port.paced_text import PacedText
from adapter.foundation.service.server.plain_port.plain_answers import PlainAnswer
from adapter.foundation.sources.kubernetes.kubernetes_telemetry import WatchMetrics
from adapter.foundation.sources.prometheus.backends.data_sources import source_of
from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from adapter.foundation.time.clock import Clock
from adapter.foundation.time.pace import Pace
from adapter.foundation.web.wsgi import wsgi_application
from adapter.nodes.configuration.reading import SchedulingFileError
from adapter.nodes.configuration.reloader import SchedulingReloader
from adapter.nodes.queries.refresher import SampleRefresher
from adapter.nodes.snapshot.snapshot_keeper import KeeperServices, SnapshotKeeper
from adapter.nodes.snapshot.snapshot_telemetry import SnapshotMetrics
from adapter.nodes.state_file.state_file import SAMPLES, WEEK, Codec, StateFile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapter.commands.nodes.client_certificate import ClientCertificate
    from adapter.foundation.service.server.context import WorkerContext
    from adapter.foundation.service.server.process import WsgiApp
    from adapter.nodes.model.scheduling_settings import SchedulingSettings

Content = TypeVar("Content")

LISTS_SECONDS: Final = 10.0
"""How long the first refresh and readiness wait at most for the first lists of nodes and pods."""
_OWN_METRICS_BURST_SECONDS: Final = 0.25
"""The processor time that the text of the process's own metrics may take before readers are slowed down; one text takes
2 ms."""


def make_worker(settings: NodesSettings, context: WorkerContext) -> WsgiApp:
    """Return the application of the worker, and start its tasks. Raises UsageError."""
    pace, clock, wake, file_is_read = Pace(pause_seconds=0.0), Clock(), threading.Event(), threading.Event()
    reloader = _reloader(settings, context)
    watches = WatchMetrics(context.registry, METRICS_PREFIX)
    source = node_source(settings.objects, reloader.current(), context, watches, pace, wake.set, file_is_read)
    keeper = _keeper(settings, context, reloader, source, (clock, pace))
    answers = Answers(keeper, reloader.current(), clock)

    def replace(changed: SchedulingSettings) -> None:
        source.change(changed)
        keeper.use(changed)
        answers.use(changed)

    reloader.on_change(replace)
    context.tasks.periodic("configuration", reloader.check, every_seconds=1.0, deadline_seconds=30.0, reads_only=True)
    _start_tasks(settings, context, keeper, source, (wake, file_is_read, pace))
    extender, metrics = ExtenderMetrics(context.registry, METRICS_PREFIX), _NodeMetrics(keeper, clock)
    context.add_metrics(metrics.pieces)
    if context.plain_address is not None:
        context.add_path("/healthz", lambda query: _plain_health(context, query))
    open_paths = (*OPEN_PATHS, *WATCHER_PATHS) if settings.has_open_watcher else OPEN_PATHS
    routes = protected_routes(answers.routes(), settings.token, _client_certificate(settings), open_paths)
    context.plan_body = plan_by_routes(routes)
    context.admit_head = None if settings.token is None else settings.token.is_in
    own_metrics = PacedText(lambda: [exposition(context.registry)], burst_seconds=_OWN_METRICS_BURST_SECONDS)
    own_metrics.start()
    context.on_stop(own_metrics.stop)
    # The port opens after this, so that the first request to a restarted process is answered from its state file.
    file_is_read.wait(LONGEST_WAIT_SECONDS)
    own = own_routes(context.health, own_metrics, metrics.pieces, metrics.packed)
    return wsgi_application(
        not_found,
        routes=(*map(extender.count_answers, routes), *own),
        refuse=extender.refuse,
        most_bodies=COMMON_THREADS // 2,
    )


def _reloader(settings: NodesSettings, context: WorkerContext) -> SchedulingReloader:
    try:
        return SchedulingReloader(settings.scheduling_file, context.registry, METRICS_PREFIX, context.kept)
    except (FilesError, SchedulingFileError) as error:
        raise UsageError(str(error)) from error


def _keeper(
    settings: NodesSettings,
    context: WorkerContext,
    reloader: SchedulingReloader,
    source: NodeSource,
    timing: tuple[Clock, Pace],
) -> SnapshotKeeper:
    clock, pace = timing
    prometheus = prometheus_client(settings.prometheus, context, pace)
    metrics = SnapshotMetrics(context.registry, METRICS_PREFIX)

    def refresher(scheduling: SchedulingSettings) -> SampleRefresher:
        return SampleRefresher(prometheus, scheduling, refresh_seconds=settings.refresh_interval_seconds, pace=pace)

    def state_file(scheduling: SchedulingSettings, suffix: str, codec: Codec[Content]) -> StateFile[Content] | None:
        if settings.state_file is None:
            return None
        path = settings.state_file.with_name(settings.state_file.name + suffix)
        return StateFile(path, meaning_of(settings, scheduling), codec, clock, metrics.count_file_failure)

    parts = KeeperServices(
        facts=source.facts,
        refresher=refresher,
        file=lambda scheduling: state_file(scheduling, "", SAMPLES),
        day_file=lambda scheduling: state_file(scheduling, ".day", SAMPLES),
        week_file=lambda scheduling: state_file(scheduling, ".week", WEEK),
        metrics=metrics,
        refresh_seconds=settings.refresh_interval_seconds,
        node_metrics=settings.node_metrics,
        clock=clock,
        pace=pace,
    )
    return SnapshotKeeper(parts, reloader.current())


def meaning_of(settings: NodesSettings, scheduling: SchedulingSettings) -> str:
    """Return a text without credentials that identifies the source of the samples in the state files."""
    shown, source = settings.prometheus.endpoint.shown, source_of(settings.prometheus)
    about: dict[str, object] = {
        "prometheus": shown,
        "names": "instance" if settings.objects is None else scheduling.match,
        "queries": dict(scheduling.queries),
        "matchers": dict(scheduling.matchers),
    }
    # Without it, the files of earlier versions stay valid where the address says everything.
    if source != source_of(PrometheusSettings(shown)):
        about["source"] = source
    return msgspec.json.encode(about, order="sorted").decode()


def _start_tasks(
    settings: NodesSettings,
    context: WorkerContext,
    keeper: SnapshotKeeper,
    source: NodeSource,
    running: tuple[threading.Event, threading.Event, Pace],
) -> None:
    started, (wake, file_is_read, pace) = time.monotonic(), running

    def lists_are_done() -> bool:
        return source.has_tried_lists() or time.monotonic() - started >= LISTS_SECONDS

    loop = NodeRefreshLoop(keeper, settings.refresh_interval_seconds, (file_is_read, lists_are_done), pace)
    context.health.add_ready("nodes", lambda: None if lists_are_done() else "nodes and pods are not listed yet")
    context.health.add_ready("refresh", lambda: None if keeper.has_tried else "no refresh has been tried yet")
    context.tasks.running("refresh", loop.run, reads_only=True)
    context.tasks.running("board", lambda stop: follow_changes(keeper, wake, stop), reads_only=True)
    if settings.server.tls is not None:
        from adapter.commands.followed_certificate import follow_given_certificate  # noqa: PLC0415 - loads the library of certificates

        follow_given_certificate(settings.server.tls, context)
    if settings.state_file is not None:
        context.tasks.periodic("state file", keeper.write_file, every_seconds=1.0, deadline_seconds=60.0)


class _NodeMetrics:
    """The metrics of nodes that the last refresh prepared."""

    def __init__(self, keeper: SnapshotKeeper, clock: Clock) -> None:
        self._keeper = keeper
        self._clock = clock

    def pieces(self) -> Iterator[Piece]:
        """Yield the metrics as text; yield nothing before the first data."""
        published = self._keeper.published
        if published.exposition is not None:
            yield from published.exposition.pieces(self._clock.wall())
            yield published.hot

    def packed(self) -> bytes:
        """Return the metrics as text in gzip format; empty before the first data."""
        published = self._keeper.published
        if published.exposition is None:
            return b""
        return published.exposition.gzipped(self._clock.wall()) + compress(published.hot)


def _plain_health(context: WorkerContext, query: str) -> PlainAnswer:
    status, text = context.health.answer("/healthz", query) or (404, "")
    return PlainAnswer(status, text.encode())


def _client_certificate(settings: NodesSettings) -> ClientCertificate | None:
    """Return the check of the scheduler's certificate; None if no CA of clients is configured."""
    if settings.client_authorities is None:
        return None
    from adapter.commands.nodes.client_certificate import ClientCertificate  # noqa: PLC0415 - large, see the module

    return ClientCertificate(settings.client_authorities.current)
