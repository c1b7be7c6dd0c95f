"""gunicorn's threaded worker, with clients that cannot hold a thread before they have sent a whole request head.

In the stock worker a handshake and a head are read by the request threads: as many silent clients as there are threads,
and nobody is served. Here the poller thread reads them for all connections (`connections`), each stage under a total
deadline; the threads get whole heads. When too many connections are open, the oldest unfinished ones go first, then
those that have been idle for longest: whoever connects anew is a better guess at a caller than whoever says nothing.

Written against gunicorn 27.0.1, whose request handling, thread pool and signals are used as they are.
"""

# gunicorn has no types.
# mypy: allow-untyped-calls

from __future__ import annotations

import logging
import os
import selectors
import signal
import ssl
import threading
import time
from collections import Counter
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from gunicorn.http import errors as http_errors
from gunicorn.workers.gthread import ThreadWorker

from adapter.service.addresses import NO_ROOM
from adapter.service.connections import Connection, Stage
from adapter.service.ending import Ending, Phase
from adapter.service.waiting import WaitingRoom

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterable
    from concurrent.futures import Future, ThreadPoolExecutor

    from adapter.service.connections import HeadRequest
    from adapter.service.process import ServerApplication

_log = logging.getLogger(__name__)

HANDSHAKES_PER_TURN = 4
"""Handshakes advanced between two looks at everybody else: about 3 ms of arithmetic."""
ACCEPTS_PER_TURN = 16
LONGEST_WAIT = 1.0
"""Seconds between two signs of life to the arbiter."""
ACCEPT_PAUSE = 0.2
"""Seconds without accepting after the file descriptors have run out with no connection to give up."""

_STATUS_OF: dict[type[Exception], tuple[int, str]] = {
    http_errors.LimitRequestLine: (414, "URI Too Long"),
    http_errors.LimitRequestHeaders: (431, "Request Header Fields Too Large"),
    http_errors.ExpectationFailed: (417, "Expectation Failed"),
    http_errors.UnsupportedTransferCoding: (501, "Not Implemented"),
}


