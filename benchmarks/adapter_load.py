"""How many HPAs one adapter on one core serves, and how fast: `python -m benchmarks.adapter_load --hpas 10000`.

A real Prometheus scrapes pods of known values, `tidewatch-adapter serve` answers from it, and a client asks as the API
server's aggregator does: for each HPA, for its own app's pods, every 15 seconds (open loop: latency counts from the
moment at which the request was due). Every answer is checked: its status, its pods, and each value.

The rows are Pods metrics; External metrics, where each requester has a selector of its own on one metric; CPU and
memory of each app's pods, as HPAs on utilisation request them; and a reference, which is the same server without a
memory: it asks Prometheus once for each request (`live_adapter`), at a rate that it sustains.
"""

from __future__ import annotations

import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from benchmarks.adapter_stage import CHECKOUT, backdrop, is_scraped, product, reference
from benchmarks.aggregator_client import LoadPlan
from benchmarks.cores import Cores, on
from benchmarks.fleet_of_pods import Fleet
from benchmarks.options import between, command_line
from benchmarks.report import report
from benchmarks.running import run
from benchmarks.tally import Outcome
from demo.machine.processes import ProcessFailedError, start

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from benchmarks.adapter_stage import Backdrop, RunningAdapter
    from benchmarks.progress import Progress
    from benchmarks.report import Report, Row

NAME = "adapter_load"
SYNC_SECONDS = 15.0
"""How often kube-controller-manager looks at an HPA."""
WARM_UP_ROUNDS = 2
"""The first round brings everything into demand; the second shows the adapter how often requests come back."""
LEAD_SECONDS = 1.0
"""The time in which the client opens its connections."""
GRACE_SECONDS = 30.0
REFERENCE_RATE = 100.0
REFERENCE_SECONDS = 20.0
REFERENCE_WARM_UP_SECONDS = 2.0
SCRAPES_TO_WAIT = 8

Workload = Literal["pods", "external", "resource"]


@dataclass(frozen=True, slots=True)
class Settings:
    """The load, and how long it is measured."""

    fleet: Fleet
    seconds: float
    rate: float
    """Requests a second."""
    scrape_seconds: int
    connections: int


