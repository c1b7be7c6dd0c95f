"""The context of the code that builds a worker: registry, health checks, tasks, and shutdown callbacks."""

from __future__ import annotations

import logging
import os
import time
from typing import TYPE_CHECKING

from prometheus_client import Counter

from adapter.foundation.service.runtime.health import Health
from adapter.foundation.service.runtime.logs import fields
from adapter.foundation.service.runtime.process_telemetry import (
    ConnectionCollector,
    ConnectionCounts,
    TaskMetrics,
    exposition,
    new_registry,
)
from adapter.foundation.service.runtime.shutdown_callbacks import begin_calling, call_all
from adapter.foundation.service.runtime.tasks import Tasks
from adapter.foundation.service.server.addresses import Address, address_of
from adapter.foundation.service.server.plain_port.paced_text import PacedText
from adapter.foundation.service.server.plain_port.plain_answers import HEALTH_AND_METRICS, PlainAnswer
from adapter.foundation.service.server.plain_port.plain_server import PlainServer

if TYPE_CHECKING:
    import socket
    import threading
    from collections.abc import Callable, Iterable, Iterator

    from adapter.foundation.files.gzip_format import Piece
    from adapter.foundation.files.kept_contents import KeptContents
    from adapter.foundation.service.server.connections.bodies import AdmitHead, PlanBody
    from adapter.foundation.service.server.server_settings import ServerOptions

_log = logging.getLogger(__name__)

_METRICS_BURST_SECONDS = 0.02
"""Processor time that texts of the metrics may take before readers are slowed down: about ten small texts."""


class WorkerContext:
    """One worker process. Metrics and health checks are served as soon as it exists."""

    def __init__(
        self,
        options: ServerOptions,
        address: Address,
        plain: socket.socket | None,
        kept: KeptContents | None = None,
        *,
        is_replacement: bool = False,
    ) -> None:
        self.options = options
        self.kept = kept
        """The configuration that a former worker had in force; this worker keeps its own here for the next one."""
        self.is_replacement = is_replacement
        """Whether another worker has ended before: what it could do without, this one must do without, too."""
        self.address = address
        """Address of the application, with its actual port."""
        self.plain_address = address_of(plain) if plain else None
        self.registry = new_registry(options.version)
        self.health = Health()
        self.tasks = Tasks(TaskMetrics(self.registry, options.metrics_prefix))
        self._callbacks: list[Callable[[], None]] = []
        self._stopping_callbacks: list[Callable[[], None]] = []
        self._stopping: threading.Thread | None = None
        self._not_ready: str | None = "not listening yet"
        self._tls_reloads = Counter(
            f"{options.metrics_prefix}_tls_reloads_total",
            "Changes of the TLS files, by result.",
            ("result",),
            registry=self.registry,
        )
        self.health.add_ready("serving", lambda: self._not_ready)
        self._further_paths: dict[str, Callable[[str], PlainAnswer]] = {}
        self._further_metrics: tuple[Callable[[], Iterable[Piece]], ...] = ()
        self.plan_body: PlanBody | None = None
        """Decides which bodies are received before their request gets a thread; None if no bodies are."""
        self.admit_head: AdmitHead | None = None
        """Decides whose requests come first; if None, those with a verified client certificate."""
        self._metrics = PacedText(self._metrics_text, burst_seconds=_METRICS_BURST_SECONDS)
        self._metrics.start()
        self._plain = PlainServer(plain, self._answer, metrics=self._metrics, paths=self._paths) if plain else None
        if self._plain:
            self._plain.start()
            _log.info("metrics and health are served", extra=fields(address=str(self.plain_address)))

    def add_path(self, path: str, answer: Callable[[str], PlainAnswer]) -> None:
        """Serve one more path on the plain port, without TLS and to every caller.

        `answer` gets the query string. It runs in the thread that also serves health, so it must not wait. Raises
        ValueError for a path that is already served.
        """
        if path in self._paths() or path.startswith(("/livez/", "/readyz/")):
            raise ValueError(f"{path} is already served")
        # A new dictionary, since the plain port's thread may be reading this one.
        self._further_paths = {**self._further_paths, path: answer}

    def add_metrics(self, text: Callable[[], Iterable[Piece]]) -> None:
        """Append further families to `/metrics`, in Prometheus's text format, version 0.0.4.

        This is for metrics that would take too long to build at each scrape. `text` returns them in pieces and must not
        wait; their families must not be in the registry.
        """
        self._further_metrics = (*self._further_metrics, text)

    def on_stop(self, callback: Callable[[], None]) -> None:
        """Register a callback for the end of the process, after the tasks; the last one registered is called first."""
        self._callbacks.append(callback)

    def on_stopping(self, callback: Callable[[], None]) -> None:
        """Register a callback for the start of the shutdown, while requests are still served; the last is called first.

        It is for work that must stop at once, such as writes to the cluster and holding a Lease. The callbacks run one
        after another in a separate thread, if one can be started, and the shutdown waits for them as long as for tasks.
        """
        self._stopping_callbacks.append(callback)

    def mark_ready(self, counts: ConnectionCounts) -> None:
        """Make the server's own readiness check pass."""
        self.registry.register(ConnectionCollector(counts, self.options.metrics_prefix))
        self._not_ready = None
        scheme = "https" if self.options.tls else "http"
        _log.info("serving", extra=fields(address=f"{scheme}://{self.address}", pid=os.getpid()))

    def mark_stopping(self) -> None:
        """Make the readiness check fail from now on."""
        self._not_ready = "shutting down"
        _log.info("shutting down: no longer ready", extra=fields(delay_seconds=self.options.shutdown_delay_seconds))
        if self._stopping_callbacks:
            self._stopping = begin_calling(self._stopping_callbacks)

    def stop(self) -> None:
        """Stop the tasks, call the callbacks, then stop serving metrics and health checks."""
        end = time.monotonic() + self.options.stop_seconds
        self.tasks.stopping.set()
        if self._stopping:
            self._stopping.join(self.options.stop_seconds)
            if self._stopping.is_alive():
                _log.warning("callbacks for the start of the shutdown did not end in time")
        still_running = self.tasks.stop(max(0.0, end - time.monotonic()))
        if still_running:
            _log.warning("tasks did not end in time", extra=fields(tasks=", ".join(still_running)))
        call_all(self._callbacks)
        if self._plain:
            self._plain.stop()
        self._metrics.stop()
        _log.info("ended")

    def tls_reloaded(self, well: bool) -> None:  # noqa: FBT001 - a callback of one argument
        """Count a change of the TLS files."""
        self._tls_reloads.labels("success" if well else "failure").inc()

    def _answer(self, path: str, query: str) -> PlainAnswer | None:
        further = self._further_paths.get(path)
        if further is not None:
            return further(query)
        health = None if path.startswith("/healthz") else self.health.answer(path, query)
        return None if health is None else PlainAnswer(health[0], health[1].encode())

    def _metrics_text(self) -> Iterator[Piece]:
        yield exposition(self.registry)
        for text in self._further_metrics:
            yield from text()

    def _paths(self) -> tuple[str, ...]:
        return (*HEALTH_AND_METRICS, *self._further_paths)
