"""Assembles the parts of `nodes` in the worker process. All background work is done by named tasks."""

from __future__ import annotations

import gc
import threading
import time
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from adapter.commands.nodes.answers import Answers, not_found, own_routes
from adapter.commands.nodes.cluster import LONGEST_WAIT_SECONDS, NodeSource, node_source
from adapter.commands.nodes.extender_telemetry import ExtenderMetrics
from adapter.commands.nodes.nodes_settings import COMMON_THREADS, METRICS_PREFIX, NodesSettings
from adapter.commands.nodes.reader_access import (
    LARGEST_STRANGERS_BODY_BYTES,
    OPEN_PATHS,
    SCHEDULER,
    WATCHER_PATHS,
    protected,
)
from adapter.foundation.files.file_contents import FilesError
from adapter.foundation.files.gzip_format import Piece, gzipped
from adapter.foundation.options.clients import prometheus_client
from adapter.foundation.service.flags.parsing import UsageError
from adapter.foundation.service.runtime.heap import return_free_memory
from adapter.foundation.service.runtime.process_telemetry import exposition
from adapter.foundation.service.server.connections.bodies import BodyPlan, Head, PlanBody
from adapter.foundation.service.server.plain_port.paced_text import PacedText
from adapter.foundation.service.server.plain_port.plain_server import PlainAnswer
from adapter.foundation.sources.kubernetes.kubernetes_telemetry import WatchMetrics
from adapter.foundation.time.clock import Clock
from adapter.foundation.time.pace import Pace
from adapter.foundation.web.http import Request
from adapter.foundation.web.wsgi import wsgi_application
from adapter.nodes.board.board_keeper import BoardKeeper, KeeperServices
from adapter.nodes.board.board_telemetry import BoardMetrics
from adapter.nodes.configuration.reading import SchedulingFileError
from adapter.nodes.configuration.reloader import SchedulingReloader
from adapter.nodes.queries.refresher import SampleRefresher
from adapter.nodes.state_file.state_file import SAMPLES, WEEK, Codec, StateFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from adapter.commands.nodes.client_certificate import ClientCertificate
    from adapter.foundation.service.runtime.tasks import Stop
    from adapter.foundation.service.server.context import WorkerContext
    from adapter.foundation.service.server.process import WsgiApp
    from adapter.foundation.web.routes import Route
    from adapter.nodes.model.scheduling_settings import SchedulingSettings

Content = TypeVar("Content")

LISTS_SECONDS: Final = 10.0
"""How long the first refresh and readiness wait at most for the first lists of nodes and pods."""
PAUSE_SECONDS: Final = 0.001
"""The pause after each half millisecond of bulk work, once requests are served. With the 4 ms of `serve`, reading
Prometheus's answer about 5,000 nodes would take longer than a refresh may take.
"""
_CHANGES_A_SECOND: Final = 2.0
_SHARE_OF_REBUILDING: Final = 0.2
"""The largest share of the time that may be spent on rebuilding after changes of pods."""
_STOP_NOTICED_SECONDS: Final = 0.5
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
    routes = protected(answers.routes(), settings.token, _client_certificate(settings), open_paths)
    context.plan_body = plan_by_routes(routes, reserved_below=SCHEDULER)
    context.admit_head = None if settings.token is None else settings.token.is_in
    own_metrics = PacedText(lambda: [exposition(context.registry)], burst_seconds=_OWN_METRICS_BURST_SECONDS)
    own_metrics.start()
    context.on_stop(own_metrics.stop)
    # The port opens after this, so that the first request to a restarted process is answered from its state file.
    file_is_read.wait(LONGEST_WAIT_SECONDS)
    own = own_routes(context.health, own_metrics, metrics.pieces, metrics.packed)
    return wsgi_application(
        not_found,
        routes=(*map(extender.counted, routes), *own),
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
) -> BoardKeeper:
    clock, pace = timing
    prometheus = prometheus_client(settings.prometheus, context, pace)
    metrics = BoardMetrics(context.registry, METRICS_PREFIX)

    def refresher(scheduling: SchedulingSettings) -> SampleRefresher:
        return SampleRefresher(prometheus, scheduling, refresh_seconds=settings.refresh_interval_seconds, pace=pace)

    def state_file(scheduling: SchedulingSettings, suffix: str, codec: Codec[Content]) -> StateFile[Content] | None:
        if settings.state_file is None:
            return None
        path = settings.state_file.with_name(settings.state_file.name + suffix)
        return StateFile(path, meaning_of(settings, scheduling), codec, clock, metrics.file_failed)

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
    return BoardKeeper(parts, reloader.current())


def meaning_of(settings: NodesSettings, scheduling: SchedulingSettings) -> str:
    """Return a text without credentials that identifies the source of the samples in the state file."""
    about: dict[str, object] = {
        "prometheus": settings.prometheus.endpoint.shown,
        "names": "instance" if settings.objects is None else scheduling.match,
        "queries": dict(scheduling.queries),
        "matchers": dict(scheduling.matchers),
    }
    if settings.prometheus.matchers is not None:
        about["prometheus_matchers"] = str(settings.prometheus.matchers)
    return msgspec.json.encode(about, order="sorted").decode()


