"""Exporters: which node each claims to measure, who scraped it, and who owns a node."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

SOURCE_LABELS: Final = ("job", "namespace", "kubernetes_namespace")
"""Labels that Prometheus adds at a scrape, and that say whose target it was. A job whose targets are in several
namespaces, such as one that scrapes all annotated pods, is one source in each of them."""
HOLD_SECONDS: Final = 3600.0
"""For so long a node stays with the source that measured it, while that is silent."""
SETTLING_SECONDS: Final = 300.0
"""For so long after the start a source that appears counts as one that was there from the beginning."""

Source: TypeAlias = tuple[tuple[str, str], ...]
"""The source labels that a series has, with their values."""


@dataclass(frozen=True, slots=True)
class ExporterClaim:
    """The claim of one series that its exporter measures a node."""

    node: str
    source: Source
    exporter: str
    """Text that tells the exporters of all sources from each other."""
    is_own: bool
    """Whether `instance` by itself is the name or the address of the node."""
    seen_at: float
    """Unix seconds of the newest sample; NaN for none."""
    is_live: bool
    """Whether that is recent."""
    since: float = 0.0
    """Unix seconds of the oldest sample in the answer."""


@dataclass(frozen=True, slots=True)
class Past:
    """The history of a source in Prometheus from before the start."""

    first_seen: float
    """Unix seconds, as far back as was asked."""
    last_seen: float
    exporters: int
    """How many it had when it was last seen."""
    is_missed: bool
    """Whether these were at least half as many as any source had, and there is none now."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Who measures a node."""

    source: Source
    exporter: str
    is_own: bool
    seen_at: float
    """Unix seconds of its newest sample."""


@dataclass(frozen=True, slots=True)
class Ownership:
    """Who measures which node, and what that rests on. Replaced by each answer that brings something new."""

    began_at: float
    """Unix seconds of the first answer."""
    past: Mapping[Source, Past] = field(default_factory=dict)
    order: tuple[Source, ...] = ()
    """Sources, the best first."""
    last_live: Mapping[Source, float] = field(default_factory=dict)
    """Unix seconds at which a source was last live."""
    owners: Mapping[str, Owner] = field(default_factory=dict)
    """By node."""
    strangers: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """When an exporter was last refused beside a live one of its own source, by node and exporter."""


@dataclass(frozen=True, slots=True)
class ClaimRefusal:
    """Why a series does not count."""

    why: Literal["measured", "exporter", "held", "untrusted"]
    """Its node is measured by another source; by another exporter of its source; belongs to a source that is silent;
    or most nodes of its source are measured by a better one."""
    by: Source
    """That source."""


def source_of(labels: Mapping[str, str]) -> Source:
    """Return the source of a series."""
    return tuple((name, labels[name]) for name in SOURCE_LABELS if labels.get(name))


def exporter_text(labels: Mapping[str, str]) -> str:
    """Return the text that stands for the target of a series: `instance`, and its source where there is one."""
    return "\0".join(labels.get(name, "") for name in ("instance", *SOURCE_LABELS)).rstrip("\0")


def source_text(source: Source) -> str:
    """Return a source for people, such as `job node-exporter in monitoring`."""
    labels = dict(source)
    job, namespace = labels.get("job", ""), labels.get("namespace") or labels.get("kubernetes_namespace")
    return (f"job {job}" if job else "no job") + (f" in {namespace}" if namespace else "")
