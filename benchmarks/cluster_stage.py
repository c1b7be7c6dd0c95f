"""A scripted API server beside the measured process, and the kubeconfig that leads to it."""

from __future__ import annotations

import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from benchmarks.cores import on
from demo.machine.processes import start

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from benchmarks.cores import Cores

CHECKOUT = Path(__file__).resolve().parents[1]
HEARTBEATS_PER_SECOND = 17.0
"""The rate at which 5,000 kubelets report if each does so every 5 minutes."""
_START_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class ApiServer:
    """A running scripted API server."""

    port: int
    kubeconfig: Path


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Yield a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="tidewatch-bench-") as name:
        yield Path(name)


@contextmanager
def scripted_api_server(
    sizes: Mapping[str, int], heartbeats_per_second: float, folder: Path, cores: Cores
) -> Iterator[ApiServer]:
    """Run an API server for a cluster with the given number of objects of each kind."""
    log, kubeconfig = folder / "cluster.log", folder / "kubeconfig"
    command = [sys.executable, "-m", "benchmarks.scripted_cluster", f"--heartbeats-per-second={heartbeats_per_second}"]
    command += [f"--{kind}={count}" for kind, count in sizes.items()]
    with on(cores.others):
        process = start(command, name="cluster", log_path=log, folder=CHECKOUT)
    with process:
        process.wait_until(lambda: log.read_text().strip().isdigit(), _START_SECONDS)
        port = int(log.read_text())
        kubeconfig.write_text(yaml.safe_dump(_kubeconfig(port)))
        yield ApiServer(port, kubeconfig)


def _kubeconfig(port: int) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "bench",
        "clusters": [{"name": "bench", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "bench", "user": {"token": "bench"}}],
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
    }
