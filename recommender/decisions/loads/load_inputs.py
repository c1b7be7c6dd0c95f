"""The load of one target, with its forecast and with the pods that serve it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import Observed, Unknown
    from recommender.decisions.loads.control_delays import ControlDelays
    from recommender.decisions.loads.prediction import Prediction
    from recommender.decisions.record import TargetReference


@dataclass(frozen=True, slots=True)
class PodConnections:
    """One pod and its connections. Pods that are being deleted are left out."""

    connections: float | None
    """The number of connections; None if there is no sample, in which case the pod counts as full."""
    is_ready: bool
    name: str = ""
    unready_seconds: float | None = None
    """For how many seconds the pod has not been ready; None if it is ready or the time is unknown."""


@dataclass(frozen=True, slots=True)
class LoadInput:
    """The load of one target, with its forecast."""

    prediction: Prediction
    delays: ControlDelays | None = None
    """The delays in the horizon of the forecast besides the start-up; None if there are none."""
    pods: tuple[PodConnections, ...] | None = None
    """The pods; None if they are not considered one by one, or are unknown."""


LoadInputs: TypeAlias = Mapping["TargetReference | None", "Observed[LoadInput] | Unknown"]
"""Loads by target with `forEach`; otherwise there is a single load, whose key is None. The time of each is the time of
the observed load."""
