"""The request threads' part of the worker: from a complete head to an answer in the connection's outbox.

No thread waits for a client here, except for a request's body, which has a deadline. The part of an answer that the
socket does not accept stays in the outbox, from which the poller thread sends it.

Written against gunicorn 27.0.1, whose request handling is used as it is.
"""

# gunicorn has no types.
# mypy: allow-untyped-calls

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from gunicorn.http import errors as http_errors
from gunicorn.http.errors import ParseException
from gunicorn.workers.gthread import ThreadWorker

from adapter.foundation.service.runtime.logs import fields
from adapter.foundation.service.server.connections.outgoing import SMALL, HeldAnswers, Outbox, OutgoingTooLargeError
from adapter.foundation.service.server.request_threads import RequestThreads
from adapter.foundation.service.server.shutdown_phases import Phase
from adapter.foundation.web.body import RECEIVED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from adapter.foundation.service.server.connections.connection import Connection
    from adapter.foundation.service.server.connections.heads import HeadRequest
    from adapter.foundation.service.server.process import ServerApplication

_log = logging.getLogger(__name__)

_STATUS_OF: dict[type[Exception], tuple[int, str]] = {
    http_errors.LimitRequestLine: (414, "URI Too Long"),
    http_errors.LimitRequestHeaders: (431, "Request Header Fields Too Large"),
    http_errors.ExpectationFailed: (417, "Expectation Failed"),
    http_errors.UnsupportedTransferCoding: (501, "Not Implemented"),
}


def parse_refusal(error: ParseException) -> bytes:
    """Return the answer to a malformed request."""
    return final_answer(*_STATUS_OF.get(type(error), (400, "Bad Request")), str(error))


def final_answer(status: int, phrase: str, message: str) -> bytes:
    """Return a complete HTTP response in plain text that announces the end of the connection."""
    body = f"{message}\n".encode()
    head = (
        f"HTTP/1.1 {status} {phrase}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        f"X-Content-Type-Options: nosniff\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode("latin-1") + body


_INTERNAL_ERROR = final_answer(500, "Internal Server Error", "internal error")


class _Peer(NamedTuple):
    """Stands in for a connection in gunicorn's request handling; what gunicorn writes goes to the outbox."""

    sock: Outbox
    client: tuple[str, int]
    server: tuple[str, int]


class AnsweringWorker(ThreadWorker):
    """Serves requests whose heads are buffered; see the module."""

    app: ServerApplication

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - handed through to gunicorn
        super().__init__(*args, **kwargs)
        self._deadlines = self.app.options.deadlines
        self._answers = self.app.options.answers
        self._held = HeldAnswers()
        self._phase = Phase.SERVING
        self._here = threading.local()

    def get_thread_pool(self) -> ThreadPoolExecutor:
        """Return the common pool, and create the reserved one, too. gunicorn calls this after the fork."""
        options = self.app.options
        common = ThreadPoolExecutor(options.threads, thread_name_prefix="request")
        some = options.reserved_threads
        reserved = ThreadPoolExecutor(some, thread_name_prefix="reserved") if some else None
        self._threads = RequestThreads(common, reserved, options.threads, self._start)
        return common

    def enqueue_req(self, conn: Connection) -> None:
        """Let a thread answer a request; `finish_request` is then called in the poller thread."""
        self._threads.submit(conn)

    def _start(self, pool: ThreadPoolExecutor, conn: Connection) -> None:
        done: Future[bool] = Future()

        def work() -> None:
            try:
                done.set_result(self._handle_timed(conn))
            except BaseException as e:  # noqa: BLE001 - whatever it is, the connection goes back to the poller
                done.set_exception(e)

        done.add_done_callback(lambda _: self.method_queue.defer(self.finish_request, conn, done))
        # If no further thread can be started, the work waits for one that runs: each pool has one (`load_wsgi`).
        with suppress(RuntimeError):
            pool.submit(work)

    def _handle_timed(self, conn: Connection) -> bool:
        began = time.thread_time()
        try:
            return self.handle(conn)
        finally:
            conn.cost_seconds = time.thread_time() - began

    def load_wsgi(self) -> None:
        """Build the application, and start a thread for requests of each kind; exit the process if that fails."""
        with self.app.refused_in_one_line():
            super().load_wsgi()
            self._threads.start_first()
        self.wsgi = partial(_with_connection_facts, self.wsgi, self._here)

    def handle(self, conn: Connection) -> bool:
        """Parse and serve the request whose head is buffered; returns whether the connection may be kept."""
        kept = self._answer(conn)
        if kept and not _next_may_follow(conn):
            # A client that does not know this would lose its next request, and may have to assume that it was carried
            # out.
            conn.outbox.announce_end()
            kept = False
        if conn.outbox.unsent > SMALL and self._held.total > self._answers.most_bytes:
            self._answer_instead(conn, "answer_no_room", "too many answers wait for clients that read them slowly")
        try:
            if not conn.outbox.flush():
                self._held.hold(conn.outbox)
        except OSError as e:
            _log.debug("connection lost before the answer was sent: %s", e)
            return False
        return kept and not conn.fault

    def _answer(self, conn: Connection) -> bool:
        """Put the answer into the outbox; return whether the connection stays open after it."""
        try:
            req = next(conn.begin_request(self.cfg, self._deadlines.body))
            if self._phase is not Phase.SERVING:
                req.force_close()
            return self.handle_request(req, conn)
        except OutgoingTooLargeError as e:
            _log.warning("an answer was not sent", extra=fields(client=conn.client[0], reason=str(e)))
            self._answer_instead(conn, "answer_too_large", f"{e}: request less at once")
        except StopIteration:
            # gunicorn raises this for an answer that broke off, and its parser for the end of the connection. Nothing
            # of the answer has been sent, so it can still be replaced.
            if conn.outbox.unsent:
                conn.outbox.replace(_INTERNAL_ERROR)
        except OSError as e:
            _log.debug("connection closed within a request: %s", e)
        except ParseException as e:
            conn.outbox.replace(parse_refusal(e))
        except Exception:  # noqa: BLE001 - the edge: whatever the application raised, the thread goes on
            _log.exception("a request failed outside the application's error handling")
            conn.outbox.replace(_INTERNAL_ERROR)
        return False

    def _answer_instead(self, conn: Connection, fault: str, message: str) -> None:
        conn.fault = fault
        conn.outbox.replace(final_answer(503, "Service Unavailable", message))

    def handle_request(self, req: HeadRequest, conn: Connection) -> bool:
        """Serve one request and put the answer into the outbox; return whether the connection stays open after it."""
        facts: dict[str, object] = {"tidewatch.headers": req.received, "tidewatch.peer_chain": conn.peer_chain}
        if conn.body is not None:
            facts[RECEIVED] = conn.body.take()
        self._here.facts = facts
        try:
            return bool(super().handle_request(req, _Peer(conn.outbox, conn.client, conn.server)))
        finally:
            # Otherwise each thread would keep its last body until its next request.
            self._here.facts = {}


def _next_may_follow(conn: Connection) -> bool:
    """Return whether the request's body can be read to its end, so that the start of the next request is known."""
    try:
        return conn.body_is_read()
    except (ParseException, OSError) as e:
        _log.debug("the rest of a request's body cannot be read: %s", e)
        return False


def _with_connection_facts(
    application: Callable[..., Iterable[bytes]],
    here: threading.local,
    environ: dict[str, Any],
    start_response: Callable[..., object],
) -> Iterable[bytes]:
    environ.update(here.facts)
    return application(environ, start_response)
