"""What the small HTTP servers of the demo and of the benchmarks have in common."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from http.server import ThreadingHTTPServer

JSON = "application/json"


class AnswerHandler(BaseHTTPRequestHandler):
    """Keeps its connection open after an answer, and writes no log."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Write no log."""

    def request_body(self) -> bytes:
        """Return the body of the request."""
        return self.rfile.read(int(self.headers.get("Content-Length", "0")))

    def answer(self, body: bytes, content_type: str = JSON, *, status: int = 200) -> None:
        """Send the answer."""
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def serving(server: ThreadingHTTPServer) -> Iterator[None]:
    """Answer requests in a thread, and close the server at the end."""
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
