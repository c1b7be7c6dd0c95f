"""Probes, as a kubelet sends them: from the node to the pod's address, TLS unverified, redirects not followed."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.e2e.controlplane.kubelet.spec import Probe


def succeeds(probe: Probe, host: str) -> bool:
    """Send the probe once."""
    try:
        if probe.scheme == "tcp":
            socket.create_connection((host, probe.port), probe.timeout).close()
            return True
        return 200 <= _status(probe, host) < 400
    except (OSError, http.client.HTTPException):
        return False


def _status(probe: Probe, host: str) -> int:
    connection: http.client.HTTPConnection
    if probe.scheme == "https":
        # A kubelet knows no CA of the pod.
        unverified = ssl._create_unverified_context()
        connection = http.client.HTTPSConnection(host, probe.port, timeout=probe.timeout, context=unverified)
    else:
        connection = http.client.HTTPConnection(host, probe.port, timeout=probe.timeout)
    try:
        headers = {"User-Agent": "kube-probe/1.36", "Accept": "*/*", "Connection": "close", **dict(probe.headers)}
        connection.request("GET", probe.path, headers=headers)
        return connection.getresponse().status
    finally:
        connection.close()


class Prober:
    """Sends a probe again and again, in a thread of its own, and reports each change of the verdict."""

    def __init__(self, probe: Probe, host: str, told: Callable[[bool], None], *, at_first: bool) -> None:
        """`told` is called from the prober's thread. `at_first` is the verdict before the first answer."""
        self._probe = probe
        self._host = host
        self._told = told
        self._verdict = at_first
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="prober", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop probing; an answer that is under way is not waited for, and is not reported."""
        self._ended.set()

    def _run(self) -> None:
        in_a_row, last = 0, None
        wait = self._probe.initial_delay
        while not self._ended.wait(wait):
            now = succeeds(self._probe, self._host)
            in_a_row, last = (in_a_row + 1 if now == last else 1), now
            needed = self._probe.successes if now else self._probe.failures
            if in_a_row >= needed and not self._ended.is_set():
                self._judge(now, in_a_row, needed)
            wait = self._probe.period

    def _judge(self, now: bool, in_a_row: int, needed: int) -> None:  # noqa: FBT001 - the answer itself
        # A failure is told again each time the threshold is reached anew: a liveness probe acts on it every time.
        if now != self._verdict or (not now and in_a_row % needed == 0):
            self._verdict = now
            self._told(now)
