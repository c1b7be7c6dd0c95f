"""The processes around the load test of the adapter: exporters, Prometheus, and an adapter with a core of its own."""

from __future__ import annotations

import json
import re
import sys
import urllib.parse
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from benchmarks.aggregator_client import Endpoint
from benchmarks.cores import on
from benchmarks.exporters import ExporterPlan
from benchmarks.fleet_of_pods import COUNTER, QUEUE
from benchmarks.usage import usage
from demo.machine.certificates import Authority
from demo.machine.ports import answers, fetched, free_port
from demo.machine.processes import start
from demo.machine.prometheus import running_prometheus

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.cores import Cores
    from benchmarks.fleet_of_pods import Fleet
    from benchmarks.usage import Usage
    from demo.machine.processes import ManagedProcess
    from demo.machine.prometheus import PrometheusProcess

CHECKOUT = Path(__file__).resolve().parents[1]
FRONT_PROXY = "front-proxy-client"
READY_SECONDS = 60.0
APPS_PER_TARGET = 1000
SCRAPES_IN_A_WINDOW = 4
_COUNTED = re.compile(r'prometheus_http_requests_total\{code="\d+",handler="(/api/v1/query|/api/v1/series)"\} (\S+)')


@dataclass(frozen=True, slots=True)
class Standing:
    """The folder, cores, Prometheus, files and flags that an adapter runs with."""

    folder: Path
    cores: Cores
    prometheus_url: str
    rules: Path
    objects: Path
    flags: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Backdrop:
    """The servers that an adapter needs, and the folder of its files."""

    folder: Path
    fleet: Fleet
    cores: Cores
    prometheus: PrometheusProcess
    rules: Path
    objects: Path

    @property
    def standing(self) -> Standing:
        """The surroundings of an adapter that uses these servers."""
        return Standing(self.folder, self.cores, self.prometheus.url, self.rules, self.objects)

    def asked(self) -> dict[str, int]:
        """Return how many requests Prometheus has counted, by handler."""
        counted = dict.fromkeys(("/api/v1/query", "/api/v1/series"), 0)
        for handler, value in _COUNTED.findall(fetched(f"{self.prometheus.url}/metrics").decode()):
            counted[handler] += int(float(value))
        return counted

    def usage(self) -> Usage:
        """Return the processor time and memory that Prometheus takes."""
        return usage(self.prometheus.pid)

    def prometheus_version(self) -> str:
        """Return the version that Prometheus reports."""
        return str(_data(f"{self.prometheus.url}/api/v1/status/buildinfo")["version"])


@dataclass(frozen=True, slots=True)
class RunningAdapter:
    """An adapter that answers."""

    process: ManagedProcess
    endpoint: Endpoint

    def usage(self) -> Usage:
        """Return the processor time and memory that the adapter's processes take."""
        return usage(self.process.pid)


