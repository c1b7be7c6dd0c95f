"""The baseline server for unauthenticated clients, on two ports: `python -m benchmarks.bare_listener PORT PORT`.

It does the least that any server does: it accepts connections, looks for the ends of request heads, sends an empty
answer for each, and drops the bodies of requests, of which it reads a megabyte.
"""

from __future__ import annotations

import selectors
import socket
import sys
from contextlib import suppress

from benchmarks.cores import yield_to_all_others

_END = b"\r\n\r\n"
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
_AT_ONCE = 256 * 1024
_MOST_DROPPED = 1024 * 1024


class _Client:
    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._sends_body = False
        self._dropped = 0
        self._tail = b""

    def advance(self) -> bool:
        """Answer the data that has arrived, or drop it; return whether the connection continues. Raises OSError."""
        if self._sends_body:
            count = len(self.sock.recv(_AT_ONCE, socket.MSG_TRUNC))
            self._dropped += count
            return count > 0 and self._dropped < _MOST_DROPPED
        data = self.sock.recv(_AT_ONCE)
        seen = self._tail + data
        self.sock.send(_ANSWER * seen.count(_END))
        self._tail = b"" if seen.endswith(_END) else seen[1 - len(_END) :]
        if data.startswith(b"POST "):
            self._sends_body = True
            self.sock.shutdown(socket.SHUT_WR)
        return bool(data)


def main(ports: list[int]) -> None:
    """Serve until the process is ended."""
    with selectors.DefaultSelector() as poller:
        for port in ports:
            poller.register(socket.create_server(("127.0.0.1", port), backlog=1024), selectors.EVENT_READ)
        while True:
            for key, _ in poller.select():
                if isinstance(key.data, _Client):
                    _serve(poller, key.data)
                elif isinstance(key.fileobj, socket.socket):
                    sock, _ = key.fileobj.accept()
                    sock.settimeout(0)
                    poller.register(sock, selectors.EVENT_READ, _Client(sock))


def _serve(poller: selectors.BaseSelector, client: _Client) -> None:
    with suppress(OSError):
        if client.advance():
            return
    poller.unregister(client.sock)
    client.sock.close()


if __name__ == "__main__":
    yield_to_all_others()
    main([int(port) for port in sys.argv[1:]])