@dataclass(frozen=True, slots=True)
class Load:
    """A row that is to be measured."""

    label: str
    workload: Workload
    adapter: Callable[[Backdrop], AbstractContextManager[RunningAdapter]]
    rate: float
    warm_up_seconds: float
    seconds: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its report; return the exit status: 1 if an answer was wrong or missing."""
    options = _options(arguments)
    fleet = Fleet(apps=options.hpas, pods_per_app=options.pods_per_app, metrics=options.rules)
    settings = Settings(
        fleet, options.seconds, options.rate or options.hpas / SYNC_SECONDS, options.scrape_seconds, options.connections
    )
    return run(NAME, options.output, lambda progress: measure(settings, progress))


def measure(settings: Settings, progress: Progress) -> Report:
    """Run everything and return the report. Raises ProcessFailedError, PrometheusMissingError."""
    cores = Cores.of_this_machine()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tidewatch-bench-")))
        fleet = settings.fleet
        progress.say(f"{fleet.apps:,} apps, {fleet.pods:,} pods, {fleet.pods * fleet.metrics + fleet.apps:,} series")
        stage = stack.enter_context(backdrop(folder, fleet, cores, settings.scrape_seconds))
        wait_for_series(stage, settings.scrape_seconds, progress)
        rows = [measured(stage, load, settings, progress) for load in loads(settings)]
        return report(
            NAME, rows, prometheus=stage.prometheus_version(), adapter_has_a_core=cores.measured != cores.others
        )


def loads(settings: Settings) -> list[Load]:
    """Return what is measured, in order."""
    round_seconds = settings.fleet.apps / settings.rate
    warm_up = WARM_UP_ROUNDS * round_seconds
    slow = min(settings.rate, REFERENCE_RATE)
    short = min(settings.seconds, REFERENCE_SECONDS)
    return [
        Load("pods", "pods", product, settings.rate, warm_up, settings.seconds),
        Load("external", "external", product, settings.rate, warm_up, settings.seconds),
        Load("resource", "resource", product, settings.rate, warm_up, settings.seconds),
        Load("reference-query-per-request", "pods", reference, slow, REFERENCE_WARM_UP_SECONDS, short),
    ]


def wait_for_series(stage: Backdrop, scrape_seconds: int, progress: Progress) -> None:
    """Wait until Prometheus returns every value correctly. Raises ProcessFailedError."""
    until = time.monotonic() + SCRAPES_TO_WAIT * scrape_seconds + GRACE_SECONDS
    while not is_scraped(stage):
        if time.monotonic() > until:
            raise ProcessFailedError(f"Prometheus has not scraped all series; see {stage.prometheus.log_path}")
        progress.wait_until(time.monotonic() + 1.0, "waiting until every counter has been scraped for a whole window")
    progress.say("Prometheus has all series")


def measured(stage: Backdrop, load: Load, settings: Settings, progress: Progress) -> Row:
    """Run one load on an adapter of its own and return its row. Raises ProcessFailedError."""
    with load.adapter(stage) as adapter:
        progress.say(f"{load.label}: {load.rate:,.0f} requests/s, {load.warm_up_seconds:.0f} s to warm up")
        began = time.monotonic() + LEAD_SECONDS
        plan = LoadPlan(
            fleet=settings.fleet,
            workload=load.workload,
            endpoint=adapter.endpoint,
            rate=load.rate,
            start_at=began,
            measure_from=began + load.warm_up_seconds,
            measure_until=began + load.warm_up_seconds + load.seconds,
            connections=settings.connections,
            result_file=str(stage.folder / f"{load.label}.outcome.json"),
        )
        return _row(stage, adapter, load, plan, progress)


def _row(stage: Backdrop, adapter: RunningAdapter, load: Load, plan: LoadPlan, progress: Progress) -> Row:
    plan_file = stage.folder / f"{load.label}.plan.json"
    plan_file.write_bytes(msgspec.json.encode(plan))
    command = [sys.executable, "-m", "benchmarks.aggregator_client", str(plan_file)]
    log_path = stage.folder / f"{load.label}.client.log"
    with on(stage.cores.others), start(command, log_path=log_path, name="client", folder=CHECKOUT) as client:
        progress.wait_until(plan.measure_from, f"{load.label}: warming up")
        began, before, asked, served = time.monotonic(), adapter.usage(), stage.asked(), stage.usage()
        progress.wait_until(plan.measure_until, f"{load.label}: measuring")
        after, asked_then, served_then = adapter.usage(), stage.asked(), stage.usage()
        counted_seconds = time.monotonic() - began
        client.wait(plan.timeout_seconds + GRACE_SECONDS)
    outcome = msgspec.json.decode(Path(plan.result_file).read_bytes(), type=Outcome)
    for reason, count in outcome.reasons.items():
        progress.say(f"{load.label}: {count} x {reason}")
    cpu = after.cpu_seconds - before.cpu_seconds
    return {
        "load": load.label,
        "hpas": plan.fleet.apps,
        "pods": plan.fleet.pods,
        "rules": plan.fleet.metrics,
        "seconds": load.seconds,
        "offered_per_second": round(load.rate, 1),
        "rate_per_second": outcome.rate_per_second,
        "requests": outcome.requests,
        "good_ratio": round(outcome.good / outcome.requests, 6) if outcome.requests else None,
        "errors": outcome.errors,
        "warm_up_errors": outcome.warm_up_errors,
        "cold_start_seconds": outcome.cold_start_seconds,
        "p50_ms": outcome.p50_ms,
        "p99_ms": outcome.p99_ms,
        "max_ms": outcome.max_ms,
        "client_delay_p99_ms": outcome.client_delay_p99_ms,
        "answer_age_max_seconds": outcome.answer_age_max_seconds,
        "counted_seconds": round(counted_seconds, 1),
        "prometheus_queries": asked_then["/api/v1/query"] - asked["/api/v1/query"],
        "prometheus_series_lookups": asked_then["/api/v1/series"] - asked["/api/v1/series"],
        "prometheus_cpu_seconds": round(served_then.cpu_seconds - served.cpu_seconds, 2),
        "cpu_seconds": round(cpu, 2),
        "cpu_ms_per_answer": round(1000 * cpu / outcome.good, 3) if outcome.good else None,
        "rss_mib": after.rss_mib,
        "rss_peak_mib": after.peak_mib,
        "pss_mib": after.pss_mib,
    }


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = command_line(NAME, __doc__)
    parser.add_argument("--hpas", type=between(1, 90_000), default=10_000, help="apps, each with an HPA")
    parser.add_argument("--seconds", type=between(1, 3600), default=60, help="how long each load is measured")
    parser.add_argument("--rate", type=between(1, 10_000), help="requests a second (default: HPAS / 15)")
    parser.add_argument("--rules", type=between(1, 50), default=5, help="rules for Pods metrics")
    parser.add_argument("--pods-per-app", type=between(1, 1000), default=5)
    parser.add_argument("--connections", type=between(1, 500), default=25, help="connections of the client")
    parser.add_argument("--scrape-seconds", type=between(1, 60), default=15, help="Prometheus's scrape interval")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
