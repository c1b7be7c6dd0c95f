"""Loads of nodes in a real Prometheus: what a node_exporter on each node exports, and a quarter of an hour before.

Windows are up to a quarter of an hour long, and no test waits for so long: the past is written before Prometheus
starts, and scrapes continue from there.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from demo.machine.exporter import running_exporter
from demo.machine.prometheus import Access, running_prometheus
from tests.support.backfill import backfill
from tests.support.prometheus import ScrapedPrometheus

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

PAST_SECONDS: Final = 1020
"""The length of the longest window, and two minutes for its first rates."""
SCRAPE_SECONDS: Final = 5
_CPUS: Final = 2
_MEMORY_BYTES: Final = 16 * 2**30
_CHANGED_EACH_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class NodeLoad:
    """The share of each resource of a node that is in use, which stays constant."""

    cpu: float
    memory: float = 0.3


class NodeExporters:
    """One exporter for each address; all are scraped as one target, since each series has its own labels."""

    def __init__(self, loads: Mapping[str, NodeLoad], began: float) -> None:
        """`loads` is by address. The counters were 0 at `began`, in Unix seconds."""
        self._loads = {f'instance="{address}:9100",job="node-exporter"': load for address, load in loads.items()}
        self._began = began

    def past(self, until: float) -> str:
        """Return all samples up to a time, as OpenMetrics text."""
        times = range(int(self._began), int(until), SCRAPE_SECONDS)
        lines = []
        for family, kind, samples in self._families(1.0):
            lines.append(f"# TYPE {family} {kind}")
            for series, value in samples:
                grows = kind == "counter"
                lines += [f"{series} {value * (at - self._began) if grows else value:.3f} {at}" for at in times]
        return "\n".join([*lines, "# EOF", ""])

    def now(self) -> str:
        """Return the samples of a scrape at this moment."""
        seconds = time.time() - self._began
        families = self._families(seconds)
        return "".join(f"{series} {value:.3f}\n" for _, _, samples in families for series, value in samples)

    def _families(self, seconds: float) -> Iterator[tuple[str, str, list[tuple[str, float]]]]:
        """Yield name and type of each family, and its series with their values after so many seconds."""
        cpu, total, available = [], [], []
        for labels, load in self._loads.items():
            for mode, ratio in (("idle", 1.0 - load.cpu), ("user", load.cpu)):
                for number in range(_CPUS):
                    name = f'node_cpu_seconds_total{{{labels},cpu="{number}",mode="{mode}"}}'
                    cpu.append((name, ratio * seconds))
            total.append((f"node_memory_MemTotal_bytes{{{labels}}}", float(_MEMORY_BYTES)))
            available.append((f"node_memory_MemAvailable_bytes{{{labels}}}", (1.0 - load.memory) * _MEMORY_BYTES))
        yield "node_cpu_seconds", "counter", cpu
        yield "node_memory_MemTotal_bytes", "gauge", total
        yield "node_memory_MemAvailable_bytes", "gauge", available


@contextmanager
def prometheus_with_loads(folder: Path, host: str, loads: Mapping[str, NodeLoad]) -> Iterator[ScrapedPrometheus]:
    """Run a Prometheus on this address in which these loads, by node address, have lasted for a quarter of an hour."""
    now = time.time()
    exporters = NodeExporters(loads, now - PAST_SECONDS)
    folder.mkdir()
    backfill(folder, exporters.past(now))
    ended = threading.Event()
    with running_exporter(exporters.now()) as exporter:

        def advance() -> None:
            while not ended.wait(_CHANGED_EACH_SECONDS):
                exporter.publish(exporters.now())

        thread = threading.Thread(target=advance, name="node exporters", daemon=True)
        thread.start()
        scraped = [exporter.scrape_config("nodes", f"{SCRAPE_SECONDS}s")]
        try:
            with running_prometheus(folder, scrape_configs=scraped, access=Access(host=host)) as running:
                yield ScrapedPrometheus(running, exporter)
        finally:
            ended.set()
            thread.join()
