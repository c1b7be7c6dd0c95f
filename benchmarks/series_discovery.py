"""The cost of series discovery on a large Prometheus: `python -m benchmarks.series_discovery --series 200000`.

The six default rules of prometheus-adapter's Helm chart select series of a whole cluster in a real Prometheus. The
first rows are how soon a new adapter is ready and has its first list, beside the time that Prometheus itself takes for
the same look-ups, and how much memory it takes (`idle`: the same with rules that spell out their series). The others
are how fast it answers while a client requests values and the list of all metrics over TLS: without look-ups (`quiet`),
with the same look-ups by another client (`quiet-prometheus-busy`, which shows the machine's share), and with its own
look-ups, one after another (`relists`). Every answer is checked.
"""

from __future__ import annotations

import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from benchmarks.adapter_stage import CHECKOUT, running_adapter
from benchmarks.cluster_of_series import Cluster
from benchmarks.cores import Cores, on
from benchmarks.options import between, command_line
from benchmarks.prober import RESOURCES, ProbePlan, Requester
from benchmarks.report import report
from benchmarks.running import run
from benchmarks.series_stage import ASKED, ASKED_APP, series_stage
from benchmarks.tally import Outcome
from benchmarks.watched_adapter import WATCH_FILE, seconds_of
from demo.machine.processes import ProcessFailedError, start

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from benchmarks.adapter_stage import RunningAdapter
    from benchmarks.progress import Progress
    from benchmarks.report import Cell, Report, Row
    from benchmarks.series_stage import SeriesStage
    from demo.machine.processes import ManagedProcess

