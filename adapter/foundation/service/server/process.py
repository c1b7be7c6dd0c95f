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
import signal
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias

from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter
from gunicorn.errors import HaltServer
from gunicorn.glogging import Logger
from gunicorn.sock import TCP6Socket, TCPSocket

from adapter.foundation.files.kept_contents import KeptContents
from adapter.foundation.service.flags.parsing import UsageError, exit_for_usage
from adapter.foundation.service.runtime.errors import StartError
from adapter.foundation.service.runtime.garbage_collector import settle_collector
from adapter.foundation.service.runtime.heap import settle_heap
from adapter.foundation.service.runtime.logs import fields
from adapter.foundation.service.server.addresses import Address, address_of, listening_socket
from adapter.foundation.service.server.context import WorkerContext
from adapter.foundation.service.server.tls import ServerTls
from adapter.foundation.service.server.worker_exits import WorkerExits
from adapter.foundation.time.backoff import Backoff

if TYPE_CHECKING:
    import socket

    from gunicorn.config import Config

    from adapter.foundation.service.server.server_settings import ConnectionLimits, ServerOptions

_log = logging.getLogger(__name__)

WsgiApp: TypeAlias = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
MakeWorker: TypeAlias = Callable[[WorkerContext], WsgiApp]

LOST_WORKER_SECONDS = 60
"""A worker whose poller thread has not reported for this long is killed and restarted."""
LATE_SECONDS = 10.0
"""An arbiter that has not looked at its worker for this long stood still itself, since it looks once a second."""
STEADY_SECONDS = 60.0
"""A worker that lived this long is replaced at once, and any other one after a wait that doubles each time."""
LONGEST_RESTART_WAIT = 30.0
SWITCH_SECONDS = 0.0005
"""Python's switch interval: how soon a waiting thread gets the interpreter from one that computes. With the default of
5 ms, the 99th percentile of requests doubled while 250,000 values were refreshed."""
_EXIT_STATUSES: Final = {Arbiter.WORKER_BOOT_ERROR: 1, Arbiter.APP_LOAD_ERROR: 2}
"""The exit status of the process for that of a worker that could not start. Gunicorn ends with such a worker."""
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
    try:
        listener = listening_socket(options.address)
        plain = listening_socket(options.plain_address) if options.plain_address else None
        tls = ServerTls(options.tls) if options.tls else None
    except UsageError as e:
        exit_for_usage(options.program, str(e))
    except StartError as e:
        print(f"{options.program}: {e}", file=sys.stderr)  # noqa: T201 - the one line on stderr
        sys.exit(1)
    # These variables, left over from another gunicorn's upgrade in place, would make this one use foreign sockets.
    for name in ("GUNICORN_PID", "GUNICORN_FD"):
        os.environ.pop(name, None)
    application = ServerApplication(options, make_worker, address_of(listener), plain, tls)
    ServerArbiter(application, listener).run()
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
        """Make the worker's context and application; exit the process with one line if that fails."""
        self.context = WorkerContext(self.options, self._address, self._plain, self._kept)
        self.exits.expose(self.context.registry, self.options.metrics_prefix)
        if self.tls is not None:
            self.tls.on_reload = self.context.tls_reloaded
        try:
            application = self._make_worker(self.context)
        except UsageError as e:
            self._refuse(str(e), Arbiter.APP_LOAD_ERROR)
        except StartError as e:
            self._refuse(str(e))
        except Exception as e:  # noqa: BLE001 - whatever it is, the process cannot serve: said in one line, and the end
            _log.debug("the start failed", exc_info=e)
            self._refuse(f"cannot start: {type(e).__name__}: {e}")
        settle_collector()
        return application

    def _refuse(self, message: str, status: int = Arbiter.WORKER_BOOT_ERROR) -> NoReturn:
        # One write, because the thread that writes the log must not come between the line and its end.
        sys.stderr.write(f"{self.options.program}: {message}\n")
        sys.stderr.flush()
        sys.exit(status)


class ServerLogger(Logger):
    """Sends gunicorn's messages through the process's logs; there is no access log."""

    def setup(self, cfg: Config) -> None:
        """Do nothing, because `logs.configure_logs` sets handlers and levels."""
        self.cfg = cfg
        self._access_log_enabled = False
        self.error_log.propagate = True

    def error(self, msg: str, *args: object, **kwargs: Any) -> None:  # noqa: ANN401 - handed through to logging
        """Log an error, unless it says that a worker could not start, since the worker has printed the reason."""
        if not args or args[-1] not in _EXIT_STATUSES:
            self.error_log.error(msg, *args, **kwargs)


