"""The effect of clients that do not read, or whose heads do not end, on others: `python -m benchmarks.slow_readers`.

There are a real Prometheus, `tidewatch-adapter serve`, and HPAs that request External metrics, as in `discovery_lists`.
Beside them, hundreds of connections request the list of metrics with a small receive buffer, and read nothing; then a
thousand without a certificate send heads that never end. Each row is compared with the row `alone` of the same list:
the same adapter, a moment before.
"""

from __future__ import annotations

import http.client
import ssl
import statistics
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from benchmarks import discovery_lists
from benchmarks.adapter_stage import CHECKOUT
from benchmarks.aggregator_client import LoadPlan
from benchmarks.cores import Cores, on
from benchmarks.options import between, command_line
from benchmarks.report import report
from benchmarks.running import run
from benchmarks.slow_clients import SlowClientsOutcome, SlowClientsPlan
from benchmarks.tally import Outcome
from demo.machine.processes import start

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from benchmarks.adapter_stage import Backdrop, RunningAdapter
    from benchmarks.progress import Progress
    from benchmarks.report import Report, Row

NAME = "slow_readers"
SETTLE_SECONDS = 12.0
"""The time in which the slow clients connect, and connect again, before the measurement begins."""
LEAD_SECONDS = 3.0
"""The time before the measurement in which the client of the HPAs already sends requests, which are not counted."""
GRACE_SECONDS = 30.0
READYZ_EVERY_SECONDS = 0.1
AGAIN_SECONDS = 10.0
RECEIVE_BYTES = 2048
SEGMENTS = (1400, 536)
BYTES_A_METRIC = 126
"""The approximate size of one metric in the list of metrics."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The clients, and how long they are measured."""

    list_bytes: tuple[int, ...]
    readers: int
    heads: int
    seconds: float
    rate: float
    settle_seconds: float = SETTLE_SECONDS


