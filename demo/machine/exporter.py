"""A scrape target whose text can be changed at any time: real series in a real Prometheus."""

from __future__ import annotations

import re
import sys
import threading
import time
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from demo.machine.http_answers import AnswerHandler

if TYPE_CHECKING:
    from collections.abc import Iterator


_SAMPLE = re.compile(rb"^[^#\n].*$", re.MULTILINE)
TEXT_FORMAT = "text/plain; version=0.0.4; charset=utf-8"


class Exporter:
    """Serves `content` to every GET, whatever the path."""

    def __init__(self, text: str = "", *, stamped: bool = False) -> None:
        """With `stamped`, samples carry the time of the scrape.

        Prometheus ends such a series five minutes after its last sample, instead of at the first scrape that fails or
        takes longer than the interval, as on a busy machine. A series that is no longer exported stays for the same
        time.
        """
        self._stamped = stamped
        self.content: tuple[str, bytes] = (TEXT_FORMAT, text.encode())
        """Content type and body, replaced in one assignment."""
        self._server = _QuietServer(("127.0.0.1", 0), _handler_of(self))

    def publish(self, text: str) -> None:
        """Serve this text, in Prometheus's text format, from the next scrape on."""
        self.content = (TEXT_FORMAT, text.encode())

    def scraped(self) -> tuple[str, bytes]:
        """Return content type and body for a scrape now."""
        content_type, body = self.content
        stamp = b" %d" % (1000 * time.time())
        return content_type, _SAMPLE.sub(lambda line: line[0] + stamp, body) if self._stamped else body

    @property
    def target(self) -> str:
        """The target as HOST:PORT, which scrape configurations use."""
        host, port = self._server.server_address[:2]
        return f"{host!s}:{port}"

    def scrape_config(self, job: str = "exporter", interval: str = "1s") -> dict[str, Any]:
        """Return the entry of `scrape_configs` for this target; labels of the text take precedence."""
        return {
            "job_name": job,
            "scrape_interval": interval,
            "scrape_timeout": interval,
            "honor_labels": True,
            "static_configs": [{"targets": [self.target]}],
        }

    def serve(self) -> None:
        """Serve until `close` is called from another thread."""
        self._server.serve_forever(poll_interval=0.05)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def running_exporter(text: str = "", *, stamped: bool = False) -> Iterator[Exporter]:
    """Run an exporter on a free port of the loopback."""
    exporter = Exporter(text, stamped=stamped)
    thread = threading.Thread(target=exporter.serve, name="exporter", daemon=True)
    thread.start()
    try:
        yield exporter
    finally:
        exporter.close()
        thread.join()


class _QuietServer(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as the base class has them
        # A scraper that gives up in the middle is not an error.
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def _handler_of(exporter: Exporter) -> type[AnswerHandler]:
    class Handler(AnswerHandler):
        def do_GET(self) -> None:
            content_type, body = exporter.scraped()
            self.answer(body, content_type)

    return Handler