class TidewatchWorker(ThreadWorker):
    """Polls all waiting connections in the main thread; see the module."""

    app: ServerApplication
    poller: selectors.BaseSelector
    tpool: ThreadPoolExecutor

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - handed through to gunicorn
        super().__init__(*args, **kwargs)
        options = self.app.options
        self._limits = options.connections
        self._deadlines = options.deadlines
        self._tls = self.app.tls
        self._ending = Ending(delay_seconds=options.shutdown_delay_seconds, drain_seconds=options.drain_seconds)
        self._phase = Phase.SERVING
        self._in_request = 0
        self._accept_again = 0.0
        self._show_life_at = 0.0
        self._here = threading.local()
        self._room: WaitingRoom
        self.dropped: Counter[str] = Counter()
        """Connections that were cut off, by reason."""

    def init_process(self) -> None:
        """Begin as a process of its own, after the fork."""
        self.app.before_worker()
        super().init_process()

    def init_signals(self) -> None:
        """Take gunicorn's signals, but leave SIGINT to the arbiter: a terminal sends it to the whole group."""
        super().init_signals()
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def load_wsgi(self) -> None:
        """Build the application; ends the whole process if that fails."""
        super().load_wsgi()
        self.wsgi = partial(_with_connection_facts, self.wsgi, self._here)

    # In the request threads

    def handle(self, conn: Connection) -> bool:
        """Parse and serve the request whose head is buffered; returns whether the connection may be kept."""
        try:
            req = next(conn.begin_request(self.cfg, self._deadlines.body))
            if self._phase is not Phase.SERVING:
                req.force_close()
            return self.handle_request(req, conn) and conn.body_is_read()
        except (StopIteration, OSError) as e:
            _log.debug("connection ended within a request: %s", e)
        except http_errors.ParseException as e:
            conn.send_last(final_answer(*_STATUS_OF.get(type(e), (400, "Bad Request")), str(e)))
        except Exception:  # noqa: BLE001 - the edge: whatever the application raised, the thread goes on
            _log.exception("a request failed outside of the application's own error handling")
            conn.send_last(final_answer(500, "Internal Server Error", "internal error"))
        return False

    def handle_request(self, req: HeadRequest, conn: Connection) -> bool:
        """Serve one request; returns whether the answer leaves the connection open."""
        self._here.facts = {"tidewatch.headers": req.received, "tidewatch.peer_chain": conn.peer_chain}
        return bool(super().handle_request(req, conn))

    # In the poller thread

    def run(self) -> None:
        """Serve until told to end, and then in the order of `ending`."""
        self._room = WaitingRoom(self.poller, self._deadlines)
        self.poller.register(self.method_queue.fileno(), selectors.EVENT_READ, self.method_queue.run_callbacks)
        self.app.context.serving(self)
        while self._phase is not Phase.OVER and not self._is_drained():
            self._show_life()
            self.set_accept_enabled(self._may_accept())
            self._dispatch(self._room.next_expiry(LONGEST_WAIT))
            for conn in self._room.expired():
                self._expire(conn)
            if not self.is_parent_alive():
                self._ending.hurry(time.monotonic())
            self._enter(self._ending.phase(time.monotonic()))
        self._finish()

    def accept(self, listener: socket.socket) -> None:
        """Take in new connections, a bounded number at once."""
        for _ in range(ACCEPTS_PER_TURN):
            try:
                sock, client = listener.accept()
            except BlockingIOError:
                return
            except OSError as e:
                if e.errno in NO_ROOM and not self._make_room("no_file_descriptors"):
                    self._accept_again = time.monotonic() + ACCEPT_PAUSE
                return
            self._open(sock, client[:2], listener.getsockname()[:2])

    def finish_request(self, conn: Connection, fs: Future[bool]) -> None:
        """Take a connection back from the request threads."""
        self._in_request -= 1
        if fs.cancelled() or fs.exception() or not fs.result() or self._phase >= Phase.DRAINING:
            self._say_goodbye(conn)
            return
        conn.end_request()
        if conn.head_is_whole():
            self._submit_if_heard(conn)
        else:
            self._room.put(conn, Stage.HEAD if conn.head else Stage.IDLE)

    def open_connections(self) -> dict[str, int]:
        """How many connections stand in each stage."""
        waiting = {stage.name.lower(): count for stage, count in self._room.counts().items()}
        return waiting | {"request": self._in_request}

    def _show_life(self) -> None:
        """Tell the arbiter that the poller lives: seldom, for each time costs a system call and the interpreter."""
        now = time.monotonic()
        if now >= self._show_life_at:
            self.notify()
            self._show_life_at = now + LONGEST_WAIT

    def _may_accept(self) -> bool:
        return (
            self._phase < Phase.DRAINING
            and self._in_request < self._limits.most
            and self._accept_again <= time.monotonic()
        )

    def _dispatch(self, timeout: float) -> None:
        """Advance whoever has something to say; handshakes last, a few of them, the least served first."""
        handshakes = []
        for key, _ in self.poller.select(timeout):
            if not isinstance(key.data, Connection):
                key.data(key.fileobj)
            elif key.data.stage is Stage.HANDSHAKE:
                handshakes.append(key.data)
            else:
                self._advance(key.data)
        handshakes.sort(key=attrgetter("steps"))
        for conn in handshakes[:HANDSHAKES_PER_TURN]:
            self._advance(conn)

    def _advance(self, conn: Connection) -> None:
        try:
            if conn.stage is Stage.HANDSHAKE:
                self._shake_hands(conn)
            if conn.stage in {Stage.HEAD, Stage.IDLE}:
                self._read(conn)
            elif conn.stage is Stage.LINGER and not conn.discard():
                self._drop(conn)
        except ssl.SSLWantReadError:
            self._room.poll(conn, selectors.EVENT_READ)
        except ssl.SSLWantWriteError:
            self._room.poll(conn, selectors.EVENT_WRITE)
        except BlockingIOError:
            pass
        except EOFError:
            self._drop(conn)
        except OSError as e:
            self._give_up(conn, e)
        except Exception:  # noqa: BLE001 - the loop of all connections: whatever one of them causes ends that one alone
            _log.exception("a connection failed in an unforeseen way")
            self._drop(conn, "unforeseen")

    def _shake_hands(self, conn: Connection) -> None:
        """Advance the handshake. TLS is put on at the client's first byte: by then the context is the newest."""
        conn.steps += 1
        if self._tls is not None:
            if not isinstance(conn.sock, ssl.SSLSocket):
                self._room.poll(conn, 0)
                conn.sock = self._tls.wrap(conn.sock)
                self._room.poll(conn, selectors.EVENT_READ)
            conn.sock.do_handshake()
            self._tls.shaken(conn.sock)
        self._room.put(conn, Stage.HEAD)

    def _read(self, conn: Connection) -> None:
        if conn.head_is_whole() or conn.read_head():
            self._submit_if_heard(conn)
        elif conn.head_is_too_large:
            self._refuse(conn, 431, "Request Header Fields Too Large", "head_too_large")
        elif conn.stage is Stage.IDLE:
            self._room.put(conn, Stage.HEAD)

    def _submit_if_heard(self, conn: Connection) -> None:
        """Hand the request over, unless the client asks on and reads nothing: its answer would hold a thread."""
        if not conn.answers_are_read():
            self.dropped["answers_unread"] += 1
            self._say_goodbye(conn)
        elif 0 < self._limits.most_requests <= self._in_request and not conn.asks_for_health:
            self._refuse(conn, 429, "Too Many Requests", "too_many_requests")
        else:
            self._submit(conn)

    def _submit(self, conn: Connection) -> None:
        self._room.take(conn)
        conn.stage = Stage.REQUEST
        self._in_request += 1
        self.enqueue_req(conn)

    def _open(self, sock: socket.socket, client: tuple[str, int], server: tuple[str, int]) -> None:
        full = len(self._room) + self._in_request >= self._limits.most
        if full or self._room.unfinished() >= self._limits.most_unfinished:
            self._make_room("crowded_out")
        sock.settimeout(0)
        conn = Connection(sock, client, server)
        try:
            self._room.put(conn, Stage.HANDSHAKE)
        except OSError as e:
            self._drop(conn, "not_pollable", e)

    # Ends of connections

    def _make_room(self, reason: str) -> bool:
        """Close the connection that is missed the least; returns whether there was one."""
        conn = self._room.least_missed()
        if conn is not None:
            self._drop(conn, reason)
        return conn is not None

    def _expire(self, conn: Connection) -> None:
        if conn.stage is Stage.HEAD and conn.head:
            self._refuse(conn, 408, "Request Timeout", "head_timeout")
        else:
            self._drop(conn, f"{conn.stage.name.lower()}_timeout")

    def _give_up(self, conn: Connection, error: OSError) -> None:
        """End a connection that failed, so that the client can still read the alert that says why."""
        if conn.stage is not Stage.HANDSHAKE:
            self._drop(conn, "connection_lost", error)
            return
        self.dropped["handshake_failed"] += 1
        _log.debug("handshake with %s failed: %s", conn.client[0], error)
        if getattr(error, "reason", "") == "HTTP_REQUEST":
            conn.send_plain(final_answer(400, "Bad Request", "an HTTP request was sent to an HTTPS port"))
        self._say_goodbye(conn)

    def _drop(self, conn: Connection, reason: str = "", error: OSError | None = None) -> None:
        self._room.take(conn)
        if reason:
            self.dropped[reason] += 1
            _log.debug("connection of %s dropped: %s %s", conn.client[0], reason, error or "")
        if conn.stage is Stage.IDLE:
            conn.shut_down()
        conn.close()

    def _refuse(self, conn: Connection, status: int, phrase: str, reason: str) -> None:
        self.dropped[reason] += 1
        conn.send_last(final_answer(status, phrase, phrase.lower()))
        self._say_goodbye(conn)

    def _say_goodbye(self, conn: Connection) -> None:
        """Shut down for writing, and read on for a moment: closing with unread input would reset the answer away."""
        conn.shut_down()
        if conn.is_open:
            self._room.put(conn, Stage.LINGER)
        else:
            self._drop(conn)

    # The end of the process

    def handle_exit(self, _sig: int, _frame: object) -> None:
        """SIGTERM: begin the end."""
        self._ending.begin(time.monotonic())
        self._wake()

    def handle_usr1(self, _sig: int, _frame: object) -> None:
        """SIGUSR1, from the arbiter: go on with the end, or begin it without the delay."""
        self._ending.hurry(time.monotonic())
        self._wake()

    def _wake(self) -> None:
        self.method_queue.defer(_nothing)

    def _enter(self, phase: Phase) -> None:
        if phase is self._phase:
            return
        if self._phase is Phase.SERVING:
            self.app.context.stopping()
        self._phase = phase
        if phase >= Phase.DRAINING:
            self.alive = False
            self.set_accept_enabled(enabled=False)
            for listener in self.sockets:
                listener.close()
            self._dispatch(0)
            for conn in self._room.all(Stage.HANDSHAKE, Stage.IDLE):
                self._drop(conn)
            self._room.shorten(Stage.HEAD, LONGEST_WAIT)

    def _is_drained(self) -> bool:
        return self._phase is Phase.DRAINING and not self._in_request and not len(self._room)

    def _finish(self) -> None:
        for conn in self._room.all():
            self._drop(conn)
        self.tpool.shutdown(wait=False, cancel_futures=True)
        self.app.context.stop()
        if self._in_request:
            # The interpreter would wait for their threads, which are past every deadline.
            _log.warning("%d requests did not finish in time and are abandoned", self._in_request)
            logging.shutdown()
            os._exit(0)


def final_answer(status: int, phrase: str, message: str) -> bytes:
    """Return a whole HTTP response in plain text, after which the connection is closed."""
    body = f"{message}\n".encode()
    head = (
        f"HTTP/1.1 {status} {phrase}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        f"X-Content-Type-Options: nosniff\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode("latin-1") + body


def _with_connection_facts(
    application: Callable[..., Iterable[bytes]],
    here: threading.local,
    environ: dict[str, Any],
    start_response: Callable[..., object],
) -> Iterable[bytes]:
    environ.update(here.facts)
    return application(environ, start_response)


def _nothing() -> None:
    """Nothing: the poller is awake by being told to do it."""
