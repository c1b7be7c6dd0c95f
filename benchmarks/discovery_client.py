"""Requests discovery documents as kube-apiserver does: `python -m benchmarks.discovery_client PLAN`.

The requests form streams. Each stream has an interval, at which it sends as many requests at once as it has
connections, which are kept alive. The load is open: a latency counts from the moment at which the request was due. An
answer is compared with the one before, and examined only if it is new, so that judging costs the client little.
"""

from __future__ import annotations

import gc
import gzip
import http.client
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from benchmarks.aggregator_client import Endpoint  # noqa: TC001 - msgspec reads the annotations
from benchmarks.judging import WrongAnswerError
from benchmarks.tally import Outcome, Tally

if TYPE_CHECKING:
    import ssl

_IDENTITY = {"X-Remote-User": "system:kube-aggregator", "X-Remote-Group": "system:masters"}
_SWITCH_SECONDS = 0.0005
_TIMEOUT_SECONDS = 5.0
"""The aggregator's own time-out."""
_LONG_BYTES = 128 * 1024


class Stream(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of request."""

    name: str
    path: str
    headers: dict[str, str]
    at_once: int
    every_seconds: float
    offset_seconds: float
    """Seconds from the plan's beginning to the stream's first request."""
    kind: str
    """The kind of the document that must be returned."""
    compressed: bool
    """Whether a long answer must be compressed; if not, none may be."""
    entries: int
    """How many resources must be listed at least."""


class DiscoveryPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The requests of all streams. Moments are monotonic seconds, which all processes of a machine share."""

    endpoint: Endpoint
    streams: list[Stream]
    start_at: float
    measure_from: float
    measure_until: float
    result_file: str


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """The answers to one stream."""

    outcome: Outcome
    bytes: int
    """Length of the last body, as sent."""
    entries: int
    """Resources in the last list."""
    documents: int
    """How many different documents were received."""


class _Document(msgspec.Struct, frozen=True):
    kind: str
    resources: list[dict[str, object]] = []


class StreamClient:
    """The connections of one stream, each used by its own thread."""

    def __init__(self, plan: DiscoveryPlan, stream: Stream) -> None:
        self._plan = plan
        self._stream = stream
        self._context = plan.endpoint.tls()
        self._lock = threading.Lock()
        self._tally = Tally(plan.start_at, plan.measure_from)
        self._last = b""
        self._entries = 0
        self._documents = 0

    def threads(self) -> list[threading.Thread]:
        """Return the threads that send requests; they are not started yet."""
        return [threading.Thread(target=self._ask_on, daemon=True) for _ in range(self._stream.at_once)]

    def found(self) -> Found:
        """Return what was found, after the threads have ended."""
        plan = self._plan
        outcome = self._tally.outcome(plan.measure_until - plan.measure_from)
        return Found(outcome=outcome, bytes=len(self._last), entries=self._entries, documents=self._documents)

    def _ask_on(self) -> None:
        connection = _Connection(self._plan.endpoint.port, self._context)
        due = self._plan.start_at + self._stream.offset_seconds
        while due < self._plan.measure_until:
            time.sleep(max(0.0, due - time.monotonic()))
            began = time.monotonic()
            with self._lock:
                self._tally.noticed(due, began)
            try:
                status, encoding, body = connection.get(self._stream.path, self._stream.headers)
                latency = time.monotonic() - due
                with self._lock:
                    self._judge(status, encoding, body)
                    self._tally.answered(due, latency, 0.0)
            except (OSError, http.client.HTTPException, WrongAnswerError) as e:
                connection.close()
                with self._lock:
                    self._tally.failed(due, str(e) or type(e).__name__)
            due += self._stream.every_seconds
        connection.close()

    def _judge(self, status: int, encoding: str | None, body: bytes) -> None:
        """Raise WrongAnswerError if the answer is wrong."""
        if status != 200:
            raise WrongAnswerError(f"status {status}: {body[:200]!r}")
        if body == self._last:
            return
        try:
            plain = gzip.decompress(body) if encoding == "gzip" else body
            document = msgspec.json.decode(plain, type=_Document)
        except (msgspec.DecodeError, gzip.BadGzipFile, EOFError) as e:
            raise WrongAnswerError(f"not the answer's form: {e}") from e
        if (encoding == "gzip") is not (self._stream.compressed and len(plain) > _LONG_BYTES):
            raise WrongAnswerError(f"Content-Encoding {encoding} for {len(plain)} bytes")
        if document.kind != self._stream.kind or len(document.resources) < self._stream.entries:
            raise WrongAnswerError(f"{document.kind} of {len(document.resources)} resources")
        self._last, self._entries = body, len(document.resources)
        self._documents += 1


class _Connection:
    """A connection that is kept alive, and opened again after a failure."""

    def __init__(self, port: int, context: ssl.SSLContext) -> None:
        self._connection = http.client.HTTPSConnection("localhost", port, context=context, timeout=_TIMEOUT_SECONDS)

    def get(self, path: str, headers: dict[str, str]) -> tuple[int, str | None, bytes]:
        """Return status, Content-Encoding and body. Raises OSError and HTTPException."""
        if self._connection.sock is None:
            self._connection.connect()
        self._connection.putrequest("GET", path, skip_accept_encoding=True)
        for name, value in {**_IDENTITY, **headers}.items():
            self._connection.putheader(name, value)
        self._connection.endheaders()
        response = self._connection.getresponse()
        return response.status, response.getheader("Content-Encoding"), response.read()

    def close(self) -> None:
        self._connection.close()


def main() -> None:
    """Carry out the plan and write the results, by stream."""
    plan = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=DiscoveryPlan)
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.disable()
    clients = {stream.name: StreamClient(plan, stream) for stream in plan.streams}
    threads = [thread for client in clients.values() for thread in client.threads()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = {name: client.found() for name, client in clients.items()}
    Path(plan.result_file).write_bytes(msgspec.json.encode(found))


if __name__ == "__main__":
    main()
