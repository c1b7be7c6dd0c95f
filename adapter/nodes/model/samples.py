"""Samples of the utilisation of nodes on a regular grid of times, from which windows are computed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.nodes.model.arrays import Floats
    from adapter.nodes.model.loads import LoadResource


@dataclass(frozen=True, slots=True, eq=False)
class SampleGrid:
    """The samples of one resource. Arrays are never written to after the grid is made."""

    resource: LoadResource
    step_seconds: int
    end: int
    """Unix seconds of the last column, a multiple of the step. Column `i` is at `end - (columns - 1 - i) * step`."""
    nodes: tuple[str, ...]
    """Names of Kubernetes nodes, sorted. Samples of several series of one node have already been combined."""
    values: Floats
    """Utilisation as a ratio (0..1), not clamped, of shape (nodes, columns); NaN where there is no sample."""
    newest: Floats
    """Unix seconds of each node's newest scraped sample, of shape (nodes,); NaN if unknown. A step may repeat an older
    sample for up to five minutes, so the last column does not show it."""
    scrape_seconds: Floats
    """Scrape interval of each node as learned from its series, of shape (nodes,); NaN if unknown."""
    advancing: Floats
    """Unix seconds of the last step at which a node's counters advanced, of shape (nodes,); NaN if unknown or if the
    query is overridden, so that a node is not judged by it."""
    reset_at: Floats
    """Unix seconds of the last counter reset that was seen, of shape (nodes,); NaN for none."""


@dataclass(frozen=True, slots=True)
class MachineRecord:
    """The identity of the machine behind a node name, which another may take. Each text is empty if it is not known."""

    system_uuid: str = ""
    provider_id: str = ""
    uid: str = ""
    """The UID of its Node object."""
    measured_since: float | None = None
    """Unix seconds before which another machine had the name; None if none is known."""


@dataclass(frozen=True, slots=True, eq=False)
class SampleSet:
    """The samples of all resources, as the state file keeps them."""

    grids: Mapping[LoadResource, SampleGrid]
    from_file: bool = False
    """Whether nothing has been added since the samples were read from the state file."""
    machines: Mapping[str, MachineRecord] = field(default_factory=dict)
    """The machines that were measured, by node name, in a set for the state file or from it; empty if not known."""
