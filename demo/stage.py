"""Starts the processes of the demo in order, and ends all of them."""

from __future__ import annotations

import sys
import urllib.request
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from demo.feed import FleetFeed, fleet_feed
from demo.machine.certificates import Authority, KeyPair
from demo.machine.ports import free_port
from demo.machine.processes import start
from demo.machine.prometheus import running_prometheus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from demo.machine.processes import ManagedProcess
    from demo.settings import Settings

READY_SECONDS = 30.0
FRONT_PROXY = "front-proxy-client"
CHECKOUT = Path(__file__).resolve().parents[1]
RULES = CHECKOUT / "rules" / "adapter" / "websocket.yaml"


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
class Stage:
    """Everything that runs."""

    fleet: FleetFeed
    api: Api
    prometheus_url: str
    start_clients: Callable[[], ManagedProcess]


@contextmanager
def stage(folder: Path, settings: Settings, say: Callable[[str], None]) -> Iterator[Stage]:
    """Start the fleet, Prometheus and the adapter in `folder`, and yield when each of them answers."""
    with ExitStack() as stack:
        fleet_process = stack.enter_context(_fleet(folder, settings))
        control_port = folder / "control-port"
        fleet_process.wait_until(control_port.exists, READY_SECONDS)
        pods, limit = settings.target.min_replicas, settings.connection_limit
        say(f"fleet       {pods} pods with websocket servers, {limit} connections each")
        scrape = {"job_name": "gateway", "file_sd_configs": [{"files": [str(folder / "targets" / "*.json")]}]}
        prometheus = stack.enter_context(running_prometheus(folder / "prometheus", scrape_configs=[scrape]))
        say(f"prometheus  {prometheus.url}, scrapes every second")
        api = stack.enter_context(_adapter(folder, prometheus.url))
        say(f"adapter     {api.url}, health and metrics on {api.plain_url}")
        feed = stack.enter_context(fleet_feed(int(control_port.read_text())))
        yield Stage(
            fleet=feed,
            api=api,
            prometheus_url=prometheus.url,
            start_clients=lambda: _clients(folder, settings, int(control_port.read_text())),
        )


def _fleet(folder: Path, settings: Settings) -> ManagedProcess:
    return _python(
        folder,
        "fleet",
        *("--folder", str(folder)),
        *("--replicas", str(settings.target.min_replicas)),
        *("--limit", str(settings.connection_limit)),
        *("--start-up-seconds", str(settings.start_up_seconds)),
    )


def _clients(folder: Path, settings: Settings, control_port: int) -> ManagedProcess:
    return _python(
        folder,
        "clients",
        *("--control-port", str(control_port)),
        *("--seconds", str(settings.seconds)),
        *("--seed", str(settings.seed)),
    )


def _python(folder: Path, module: str, *arguments: str) -> ManagedProcess:
    command = [sys.executable, "-m", f"demo.{module}", *arguments]
    return start(command, log_path=folder / f"{module}.log", name=module, folder=CHECKOUT)


@contextmanager
def _adapter(folder: Path, prometheus_url: str) -> Iterator[Api]:
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
        f"--config={RULES}",
        f"--objects={folder / 'objects'}",
        "--metrics-relist-interval=5s",
        "--metrics-max-age=5m",
        "--shutdown-delay=0s",
    ]
    plain_url = f"http://127.0.0.1:{plain_port}"
    with start(command, log_path=folder / "adapter.log", name="adapter") as process:
        process.wait_until(lambda: _answers(f"{plain_url}/readyz"), READY_SECONDS)
        yield Api(f"https://127.0.0.1:{port}", serving.ca_file, front_proxy, plain_url)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1.0) as response:  # noqa: S310 - an address of ours on loopback
            return bool(response.status == 200)
    except OSError:
        return False
