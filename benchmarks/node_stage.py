"""A cluster of idle and busy nodes: node_exporter's series in a real Prometheus, objects in files, and the program.

The series lie in the past and in the next minutes, so nothing is scraped while figures are taken.
"""

from __future__ import annotations

import json
import re
import sys
import time
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from adapter.commands.program import PROGRAM
from demo.machine.backfill import backfill
from demo.machine.processes import ProcessFailedError, start
from demo.machine.prometheus import running_prometheus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from demo.machine.processes import ManagedProcess
    from demo.machine.prometheus import PrometheusProcess

STEP_SECONDS: Final = 30
PAST_SECONDS: Final = 1200
FUTURE_SECONDS: Final = 900
CPUS: Final = 2
START_SECONDS: Final = 120.0
CHECKOUT: Final = Path(__file__).resolve().parents[1]
_POD_KINDS: Final = 50
_SAMPLES: Final = re.compile(r"^prometheus_engine_query_samples_total (\S+)", re.MULTILINE)


def node_name(number: int) -> str:
    """Return the name of a node."""
    return f"ip-10-{number // 65536}-{number // 256 % 256}-{number % 256}.example.internal"


def address(number: int) -> str:
    """Return the address of a node, which its exporter's `instance` begins with."""
    return f"10.{number // 65536}.{number // 256 % 256}.{number % 256}"


def write_series(folder: Path, nodes: int) -> None:
    """Write the samples of all nodes for a Prometheus that starts in this folder. Raises ProcessFailedError."""
    now = int(time.time())
    times = range(now - now % STEP_SECONDS - PAST_SECONDS, now + FUTURE_SECONDS, STEP_SECONDS)
    lines: list[str] = []
    for number in range(nodes):
        busy = (number * 37 % 90 + 5) / 100
        instance = f'instance="{address(number)}:9100"'
        for cpu in range(CPUS):
            for mode, share in (("idle", 1 - busy), ("user", busy)):
                name = f'node_cpu_seconds_total{{{instance},cpu="{cpu}",mode="{mode}"}}'
                lines += [f"{name} {(at - times[0]) * share:.2f} {at}" for at in times]
        for name, value in (("MemTotal", 64), ("MemAvailable", 64 - number % 50)):
            series = f"node_memory_{name}_bytes{{{instance}}}"
            lines += [f"{series} {value << 30} {at}" for at in times]
    backfill(folder, "\n".join([*sorted_by_metric(lines), "# EOF", ""]))


def sorted_by_metric(lines: list[str]) -> list[str]:
    """Return the lines with those of each family together, as OpenMetrics demands."""
    return sorted(lines, key=lambda line: line.partition("{")[0])


def write_objects(folder: Path, nodes: int, pods: int) -> None:
    """Write nodes, and pods that are bound to them, as files."""
    folder.mkdir(parents=True, exist_ok=True)
    listed = {"apiVersion": "v1", "kind": "List"}
    (folder / "nodes.json").write_text(json.dumps(listed | {"items": [_node(number) for number in range(nodes)]}))
    per_file = 5000
    for first in range(0, pods, per_file):
        items = [_pod(number, nodes) for number in range(first, min(pods, first + per_file))]
        (folder / f"pods-{first}.json").write_text(json.dumps(listed | {"items": items}))


def _node(number: int) -> dict[str, Any]:
    amounts = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    labels = {"kubernetes.io/hostname": node_name(number), "topology.kubernetes.io/zone": f"zone-{number % 3}"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node_name(number), "labels": labels},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "addresses": [{"type": "InternalIP", "address": address(number)}],
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _pod(number: int, nodes: int) -> dict[str, Any]:
    kind = number % _POD_KINDS
    requests = {"cpu": f"{100 + kind}m", "memory": f"{128 + kind}Mi"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"app-{kind}-{number}",
            "namespace": f"team-{kind}",
            "uid": f"{number:036d}",
            "labels": {"app": f"app-{kind}"},
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {
            "nodeName": node_name(number % nodes),
            "containers": [{"name": "c", "resources": {"requests": requests}}],
        },
        "status": {"phase": "Running"},
    }


@dataclass(frozen=True, slots=True)
class RunningNodes:
    """The program on the stage."""

    process: ManagedProcess
    prometheus: PrometheusProcess

    @property
    def port(self) -> int:
        return int(re.findall(r" serving address=http://\S+:(\d+) ", self.process.log_path.read_text())[-1])

    def metric(self, name: str) -> float:
        """Return the sum of one of the program's own metrics. Raises OSError."""
        text = _text(f"http://127.0.0.1:{self.port}/metrics")
        return sum(float(line.rpartition(" ")[2]) for line in text.splitlines() if re.match(rf"{name}[{{ ]", line))

    def samples_read(self) -> float:
        """Return how many samples Prometheus has read for queries. Raises OSError."""
        found = _SAMPLES.search(_text(f"{self.prometheus.url}/metrics"))
        return float(found[1]) if found else 0.0


@contextmanager
def running_nodes(folder: Path, prometheus: PrometheusProcess, *flags: str) -> Iterator[RunningNodes]:
    """Run the program, without waiting for its first data."""
    command = [
        str(Path(sys.executable).with_name(PROGRAM)),
        "nodes",
        "--bind-address=127.0.0.1",
        "--port=0",
        "--shutdown-delay=0s",
        f"--prometheus-url={prometheus.url}",
        *flags,
    ]
    with start(command, log_path=folder / "nodes.log", name="nodes", folder=CHECKOUT) as process:
        running, before = RunningNodes(process, prometheus), _served(process)
        process.wait_until(lambda: _served(process) > before, START_SECONDS)
        try:
            yield running
        finally:
            process.kill()


@contextmanager
def node_stage(folder: Path, nodes: int, pods: int) -> Iterator[PrometheusProcess]:
    """Write series and objects (`folder/objects`), and run the Prometheus."""
    write_objects(folder / "objects", nodes, pods)
    write_series(folder / "prometheus", nodes)
    with running_prometheus(folder / "prometheus") as prometheus:
        yield prometheus


def wait_for_data(running: RunningNodes, path: str = "/watcher") -> float:
    """Wait until the path is answered with 200; return the seconds that this took. Raises ProcessFailedError."""
    began = time.monotonic()
    while time.monotonic() < began + START_SECONDS:
        try:
            _text(f"http://127.0.0.1:{running.port}{path}")
        except OSError:
            time.sleep(0.02)
        else:
            return time.monotonic() - began
    raise ProcessFailedError(f"{path} was not served within {START_SECONDS:g} s: see {running.process.log_path}")


def _served(process: ManagedProcess) -> int:
    return process.log_path.read_text().count(" serving address=")


def _text(url: str) -> str:
    with urllib.request.urlopen(url, timeout=30) as response:  # noqa: S310 - of this machine
        text: str = response.read().decode()
    return text
