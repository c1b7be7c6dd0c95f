"""The floor: a Flask handler that does nothing, under the server of this project.

`python -m benchmarks.empty_server BYTES` prints its port in a line of its log. It reads a body as the
extender does, and answers with so many bytes.
"""

from __future__ import annotations

import re
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from adapter.service.runtime.logs import configure_logs
from adapter.service.server.addresses import Address
from adapter.service.server.process import serve_forever
from adapter.service.server.settings import ServerOptions
from adapter.web.http import Response
from adapter.web.routes import Route
from adapter.web.wsgi import wsgi_application
from demo.machine.processes import start

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapter.service.server.context import WorkerContext
    from adapter.service.server.process import WsgiApp
    from adapter.web.http import Request

LARGEST_BODY_BYTES = 64 * 2**20
START_SECONDS = 30.0
CHECKOUT = Path(__file__).resolve().parents[1]


def main(size: int) -> None:
    """Serve until the process is ended."""
    configure_logs()
    options = ServerOptions(
        program="empty_server",
        version="0",
        metrics_prefix="empty_server",
        address=Address("127.0.0.1", 0),
        tls=None,
        plain_address=None,
        shutdown_delay_seconds=0.0,
    )
    answer = Response(200, b" " * size)

    def handle(_request: Request) -> Response:
        return answer

    def make_worker(_context: WorkerContext) -> WsgiApp:
        routes = (Route("/get", handle), Route("/post", handle, ("POST",), LARGEST_BODY_BYTES))
        return wsgi_application(handle, routes=routes)

    serve_forever(options, make_worker)


@contextmanager
def running_floor(folder: Path, size: int) -> Iterator[int]:
    """Run it in a process of its own; yield its port. Raises ProcessFailedError."""
    command = [sys.executable, "-m", "benchmarks.empty_server", str(size)]
    log_path = folder / f"floor-{size}.log"
    with start(command, log_path=log_path, name="floor", folder=CHECKOUT) as process:
        process.wait_until(lambda: " serving address=" in log_path.read_text(), START_SECONDS)
        yield int(re.findall(r" serving address=http://\S+:(\d+) ", log_path.read_text())[-1])
        process.kill()


if __name__ == "__main__":
    main(int(sys.argv[1]))
