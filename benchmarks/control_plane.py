"""The adapter behind a real API server, and its cost there: `python -m benchmarks.control_plane --hpas 200`.

There are two replicas, as the chart installs them. The rows are:

- `hpas`: HPAs on Pods metrics, each of which the real HPA controller looks at every 15 seconds. Requests and their
  latencies are those of the API server's audit log, and so are the adapter's own requests to the API server; queries
  are counted by Prometheus itself. `requests_expected` is the HPAs' share of the measured time, which is a little
  longer than `--seconds`: 801 of 200 HPAs in 60.1 s. Requests that were not answered with 200 are `errors`.
- `list…`, `aggregated-discovery…`, `api-resources…`: discovery with thousands of metrics, and without the adapter.

It needs the programs that `make e2e` builds, and Linux namespaces.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks import control_plane_discovery as discovery
from benchmarks.control_plane_audit import asked_by_adapter, asked_by_hpas
from benchmarks.control_plane_fleet import RULE, App, deployed, fleet, told
from benchmarks.control_plane_stage import (
    LISTS,
    PATIENCE_SECONDS,
    SYNC_SECONDS,
    NotPreparedError,
    Stage,
    enter_network,
    installed,
    standing,
)
from benchmarks.options import between, command_line
from benchmarks.report import report
from benchmarks.running import run
from tests.e2e.controlplane.cluster import KubectlError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.control_plane_discovery import Timed
    from benchmarks.control_plane_stage import Installed
    from benchmarks.progress import Progress
    from benchmarks.report import Report, Row

NAME: Final = "control_plane"
APPS_A_NAMESPACE: Final = 20
WARM_UP_ROUNDS: Final = 2
GRACE_SECONDS: Final = 2.0
"""The time allowed for answers that are under way at the end of the measurement."""
ASKED_TIMES: Final = 20
KUBECTL_TIMES: Final = 10
EXTERNAL: Final = "external.metrics.k8s.io/v1beta1"


@dataclass(frozen=True, slots=True)
class Settings:
    """The HPAs, and how long they are watched."""

    hpas: int
    seconds: float
    metrics: int


@dataclass(frozen=True, slots=True)
class Measured:
    """A period of time, and what was counted in it besides the audit log."""

    since: datetime
    until: datetime
    queries: int
    look_ups: int
    cpu_seconds: float
    rss_mib: float

    @property
    def seconds(self) -> float:
        return (self.until - self.since).total_seconds()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its report; return the exit status: 1 if an answer was wrong or missing."""
    options = _options(arguments)
    settings = Settings(options.hpas, options.seconds, options.metrics // 2 * 2)

    def measured(progress: Progress) -> Report:
        enter_network()
        return measure(settings, progress)

    return run(NAME, options.output, measured, (NotPreparedError, AssertionError, KubectlError))


def measure(settings: Settings, progress: Progress) -> Report:
    """Run everything and return the report. Raises ProcessFailedError, and AssertionError if a wait timed out."""
    with tempfile.TemporaryDirectory(prefix="tidewatch-bench-") as folder, standing(Path(folder)) as stage:
        progress.say("the control plane stands")
        rows = [*of_discovery(stage, settings, progress), of_hpas(stage, settings, progress)]
        version = stage.cluster.client.get("/version")["gitVersion"]
        return report(NAME, rows, kubernetes=version, prometheus=stage.prometheus_version())


def of_hpas(stage: Stage, settings: Settings, progress: Progress) -> Row:
    """Return the row of many HPAs."""
    apps = fleet(settings.hpas, -(-settings.hpas // APPS_A_NAMESPACE), "many")
    with installed(stage, RULE) as adapter, deployed(stage, apps):

        def wrong() -> list[App]:
            return [app for app, value in told(stage, apps).items() if value != str(app.value)]

        stage.cluster.wait_for("the right value in every HPA", lambda: not wrong(), PATIENCE_SECONDS, why_not=wrong)
        progress.say(f"{len(apps)} HPAs show the right values")
        progress.wait_until(time.monotonic() + WARM_UP_ROUNDS * SYNC_SECONDS, "hpas: warming up")
        measured = watched(stage, adapter, settings.seconds, progress)
        return row_of_hpas(stage, adapter, apps, measured, len(wrong()))


def watched(stage: Stage, adapter: Installed, seconds: float, progress: Progress) -> Measured:
    """Wait for some seconds, and return what was counted meanwhile."""
    since, asked, before = datetime.now(UTC), stage.asked(), adapter.usage()
    progress.wait_until(time.monotonic() + seconds, "hpas: measuring")
    until, asked_then, after = datetime.now(UTC), stage.asked(), adapter.usage()
    progress.wait_until(time.monotonic() + GRACE_SECONDS, "hpas: waiting for the last answers")
    return Measured(
        since,
        until,
        asked_then["/api/v1/query"] - asked["/api/v1/query"],
        asked_then["/api/v1/series"] - asked["/api/v1/series"],
        round(after.cpu_seconds - before.cpu_seconds, 2),
        after.rss_mib,
    )


def row_of_hpas(stage: Stage, adapter: Installed, apps: Sequence[App], measured: Measured, wrong: int) -> Row:
    """Return the row, with the requests in the audit log during the measured time."""
    events = stage.cluster.audit_events()
    asked = asked_by_hpas(events, measured.since, measured.until)
    own = asked_by_adapter(events, adapter.account, measured.since, measured.until)
    minutes = measured.seconds / 60
    return {
        "load": "hpas",
        "hpas": len(apps),
        "replicas": len(adapter.pods),
        "seconds": round(measured.seconds, 1),
        "requests_expected": round(len(apps) * measured.seconds / SYNC_SECONDS),
        "requests": asked.requests,
        "rate_per_second": round(asked.codes[200] / measured.seconds, 1),
        "errors": asked.errors + wrong,
        "p50_ms": asked.p50_ms,
        "p99_ms": asked.p99_ms,
        "max_ms": asked.max_ms,
        "prometheus_queries": measured.queries,
        "prometheus_queries_per_minute": round(measured.queries / minutes, 1),
        "prometheus_series_lookups": measured.look_ups,
        "api_requests": own.requests,
        "api_lists": len(own.lists),
        "api_watches": len(own.watches),
        "api_reviews": own.reviews,
        "api_others": len(own.others),
        "cpu_seconds": measured.cpu_seconds,
        "rss_mib": measured.rss_mib,
        "load_average_1m": round(os.getloadavg()[0], 2),
    }


def of_discovery(stage: Stage, settings: Settings, progress: Progress) -> Iterator[Row]:
    """Yield the rows about discovery, without the adapter and with it."""
    cluster = stage.cluster
    yield discovered("aggregated-discovery-without-adapter", 0, lambda: _aggregated(stage), ASKED_TIMES)
    yield discovered("api-resources-without-adapter", 0, lambda: _resources(stage), KUBECTL_TIMES)
    count = settings.metrics
    with discovery.exported(stage, count), installed(stage, discovery.RULE) as adapter:
        discovery.wait_for_lists(cluster, count)
        cluster.wait_for("the adapter's group versions", lambda: _ours() <= _known(stage), PATIENCE_SECONDS)
        progress.say(f"{count:,} metrics are listed by both replicas")
        yield discovered("list", count, lambda: _list(stage, count), ASKED_TIMES)
        yield discovered("list-by-kubectl", count, lambda: _list_by_kubectl(stage, count), KUBECTL_TIMES)
        yield discovered("aggregated-discovery", count, lambda: _aggregated(stage), ASKED_TIMES)
        row = discovered("api-resources", count, lambda: _resources(stage), KUBECTL_TIMES)
        yield {**row, "rss_mib": adapter.usage().rss_mib}


def discovered(load: str, metrics: int, ask: Callable[[], int | None], times: int) -> Row:
    """Return a row about discovery; `ask` returns the size of a good answer, and None for any other."""
    found: Timed = discovery.timed(ask, times)
    return {
        "load": load,
        "metrics": metrics,
        "requests": times,
        "errors": found.errors,
        "p50_ms": found.milliseconds(0.5),
        "p99_ms": found.milliseconds(0.99),
        "max_ms": found.milliseconds(1.0),
        "bytes": found.size,
        "load_average_1m": round(os.getloadavg()[0], 2),
    }


def _ours() -> set[str]:
    return {path.removeprefix("/apis/") for path in LISTS} | {EXTERNAL}


def _known(stage: Stage) -> set[str]:
    return set(discovery.freshness(discovery.aggregated(stage.cluster).document))


def _aggregated(stage: Stage) -> int | None:
    reply = discovery.aggregated(stage.cluster)
    whole = reply.status == 200 and set(discovery.freshness(reply.document).values()) == {"Current"}
    return len(reply.body) if whole else None


def _list(stage: Stage, count: int) -> int | None:
    reply = stage.cluster.client.ask("GET", LISTS[0])
    whole = reply.status == 200 and len(reply.document["resources"]) == count
    return len(reply.body) if whole else None


def _list_by_kubectl(stage: Stage, count: int) -> int | None:
    text = stage.cluster.kubectl("get", "--raw", LISTS[0])
    return len(text) if text.count('"name":') == count else None


def _resources(stage: Stage) -> int | None:
    # It ends with an error, and raises here, if a group version is not available.
    return len(stage.cluster.kubectl("api-resources"))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = command_line(NAME, __doc__)
    parser.add_argument("--hpas", type=between(1, 1000), default=200, help="apps, each with one pod and an HPA")
    parser.add_argument("--seconds", type=between(15, 3600), default=60, help="how long the HPAs are measured")
    parser.add_argument(
        "--metrics", type=between(2, 50_000), default=5_000, help="metrics that are listed, an even number"
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
