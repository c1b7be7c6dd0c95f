"""How fast discovery answers while it lists thousands of metrics: `python -m benchmarks.discovery_lists`.

A real Prometheus holds series of as many names as the metrics need, `tidewatch-adapter serve` finds them, and a client
sends the requests of kube-apiserver: the list of metrics compressed, five times at once (the check whether the API is
available); the list uncompressed (as servers that do not know aggregated discovery request it); and `/apis` in the
aggregated form. Meanwhile HPAs request External metrics, and each scrape adds a series with a new name, so that the
lists are continually rebuilt.

Every answer is checked, and latency counts from the moment at which the request was due.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from benchmarks.adapter_stage import CHECKOUT, Backdrop, product
from benchmarks.aggregator_client import LoadPlan
from benchmarks.cores import Cores, on
from benchmarks.discovery_client import DiscoveryPlan, Found, Stream, StreamClient
from benchmarks.fleet_of_pods import Fleet
from benchmarks.options import command_line
from benchmarks.report import report
from benchmarks.running import run
from benchmarks.tally import Outcome
from demo.machine.http_answers import serving
from demo.machine.processes import ProcessFailedError, start
from demo.machine.prometheus import running_prometheus

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from benchmarks.adapter_stage import RunningAdapter
    from benchmarks.progress import Progress
    from benchmarks.report import Report, Row
    from benchmarks.usage import Usage

NAME = "discovery_lists"
LIST = "/apis/custom.metrics.k8s.io/v1beta1"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
SERIES = "shown_load"
METRICS_A_NAME = 2
"""Each name yields a metric of pods and one of their namespace."""
LEAD_SECONDS = 3.0
"""The time in which the clients begin; requests during this time are not counted."""
FOUND_SECONDS = 120.0
GRACE_SECONDS = 30.0
FLEET = Fleet(apps=200, pods_per_app=1, metrics=1, namespaces=20)

_RULE = f"""\
- seriesQuery: '{{__name__=~"^{SERIES}_.*",namespace!="",pod!=""}}'
  resources: {{overrides: {{namespace: {{resource: namespace}}, pod: {{resource: pod}}}}}}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{{<<.LabelMatchers>>}})'
"""


@dataclass(frozen=True, slots=True)
class Settings:
    """The lists, their readers, and how long they are measured."""

    metrics: int
    seconds: float
    hpa_rate: float
    """Requests of HPAs a second."""
    every_seconds: float
    """Seconds between two rounds of discovery."""
    relist_seconds: int
    scrape_seconds: int = 5


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its report; return the exit status: 1 if an answer was wrong or missing."""
    options = _options(arguments)
    settings = Settings(options.metrics, options.seconds, options.hpa_rate, options.every, options.relist_seconds)
    return run(NAME, options.output, lambda progress: measure(settings, progress))


def measure(settings: Settings, progress: Progress) -> Report:
    """Run everything and return the report. Raises ProcessFailedError, PrometheusMissingError."""
    cores = Cores.of_this_machine()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tidewatch-bench-")))
        stage = stack.enter_context(standing(folder, settings, cores))
        adapter = stack.enter_context(adapter_before(stage, settings))
        wait_for_list(adapter, settings, progress)
        rows = measured(stage, adapter, settings, progress)
        return report(
            NAME, rows, prometheus=stage.prometheus_version(), adapter_has_a_core=cores.measured != cores.others
        )


