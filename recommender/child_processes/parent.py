"""Runs heavy work in a separate process, such as a model fit that takes seconds or gigabytes, or that may crash.

    children = Children(registry, "tidewatch_recommender", most=1)
    context.on_stop(children.close)
    forecast = children.run("fit", fit_model, (history,), ChildLimits(seconds=60.0))

The child is spawned, not forked, because a fork would inherit locks of threads that do not exist in the child. It has
its own process group, and computes on one thread at a low priority with a limited address space. When its time is over
or this process shuts down, it is killed together with everything that it has started; if this process dies, the kernel
kills the child itself.
"""

from __future__ import annotations

import os
import pickle
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge

from adapter.foundation.time.thread_limit import ThreadLimit
from recommender.child_processes import child as child_process
from recommender.child_processes.child_errors import (
    CHILD_ERRORS,
    ChildClosedError,
    ChildCrashError,
    ChildDeadlineError,
    ChildError,
    ChildResultError,
)

T = TypeVar("T")

_ONE_THREAD = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)
"""Environment variables for the number of threads, which linear algebra libraries read when they are loaded."""
_PIECE_BYTES = 1 << 16
_LAST_WORDS_BYTES = 2000
_REAP_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildLimits:
    """Limits on what one child may use."""

    seconds: float
    """The time limit from the call to the result, which includes the wait in the queue, the imports, and the work."""
    nice: int = 5
    """The increment to the niceness of this process, which leaves the child a third of this process's weight.

    That is little enough for decisions, and enough for a child beside processes that never rest: with ten of them on
    its core it gets 3 % of the core; with an increment of 10 it would get 1 %.
    """
    address_space_bytes: int = 2 << 30
    """The limit RLIMIT_AS. Libraries reserve far more than they use: numpy alone reserves about 300 MB."""
    result_bytes: int = 16 << 20
    """The maximum size of the pickled result."""


class Children:
    """Runs functions in child processes, with a limit on how many run at once. Thread-safe."""

    def __init__(self, registry: CollectorRegistry, prefix: str, *, most: int) -> None:
        """Register `PREFIX_child_runs_total`, `PREFIX_child_seconds_total` and `PREFIX_children`.

        At most `most` functions run at the same time; further calls wait.
        """
        self._limit = ThreadLimit(most)
        self._lock = threading.Lock()
        self._running: set[int] = set()
        self._is_closed = False
        self._runs = Counter(
            f"{prefix}_child_runs_total",
            "Calls of child processes, by outcome: ok, deadline, memory, crash, raised, result, closed, error.",
            ("name", "outcome"),
            registry=registry,
        )
        self._seconds = Counter(
            f"{prefix}_child_seconds_total",
            "Time from the call of a function in a child process to its outcome, with the wait for a free place.",
            ("name",),
            registry=registry,
        )
        Gauge(f"{prefix}_children", "Child processes that are running.", registry=registry).set_function(
            lambda: len(self._running)
        )

    def run(self, name: str, function: Callable[..., T], arguments: tuple[Any, ...], limits: ChildLimits) -> T:
        """Return the result of `function(*arguments)`, which is computed in a child.

        Raises ChildError, or ChildClosedError if this process is shutting down.

        Function, arguments and result are pickled, so the function must be at the top level of a module that the child
        can import. `name` is the label of the function in metrics.
        """
        request = pickle.dumps((function, arguments))
        began = time.monotonic()
        outcome = "error"
        try:
            result: T = self._result(name, request, limits, began + limits.seconds)
            outcome = "ok"
        except (ChildError, ChildClosedError) as error:
            outcome = error.outcome
            raise
        finally:
            self._runs.labels(name, outcome).inc()
            self._seconds.labels(name).inc(time.monotonic() - began)
        return result

    def close(self) -> None:
        """Kill the running children, and refuse to start more."""
        with self._lock:
            self._is_closed = True
            for group in self._running:
                _kill(group)

    def _result(self, name: str, request: bytes, limits: ChildLimits, end: float) -> Any:  # noqa: ANN401 - any result
        crowded = f"{name}: not started within {limits.seconds:g} s: other children are still running"
        with (
            self._limit.entered(end - time.monotonic(), lambda: ChildDeadlineError(crowded)),
            self._started_child(name, limits) as child,
        ):
            exchange = _Exchange(child, request, limits.result_bytes)
            in_time = exchange.until(end)
            _kill(child.pid)
            try:
                status = child.wait(_REAP_SECONDS)
            except subprocess.TimeoutExpired:
                # On a machine that is busy, or waits for its disk, the end of a process takes its time.
                self._check_open(name)
                late = f"{name}: killed after {limits.seconds:g} s, and not ended {_REAP_SECONDS:g} s later"
                raise ChildDeadlineError(late) from None
        if exchange.answer and status == 0:
            return _value(name, exchange.answer)
        self._check_open(name)
        if not in_time:
            raise ChildDeadlineError(f"{name}: killed after {limits.seconds:g} s")
        raise ChildCrashError(f"{name}: the child ended with {_status_name(status)}: {exchange.last_words}", status)

    def _check_open(self, name: str) -> None:
        """Raise ChildClosedError if the child was killed at shutdown."""
        if self._is_closed:
            raise ChildClosedError(f"{name}: killed because this process is shutting down")

    @contextmanager
    def _started_child(self, name: str, limits: ChildLimits) -> Iterator[subprocess.Popen[bytes]]:
        with ExitStack() as stack:
            with self._lock:
                if self._is_closed:
                    raise ChildClosedError(f"{name}: not started because this process is shutting down")
                child = stack.enter_context(_spawned_child(limits))
                self._running.add(child.pid)
            try:
                yield child
            finally:
                with self._lock:
                    self._running.discard(child.pid)