NAME = "series_discovery"
SCRAPED_SECONDS = 180.0
FIRST_LIST_SECONDS = 60.0
SETTLE_SECONDS = 3.0
LEAD_SECONDS = 2.0
VALUE_PERIOD_SECONDS = 0.005
LIST_PERIOD_SECONDS = 0.1
POLL_SECONDS = 0.02
PRODUCT = (str(Path(sys.executable).with_name("tidewatch-adapter")), "serve")
WATCHED = (sys.executable, "-m", "benchmarks.watched_adapter")
NO_RELIST = ("--metrics-relist-interval=1h",)
RELISTS = ("--metrics-relist-interval=1s", "--metrics-max-age=60s")
"""The shortest interval: the pause between two look-ups is as long as a look-up."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The size of the Prometheus, and how often and for how long it is measured."""

    series: int
    seconds: float
    """How long each of the last three rows is measured."""
    starts: int
    scrape_seconds: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its report; return the exit status: 1 if an answer was wrong or missing."""
    options = _options(arguments)
    settings = Settings(options.series, options.seconds, options.starts, options.scrape_seconds)
    return run(NAME, options.output, lambda progress: measure(settings, progress))


def measure(settings: Settings, progress: Progress) -> Report:
    """Run everything and return the report. Raises ProcessFailedError, PrometheusMissingError."""
    cores = Cores.of_this_machine()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tidewatch-bench-")))
        cluster = Cluster.of_series(settings.series)
        stage = stack.enter_context(series_stage(folder, cluster, cores, settings.scrape_seconds))
        progress.say(f"{stage.series:,} series of {stage.names:,} names, {len(stage.expected):,} resources")
        wait_for_series(stage, progress)
        rows = [idle(stage, progress), *(started(stage, progress) for _ in range(settings.starts))]
        rows += undisturbed(stage, settings, progress)
        rows.append(relisting(stage, settings, progress))
        return report(
            NAME,
            rows,
            prometheus=stage.backdrop.prometheus_version(),
            adapter_has_a_core=cores.measured != cores.others,
            series=stage.series,
            names=stage.names,
            resources=len(stage.expected),
        )


def wait_for_series(stage: SeriesStage, progress: Progress) -> None:
    """Wait until Prometheus has scraped every target once. Raises ProcessFailedError."""
    until = time.monotonic() + SCRAPED_SECONDS
    while stage.scraped() < stage.series:
        if time.monotonic() > until:
            raise ProcessFailedError(f"Prometheus has not scraped all series; see {stage.backdrop.prometheus.log_path}")
        progress.wait_until(time.monotonic() + 1.0, "waiting for a scrape of everything")
    progress.say("Prometheus has all series")


def idle(stage: SeriesStage, progress: Progress) -> Row:
    """Return the memory of the same server with a rule that names its series, so that there is nothing to look up."""
    rules = stage.backdrop.folder / "idle.yaml"
    rules.write_text(ASKED.rules("60s"), encoding="utf-8")
    with running_adapter(replace(stage.backdrop.standing, rules=rules), "idle", [*PRODUCT]) as adapter:
        progress.wait_until(time.monotonic() + SETTLE_SECONDS, "idle")
        return {"phase": "idle", "errors": 0, **_memory(adapter)}


def started(stage: SeriesStage, progress: Progress) -> Row:
    """Start the adapter as it is delivered, and return how long it takes to be ready and to list all metrics."""
    plain = stage.plain_look_ups()
    began, asked = time.monotonic(), stage.look_ups()
    with running_adapter(stage.backdrop.standing, "start", [*PRODUCT, *NO_RELIST]) as adapter:
        ready = time.monotonic() - began
        listed_in = _wait_for_list(stage, adapter) - began
        at_list = adapter.usage()
        progress.wait_until(time.monotonic() + SETTLE_SECONDS, "start: settling")
        return {
            "phase": "start",
            "errors": 0,
            "ready_seconds": round(ready, 2),
            "first_list_seconds": round(listed_in, 2),
            "prometheus_seconds": round(plain, 2),
            "cpu_seconds": at_list.cpu_seconds,
            "prometheus_series_lookups": stage.look_ups() - asked,
            **_memory(adapter),
        }


def undisturbed(stage: SeriesStage, settings: Settings, progress: Progress) -> list[Row]:
    """Return how fast answers are without look-ups, while Prometheus is idle and while it is busy."""
    with _watched(stage, "quiet", NO_RELIST) as (adapter, watch_file):
        quiet = _probed("quiet", stage, adapter, watch_file, settings, progress)
        with stage.asked_by_somebody_else():
            return [quiet, _probed("quiet-prometheus-busy", stage, adapter, watch_file, settings, progress)]


def relisting(stage: SeriesStage, settings: Settings, progress: Progress) -> Row:
    """Return how fast answers are while series are looked up all the time."""
    with _watched(stage, "relists", RELISTS) as (adapter, watch_file):
        return _probed("relists", stage, adapter, watch_file, settings, progress)


@contextmanager
def _watched(stage: SeriesStage, name: str, flags: Sequence[str]) -> Iterator[tuple[RunningAdapter, Path]]:
    """Run the product with a watch on its interpreter; yield when its first list is complete."""
    watch_file = stage.backdrop.folder / f"{name}.watch"
    command = ["env", f"{WATCH_FILE}={watch_file}", *WATCHED, *flags]
    with running_adapter(stage.backdrop.standing, name, command) as adapter:
        _wait_for_list(stage, adapter)
        yield adapter, watch_file


def _wait_for_list(stage: SeriesStage, adapter: RunningAdapter) -> float:
    """Return the time, in monotonic seconds, at which the list of metrics was complete. Raises ProcessFailedError."""
    requester, until, last = Requester(adapter.endpoint, FIRST_LIST_SECONDS), time.monotonic() + FIRST_LIST_SECONDS, b""
    try:
        while time.monotonic() < until:
            status, body = requester.get(RESOURCES)
            now = time.monotonic()
            if status == 200 and body != last and _names(body) == stage.expected:
                return now
            last = body
            time.sleep(POLL_SECONDS)
    finally:
        requester.close()
    missing, more = sorted(stage.expected - _names(last)), sorted(_names(last) - stage.expected)
    raise ProcessFailedError(f"the list lacks {len(missing)} {missing[:5]}, and has {len(more)} too many {more[:5]}")


def _names(body: bytes) -> frozenset[str]:
    return frozenset(resource["name"] for resource in msgspec.json.decode(body)["resources"])


def _probed(
    label: str, stage: SeriesStage, adapter: RunningAdapter, watch_file: Path, settings: Settings, progress: Progress
) -> Row:
    began = time.monotonic() + LEAD_SECONDS
    ended = began + settings.seconds
    with ExitStack() as stack:
        plans = _plans(stage, adapter, label, began, ended)
        probers = [stack.enter_context(_prober(stage, plan)) for plan in plans]
        progress.wait_until(began, f"{label}: connecting")
        before, asked = adapter.usage(), stage.look_ups()
        progress.wait_until(ended, f"{label}: measuring")
        after, asked_then = adapter.usage(), stage.look_ups()
        for prober in probers:
            prober.wait(FIRST_LIST_SECONDS)
    values, lists = (msgspec.json.decode(Path(plan.result_file).read_bytes(), type=Outcome) for plan in plans)
    for outcome in (values, lists):
        for reason, count in outcome.reasons.items():
            progress.say(f"{label}: {count} x {reason}")
    seen = [second for second in seconds_of(watch_file) if began <= second.at <= ended]
    return {
        "phase": label,
        "errors": values.errors + lists.errors,
        "seconds": settings.seconds,
        "prometheus_series_lookups": asked_then - asked,
        **_latencies("value", values),
        **_latencies("list", lists),
        "interpreter_pause_max_ms": round(max((second.pause_ms for second in seen), default=0.0), 2),
        "interpreter_held_max_ms": round(max((second.held_ms for second in seen), default=0.0), 2),
        "collection_max_ms": round(max((second.collection_ms for second in seen), default=0.0), 2),
        "cpu_seconds": round(after.cpu_seconds - before.cpu_seconds, 2),
        **_memory(adapter),
    }


def _plans(
    stage: SeriesStage, adapter: RunningAdapter, label: str, began: float, ended: float
) -> tuple[ProbePlan, ProbePlan]:
    folder = stage.backdrop.folder
    list_file = folder / f"{label}.list"
    requester = Requester(adapter.endpoint, FIRST_LIST_SECONDS)
    list_file.write_bytes(requester.get(RESOURCES)[1])
    plan = ProbePlan(
        endpoint=adapter.endpoint,
        fleet=ASKED,
        app=ASKED_APP,
        list_file=str(list_file),
        period_seconds=VALUE_PERIOD_SECONDS,
        start_at=began,
        end_at=ended,
        result_file=str(folder / f"{label}.values.json"),
    )
    # The first request waits for Prometheus; only later ones are measured.
    requester.get(plan.path)
    requester.close()
    lists = msgspec.structs.replace(
        plan, app=None, period_seconds=LIST_PERIOD_SECONDS, result_file=str(folder / f"{label}.lists.json")
    )
    return plan, lists


@contextmanager
def _prober(stage: SeriesStage, plan: ProbePlan) -> Iterator[ManagedProcess]:
    plan_file = Path(plan.result_file).with_suffix(".plan")
    plan_file.write_bytes(msgspec.json.encode(plan))
    command = [sys.executable, "-m", "benchmarks.prober", str(plan_file)]
    log_path = plan_file.with_suffix(".log")
    with (
        on(stage.backdrop.cores.others),
        start(command, log_path=log_path, name="prober", folder=CHECKOUT) as process,
    ):
        yield process


def _latencies(what: str, outcome: Outcome) -> dict[str, Cell]:
    return {
        f"{what}_requests": outcome.requests,
        f"{what}_p50_ms": outcome.p50_ms,
        f"{what}_p99_ms": outcome.p99_ms,
        f"{what}_max_ms": outcome.max_ms,
    }


def _memory(adapter: RunningAdapter) -> dict[str, Cell]:
    usage = adapter.usage()
    return {"rss_mib": usage.rss_mib, "rss_peak_mib": usage.peak_mib, "pss_mib": usage.pss_mib}


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = command_line(NAME, __doc__)
    parser.add_argument("--series", type=between(1, 2_000_000), default=200_000, help="series in Prometheus, about")
    parser.add_argument("--seconds", type=between(1, 3600), default=30, help="how long answers are timed in each phase")
    parser.add_argument("--starts", type=between(1, 20), default=3, help="how often a fresh adapter is timed")
    parser.add_argument("--scrape-seconds", type=between(1, 60), default=30, help="Prometheus's scrape interval")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