@contextmanager
def standing(folder: Path, settings: Settings, cores: Cores) -> Iterator[Backdrop]:
    """Run an exporter of all names and a Prometheus that scrapes it."""
    rules, objects = folder / "rules.yaml", folder / "objects"
    rules.write_text(f"rules:\n{_RULE}{FLEET.rules('60s').removeprefix('rules:').lstrip()}", encoding="utf-8")
    FLEET.write_objects(objects)
    with on(cores.others), exporter(settings.metrics // METRICS_A_NAME) as port:
        scrape = {"job_name": "names", "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}
        with running_prometheus(
            folder / "prometheus",
            scrape_configs=[scrape],
            scrape_interval=f"{settings.scrape_seconds}s",
            retention="1h",
        ) as prometheus:
            yield Backdrop(folder, FLEET, cores, prometheus, rules, objects)


@contextmanager
def adapter_before(stage: Backdrop, settings: Settings) -> Iterator[RunningAdapter]:
    """Run `tidewatch-adapter serve`, which looks for series as often as the settings say."""
    name = "TIDEWATCH_FLAG_METRICS_RELIST_INTERVAL"
    before = os.environ.get(name)
    os.environ[name] = f"{settings.relist_seconds}s"
    try:
        with product(stage) as adapter:
            yield adapter
    finally:
        os.environ.pop(name)
        if before is not None:
            os.environ[name] = before


@contextmanager
def exporter(names: int) -> Iterator[int]:
    """Serve the fleet's gauges and series of `names` names, plus one new name with each scrape; yield the port."""
    scrapes = 0
    pod = f'{{namespace="{FLEET.namespace(0)}",pod="{FLEET.pod(0, 0)}"}}'
    gauges = "".join(FLEET.gauge_lines(range(FLEET.apps)))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            nonlocal scrapes
            text = "".join(f"{SERIES}_{number:06d}_per_second{pod} 1\n" for number in range(names + scrapes))
            scrapes += 1
            # A scrape that fails on a busy machine must not end the series whose values are requested.
            stamped = gauges.replace("\n", f" {time.time() * 1000:.0f}\n")
            body = (stamped + text).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_arguments: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with serving(server):
        yield server.server_address[1]


def wait_for_list(adapter: RunningAdapter, settings: Settings, progress: Progress) -> None:
    """Wait until all metrics are listed. Raises ProcessFailedError."""
    until = time.monotonic() + FOUND_SECONDS
    (plain, *_) = streams(settings)
    while True:
        now = time.monotonic()
        plan = DiscoveryPlan(
            endpoint=adapter.endpoint,
            streams=[],
            start_at=now,
            measure_from=now,
            measure_until=now + plain.every_seconds / 2,
            result_file="",
        )
        client = StreamClient(plan, plain)
        for thread in (threads := client.threads()):
            thread.start()
        for thread in threads:
            thread.join()
        if client.found().outcome.errors == 0:
            progress.say(f"{client.found().entries:,} metrics are listed")
            return
        if now > until:
            raise ProcessFailedError(f"not all metrics are listed: {client.found().outcome.reasons}")
        progress.wait_until(now + 1.0, "waiting until all metrics are listed")


def streams(settings: Settings) -> list[Stream]:
    """Return the requests of kube-apiserver."""
    every, listed = settings.every_seconds, settings.metrics
    kind, gzip = "APIResourceList", {"Accept-Encoding": "gzip"}
    return [
        Stream(
            name="list-plain",
            path=LIST,
            headers={"Accept": "application/json"},
            at_once=1,
            every_seconds=every,
            offset_seconds=every / 6,
            kind=kind,
            compressed=False,
            entries=listed,
        ),
        Stream(
            name="list-gzip-5-at-once",
            path=LIST,
            headers=gzip,
            at_once=5,
            every_seconds=every,
            offset_seconds=every / 2,
            kind=kind,
            compressed=True,
            entries=listed,
        ),
        Stream(
            name="groups",
            path="/apis",
            headers={"Accept": AGGREGATED, **gzip},
            at_once=1,
            every_seconds=every,
            offset_seconds=5 * every / 6,
            kind="APIGroupDiscoveryList",
            compressed=True,
            entries=0,
        ),
    ]


def measured(stage: Backdrop, adapter: RunningAdapter, settings: Settings, progress: Progress) -> list[Row]:
    """Send everything at once and return one row for each kind of request. Raises ProcessFailedError."""
    began = time.monotonic() + LEAD_SECONDS
    until = began + settings.seconds
    discovery = DiscoveryPlan(
        endpoint=adapter.endpoint,
        streams=streams(settings),
        start_at=began - LEAD_SECONDS / 2,
        measure_from=began,
        measure_until=until,
        result_file=str(stage.folder / "discovery.outcome.json"),
    )
    hpas = LoadPlan(
        fleet=FLEET,
        workload="external",
        endpoint=adapter.endpoint,
        rate=settings.hpa_rate,
        start_at=began - LEAD_SECONDS / 2,
        measure_from=began,
        measure_until=until,
        connections=10,
        result_file=str(stage.folder / "hpas.outcome.json"),
    )
    before = _run(stage, adapter, {"discovery_client": discovery, "aggregator_client": hpas}, progress)
    after = adapter.usage()
    found = msgspec.json.decode(Path(discovery.result_file).read_bytes(), type=dict[str, Found])
    asked = msgspec.json.decode(Path(hpas.result_file).read_bytes(), type=Outcome)
    rows = [_row(name, one.outcome, one, progress) for name, one in found.items()]
    rows.append(_row("hpas", asked, None, progress))
    cpu = round(after.cpu_seconds - before.cpu_seconds, 2)
    return [{**row, "cpu_seconds": cpu, "rss_mib": after.rss_mib, "rss_peak_mib": after.peak_mib} for row in rows]


def _run(
    stage: Backdrop, adapter: RunningAdapter, plans: dict[str, DiscoveryPlan | LoadPlan], progress: Progress
) -> Usage:
    """Run the clients until they end; return the adapter's usage from before the measured time."""
    (plan, *_) = plans.values()
    with ExitStack() as stack:
        stack.enter_context(on(stage.cores.others))
        clients = []
        for module, one in plans.items():
            file, log = stage.folder / f"{module}.plan.json", stage.folder / f"{module}.log"
            file.write_bytes(msgspec.json.encode(one))
            command = [sys.executable, "-m", f"benchmarks.{module}", str(file)]
            clients.append(stack.enter_context(start(command, log_path=log, name=module, folder=CHECKOUT)))
        progress.wait_until(plan.measure_from, "warming up")
        before = adapter.usage()
        progress.wait_until(plan.measure_until, "measuring")
        for client in clients:
            client.wait(GRACE_SECONDS)
    return before


def _row(name: str, outcome: Outcome, found: Found | None, progress: Progress) -> Row:
    for reason, count in outcome.reasons.items():
        progress.say(f"{name}: {count} x {reason}")
    return {
        "load": name,
        "metrics": found.entries or None if found else None,
        "bytes": found.bytes if found else None,
        "documents": found.documents if found else None,
        "requests": outcome.requests,
        "rate_per_second": outcome.rate_per_second,
        "errors": outcome.errors,
        "p50_ms": outcome.p50_ms,
        "p99_ms": outcome.p99_ms,
        "max_ms": outcome.max_ms,
        "client_delay_p99_ms": outcome.client_delay_p99_ms,
    }


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = command_line(NAME, __doc__)
    parser.add_argument("--metrics", type=int, default=5000, help="metrics that are listed at least")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long is measured")
    parser.add_argument("--hpa-rate", type=float, default=100.0, help="requests of HPAs a second")
    parser.add_argument("--every", type=float, default=0.25, help="seconds between two rounds of discovery")
    parser.add_argument("--relist-seconds", type=int, default=5, help="how often the adapter looks for series")
    options = parser.parse_args(arguments)
    if not (options.metrics >= METRICS_A_NAME and min(options.seconds, options.hpa_rate, options.every) > 0):
        parser.error(f"at least {METRICS_A_NAME} metrics, and times and rates above 0, are needed")
    if options.relist_seconds < 1:
        parser.error("--relist-seconds must be 1 or more")
    return options


if __name__ == "__main__":
    sys.exit(main())
