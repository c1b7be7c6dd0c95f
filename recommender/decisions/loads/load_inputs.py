"""The load of one target, with its forecast and with the pods that bear it."""

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
    """Connections of the pod; None if there is no sample, so that it counts as full."""
    is_ready: bool
    name: str = ""
    unready_seconds: float | None = None
    """For how long the pod has not been ready; None if it is ready, or if that is unknown."""


@dataclass(frozen=True, slots=True)
class LoadInput:
    """The load of one target, with its forecast."""

    prediction: Prediction
    delays: ControlDelays | None = None
    """The delays in the horizon of the forecast besides the start-up; None if there are none."""
    pods: tuple[PodConnections, ...] | None = None
    """The pods; None if they are not considered one by one, or are unknown."""


LoadInputs: TypeAlias = Mapping["TargetReference | None", "Observed[LoadInput] | Unknown"]
"""Loads by target with `forEach`; otherwise there is one, without a target. The time of each is that of the observed
load."""
