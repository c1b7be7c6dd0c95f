"""Sends requests as kube-apiserver's aggregator does for many HPAs: `python -m benchmarks.aggregator_client PLAN`.

It uses mutual TLS with a front-proxy certificate, the identity in X-Remote-* headers, and connections that are kept
alive. The load is open: each request has an intended time, evenly spaced and independent of earlier answers, and its
latency counts from that time, so a server that stalls cannot hide this by receiving fewer requests. Connections are
used in turn; while all of them wait for an answer, the request waits as well, and that counts.

It is a process with one thread, so that it disturbs neither its own clock nor the server's processor.
"""

from __future__ import annotations

import gc
import math
import selectors
import socket
import ssl
import sys
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from benchmarks.fleet_of_pods import QUEUE, Fleet
from benchmarks.judging import WrongAnswerError, judge_pods, judge_queue, judge_usage
from benchmarks.tally import Outcome, Tally

if TYPE_CHECKING:
    from collections.abc import Callable

_HEADERS = (
    "Host: metrics.example.svc:443\r\n"
    "User-Agent: kube-controller-manager/v1.34.4 (linux/amd64) kubernetes/system:serviceaccount:kube-system:hpa\r\n"
    "Accept: application/json, */*\r\n"
    "Accept-Encoding: gzip\r\n"
    "X-Forwarded-For: 10.0.0.7\r\n"
    "X-Remote-User: system:serviceaccount:kube-system:horizontal-pod-autoscaler\r\n"
    "X-Remote-Group: system:serviceaccounts\r\n"
    "X-Remote-Group: system:serviceaccounts:kube-system\r\n"
    "X-Remote-Group: system:authenticated\r\n"
    "X-Remote-Extra-Authentication.kubernetes.io%2fcredential-Id: JTI=5ed2f6a6-3a0f-4a1e-9a3b-6a6f1f3f2b0e\r\n"
    "\r\n"
)
_RECORD = 64 * 1024
_CONNECT_SECONDS = 5.0
_SWEEP_SECONDS = 0.25
_JUDGES = {"pods": judge_pods, "external": judge_queue, "resource": judge_usage}


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The address of the adapter, and the credentials to act as the API server."""

    port: int
    ca_file: str
    certificate_file: str
    key_file: str

    def tls(self) -> ssl.SSLContext:
        """Return the settings of a connection to the adapter."""
        context = ssl.create_default_context(cafile=self.ca_file)
        context.load_cert_chain(self.certificate_file, self.key_file)
        return context


class LoadPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The requests of one client. Moments are monotonic seconds, which all processes of a machine share."""

    fleet: Fleet
    workload: Literal["pods", "external", "resource"]
    endpoint: Endpoint
    rate: float
    """Requests a second."""
    start_at: float
    measure_from: float
    """Answers before this time belong to the warm-up: they are checked, and counted separately."""
    measure_until: float
    connections: int = 25
    timeout_seconds: float = 10.0
    result_file: str

    @property
    def requests(self) -> int:
        """The number of requests."""
        return round((self.measure_until - self.start_at) * self.rate)

    def intended(self, number: int) -> float:
        """Return when a request is to be sent."""
        return self.start_at + number / self.rate

    def app(self, number: int) -> int:
        """Return the app whose HPA sends the request: each app once in a round, in an order that mixes namespaces."""
        return number * _stride(self.fleet.apps) % self.fleet.apps

    def path(self, app: int) -> str:
        """Return the path that the app's HPA requests."""
        fleet = self.fleet
        if self.workload == "external":
            group = "external.metrics.k8s.io/v1beta1"
            return f"/apis/{group}/namespaces/{fleet.namespace(app)}/{QUEUE}?labelSelector=queue%3D{fleet.queue(app)}"
        if self.workload == "resource":
            group = "metrics.k8s.io/v1beta1"
            return f"/apis/{group}/namespaces/{fleet.namespace(app)}/pods?labelSelector=app%3D{fleet.name(app)}"
        return (
            f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/{fleet.namespace(app)}/pods/%2A/"
            f"{fleet.metric_name(fleet.metric_of(app))}?labelSelector=app%3D{fleet.name(app)}"
        )


class Connection:
    """A connection with at most one pending request; it is opened for the first request, and again after a failure."""

    def __init__(self, connect: Callable[[], ssl.SSLSocket]) -> None:
        self._connect = connect
        self.sock: ssl.SSLSocket | None = None
        self.number: int | None = None
        """The pending request."""
        self.deadline = 0.0
        self._buffer = bytearray()

    def open(self) -> ssl.SSLSocket:
        """Open a new connection; raises OSError."""
        self.sock = self._connect()
        self._buffer.clear()
        return self.sock

    def close(self) -> None:
        """Close the connection; do nothing if it is not open."""
        if self.sock is not None:
            self.sock.close()
            self.sock = None

    def receive(self) -> tuple[int, bytes] | None:
        """Return status and body once both are complete. Raises OSError, also if the server closes the connection."""
        while (answer := self._whole()) is None:
            try:
                data = self.sock.recv(_RECORD) if self.sock is not None else b""
            except ssl.SSLWantReadError:
                return None
            if not data:
                raise ConnectionResetError("the server closed the connection")
            self._buffer += data
        self._buffer.clear()
        return answer

    def _whole(self) -> tuple[int, bytes] | None:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return None
        head = bytes(self._buffer[:end]).lower()
        length = int(head.partition(b"\r\ncontent-length:")[2].split(b"\r\n", 1)[0])
        body = bytes(self._buffer[end + 4 :])
        return (int(head[9:12]), body) if len(body) >= length else None


