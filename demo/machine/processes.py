"""Child processes that never outlive the program that started them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

# Runs in the child before the program itself: asks the kernel to kill this process when its parent dies, then becomes
# the program (the request survives exec). A small launcher instead of Popen's preexec_fn, which may deadlock in a
# process with threads.
_LAUNCHER = """
import ctypes, os, signal, sys
ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL, 0, 0, 0)
if os.getppid() != int(sys.argv[1]):
    sys.exit("the parent has ended meanwhile")
try:
    os.execvp(sys.argv[2], sys.argv[2:])
except OSError as error:
    sys.exit(f"{sys.argv[2]}: {error.strerror}")
"""

_LOG_LINES_SHOWN = 15
_STANDSTILL_SECONDS = 5.0


class ProcessFailedError(Exception):
    """A child ended or did not become ready; the message holds the last lines of its log."""


class StartedProcess(Protocol):
    """The interface that a started process must have; `subprocess.Popen` has it."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def send_signal(self, _signal: int, /) -> None: ...


class ManagedProcess:
    """A running child with its own process group; use it as a context manager.

    The kernel kills it when the *thread* that started it ends, so start it from the main thread or from one that lives
    as long as the child.
    """

    def __init__(self, name: str, process: StartedProcess, log_path: Path) -> None:
        self.name = name
        self.log_path = log_path
        self._process = process

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    @property
    def return_code(self) -> int | None:
        """The exit code: None while the process runs, and minus the signal's number if a signal ended it."""
        return self._process.poll()

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the process itself, not to its group."""
        self._process.send_signal(number)

    def pause(self) -> None:
        """Stop the whole group as a debugger would: its connections stay open, but no process answers.

        Returns once the process stands still: a thread on another processor may run on for a moment.
        """
        os.killpg(self.pid, signal.SIGSTOP)
        until = time.monotonic() + _STANDSTILL_SECONDS
        while not self._stands_still() and time.monotonic() < until:
            time.sleep(0.001)

    def _stands_still(self) -> bool:
        try:
            states = [(thread / "stat").read_text() for thread in Path(f"/proc/{self.pid}/task").iterdir()]
        except OSError:
            # A thread ended while it was inspected.
            return False
        return all(state.rpartition(") ")[2][:1] in "TtZ" for state in states)

    def resume(self) -> None:
        os.killpg(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        """End the whole group at once, as a crash or the kernel's memory killer would."""
        self._signal_group(signal.SIGKILL)
        self._process.wait()

    def stop(self, timeout_seconds: float = 10.0) -> int:
        """Ask the whole group to end, kill what is left after the time, and return the exit code. May be repeated."""
        if self.is_running:
            self._signal_group(signal.SIGTERM)
            # A paused process cannot act on the request.
            self._signal_group(signal.SIGCONT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout_seconds)
        self._signal_group(signal.SIGKILL)
        return self._process.wait()

    def wait(self, timeout_seconds: float) -> int:
        """Wait for the process to end by itself; raises ProcessFailedError if it does not."""
        try:
            return self._process.wait(timeout_seconds)
        except subprocess.TimeoutExpired as e:
            raise ProcessFailedError(self._told(f"still runs after {timeout_seconds:g} s")) from e

    def wait_until(
        self, ready: Callable[[], bool], timeout_seconds: float, *, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        """Call `ready()` every 20 ms until it is true; raises ProcessFailedError if the child ends or time is up."""
        until = time.monotonic() + timeout_seconds
        while not ready():
            if not self.is_running:
                raise ProcessFailedError(self._told(f"ended with code {self.return_code}"))
            if time.monotonic() > until:
                raise ProcessFailedError(self._told(f"is not ready after {timeout_seconds:g} s"))
            sleep(0.02)

    def log_tail(self, lines: int = _LOG_LINES_SHOWN) -> str:
        """Return the last lines that the process wrote."""
        return "\n".join(self.log_path.read_text(errors="replace").splitlines()[-lines:])

    def _signal_group(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def _told(self, what: str) -> str:
        return f"{self.name} (process {self.pid}) {what}; the end of {self.log_path}:\n{self.log_tail()}"


def start(
    command: Sequence[str],
    *,
    log_path: Path,
    name: str | None = None,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> ManagedProcess:
    """Start a program whose output goes to the end of `log_path`. `environment` is added to this process's own."""
    with log_path.open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(os.getpid()), *command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
            cwd=folder,
            process_group=0,
        )
    return ManagedProcess(name or command[0], process, log_path)