@dataclass(frozen=True, slots=True)
class Company:
    """The clients beside the HPAs."""

    label: str
    kind: str = ""
    """The kind as in `SlowClientsPlan`; empty if there are no other clients."""
    count: int = 0
    segment_bytes: int = 1400


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its report; return the exit status: 1 if an answer was wrong or missing."""
    options = _options(arguments)
    settings = Settings(tuple(options.list_bytes), options.readers, options.heads, options.seconds, options.rate)
    return run(NAME, options.output, lambda progress: measure(settings, progress))


def measure(settings: Settings, progress: Progress) -> Report:
    """Run everything and return the report. Raises ProcessFailedError, PrometheusMissingError."""
    cores, version = Cores.of_this_machine(), ""
    rows: list[Row] = []
    for size in settings.list_bytes:
        with tempfile.TemporaryDirectory(prefix="tidewatch-bench-") as folder:
            listed = discovery_lists.Settings(
                metrics=size // BYTES_A_METRIC,
                seconds=settings.seconds,
                hpa_rate=settings.rate,
                every_seconds=0.25,
                relist_seconds=30,
                scrape_seconds=15,
            )
            with (
                discovery_lists.standing(Path(folder), listed, cores) as stage,
                discovery_lists.adapter_before(stage, listed) as adapter,
            ):
                discovery_lists.wait_for_list(adapter, listed, progress)
                version = stage.prometheus_version()
                rows += [
                    {"list_bytes": size, **measured(stage, adapter, company, settings, progress)}
                    for company in companies(settings)
                ]
    return report(NAME, rows, prometheus=version, adapter_has_a_core=cores.measured != cores.others)


def companies(settings: Settings) -> list[Company]:
    """Return the clients of each row, in order: unfinished heads are last, since they leave the largest heap behind."""
    return [
        Company("alone"),
        *(Company(f"readers, segments of {size}", "readers", settings.readers, size) for size in SEGMENTS),
        Company("unfinished heads", "heads", settings.heads),
    ]


def measured(stage: Backdrop, adapter: RunningAdapter, company: Company, settings: Settings, progress: Progress) -> Row:
    """Send the requests of HPAs beside these clients, and return the row. Raises ProcessFailedError."""
    began = time.monotonic() + LEAD_SECONDS + (settings.settle_seconds if company.kind else 0.0)
    until = began + settings.seconds
    hpas = LoadPlan(
        fleet=stage.fleet,
        workload="external",
        endpoint=adapter.endpoint,
        rate=settings.rate,
        start_at=began - LEAD_SECONDS / 2,
        measure_from=began,
        measure_until=until,
        result_file=str(stage.folder / "hpas.outcome.json"),
    )
    with ExitStack() as stack:
        stack.enter_context(on(stage.cores.others))
        clients = stack.enter_context(_slow_clients(stage, adapter, company, until + 1.0))
        progress.wait_until(began - LEAD_SECONDS, f"{company.label}: waiting until all have come")
        plan_file = stage.folder / "hpas.plan.json"
        plan_file.write_bytes(msgspec.json.encode(hpas))
        command = [sys.executable, "-m", "benchmarks.aggregator_client", str(plan_file)]
        client = stack.enter_context(start(command, log_path=stage.folder / "hpas.log", name="hpas", folder=CHECKOUT))
        progress.wait_until(began, f"{company.label}: warming up")
        before = adapter.usage()
        probes = ReadyProbes(adapter, until)
        progress.wait_until(until, f"{company.label}: measuring")
        client.wait(GRACE_SECONDS)
        seconds = probes.seconds()
        after = adapter.usage()
    outcome = msgspec.json.decode(Path(hpas.result_file).read_bytes(), type=Outcome)
    for reason, count in outcome.reasons.items():
        progress.say(f"{company.label}: {count} x {reason}")
    came = msgspec.json.decode(clients.read_bytes(), type=SlowClientsOutcome) if company.kind else None
    return {
        "load": company.label,
        "slow_at_once": came.most_at_once if came else 0,
        "slow_connections": came.connections if came else 0,
        "slow_cut_off": came.cut_off if came else 0,
        "requests": outcome.requests,
        "errors": outcome.errors,
        "rate_per_second": outcome.rate_per_second,
        "p50_ms": outcome.p50_ms,
        "p99_ms": outcome.p99_ms,
        "max_ms": outcome.max_ms,
        "client_delay_p99_ms": outcome.client_delay_p99_ms,
        "readyz_probes": len(seconds),
        "readyz_median_ms": round(1000 * statistics.median(seconds), 2),
        "readyz_max_ms": round(1000 * max(seconds), 2),
        "cpu_seconds": round(after.cpu_seconds - before.cpu_seconds, 2),
        "rss_mib": after.rss_mib,
        "rss_peak_mib": after.peak_mib,
    }


@contextmanager
def _slow_clients(stage: Backdrop, adapter: RunningAdapter, company: Company, end_at: float) -> Iterator[Path]:
    """Run the slow clients; yield the file that holds their outcome after the block."""
    result_file, plan_file = stage.folder / "slow.outcome.json", stage.folder / "slow.plan.json"
    if not company.kind:
        yield result_file
        return
    plan = SlowClientsPlan(
        endpoint=adapter.endpoint,
        kind="readers" if company.kind == "readers" else "heads",
        count=company.count,
        path=discovery_lists.LIST,
        segment_bytes=company.segment_bytes,
        receive_bytes=RECEIVE_BYTES,
        again_seconds=AGAIN_SECONDS,
        end_at=end_at,
        result_file=str(result_file),
    )
    plan_file.write_bytes(msgspec.json.encode(plan))
    command = [sys.executable, "-m", "benchmarks.slow_clients", str(plan_file)]
    with start(command, log_path=stage.folder / "slow.log", name="slow-clients", folder=CHECKOUT) as process:
        yield result_file
        process.wait(GRACE_SECONDS)


class ReadyProbes:
    """Requests `/readyz` as a kubelet does, each time on a new connection."""

    def __init__(self, adapter: RunningAdapter, until: float) -> None:
        self._port = adapter.endpoint.port
        self._context = ssl.create_default_context(cafile=adapter.endpoint.ca_file)
        self._until = until
        self._seconds: list[float] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def seconds(self) -> list[float]:
        """Return how long each request took; infinity stands for one that failed."""
        self._thread.join(GRACE_SECONDS)
        return self._seconds

    def _run(self) -> None:
        while (began := time.monotonic()) < self._until:
            self._seconds.append(time.monotonic() - began if self._is_ready() else float("inf"))
            time.sleep(max(0.0, began + READYZ_EVERY_SECONDS - time.monotonic()))

    def _is_ready(self) -> bool:
        connection = http.client.HTTPSConnection("localhost", self._port, timeout=10.0, context=self._context)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = command_line(NAME, __doc__)
    parser.add_argument(
        "--list-bytes", type=between(2048, 10_000_000), nargs="+", default=[82_000, 2_000_000], help="sizes of the list"
    )
    parser.add_argument("--readers", type=between(1, 3000), default=300, help="clients that do not read")
    parser.add_argument("--heads", type=between(1, 3000), default=1000, help="clients whose heads do not end")
    parser.add_argument("--seconds", type=between(1, 3600), default=30, help="how long each row is measured")
    parser.add_argument("--rate", type=between(1, 10_000), default=667, help="requests of HPAs a second")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