class AggregatorClient:
    """Sends the requests of the plan, and judges the answers."""

    def __init__(self, plan: LoadPlan) -> None:
        """Open all connections; raises OSError."""
        self._plan = plan
        self._judge = _JUDGES[plan.workload]
        self._context = plan.endpoint.tls()
        # select(2) waits in microseconds, epoll in milliseconds: too coarse to send at a given moment.
        self._selector = selectors.SelectSelector()
        self._idle = deque(Connection(self._connected) for _ in range(plan.connections))
        for connection in self._idle:
            self._selector.register(connection.open(), selectors.EVENT_READ, connection)
        self._busy: dict[Connection, None] = {}
        self._waiting: deque[int] = deque()
        self._tally = Tally(plan.start_at, plan.measure_from)

    def run(self) -> Outcome:
        """Send all requests, wait for the last answers, and return the outcome."""
        plan, sent, swept_at = self._plan, 0, 0.0
        while sent < plan.requests or self._waiting or self._busy:
            now = time.monotonic()
            while sent < plan.requests and plan.intended(sent) <= now:
                self._tally.noticed(plan.intended(sent), now)
                self._waiting.append(sent)
                sent += 1
            while self._waiting and self._idle:
                self._send(self._idle.popleft(), self._waiting.popleft())
            if now - swept_at > _SWEEP_SECONDS:
                self._give_up_overdue(now)
                swept_at = now
            due = plan.intended(sent) if sent < plan.requests else now + _SWEEP_SECONDS
            self._receive(min(_SWEEP_SECONDS, max(0.0, due - time.monotonic())))
        return self._tally.outcome(plan.measure_until - plan.measure_from)

    def close(self) -> None:
        """Close all connections."""
        for connection in (*self._idle, *self._busy):
            connection.close()
        self._selector.close()

    def _connected(self) -> ssl.SSLSocket:
        plain = socket.create_connection(("127.0.0.1", self._plan.endpoint.port), timeout=_CONNECT_SECONDS)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock = self._context.wrap_socket(plain, server_hostname="localhost")
        sock.setblocking(False)  # noqa: FBT003 - the standard library's signature
        return sock

    def _send(self, connection: Connection, number: int) -> None:
        path = self._plan.path(self._plan.app(number))
        connection.number = number
        connection.deadline = time.monotonic() + self._plan.timeout_seconds
        self._busy[connection] = None
        try:
            sock = connection.sock
            if sock is None:
                sock = connection.open()
                self._selector.register(sock, selectors.EVENT_READ, connection)
            sock.send(f"GET {path} HTTP/1.1\r\n{_HEADERS}".encode("latin-1"))
        except OSError as e:
            self._lost(connection, f"connection lost: {e}")

    def _receive(self, seconds: float) -> None:
        for key, _ in self._selector.select(seconds):
            connection: Connection = key.data
            try:
                answer = connection.receive()
                if answer is not None:
                    self._answered(connection, *answer)
            except OSError as e:
                self._lost(connection, f"connection lost: {e}")

    def _answered(self, connection: Connection, status: int, body: bytes) -> None:
        now = time.monotonic()
        number = self._freed(connection)
        if number is None:
            raise ConnectionResetError("an answer that nobody asked for")
        intended = self._plan.intended(number)
        try:
            stamp = self._judge(self._plan.fleet, self._plan.app(number), status, body)
        except WrongAnswerError as e:
            self._tally.failed(intended, str(e))
        else:
            self._tally.answered(intended, now - intended, time.time() - stamp)

    def _give_up_overdue(self, now: float) -> None:
        for connection in [connection for connection in self._busy if connection.deadline < now]:
            self._lost(connection, f"no answer within {self._plan.timeout_seconds:g} s")

    def _lost(self, connection: Connection, reason: str) -> None:
        """Close a connection, and count its pending request as failed."""
        if connection.sock is not None:
            self._selector.unregister(connection.sock)
            connection.close()
        number = self._freed(connection)
        if number is not None:
            self._tally.failed(self._plan.intended(number), reason)

    def _freed(self, connection: Connection) -> int | None:
        """Free a connection from its request, and return the number of that request; None if it had none."""
        number, connection.number = connection.number, None
        if number is not None:
            del self._busy[connection]
            self._idle.append(connection)
        return number


def main() -> None:
    """Carry out the plan and write the outcome."""
    plan = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=LoadPlan)
    client = AggregatorClient(plan)
    # A collection would be seen as latency; what is made here is freed by reference counts.
    gc.freeze()
    gc.disable()
    outcome = client.run()
    client.close()
    Path(plan.result_file).write_bytes(msgspec.json.encode(outcome))


def _stride(apps: int) -> int:
    """Return a step that visits each of the apps once in a round: without a common divisor, and far from 1."""
    stride = max(1, int(apps * 0.618))
    while math.gcd(stride, apps) > 1:
        stride += 1
    return stride


if __name__ == "__main__":
    main()
