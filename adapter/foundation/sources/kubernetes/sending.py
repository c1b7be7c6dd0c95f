"""One request with one deadline: tracks whether it may be sent and was sent, and limits the time of its reads.

A timeout of urllib3 applies to a single read, so an API server that answers one byte a second would block its caller
for hours, and the caller would not know whether a write was sent at all. So the connections of this module get the time
limit of each step from the request (`Sending`), and ask it for permission right before the first byte is sent.

A write that must not be sent twice has `once` set. When such a request is abandoned, its caller learns whether it was
sent; if it was not, it never will be.
"""

from __future__ import annotations

import socket
import struct
import threading
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from adapter.foundation.sources.deadlines import DeadlinePassedError, FinalResponse, TimedReads, TimedResponse
from adapter.foundation.sources.kubernetes.errors import (
    DeadlineError,
    FencedError,
    KubernetesError,
    NoThreadError,
    UnknownOutcomeError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from urllib3 import HTTPConnectionPool, PoolManager
    from urllib3.connection import HTTPConnection

    from adapter.foundation.sources.deadlines import Deadline

    _Base = HTTPConnection
else:
    _Base = object

T = TypeVar("T")

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


def _always(_seconds: float) -> bool:
    return True


class Sending:
    """The state of one request. Thread-safe."""

    def __init__(
        self,
        what: str,
        deadline: Deadline,
        *,
        once: bool = False,
        permit: Callable[[float], bool] = _always,
        server_seconds: float = 0.0,
    ) -> None:
        """Begin a request, which errors call `what`, and which is never sent twice if `once` is set.

        `permit` is called right before the request is sent, with the number of seconds after which the request can no
        longer take effect: the time until the deadline, at which the connection is closed, plus `server_seconds`, for
        which a server may still process a request that it received at the last moment.
        """
        self.what = what
        self.once = once
        self._deadline = deadline
        self._permit = permit
        self._server_seconds = server_seconds
        self._lock = threading.Lock()
        self._sent = False
        self._given_up = False

    @property
    def is_unknown(self) -> bool:
        """Whether a write that must not be sent twice was sent, so that only its answer shows the outcome."""
        return self.once and self._sent

    def seconds_left(self, most: float | None = None) -> float:
        """Return the seconds left for the next step: more than 0, and no more than `most`. Raises DeadlineError."""
        try:
            left = self._deadline.remaining()
        except DeadlinePassedError:
            raise self.overdue() from None
        return left if most is None else min(left, most)

    def begin(self) -> None:
        """Record that the request is about to be sent. Raises KubernetesError if it must not be."""
        with self._lock:
            if self._given_up or self.is_unknown:
                raise self.overdue()
            seconds = self.seconds_left() + self._server_seconds
            if not self._permit(seconds):
                message = f"{self.what}: not sent: the permission to write does not last for {seconds:.3g} s more"
                raise FencedError(message)
            self._sent = True

    def give_up(self) -> KubernetesError:
        """Ensure that the request is not sent from now on; return the error that states whether it was."""
        with self._lock:
            self._given_up = True
            return self.overdue()

    def overdue(self) -> KubernetesError:
        """Return the error for a request whose deadline has passed."""
        seconds = f"{self._deadline.seconds:.3g} s"
        if self.is_unknown:
            return UnknownOutcomeError(
                f"{self.what}: sent, but no answer in time ({seconds}): it may have taken effect"
            )
        if self._sent:
            return DeadlineError(f"{self.what}: no answer in time ({seconds})")
        return DeadlineError(f"{self.what}: could not be sent within {seconds}")

    @contextmanager
    def under_way(self) -> Iterator[None]:
        """Apply the limits of this request to the connections that this thread uses."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    def in_time(self, work: Callable[[], T]) -> T:
        """Run the work in a thread of its own, and return its result or raise its error, by the deadline at the latest.

        This limits steps to which no socket timeout applies, such as DNS and programs that create tokens.
        Raises KubernetesError; the work was not begun if that is NoThreadError.
        """
        outcome: Future[T] = Future()
        try:
            threading.Thread(target=_into, args=(outcome, work), name=self.what, daemon=True).start()
        except RuntimeError as error:
            message = f"{self.what}: not sent: {error}: raise the limit on the processes of the pod or node"
            raise NoThreadError(message) from error
        try:
            seconds = self.seconds_left()
        except KubernetesError:
            raise self.give_up() from None
        try:
            return outcome.result(seconds)
        except TimeoutError:
            raise self.give_up() from None


_current: ContextVar[Sending | None] = ContextVar("sending", default=None)


def _into(outcome: Future[T], work: Callable[[], T]) -> None:
    try:
        outcome.set_result(work())
    except BaseException as error:  # noqa: BLE001 - raised where the outcome is awaited
        outcome.set_exception(error)


def keep_to_deadlines(manager: PoolManager) -> None:
    """Apply the limits of the current `Sending`, if any, to the connections that the manager creates from now on."""
    manager.pool_classes_by_scheme = {
        scheme: _kept_pool(pool) for scheme, pool in manager.pool_classes_by_scheme.items()
    }


def _kept_pool(pool: type[HTTPConnectionPool]) -> type[HTTPConnectionPool]:
    return type(pool.__name__, (pool,), {"ConnectionCls": _deadline_class(pool.ConnectionCls)})


def _deadline_class(connection: type) -> type:
    return type(connection.__name__, (_Kept, connection), {})


class _Kept(_Base):
    """A connection of urllib3 that observes the deadline of a `Sending`; other requests are not affected."""

    _unanswered = False

    def connect(self) -> None:
        sending = _current.get()
        if sending is not None:
            self.timeout = sending.seconds_left(self.timeout)
        super().connect()

    def request(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - handed through
        sending = _current.get()
        if sending is not None:
            if self.is_closed:
                self.connect()
            sending.begin()
            self._unanswered = True
            self.timeout = sending.seconds_left(self.timeout)
        super().request(*arguments, **options)

    def getresponse(self) -> Any:  # noqa: ANN401 - urllib3's class, which is imported with the package alone
        sending = _current.get()
        timed = None if sending is None else partial(TimedResponse, reads=TimedReads(sending.seconds_left))
        self.response_class = timed or FinalResponse  # type: ignore[assignment]  # any callable
        response = super().getresponse()
        self._unanswered = False
        return response

    def close(self) -> None:
        # The kernel would retry for minutes to send unacknowledged data to an unreachable server; a reset drops it.
        if self._unanswered and self.sock is not None:
            self._unanswered = False
            with suppress(OSError):
                self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        super().close()
