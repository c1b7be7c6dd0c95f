"""Memory of a pod's readiness sidecar: `python -m benchmarks.readiness_memory`.

There is one application with many metrics, and sidecars that read it once a second, each of which is probed once a
second. Every answer must be the one that the metric demands.
"""

from __future__ import annotations

import http.client
import http.server
import re
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from adapter.commands.program import PROGRAM
from benchmarks.options import command_line
from benchmarks.report import report
from benchmarks.running import run
from benchmarks.usage import usage
from demo.machine.processes import ProcessFailedError, start

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.progress import Progress
    from benchmarks.report import Report, Row
    from demo.machine.processes import ManagedProcess

NAME = "readiness_memory"
START_SECONDS = 30.0
PROBE_SECONDS = 5.0
LIMIT = 25_000
CHECKOUT = Path(__file__).resolve().parents[1]
FULL = 503


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its report; return the exit status: 1 if an answer was wrong or missing."""
    parser = command_line(NAME, __doc__)
    parser.add_argument("--sidecars", type=int, default=10)
    parser.add_argument("--series", type=int, default=1000, help="series of the application, besides the metric")
    parser.add_argument("--seconds", type=int, default=30)
    options = parser.parse_args(arguments)
    return run(
        NAME,
        options.output,
        lambda progress: measure(options.sidecars, options.series, options.seconds, progress),
    )


def measure(sidecars: int, series: int, seconds: int, progress: Progress) -> Report:
    """Run everything and return the report. Raises ProcessFailedError."""
    with tempfile.TemporaryDirectory(prefix="tidewatch-bench-") as folder, ExitStack() as stack:
        url = stack.enter_context(_application(series))
        progress.say(f"starting {sidecars} sidecars")
        running = [stack.enter_context(_sidecar(Path(folder) / f"{number}.log", url)) for number in range(sidecars)]
        ports = [_port(process) for process in running]
        before = [usage(process.pid) for process in running]
        began = time.monotonic()
        taken: list[float] = []
        errors = 0
        for second in range(seconds):
            progress.wait_until(began + second, "probing")
            for port in ports:
                milliseconds, status = _probed(port)
                taken.append(milliseconds)
                errors += status != FULL
        elapsed = time.monotonic() - began
        after = [usage(process.pid) for process in running]
    cpu = sum(now.cpu_seconds - then.cpu_seconds for now, then in zip(after, before, strict=True))
    taken.sort()
    row: Row = {
        "sidecars": sidecars,
        "series": series,
        "rss_mib": max(each.rss_mib for each in after),
        "peak_mib": max(each.peak_mib for each in after),
        "pss_mib": round(sum(each.pss_mib for each in after) / sidecars, 1),
        "cpu_ms_per_second": round(1000 * cpu / elapsed / sidecars, 2),
        "probe_p50_ms": round(taken[len(taken) // 2], 2),
        "probe_p99_ms": round(taken[len(taken) * 99 // 100], 2),
        "probes": len(taken),
        "errors": errors,
    }
    return report(NAME, [row])


@contextmanager
def _application(series: int) -> Iterator[str]:
    """Serve the metrics of a pod that is at its limit."""
    lines = [f'http_requests_total{{path="/{number}"}} {number}' for number in range(series)]
    body = "\n".join([*lines, f"websocket_connections {LIMIT}", ""]).encode()

    class Metrics(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Metrics) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/metrics"
        server.shutdown()


def _sidecar(log_path: Path, url: str) -> ManagedProcess:
    flags = [f"--metrics-url={url}", "--metric=websocket_connections", f"--limit={LIMIT}", "--listen=127.0.0.1:0"]
    command = [str(Path(sys.executable).with_name(PROGRAM)), "readiness", *flags]
    return start(command, log_path=log_path, name="readiness", folder=CHECKOUT)


def _port(process: ManagedProcess) -> int:
    """Return the port on which a sidecar listens, read from its log. Raises ProcessFailedError."""
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.is_running:
        if found := re.search(r"address=127\.0\.0\.1:(\d+)", process.log_path.read_text()):
            return int(found[1])
        time.sleep(0.05)
    raise ProcessFailedError(f"a sidecar did not start: {process.log_path.read_text()[-500:]}")


def _probed(port: int) -> tuple[float, int]:
    """Return the milliseconds that a probe on a new connection takes, and its status."""
    began = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PROBE_SECONDS)
    try:
        connection.request("GET", "/readyz")
        with connection.getresponse() as response:
            response.read()
            status = response.status
    except (OSError, http.client.HTTPException):
        status = 0
    connection.close()
    return 1000 * (time.perf_counter() - began), status


if __name__ == "__main__":
    raise SystemExit(main())