class ServerArbiter(Arbiter):
    """Keeps one worker alive, and shuts it down in order."""

    def __init__(self, app: ServerApplication, listener: socket.socket) -> None:
        super().__init__(app)
        self._options = app.options
        self._exits = app.exits
        kind = TCP6Socket if listener.family.name == "AF_INET6" else TCPSocket
        self.LISTENERS = [kind(listener.getsockname(), self.cfg, self.log, fd=listener.detach())]
        self._end_signal = signal.SIGTERM
        self._spawned_at = 0.0
        self._spawn_after = 0.0
        self._looked_at = time.monotonic()
        self._judges_from = 0.0
        self._restarts = Backoff(1.0, LONGEST_RESTART_WAIT, jitter_ratio=0.0)

    def init_signals(self) -> None:
        """Handle the signals that end the process, and a worker's exit. SIGHUP is ignored: files are polled."""
        super().init_signals()
        for name in ("HUP", "TTIN", "TTOU", "USR1", "USR2", "WINCH"):
            signal.signal(getattr(signal, f"SIG{name}"), signal.SIG_IGN)

    def handle_int(self) -> NoReturn:
        """SIGINT: shut down without the delay, since a person is waiting."""
        self._end_signal = signal.SIGUSR1
        raise StopIteration

    def spawn_workers(self) -> None:
        """Start the worker, unless the last one ended soon after its start."""
        now = time.monotonic()
        if now >= self._spawn_after:
            self._spawned_at = now
            super().spawn_workers()

    def murder_workers(self) -> None:
        """Kill a worker that has not reported for too long.

        If everything stood still, as in a container that was paused, the worker first gets time to report.
        """
        now = time.monotonic()
        if now - self._looked_at >= LATE_SECONDS:
            self._judges_from = now + LATE_SECONDS
        self._looked_at = now
        if now >= self._judges_from:
            super().murder_workers()

    def reap_workers(self) -> None:
        """Handle the end of a worker; raises HaltServer if the worker could not start."""
        before = len(self.WORKERS)
        self._exits.note(self.WORKERS)
        super().reap_workers()
        if len(self.WORKERS) < before:
            now = time.monotonic()
            wait = restart_wait(self._restarts, now - self._spawned_at)
            self._spawn_after = now + wait
            if self.LISTENERS:
                _log.warning("the worker died and will be restarted", extra=fields(after_seconds=wait))

    def stop(self, graceful: bool = True) -> None:  # noqa: FBT001, FBT002 - gunicorn's signature
        """Shut down the worker in order; each further signal makes it skip a phase."""
        for listener in self.LISTENERS:
            listener.close()
        self.LISTENERS = []
        self.kill_workers(self._end_signal if graceful else signal.SIGQUIT)
        limit = time.monotonic() + self._options.end_seconds
        try:
            while self.WORKERS and time.monotonic() < limit:
                self._wait_for_end()
            if self.WORKERS:
                self.kill_workers(signal.SIGKILL)
                self.wait_for_signals(timeout=1.0)
                self.reap_workers()
        except HaltServer as e:
            _log.debug("the worker ended before it had started: %s", e)

    def halt(self, reason: str | None = None, exit_status: int = 0) -> NoReturn:
        """Exit; if the worker could not start, it has printed the reason."""
        _log.debug("the arbiter exits", extra=fields(reason=reason))
        self.stop()
        sys.exit(_EXIT_STATUSES.get(exit_status, exit_status))

    def _wait_for_end(self) -> None:
        signals = self.wait_for_signals(timeout=1.0)
        self.reap_workers()
        if signal.SIGQUIT in signals:
            self.kill_workers(signal.SIGQUIT)
        elif {signal.SIGTERM, signal.SIGINT}.intersection(signals):
            self.kill_workers(signal.SIGUSR1)
        else:
            # Send the signal again for a worker that was being forked; other workers ignore the repetition.
            self.kill_workers(signal.SIGTERM)


def restart_wait(restarts: Backoff, lived_seconds: float) -> float:
    """Return the seconds to wait before the worker is restarted, given its lifetime and the earlier restarts."""
    if lived_seconds >= STEADY_SECONDS:
        restarts.reset()
        return 0.0
    return restarts.delay()


def _settings(options: ServerOptions) -> dict[str, object]:
    memory = Path("/dev/shm")  # noqa: S108 - gunicorn makes its file there safely; a disk could stall the sign of life
    return {
        "worker_class": "adapter.foundation.service.server.worker.TidewatchWorker",
        "logger_class": ServerLogger,
        "workers": 1,
        "threads": options.threads,
        "worker_connections": options.connections.most + options.threads,
        "timeout": LOST_WORKER_SECONDS,
        "keepalive": max(1, int(options.deadlines.idle)),
        "worker_tmp_dir": str(memory) if os.access(memory, os.W_OK) else None,
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
