"""Starts the processes of the demo in order, and ends all of them."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from demo.feed import FleetFeed, fleet_feed
from demo.fleet import control_port_file
from demo.forecasts import running_recommender
from demo.history import DAYS, calendar_of, record_past, write_rules
from demo.machine.certificates import Authority, KeyPair
from demo.machine.ports import answers, free_port
from demo.machine.processes import start
from demo.machine.prometheus import running_prometheus, target_files
from demo.settings import PREDICTIVE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from demo.forecasts import RunningRecommender
    from demo.history import Calendar
    from demo.machine.processes import ManagedProcess
    from demo.machine.prometheus import PrometheusProcess
    from demo.records import Target
    from demo.settings import Settings

READY_SECONDS = 30.0
FRONT_PROXY = "front-proxy-client"
CHECKOUT = Path(__file__).resolve().parents[1]
RULES = tuple(CHECKOUT / "rules" / "adapter" / name for name in ("websocket.yaml", "recommendations.yaml"))


@dataclass(frozen=True, slots=True)
class Api:
    """The adapter's addresses, and the credentials to act as the API server."""

    url: str
    ca_file: Path
    client: KeyPair
    """The front proxy's certificate."""
    plain_url: str
    """Address for health checks and metrics without TLS."""


@dataclass(frozen=True, slots=True)
class StagedFleet:
    """One fleet, with the HPA that is to scale it."""

    target: Target
    feed: FleetFeed


@dataclass(frozen=True, slots=True)
class Stage:
    """The running processes of the demo."""

    fleets: tuple[StagedFleet, ...]
    api: Api
    prometheus_url: str
    recommender: RunningRecommender
    calendar: Calendar


@contextmanager
def stage(
    folder: Path, settings: Settings, say: Callable[[str], None], sleep: Callable[[float], None]
) -> Iterator[Stage]:
    """Start everything in `folder`, and yield when each process answers. The clients stay at night's load.

    Raises what `sleep` raises while a process starts.
    """
    with ExitStack() as stack:
        fleets = tuple(
            stack.enter_context(_staged_fleet(folder, settings, target, sleep)) for target in settings.targets
        )
        pods, limit = settings.targets[0].min_replicas, settings.connection_limit
        say(f"fleets      2 of {pods} pods with websocket servers, {limit} connections each, and the same clients")
        recommender_port = free_port()
        prometheus, calendar = stack.enter_context(_prometheus(folder, settings, recommender_port))
        say(f"prometheus  {prometheus.url}, scrapes every second; knows {DAYS} days of {settings.seconds:g} s")
        recommender = stack.enter_context(
            running_recommender(folder, prometheus.url, settings, recommender_port, sleep)
        )
        say(f"recommender {recommender.page_url}, predicts the load of the second fleet (model auto)")
        api = stack.enter_context(_adapter(folder, prometheus.url, sleep))
        say(f"adapter     {api.url}, health and metrics on {api.plain_url}")
        yield Stage(fleets, api, prometheus.url, recommender, calendar)


@contextmanager
def _staged_fleet(
    folder: Path, settings: Settings, target: Target, sleep: Callable[[float], None]
) -> Iterator[StagedFleet]:
    with _fleet(folder, settings, target) as process:
        port = _control_port(folder, target, process, sleep)
        with fleet_feed(port) as feed, _clients(folder, settings, target, port):
            yield StagedFleet(target, feed)


@contextmanager
def _prometheus(
    folder: Path, settings: Settings, recommender_port: int
) -> Iterator[tuple[PrometheusProcess, Calendar]]:
    """Run Prometheus, which has recorded the days before, up to now."""
    now = time.time()
    calendar = calendar_of(settings, now)
    record_past(folder / "prometheus" / "data", PREDICTIVE, settings, calendar, now)
    rules = write_rules(folder / "connections.json")
    scraped = _scraped(folder, recommender_port)
    with running_prometheus(folder / "prometheus", scrape_configs=scraped, rule_files=[rules]) as prometheus:
        yield prometheus, calendar


def _scraped(folder: Path, recommender_port: int) -> list[dict[str, object]]:
    return [
        {"job_name": "gateway", "file_sd_configs": [target_files(folder / "targets" / "*.json")]},
        {"job_name": "recommender", "static_configs": [{"targets": [f"127.0.0.1:{recommender_port}"]}]},
    ]


def _fleet(folder: Path, settings: Settings, target: Target) -> ManagedProcess:
    return _python(
        folder,
        "fleet",
        target,
        *("--folder", str(folder)),
        *("--namespace", target.namespace),
        *("--replicas", str(target.min_replicas)),
        *("--limit", str(settings.connection_limit)),
        *("--start-up-seconds", str(settings.start_up_seconds)),
    )


def _control_port(folder: Path, target: Target, process: ManagedProcess, sleep: Callable[[float], None]) -> int:
    file = control_port_file(folder, target.namespace)
    process.wait_until(file.exists, READY_SECONDS, sleep=sleep)
    return int(file.read_text())


def _clients(folder: Path, settings: Settings, target: Target, control_port: int) -> ManagedProcess:
    return _python(
        folder,
        "clients",
        target,
        *("--control-port", str(control_port)),
        *("--seconds", str(settings.seconds)),
        *("--seed", str(settings.seed)),
    )


def _python(folder: Path, module: str, target: Target, *arguments: str) -> ManagedProcess:
    command = [sys.executable, "-m", f"demo.{module}", *arguments]
    return start(command, log_path=folder / f"{module}-{target.namespace}.log", name=module, folder=CHECKOUT)


@contextmanager
def _adapter(folder: Path, prometheus_url: str, sleep: Callable[[float], None]) -> Iterator[Api]:
    serving = Authority(folder / "serving-ca", "serving-ca").server(["localhost"], ["127.0.0.1"])
    front_proxy = Authority(folder / "front-proxy-ca", "front-proxy-ca").client(FRONT_PROXY)
    port, plain_port = free_port(), free_port()
    command = [
        str(Path(sys.executable).with_name("tidewatch-adapter")),
        "serve",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--plain-bind-address=127.0.0.1:{plain_port}",
        f"--tls-cert-file={serving.certificate_file}",
        f"--tls-private-key-file={serving.key_file}",
        f"--requestheader-client-ca-file={front_proxy.ca_file}",
        f"--requestheader-allowed-names={FRONT_PROXY}",
        f"--prometheus-url={prometheus_url}",
        *(f"--config={rules}" for rules in RULES),
        f"--objects={folder / 'objects'}",
        "--metrics-relist-interval=5s",
        "--metrics-max-age=5m",
        "--shutdown-delay=0s",
    ]
    plain_url = f"http://127.0.0.1:{plain_port}"
    with start(command, log_path=folder / "adapter.log", name="adapter") as process:
        process.wait_until(lambda: answers(f"{plain_url}/readyz"), READY_SECONDS, sleep=sleep)
        yield Api(f"https://127.0.0.1:{port}", serving.ca_file, front_proxy, plain_url)
