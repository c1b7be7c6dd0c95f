"""A process of Tidewatch: gunicorn's arbiter, one worker, and the order of start and shutdown.

The arbiter opens the ports, so that a port in use ends the process before anything else happens, and a restarted worker
gets the same ports. Everything else is made in the worker, after the fork. The only thread before the fork is the
log's, which handles forks.

    start: ports, worker, metrics and health (plain port), application and its tasks, TLS port
    end:   not ready; meanwhile the callbacks of `on_stopping`; serve on for the delay, drain, tasks,
           the callbacks of `on_stop`, metrics and health
"""

# gunicorn has no types.
# mypy: allow-untyped-calls

from __future__ import annotations

import logging
import os
import resource
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter

from adapter.foundation.files.kept_contents import KeptContents
from adapter.foundation.service.flags.parsing import UsageError, exit_for_usage
from adapter.foundation.service.runtime.errors import StartError
from adapter.foundation.service.runtime.garbage_collector import settle_collector
from adapter.foundation.service.runtime.heap import settle_heap
from adapter.foundation.service.runtime.logs import fields
from adapter.foundation.service.runtime.printing import print_reason
from adapter.foundation.service.server.addresses import Address, address_of, listening_socket, overlap
from adapter.foundation.service.server.arbiter import LACKS_THREADS, ServerArbiter, ServerLogger, beyond_limit
from adapter.foundation.service.server.context import WorkerContext
from adapter.foundation.service.server.tls import ServerTls
from adapter.foundation.service.server.worker_exits import WorkerExits

if TYPE_CHECKING:
    import socket

    from gunicorn.config import Config

    from adapter.foundation.service.server.server_settings import ConnectionLimits, ServerOptions

_log = logging.getLogger(__name__)

WsgiApp: TypeAlias = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
MakeWorker: TypeAlias = Callable[[WorkerContext], WsgiApp]

LOST_WORKER_SECONDS = 60
"""A worker whose poller thread has not reported for this long is killed and restarted."""
SWITCH_SECONDS = 0.0005
"""Python's switch interval: how soon a waiting thread gets the interpreter from one that computes. With the default of
5 ms, the 99th percentile of requests doubled while 250,000 values were refreshed."""
NO_THREAD = "can't start new thread"
"""The text of Python's RuntimeError for a thread that the system refuses; the error has no class of its own."""
SPARE_DESCRIPTORS = 256
"""File descriptors reserved for everything but client connections: health checks, Prometheus, the cluster and files."""


def serve_forever(options: ServerOptions, make_worker: MakeWorker) -> NoReturn:
    """Serve until a signal ends the process; raises SystemExit with 0 after a signal.

    If the process cannot start, the status is 1, or 2 if that is because of its flags, or of a file that they name.

    `make_worker` is called in the worker process with its context: it builds everything, starts tasks, and returns the
    application. It may raise StartError or UsageError. Note that SystemExit passes through the caller's frames in the
    worker too.
    """
    descriptors = _raise_descriptor_limit(options.connections.most + SPARE_DESCRIPTORS)
    options = replace(options, connections=connections_within(options.connections, descriptors))
    if options.plain_address and overlap(options.address, options.plain_address):
        # Otherwise, the message would blame another process.
        both = f"{options.address} for requests, and on {options.plain_address} for metrics and health"
        exit_for_usage(options.program, f"cannot listen on {both}: give each a port of its own")
    try:
        listener = listening_socket(options.address)
        plain = listening_socket(options.plain_address) if options.plain_address else None
        tls = ServerTls(options.tls) if options.tls else None
    except UsageError as e:
        exit_for_usage(options.program, str(e))
    except StartError as e:
        print_reason(options.program, str(e))
        sys.exit(1)
    # These variables, left over from another gunicorn's upgrade in place, would make this one use foreign sockets.
    for name in ("GUNICORN_PID", "GUNICORN_FD"):
        os.environ.pop(name, None)
    application = ServerApplication(options, make_worker, address_of(listener), plain, tls)
    ServerArbiter(application, listener, application.exits, options.end_seconds).run()
    raise AssertionError("gunicorn's arbiter raises SystemExit")