def _start_tasks(
    settings: NodesSettings,
    context: WorkerContext,
    keeper: BoardKeeper,
    source: NodeSource,
    running: tuple[threading.Event, threading.Event, Pace],
) -> None:
    started, (wake, file_is_read, pace) = time.monotonic(), running

    def lists_are_done() -> bool:
        return source.has_tried_lists() or time.monotonic() - started >= LISTS_SECONDS

    loop = _RefreshLoop(keeper, settings.refresh_interval_seconds, (file_is_read, lists_are_done), pace)
    context.health.add_ready("nodes", lambda: None if lists_are_done() else "nodes and pods are not listed yet")
    context.health.add_ready("refresh", lambda: None if keeper.has_tried else "no refresh has been tried yet")
    context.tasks.running("refresh", loop.run, reads_only=True)
    context.tasks.running("board", lambda stop: _follow_changes(keeper, wake, stop), reads_only=True)
    if settings.server.tls is not None:
        from adapter.commands.followed_certificate import (  # noqa: PLC0415 - loads the library of certificates
            follow_given_certificate,
        )

        follow_given_certificate(settings.server.tls, context)
    if settings.state_file is not None:
        context.tasks.periodic("state file", keeper.write_file, every_seconds=1.0, deadline_seconds=60.0)


class _RefreshLoop:
    """Publishes the samples of the state file, and then refreshes at intervals."""

    def __init__(
        self,
        keeper: BoardKeeper,
        interval_seconds: float,
        beginning: tuple[threading.Event, Callable[[], bool]],
        pace: Pace,
    ) -> None:
        """`beginning` is an event and a function.

        `run` sets the event once the state file has been read, and begins to refresh once the function returns True.
        """
        self._keeper = keeper
        self._pace = pace
        self._interval_seconds = interval_seconds
        self._file_is_read, self._lists_are_done = beginning

    def run(self, stop: Stop) -> None:
        """Read the state file, and then refresh until the stop is requested."""
        if not self._file_is_read.is_set():
            try:
                self._keeper.read_file()
            finally:
                # A task that fails is started again, and must not fail twice because of the file.
                self._file_is_read.set()
        while not self._lists_are_done() and not stop.wait(0.02):
            pass
        while not stop.requested:
            began = time.monotonic()
            is_first = not self._keeper.has_tried
            self._keeper.refresh()
            if is_first:
                self._pace.set_pause(PAUSE_SECONDS)
                # The objects that exist now will stay, so the garbage collector need not scan them again.
                gc.collect()
                gc.freeze()
            return_free_memory()
            stop.wait(began + self._interval_seconds - time.monotonic())


def _follow_changes(keeper: BoardKeeper, wake: threading.Event, stop: Stop) -> None:
    """Rebuild the board after changes: immediately after the first, then at a rate that does not delay requests."""
    while not stop.requested:
        if not wake.wait(_STOP_NOTICED_SECONDS):
            continue
        wake.clear()
        began = time.monotonic()
        keeper.rebuild()
        took = time.monotonic() - began
        stop.wait(max(1.0 / _CHANGES_A_SECOND, took / _SHARE_OF_REBUILDING) - took)


class _NodeMetrics:
    """The metrics of nodes that the last refresh prepared."""

    def __init__(self, keeper: BoardKeeper, clock: Clock) -> None:
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
        return published.exposition.gzipped(self._clock.wall()) + gzipped(published.hot)


def _plain_health(context: WorkerContext, query: str) -> PlainAnswer:
    status, text = context.health.answer("/healthz", query) or (404, "")
    return PlainAnswer(status, text.encode())


def _client_certificate(settings: NodesSettings) -> ClientCertificate | None:
    """Return the check of the scheduler's certificate; None if no CA of clients is configured."""
    if settings.client_authorities is None:
        return None
    from adapter.commands.nodes.client_certificate import ClientCertificate  # noqa: PLC0415 - large, see the module

    return ClientCertificate(settings.client_authorities.current)


def plan_by_routes(routes: Sequence[Route], *, reserved_below: str) -> PlanBody:
    """Return a plan for bodies, by which only callers that a frequent route admits may send it bodies.

    Requests for paths below `reserved_below` get one of the reserved threads; without a client certificate, only those
    with small bodies do. For all other requests the plan is None, and an ordinary request thread decides.
    """
    by_path = {route.path: route for route in routes if route.is_frequent and route.largest_body_bytes}

    def plan(head: Head) -> BodyPlan | None:
        path, _, query = head.target.partition("?")
        route = by_path.get(path)
        if route is None or (route.methods and head.method not in route.methods):
            return None
        request = Request(head.method, path, query, head.headers, head.peer_chain)
        if route.admit is not None and route.admit(request) is not None:
            return None
        largest = route.largest_body_bytes
        if not path.startswith(reserved_below):
            return BodyPlan(largest)
        return BodyPlan(largest, largest if head.peer_chain else min(largest, LARGEST_STRANGERS_BODY_BYTES))

    return plan
