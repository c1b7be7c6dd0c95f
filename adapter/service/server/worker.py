"""gunicorn's threaded worker, changed so that slow clients cannot occupy a thread.

In the stock worker, the request threads perform handshakes, read heads and write answers, so as many silent clients as
there are threads stop the service. Here the poller thread does this for all connections (`connections`), with a total
deadline for each stage. The threads get complete heads, and leave what a socket does not accept of their answer in an
outbox (`outgoing`). If too many connections are open, the oldest unfinished ones are closed first, then the slowest
readers, then those that have been idle longest, since a new connection is more likely to be a caller than a silent one.

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
import sys
import time
from collections import Counter
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from gunicorn.arbiter import Arbiter

from adapter.service.server.addresses import NO_ROOM
from adapter.service.server.answering import AnsweringWorker
from adapter.service.server.connections import Connection, Stage
from adapter.service.server.ending import Ending, Phase
from adapter.service.server.refusals import final_answer
from adapter.service.server.sockets import prepare_accepted, reset_on_close, unacknowledged
from adapter.service.server.waiting_room import WaitingRoom

if TYPE_CHECKING:
    import socket
    from concurrent.futures import Future, ThreadPoolExecutor

_log = logging.getLogger(__name__)

MOST_PER_TURN = {Stage.HANDSHAKE: 4, Stage.HEAD: 32, Stage.SEND: 16}
"""Connections of a stage to advance before other connections get a turn: about 3 ms of work for handshakes, heads of
16 kB or portions of answers. Requests on kept connections never wait for more than that."""
ACCEPTS_PER_TURN = 16
LONGEST_WAIT = 1.0
"""Seconds between two reports to the arbiter that the worker is alive."""
ACCEPT_PAUSE = 0.2
"""Seconds without accepting after file descriptors ran out and no connection could be closed."""


class TidewatchWorker(AnsweringWorker):
    """Polls all waiting connections in the main thread; see the module."""

    poller: selectors.BaseSelector
    tpool: ThreadPoolExecutor

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - handed through to gunicorn
        super().__init__(*args, **kwargs)
        options = self.app.options
        self._limits = options.connections
        self._tls = self.app.tls
        self._ending = Ending(delay_seconds=options.shutdown_delay_seconds, drain_seconds=options.drain_seconds)
        self._in_request = 0
        self._accept_again = 0.0
        self._show_life_at = 0.0
        self._room: WaitingRoom
        self.dropped: Counter[str] = Counter()
        """Number of dropped connections by reason."""

    def init_process(self) -> None:
        """Set up the process after the fork."""
        self.app.before_worker()
        super().init_process()

    def init_signals(self) -> None:
        """Handle gunicorn's signals except SIGINT, which a terminal also sends to the arbiter."""
        super().init_signals()
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    # In the poller thread

    def run(self) -> None:
        """Serve until the shutdown, and then through the phases of `ending`."""
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
        """Accept new connections, a limited number at once."""
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
        """Take a connection back from a request thread."""
        self._in_request -= 1
        conn.is_kept = not (fs.cancelled() or fs.exception()) and fs.result()
        if conn.fault:
            self.dropped[conn.fault] += 1
        if conn.outbox.bodies:
            conn.outbox.newly_read()  # the required rate applies to what is read from now on
            self._room.put(conn, Stage.SEND, selectors.EVENT_WRITE)
            self._make_room_for_answers()
        else:
            self._answered(conn)

    def open_connections(self) -> dict[str, int]:
        """Return the number of connections by stage."""
        waiting = {stage.name.lower(): count for stage, count in self._room.counts().items()}
        return waiting | {"request": self._in_request}

    def _show_life(self) -> None:
        """Report to the arbiter that the poller is alive; rarely, because each report costs a system call."""
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
        """Advance the ready connections: kept ones first, then some of the others, fewest advances first."""
        others: dict[Stage, list[Connection]] = {stage: [] for stage in MOST_PER_TURN}
        for key, _ in self.poller.select(timeout):
            if not isinstance(key.data, Connection):
                key.data(key.fileobj)
            elif key.data.stage in others:
                others[key.data.stage].append(key.data)
            else:
                self._advance(key.data)
        for stage, waiting in others.items():
            waiting.sort(key=attrgetter("steps"))
            for conn in waiting[: MOST_PER_TURN[stage]]:
                conn.steps += 1
                # An earlier connection of this turn may have caused it to be closed.
                if conn.stage is stage:
                    self._advance(conn)

    def _advance(self, conn: Connection) -> None:
        try:
            self._step(conn)
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
            _log.exception("a connection failed unexpectedly")
            self._drop(conn, "unforeseen")

    def _step(self, conn: Connection) -> None:
        if conn.stage is Stage.HANDSHAKE:
            self._shake_hands(conn)
        if conn.stage in {Stage.HEAD, Stage.IDLE}:
            self._read(conn)
        elif conn.stage is Stage.SEND:
            self._send(conn)
        elif conn.stage is Stage.LINGER and not conn.discard():
            self._drop(conn)

    def _shake_hands(self, conn: Connection) -> None:
        """Advance the handshake. The socket is wrapped at the client's first byte, to use the newest context."""
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
            self._submit_unless_busy(conn)
            return
        if conn.head_is_too_large:
            self._refuse(conn, 431, "Request Header Fields Too Large", "head_too_large")
            return
        if conn.stage is Stage.IDLE:
            self._room.put(conn, Stage.HEAD)
        heads = self._room.heads
        heads.note(conn)
        while (largest := heads.one_too_many(conn)) is not None:
            self._refuse(largest, 431, "Request Header Fields Too Large", "heads_crowded_out")

    def _send(self, conn: Connection) -> None:
        """Send a portion of the unsent answer; the next request is read only after the last portion."""
        if conn.outbox.step():
            self._held.release(conn.outbox)
            self._answered(conn)
        else:
            self._room.poll(conn, selectors.EVENT_WRITE)

    def _answered(self, conn: Connection) -> None:
        """Continue with the next request of a connection whose answer has been passed to the kernel."""
        if not conn.is_kept or self._phase >= Phase.DRAINING:
            self._say_goodbye(conn)
            return
        conn.end_request()
        conn.steps = 0
        if conn.head_is_whole():
            self._submit_unless_busy(conn)
        else:
            self._room.put(conn, Stage.HEAD if conn.head else Stage.IDLE)

    def _submit_unless_busy(self, conn: Connection) -> None:
        if 0 < self._limits.most_requests <= self._in_request and not conn.asks_for_health:
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
        prepare_accepted(sock)
        conn = Connection(sock, client, server, self._answers.most_bytes_each)
        try:
            self._room.put(conn, Stage.HANDSHAKE)
        except OSError as e:
            self._drop(conn, "not_pollable", e)

    # Ends of connections

    def _make_room(self, reason: str) -> bool:
        """Close the least useful connection; return whether there was one."""
        conn = self._room.least_missed()
        if conn is not None:
            self._cut(conn, reason)
        return conn is not None

    def _make_room_for_answers(self) -> None:
        while self._held.total > self._answers.most_bytes:
            slowest = self._room.slowest_reader()
            if slowest is None:
                return  # the bytes belong to answers that are about to return to this thread
            self._cut(slowest, "answers_crowded_out")

    def _expire(self, conn: Connection) -> None:
        if conn.stage is Stage.HEAD and conn.head:
            self._refuse(conn, 408, "Request Timeout", "head_timeout")
        elif conn.stage in {Stage.SEND, Stage.LINGER} and self._is_read(conn):
            self._room.put(conn, conn.stage, conn.events)
        elif conn.stage is Stage.SEND:
            self._cut(conn, "answer_unread")
        else:
            self._cut(conn, f"{conn.stage.name.lower()}_timeout")

    def _is_read(self, conn: Connection) -> bool:
        """Return whether the client reads its answer fast enough and is within the time limit."""
        enough = self._answers.least_rate * self._deadlines.of(conn.stage)
        return conn.outbox.newly_read() >= enough and time.monotonic() < conn.outbox.since + self._deadlines.send

    def _give_up(self, conn: Connection, error: OSError) -> None:
        """Close a connection that failed, in a way that lets the client read the alert with the reason."""
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
        self._held.release(conn.outbox)
        if reason:
            self.dropped[reason] += 1
            _log.debug("connection of %s dropped: %s %s", conn.client[0], reason, error or "")
        if conn.stage is Stage.IDLE:
            conn.shut_down()
        conn.close()

    def _cut(self, conn: Connection, reason: str) -> None:
        """Drop a connection, and let the kernel discard its unread bytes."""
        if unacknowledged(conn.sock):
            reset_on_close(conn.sock)
        self._drop(conn, reason)

    def _refuse(self, conn: Connection, status: int, phrase: str, reason: str) -> None:
        self.dropped[reason] += 1
        conn.send_last(final_answer(status, phrase, phrase.lower()))
        self._say_goodbye(conn)

    def _say_goodbye(self, conn: Connection) -> None:
        """Shut down for writing and keep reading for a moment, since closing with unread input resets the answer."""
        conn.shut_down()
        conn.forget_head()
        conn.outbox.newly_read()
        if conn.is_open:
            self._room.put(conn, Stage.LINGER)
        else:
            self._drop(conn)

    # The end of the process

    def handle_exit(self, _sig: int, _frame: object) -> None:
        """SIGTERM: start the shutdown."""
        self._ending.begin(time.monotonic())
        self._wake()

    def handle_usr1(self, _sig: int, _frame: object) -> None:
        """SIGUSR1 from the arbiter: skip a phase of the shutdown, or start it without the delay."""
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
            # Exit here, because the interpreter would wait for their threads, which are past every deadline.
            _log.warning("%d requests did not finish in time and are abandoned", self._in_request)
            logging.shutdown()
            os._exit(Arbiter.WORKER_BOOT_ERROR if self.app.context.has_failed else 0)
        if self.app.context.has_failed:
            # The status on which the arbiter ends instead of starting another worker.
            sys.exit(Arbiter.WORKER_BOOT_ERROR)


def _nothing() -> None:
    """Do nothing: the call itself has woken the poller."""
