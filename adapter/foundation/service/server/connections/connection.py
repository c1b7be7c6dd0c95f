"""Connections between requests: one thread performs handshakes, receives heads, and sends the rest of answers.

A client could occupy a thread that waits for it for as long as it likes, so no thread waits. Handshakes and heads
advance when bytes arrive, answers when the client has read something, and each stage has one total deadline instead of
one for each read or write. A connection is passed to the request threads only with a complete head in its buffer, and
leaves them with the part of the answer that its socket did not accept (`outgoing`).
"""

# gunicorn has no types.
# mypy: allow-untyped-calls

from __future__ import annotations

import os
import re
import socket
import ssl
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from adapter.foundation.service.server.connections.bodies import planned_body, read_head
from adapter.foundation.service.server.connections.client_addresses import address_key
from adapter.foundation.service.server.connections.heads import (
    LARGEST_HEAD,
    LARGEST_UNAUTHENTICATED_HEAD,
    RECORD,
    BoundedUnreader,
    HeadParser,
)
from adapter.foundation.service.server.connections.outgoing import MOST_BYTES_EACH, Outbox
from adapter.foundation.service.server.connections.stages import Deadlines, Stage
from adapter.foundation.service.server.tls import verified_chain

if TYPE_CHECKING:
    import selectors

    from gunicorn.config import Config

    from adapter.foundation.service.server.connections.bodies import AdmitHead, ArrivingBody, PlanBody

_PROBES = tuple(f"{method} /{check}".encode() for method in ("GET", "HEAD") for check in ("livez", "readyz", "healthz"))
_JUDGED = re.compile(rb"\r\n\r\n|(?<!\r)\n")
"""Matches the end of a head, or a line end without a carriage return, which makes the head malformed."""
LARGEST_PROOF = 16 * 1024
"""Largest head that is judged before its request has a thread, since the poller thread must not be held up."""
_LONGEST_END = 4
_DISCARDED_AT_ONCE = 256 * 1024
_MOST_DISCARDED = 1024 * 1024
"""The most bytes that are read and discarded after the answer to a request whose body is refused; then the connection
is reset."""