@contextmanager
def _spawned_child(limits: ChildLimits) -> Iterator[subprocess.Popen[bytes]]:
    numbers = (os.getpid(), limits.nice, limits.address_space_bytes, limits.result_bytes)
    child = subprocess.Popen(  # noqa: S603 - this interpreter with a module of ours
        [sys.executable, "-P", "-m", child_process.__name__, *map(str, numbers)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ
        | dict.fromkeys(_ONE_THREAD, "1")
        | {"PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path)},
        process_group=0,
    )
    pipes = (child.stdin, child.stdout, child.stderr)
    try:
        yield child
    finally:
        if child.returncode is None:
            _kill(child.pid)
            with suppress(subprocess.TimeoutExpired):
                child.wait(_REAP_SECONDS)
        for pipe in pipes:
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


class _Exchange:
    """The exchange of one request and one response with a child."""

    def __init__(self, child: subprocess.Popen[bytes], request: bytes, result_bytes: int) -> None:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        self.answer = bytearray()
        self._most = result_bytes + _PIECE_BYTES
        self._words = bytearray()
        self._request = memoryview(request)
        self._group = child.pid
        self._selector = selectors.DefaultSelector()
        self._end = os.pidfd_open(child.pid)
        self._selector.register(self._end, selectors.EVENT_READ, self._on_exit)
        self._take(child.stdin, selectors.EVENT_WRITE, self._write)
        self._take(child.stdout, selectors.EVENT_READ, self._read_answer)
        self._take(child.stderr, selectors.EVENT_READ, self._read_words)

    @property
    def last_words(self) -> str:
        """Return the last 2000 bytes that the child wrote to stderr, as one line, or the text `it wrote nothing`."""
        return " ".join(self._words.decode(errors="replace").split()) or "it wrote nothing"

    def until(self, end: float) -> bool:
        """Exchange data until the child has exited and its pipes are closed.

        Return whether that happened before `end`, in seconds of the monotonic clock.
        """
        try:
            while self._selector.get_map():
                left = end - time.monotonic()
                if left <= 0:
                    return False
                for key, _ in self._selector.select(left):
                    if not key.data(key.fd):
                        self._selector.unregister(key.fileobj)
                        if key.data == self._write:
                            # The child reads until the end of its input.
                            key.fileobj.close()  # type: ignore[union-attr]  # a file, not a number
            return True
        finally:
            self._selector.close()
            os.close(self._end)

    def _take(self, pipe: IO[bytes], event: int, advance: Callable[[int], bool]) -> None:
        os.set_blocking(pipe.fileno(), False)
        self._selector.register(pipe, event, advance)

    def _on_exit(self, _descriptor: int) -> bool:
        # Processes that the child has started hold its pipes open. Its process ID stays valid until it is reaped.
        _kill(self._group)
        return False

    def _write(self, descriptor: int) -> bool:
        try:
            written = os.write(descriptor, self._request[:_PIECE_BYTES])
        except BrokenPipeError:
            return False
        self._request = self._request[written:]
        return len(self._request) > 0

    def _read_answer(self, descriptor: int) -> bool:
        piece = os.read(descriptor, _PIECE_BYTES)
        self.answer += piece
        return bool(piece) and len(self.answer) <= self._most

    def _read_words(self, descriptor: int) -> bool:
        piece = os.read(descriptor, _PIECE_BYTES)
        self._words += piece
        del self._words[:-_LAST_WORDS_BYTES]
        return bool(piece)


def _value(name: str, answer: bytearray) -> Any:  # noqa: ANN401 - any result
    try:
        kind, value = pickle.loads(answer)  # noqa: S301 - from our own child, by a pipe that nobody else has
    except Exception as error:
        # Unpickling can raise anything, because classes define it.
        raise ChildResultError(f"{name}: the result cannot be read: {type(error).__name__}: {error}") from error
    if kind != child_process.RETURNED:
        raise CHILD_ERRORS[kind](f"{name}: {kind}{': ' if value else ''}{value}")
    return value


def _status_name(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"


def _kill(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
