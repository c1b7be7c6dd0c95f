"""Samples of exporters, as OpenMetrics text for a real Prometheus."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

MODES = {"idle": 0.9, "iowait": 0.08, "steal": 0.02, "user": 0.7, "system": 0.3}
"""The share of each mode in the idle time or in the busy time."""
IDLE_MODES = ("idle", "iowait", "steal")
FAMILIES = {
    "node_cpu_seconds": "counter",
    "node_memory_MemTotal_bytes": "gauge",
    "node_memory_MemAvailable_bytes": "gauge",
    "node_network_receive_bytes": "counter",
    "node_network_transmit_bytes": "counter",
    "node_network_speed_bytes": "gauge",
    "node_disk_io_time_seconds": "counter",
    "DCGM_FI_DEV_GPU_UTIL": "gauge",
}
"""The type of each metric family."""


@dataclass(frozen=True)
class NodeExporter:
    """A node_exporter whose CPU switches between 10 and 90% every two minutes."""

    instance: str
    scrape_seconds: float = 15.0
    phase: float = 4.2
    labels: Mapping[str, str] = field(default_factory=dict)
    cpus: int = 2
    modes: tuple[str, ...] = tuple(MODES)
    late_seconds: float = 0.0
    """How late, at most, a scrape reads the counters."""
    is_scraped: Callable[[float], bool] = lambda _at: True
    reset_at: float = float("inf")
    stuck: bool = False
    memory: bool = True
    devices: bool = False
    """Whether it has a network interface at 50%, a disk at 40%, and two GPUs at 50%, as another exporter has them."""

    def times(self, start: float, end: float) -> Iterator[float]:
        at = start + self.phase
        while at <= end:
            if self.is_scraped(at):
                yield at
            at += self.scrape_seconds


def devices_at(seconds: float) -> Iterator[tuple[str, str, str, float]]:
    """Yield family, name, label and value of the devices' samples, `seconds` after the start."""
    for device in ("eth0", "veth0"):
        own = f'device="{device}"'
        factor = 1 if device == "eth0" else 2
        yield "node_network_receive_bytes", "node_network_receive_bytes_total", own, 100 * factor * seconds
        yield "node_network_transmit_bytes", "node_network_transmit_bytes_total", own, 500 * factor * seconds
        yield "node_network_speed_bytes", "node_network_speed_bytes", own, 1000
    yield "node_disk_io_time_seconds", "node_disk_io_time_seconds_total", 'device="sda"', 0.4 * seconds
    yield "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_GPU_UTIL", 'gpu="0"', 80
    yield "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_GPU_UTIL", 'gpu="1"', 20


def busy_seconds(at: float) -> float:
    """Return the integral of a load that alternates between 10% and 90% every two minutes."""
    spans, rest = divmod(at, 240.0)
    return spans * 120 + 0.1 * min(rest, 120) + 0.9 * max(0.0, rest - 120)


def text_of(exporters: Iterable[NodeExporter], start: float, end: float) -> str:
    """Return the exposition of all samples between two times."""
    families: dict[str, list[str]] = {family: [] for family in FAMILIES}
    for exporter in exporters:
        chance = random.Random(exporter.instance)
        labels = ",".join(
            f'{name}="{value}"' for name, value in {"instance": exporter.instance, **exporter.labels}.items()
        )
        for at in exporter.times(start, end):
            if exporter.devices:
                for family, name, more, value in devices_at(at - start):
                    families[family].append(f"{name}{{{labels},{more}}} {value:.3f} {at:.3f}")
            read = at + chance.uniform(0, exporter.late_seconds)
            for cpu in range(exporter.cpus):
                for mode in exporter.modes:
                    value = counter(exporter, mode, read, start)
                    families["node_cpu_seconds"].append(
                        f'node_cpu_seconds_total{{{labels},cpu="{cpu}",mode="{mode}"}} {value:.6f} {at:.3f}'
                    )
            if exporter.memory:
                families["node_memory_MemTotal_bytes"].append(f"node_memory_MemTotal_bytes{{{labels}}} 1000 {at:.3f}")
                families["node_memory_MemAvailable_bytes"].append(
                    f"node_memory_MemAvailable_bytes{{{labels}}} 400 {at:.3f}"
                )
    lines = [line for family, samples in families.items() for line in (f"# TYPE {family} {FAMILIES[family]}", *samples)]
    return "\n".join([*lines, "# EOF", ""])


def counter(exporter: NodeExporter, mode: str, at: float, start: float) -> float:
    """Return a CPU counter that began at 0 an hour before the start, or at a reset."""
    since = exporter.reset_at if at >= exporter.reset_at else start - 3600
    if exporter.stuck:
        at = since + 3600
    busy = busy_seconds(at) - busy_seconds(since)
    return MODES[mode] * ((at - since) - busy if mode in IDLE_MODES else busy)