class Connection:
    """One accepted socket. Used by one thread at a time: the poller's, or in stage REQUEST the request's."""

    def __init__(
        self,
        sock: socket.socket,
        client: tuple[str, int],
        server: tuple[str, int],
        most_answer_bytes: int = MOST_BYTES_EACH,
    ) -> None:
        self.sock = sock
        self.outbox = Outbox(sock, most_answer_bytes)
        self.is_kept = False
        """Whether the connection may be used for another request after the current one."""
        self.fault = ""
        """Why the request threads sent an error instead of the answer; empty if they did not."""
        self.client = client
        self.address = address_key(client[0])
        """The part of the client's address that identifies the client."""
        self.server = server
        self.stage = Stage.HANDSHAKE
        self.expires = 0.0
        """Monotonic time at which the stage expires."""
        self.events = 0
        """The events that the poller waits for; 0 for none."""
        self.poller: selectors.BaseSelector | None = None
        """The poller that waits for these events."""
        self.steps = 0
        """How often the connection was advanced since its last answer; those with the fewest advances come first."""
        self.head = bytearray()
        self._searched = 0
        """Position up to which the head was searched for its end, so that slow input is searched only once."""
        self.parser: HeadParser | None = None
        self._chain: tuple[bytes, ...] | None = None
        self._discarded = 0
        self.sent_ahead = 0
        """Number of consecutive requests, up to the current one, that were sent before the previous answer."""
        self.cost_seconds = 0.0
        """Processor time that the last request took in its thread."""
        self.body: ArrivingBody | None = None
        """The body of the current request, if it is received in advance."""
        self._was_reserved = False
        self._has_proof = False

    @property
    def peer_chain(self) -> tuple[bytes, ...]:
        """Return the client's verified certificate chain, computed once."""
        if self._chain is None:
            self._chain = verified_chain(self.sock)
        return self._chain

    @property
    def is_known(self) -> bool:
        """Whether the client has presented a certificate of a trusted authority."""
        return bool(self.peer_chain)

    @property
    def is_admitted(self) -> bool:
        """Whether the caller of the current request is known, by a certificate or by what the head contains."""
        return self.is_known or self._has_proof

    def read_head(self) -> bool:
        """Read the available bytes and return whether there are enough for the parser.

        Raises ssl.SSLWantReadError or BlockingIOError if nothing is available, EOFError at the end, and OSError.
        """
        while True:
            data = self.sock.recv(RECORD)
            if not data:
                raise EOFError
            self.head += data
            if self.head_is_whole():
                return True
            if not self._has_undelivered():
                return False

    def head_is_whole(self) -> bool:
        """Return whether the buffer holds a complete head, or one that is already malformed."""
        if _JUDGED.search(self.head, max(0, self._searched - _LONGEST_END + 1)):
            return True
        self._searched = len(self.head)
        return False

    @property
    def asks_for_health(self) -> bool:
        """Whether the buffered head is a probe's: a kubelet that gets 429 would kill a process that is only busy."""
        return self.head.startswith(_PROBES)

    @property
    def head_is_too_large(self) -> bool:
        """Whether the head exceeds its limit, which is lower for clients without a certificate."""
        size = len(self.head)
        return size > LARGEST_HEAD or (size > LARGEST_UNAUTHENTICATED_HEAD and not self.is_known)

    def expect_body(self, plan_body: PlanBody) -> bool:
        """Begin to receive the body of the buffered head in advance, if the plan says so; return whether it does."""
        end = self.head.find(b"\r\n\r\n")
        # Bodies of other methods are read by a request thread, which limits them.
        if end < 0 or not self.head.startswith(b"POST "):
            return False
        body = self.body = planned_body(bytes(self.head[:end]), self.peer_chain, plan_body)
        if body is None:
            return False
        start = end + 4
        body.received += self.head[start : start + body.missing]
        del self.head[start : start + len(body.received)]
        return True

    def judge_head(self, admits: AdmitHead | None) -> None:
        """Record whether the buffered head proves who its caller is; a request thread still judges the request."""
        if admits is None:
            return
        end = self.head.find(b"\r\n\r\n")
        self._has_proof = 0 <= end <= LARGEST_PROOF and admits(read_head(bytes(self.head[:end]), self.peer_chain)[0])

    @property
    def is_reserved(self) -> bool:
        """Whether the current request may have a reserved thread; a request sent ahead of an answer may not."""
        return self.body is not None and self.body.is_reserved and not self.sent_ahead

    @property
    def comes_first(self) -> bool:
        """Whether this connection's next bytes are handled before those of connections without a reserved thread."""
        return self.is_reserved or (self.stage is Stage.IDLE and (self._was_reserved or self.is_known))

    def read_body(self) -> bool:
        """Read the available bytes of the body; return whether it is whole. Raises as `ArrivingBody.read`."""
        return self.body is None or self.body.read(self.sock, self._has_undelivered)

    def next_is_sent(self) -> bool:
        """Return whether the client sent its next request before the current one was answered."""
        is_sent = self.head_is_whole()
        self.sent_ahead = self.sent_ahead + 1 if is_sent else 0
        return is_sent

    def reads_answer(self, least_rate: float, deadlines: Deadlines) -> bool:
        """Return whether the client reads the answer at `least_rate` (bytes per second) and within the time limit."""
        enough = least_rate * deadlines.of(self.stage)
        return self.outbox.newly_read() >= enough and time.monotonic() < self.outbox.since + deadlines.send

    def sends_body(self, least_rate: float, deadlines: Deadlines) -> bool:
        """Return whether the body arrives at `least_rate` (bytes per second) and within the time limit."""
        enough = least_rate * deadlines.of(Stage.BODY)
        return self.body is not None and self.body.keeps_pace(enough, deadlines.body)

    def forget_head(self) -> None:
        """Free the memory of a head that will not be answered."""
        self.head = bytearray()
        self.body = None

    def begin_request(self, cfg: Config, seconds: float) -> HeadParser:
        """Pass the buffered bytes to the parser; reading the body may take `seconds`."""
        if self.parser is None:
            self.parser = HeadParser(cfg, BoundedUnreader(self.sock), self.client)
        self.parser.source.unread(bytes(self.head))
        self.head.clear()
        self._searched = 0
        self.parser.source.allow(seconds)
        self.parser.source.has_body_apart = self.body is not None
        self.outbox.begin(self.sock)
        return self.parser

    def body_is_read(self) -> bool:
        """Return whether the whole request has been read, so that the next one may follow; never waits."""
        if self.parser is None:
            return False
        self.parser.source.allow(0)
        return bool(self.parser.finish_body())

    def end_request(self) -> None:
        """Take back the bytes that were read beyond the request, which begin the next one."""
        self._was_reserved = self.is_reserved
        self.body = None
        if self.parser is not None:
            self.head += self.parser.source.take_buffered()

    @property
    def is_open(self) -> bool:
        """Whether the socket is still open; a failure within TLS or within an answer closes it."""
        return self.sock.fileno() >= 0

    def discard(self) -> bool:
        """Discard input of the client; return whether there may be more and the limit is not reached."""
        # With MSG_TRUNC the kernel copies nothing (tcp(7)). TLS is bypassed: nobody needs the decrypted input.
        count = len(socket.socket.recv(self.sock, _DISCARDED_AT_ONCE, socket.MSG_TRUNC))
        self._discarded += count
        return count > 0 and self._discarded < _MOST_DISCARDED

    def shut_down(self) -> None:
        """Shut down the connection for writing, without waiting."""
        with suppress(OSError, ValueError):
            self.sock.settimeout(0)
            if isinstance(self.sock, ssl.SSLSocket):
                self.sock._sslobj.shutdown()  # type: ignore[attr-defined] # noqa: SLF001 - unwrap() would make it wait
        with suppress(OSError):
            self.sock.shutdown(socket.SHUT_WR)

    def send_last(self, data: bytes) -> None:
        """Send as much of a short final answer as the socket accepts now."""
        self.sock.settimeout(0)
        with suppress(OSError):
            self.sock.send(data)

    def send_plain(self, data: bytes) -> None:
        """Send without TLS, to a client that does not speak it."""
        with suppress(OSError):
            os.write(self.sock.fileno(), data)

    def close(self) -> None:
        """Close the socket."""
        self.stage = Stage.CLOSED
        self.body = None
        self.outbox.clear()
        with suppress(OSError):
            self.sock.close()

    def _has_undelivered(self) -> bool:
        return isinstance(self.sock, ssl.SSLSocket) and self.sock.pending() > 0