@contextmanager
def backdrop(folder: Path, fleet: Fleet, cores: Cores, scrape_seconds: int) -> Iterator[Backdrop]:
    """Run exporters and Prometheus; yield when Prometheus has all series and can calculate their rates."""
    rules, objects = folder / "rules.yaml", folder / "objects"
    rules.write_text(fleet.rules(f"{SCRAPES_IN_A_WINDOW * scrape_seconds}s"), encoding="utf-8")
    fleet.write_objects(objects)
    with ExitStack() as stack:
        stack.enter_context(on(cores.others))
        targets = -(-fleet.apps // APPS_PER_TARGET)
        port = stack.enter_context(_exporters(folder, fleet, targets))
        scrape = {"static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}
        scrapes = [{"job_name": f"apps-{n}", "metrics_path": f"/{n}", **scrape} for n in range(targets)]
        prometheus = stack.enter_context(
            running_prometheus(
                folder / "prometheus", scrape_configs=scrapes, scrape_interval=f"{scrape_seconds}s", retention="1h"
            )
        )
        yield Backdrop(folder, fleet, cores, prometheus, rules, objects)


def is_scraped(stage: Backdrop) -> bool:
    """Return whether Prometheus has every series, and the counters for a whole window.

    Before that, `rate()` returns less than the true rate, which would look like a fault of the adapter.
    """
    fleet, window = stage.fleet, SCRAPES_IN_A_WINDOW * _scrape_seconds(stage)
    wanted = {
        f"count(rate({COUNTER}[{window}s]))": fleet.pods,
        f"count({COUNTER} offset {window}s)": fleet.pods,
        f"count({QUEUE})": fleet.apps,
    }
    if fleet.metrics > 1:
        wanted[f"count({fleet.metric_name(fleet.metrics - 1)})"] = fleet.pods
    return all(_number(stage.prometheus.url, query) == count for query, count in wanted.items())


@contextmanager
def product(stage: Backdrop) -> Iterator[RunningAdapter]:
    """Run `tidewatch-adapter serve` as it is delivered, with its defaults."""
    command = [str(Path(sys.executable).with_name("tidewatch-adapter")), "serve"]
    with running_adapter(stage.standing, "adapter", command) as running:
        yield running


@contextmanager
def reference(stage: Backdrop) -> Iterator[RunningAdapter]:
    """Run the same server with one difference: it asks Prometheus with each request (`live_adapter`)."""
    with running_adapter(stage.standing, "live-adapter", [sys.executable, "-m", "benchmarks.live_adapter"]) as running:
        yield running


@contextmanager
def running_adapter(stage: Standing, name: str, command: list[str]) -> Iterator[RunningAdapter]:
    """Run an adapter with this command and the stage's flags; yield when it is ready."""
    folder = stage.folder / name
    serving = Authority(folder / "serving-ca", "serving-ca").server(["localhost"], ["127.0.0.1"])
    front_proxy = Authority(folder / "front-proxy-ca", "front-proxy-ca").client(FRONT_PROXY)
    port, plain_port = free_port(), free_port()
    flags = [
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--plain-bind-address=127.0.0.1:{plain_port}",
        f"--tls-cert-file={serving.certificate_file}",
        f"--tls-private-key-file={serving.key_file}",
        f"--requestheader-client-ca-file={front_proxy.ca_file}",
        f"--requestheader-allowed-names={FRONT_PROXY}",
        f"--prometheus-url={stage.prometheus_url}",
        f"--config={stage.rules}",
        f"--objects={stage.objects}",
        "--shutdown-delay=0s",
        *stage.flags,
    ]
    with (
        on(stage.cores.measured),
        start([*command, *flags], log_path=folder / "adapter.log", name=name, folder=CHECKOUT) as process,
    ):
        process.wait_until(lambda: answers(f"http://127.0.0.1:{plain_port}/readyz"), READY_SECONDS)
        endpoint = Endpoint(
            port=port,
            ca_file=str(serving.ca_file),
            certificate_file=str(front_proxy.certificate_file),
            key_file=str(front_proxy.key_file),
        )
        yield RunningAdapter(process, endpoint)


@contextmanager
def _exporters(folder: Path, fleet: Fleet, targets: int) -> Iterator[int]:
    port_file, plan_file = folder / "exporters.port", folder / "exporters.json"
    plan = ExporterPlan(fleet=fleet, targets=targets, port_file=str(port_file))
    plan_file.write_bytes(msgspec.json.encode(plan))
    command = [sys.executable, "-m", "benchmarks.exporters", str(plan_file)]
    with start(command, log_path=folder / "exporters.log", name="exporters", folder=CHECKOUT) as process:
        process.wait_until(port_file.exists, READY_SECONDS)
        yield int(port_file.read_text())


def _scrape_seconds(stage: Backdrop) -> int:
    config = json.loads(stage.prometheus.config_path.read_text())
    return int(config["global"]["scrape_interval"].removesuffix("s"))


def _number(url: str, query: str) -> int:
    """Return the value of a query that yields one series; 0 if it yields none."""
    result = _data(f"{url}/api/v1/query?{urllib.parse.urlencode({'query': query})}")["result"]
    return int(float(result[0]["value"][1])) if result else 0


def _data(url: str) -> Any:  # noqa: ANN401 - JSON
    return json.loads(fetched(url))["data"]
