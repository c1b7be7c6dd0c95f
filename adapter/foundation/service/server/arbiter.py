"""gunicorn's arbiter, which keeps one worker alive and shuts it down in order, and its log."""

# gunicorn has no types.
# mypy: allow-untyped-calls

from __future__ import annotations

import errno
import logging
import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Any, Final, NoReturn

import gunicorn.workers.base
from gunicorn.arbiter import Arbiter
from gunicorn.errors import HaltServer
from gunicorn.glogging import Logger
from gunicorn.sock import TCP6Socket, TCPSocket
from gunicorn.workers.workertmp import WorkerTmp

from adapter.foundation.service.runtime.logs import fields
from adapter.foundation.service.runtime.printing import print_reason
from adapter.foundation.time.backoff import Backoff

if TYPE_CHECKING:
    import socket

    from gunicorn.app.base import BaseApplication
    from gunicorn.config import Config

    from adapter.foundation.service.server.worker_exits import WorkerExits

_log = logging.getLogger(__name__)

LATE_SECONDS = 10.0
"""An arbiter that has not looked at its worker for this long stood still itself, since it looks once a second."""
STEADY_SECONDS = 60.0
"""A worker that lived this long is replaced at once, and any other one after a wait that doubles each time."""
LONGEST_RESTART_WAIT = 30.0
LACKS_THREADS: Final = 1
"""The exit status of a replacement that lacks threads, with which the arbiter does not end, but makes another one."""
_LACKS: Final = frozenset({errno.EAGAIN, errno.ENOMEM})
_EXIT_STATUSES: Final = {Arbiter.WORKER_BOOT_ERROR: 1, Arbiter.APP_LOAD_ERROR: 2}
"""The exit status of the process for that of a worker that could not start. Gunicorn ends with such a worker."""


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


class SignOfLife(WorkerTmp):
    """The file whose time a worker changes to show that it is alive.

    It is anonymous memory: every folder may be read-only, and on a disk, a change of the time could take long.
    """

    def __init__(self, _cfg: Config) -> None:
        self._tmp = os.fdopen(os.memfd_create("sign-of-life", os.MFD_CLOEXEC), "w+b", 0)


gunicorn.workers.base.WorkerTmp = SignOfLife  # type: ignore[attr-defined] # where its workers look for the class


class ServerArbiter(Arbiter):
    """Keeps one worker alive, and shuts it down in order."""

    def __init__(self, app: BaseApplication, listener: socket.socket, exits: WorkerExits, end_seconds: float) -> None:
        """Take the open port; a worker that has not ended `end_seconds` after the stop is killed."""
        super().__init__(app)
        self._exits = exits
        self._end_seconds = end_seconds
        kind = TCP6Socket if listener.family.name == "AF_INET6" else TCPSocket
        self.LISTENERS = [kind(listener.getsockname(), self.cfg, self.log, fd=listener.detach())]
        self._end_signal = signal.SIGTERM
        self._spawned_at = 0.0
        self._spawn_after = 0.0
        self._looked_at = time.monotonic()
        self._judges_from = 0.0
        self._restarts = Backoff(1.0, LONGEST_RESTART_WAIT, jitter_ratio=0.0)

    def init_signals(self) -> None:
        """Handle the signals that end the process, and a worker's exit.

        SIGHUP is ignored, since files are polled, unless the process runs in a terminal, whose end it then means.
        """
        # nohup lets a process outlive its terminal, by ignoring the signal.
        ends_with_terminal = os.isatty(0) and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
        super().init_signals()
        for name in ("TTIN", "TTOU", "USR1", "USR2", "WINCH", *(() if ends_with_terminal else ("HUP",))):
            signal.signal(getattr(signal, f"SIG{name}"), signal.SIG_IGN)

    def handle_hup(self) -> NoReturn:
        """SIGHUP: shut down without the delay, since the terminal is closed."""
        self.handle_int()

    def handle_int(self) -> NoReturn:
        """SIGINT: shut down without the delay, since a person is waiting."""
        self._end_signal = signal.SIGUSR1
        raise StopIteration

    def spawn_workers(self) -> None:
        """Start the worker, unless the last one ended, or could not be forked, a short time ago.

        Raises HaltServer if the first worker cannot be forked.
        """
        now = time.monotonic()
        if now < self._spawn_after:
            return
        self._spawned_at = now
        try:
            super().spawn_workers()
        except OSError as error:
            refusal = str(error.strerror)
            reason = f"cannot start a worker: {refusal}"
            if error.errno in _LACKS:
                reason = beyond_limit("a worker", refusal)
            if not self._exits.any_ended:
                print_reason(self.cfg.proc_name, reason)
                raise HaltServer(reason, self.WORKER_BOOT_ERROR) from error
            wait = self._restarts.delay()
            self._spawn_after = now + wait
            _log.error("%s", reason, extra=fields(again_after_seconds=wait))

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
        limit = time.monotonic() + self._end_seconds
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


def beyond_limit(what: str, refusal: str) -> str:
    """Return why `what` cannot be started if the system refuses a process or a thread, and the repair."""
    return f"cannot start {what}: {refusal}: raise the limit on the processes of the pod or node, or its memory"


def restart_wait(restarts: Backoff, lived_seconds: float) -> float:
    """Return the seconds to wait before the worker is restarted, given its lifetime and the earlier restarts."""
    if lived_seconds >= STEADY_SECONDS:
        restarts.reset()
        return 0.0
    return restarts.delay()
