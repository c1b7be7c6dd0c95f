"""Exporters: the nodes that they claim to measure, the sources that they belong to, and the owner of each node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

SOURCE_LABELS: Final = ("job", "namespace", "kubernetes_namespace")
"""Labels that Prometheus adds at a scrape, which say whose target was scraped. A job whose targets are in several
namespaces, such as one that scrapes all annotated pods, is one source in each of them."""
HOLD_SECONDS: Final = 3600.0
"""How long a node stays with the source that measured it while that source is silent."""
SETTLING_SECONDS: Final = 300.0
"""How long after the start a new source is treated as one that was there from the beginning."""

Source: TypeAlias = tuple[tuple[str, str], ...]
"""The source labels of a series, with their values."""


@dataclass(frozen=True, slots=True)
class ExporterClaim:
    """The claim of one series that its exporter measures a node."""

    node: str
    source: Source
    exporter: str
    """Text that distinguishes the exporters of all sources."""
    is_own: bool
    """Whether `instance` by itself is the name or the address of the node."""
    seen_at: float
    """Unix seconds of the newest sample; NaN for none."""
    is_live: bool
    """Whether the newest sample is recent."""
    since: float = 0.0
    """Unix seconds of the oldest sample in the answer."""


@dataclass(frozen=True, slots=True)
class Past:
    """The history of a source in Prometheus from before the start."""

    first_seen: float
    """Unix seconds of the source's earliest sample, as far back as the survey looked."""
    last_seen: float
    exporters: int
    """How many exporters the source had when it was last seen."""
    is_missed: bool
    """Whether the source had at least half as many exporters as any other one, and has none now."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The exporter that measures a node."""

    source: Source
    exporter: str
    is_own: bool
    seen_at: float
    """Unix seconds of the exporter's newest sample."""


@dataclass(frozen=True, slots=True)
class Ownership:
    """Which exporter measures which node, and why. It is replaced after each answer that brings something new."""

    began_at: float
    """Unix seconds of the first answer."""
    past: Mapping[Source, Past] = field(default_factory=dict)
    order: tuple[Source, ...] = ()
    """Sources, the best first."""
    last_live: Mapping[Source, float] = field(default_factory=dict)
    """Unix seconds at which a source was last live."""
    owners: Mapping[str, Owner] = field(default_factory=dict)
    """The current owner of each node, by name."""
    contested: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """When an exporter was last refused because another exporter of its source was live, by node and exporter."""


@dataclass(frozen=True, slots=True)
class ClaimRefusal:
    """Why a series does not count."""

    why: Literal["measured", "exporter", "held", "untrusted"]
    """In this order: its node is measured by another source; its node is measured by another exporter of its source;
    its node belongs to a silent source; too many nodes of its source belong to better sources."""
    by: Source
    """The source that is preferred to that of the series."""


def source_of(labels: Mapping[str, str]) -> Source:
    """Return the source of a series."""
    return tuple((name, labels[name]) for name in SOURCE_LABELS if labels.get(name))


def exporter_text(labels: Mapping[str, str]) -> str:
    """Return the text that identifies the target of a series: its `instance`, and its source if there is one."""
    return "\0".join(labels.get(name, "") for name in ("instance", *SOURCE_LABELS)).rstrip("\0")


def source_text(source: Source) -> str:
    """Return the name of a source for people, such as `job node-exporter in monitoring`."""
    labels = dict(source)
    job, namespace = labels.get("job", ""), labels.get("namespace") or labels.get("kubernetes_namespace")
    return (f"job {job}" if job else "no job") + (f" in {namespace}" if namespace else "")