class ServerApplication(BaseApplication):
    """The application as gunicorn sees it: its settings, and in the worker the WSGI application."""

    cfg: Config
    context: WorkerContext

    def __init__(
        self,
        options: ServerOptions,
        make_worker: MakeWorker,
        address: Address,
        plain: socket.socket | None,
        tls: ServerTls | None,
    ) -> None:
        self.options = options
        self.tls = tls
        self.exits = WorkerExits()
        self._make_worker = make_worker
        self._address = address
        self._plain = plain
        self._kept = KeptContents()
        super().__init__()

    def load_config(self) -> None:
        """Set everything that differs from gunicorn's defaults or that the environment could otherwise change."""
        for name, value in _settings(self.options).items():
            self.cfg.set(name, value)

    def before_worker(self) -> None:
        """Prepare the worker's process, before it has threads."""
        settle_heap()
        sys.setswitchinterval(SWITCH_SECONDS)
        if self.options.pin_cpu:
            cpus = sorted(os.sched_getaffinity(0))
            # Choose the core by the process ID, so that replicas on one node do not share a core.
            os.sched_setaffinity(0, {cpus[os.getpid() % len(cpus)]})

    def load(self) -> WsgiApp:
        """Make the worker's context and application."""
        self.context = WorkerContext(
            self.options, self._address, self._plain, self._kept, is_replacement=self.exits.any_ended
        )
        self.exits.expose(self.context.registry, self.options.metrics_prefix)
        if self.tls is not None:
            self.tls.on_reload = self.context.tls_reloaded
        application = self._make_worker(self.context)
        settle_collector()
        return application

    @contextmanager
    def refused_in_one_line(self) -> Iterator[None]:
        """Exit the process with one line if the block, which is the start of the worker, fails.

        All of the server ends with it, except for a replacement that lacks threads.
        """
        try:
            yield
        except UsageError as e:
            self._refuse(str(e), Arbiter.APP_LOAD_ERROR)
        except StartError as e:
            self._refuse(str(e))
        except Exception as e:  # noqa: BLE001 - whatever it is, the process cannot serve: said in one line, and the end
            _log.debug("the start failed", exc_info=e)
            if str(e) == NO_THREAD:
                # A replacement is made again later: the arbiter still has the last good configuration for it.
                status = LACKS_THREADS if self.exits.any_ended else Arbiter.WORKER_BOOT_ERROR
                self._refuse(beyond_limit("the threads of a worker", str(e)), status)
            self._refuse(f"cannot start: {type(e).__name__}: {e}")

    def _refuse(self, message: str, status: int = Arbiter.WORKER_BOOT_ERROR) -> NoReturn:
        print_reason(self.options.program, message)
        sys.exit(status)


def _settings(options: ServerOptions) -> dict[str, object]:
    return {
        "worker_class": "adapter.foundation.service.server.worker.TidewatchWorker",
        "logger_class": ServerLogger,
        "workers": 1,
        "threads": options.threads,
        "worker_connections": options.connections.most + options.threads,
        "timeout": LOST_WORKER_SECONDS,
        "keepalive": max(1, int(options.deadlines.idle)),
        "control_socket_disable": True,
        "proc_name": options.program,
        "accesslog": None,
        "certfile": str(options.tls.certificate_file) if options.tls else None,
        "limit_request_line": 8190,
        "limit_request_fields": 2000,
        "http_parser": "python",
        # A proxy is only trusted by its certificate.
        "forwarded_allow_ips": "",
        "forwarder_headers": "",
        "secure_scheme_headers": {},
    }


def connections_within(limits: ConnectionLimits, descriptors: int) -> ConnectionLimits:
    """Return the limits, lowered so that SPARE_DESCRIPTORS or half of the descriptors remain for other uses."""
    most = min(limits.most, max(descriptors - SPARE_DESCRIPTORS, descriptors // 2))
    if most == limits.most:
        return limits
    _log.warning(
        "the limit on connections is lowered: raise the hard limit of open files (ulimit -Hn)",
        extra=fields(connections=most, descriptors=descriptors),
    )
    return replace(limits, most=most, most_unfinished=min(limits.most_unfinished, max(1, most // 2)))


def _raise_descriptor_limit(wanted: int) -> int:
    """Raise the limit on open file descriptors as far as wanted and allowed; return the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        hard = max(soft, wanted)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return wanted if soft == resource.RLIM_INFINITY else soft
