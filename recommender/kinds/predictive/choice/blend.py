"""The blend that acts: the weighted mean of plain headroom and of the models' requested capacity above the load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from recommender.kinds.predictive.predictive_settings import ModelName

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recommender.kinds.predictive.arrays import FloatArray

LEVELS: Final = frozenset({ModelName.PERCENTILE.value})
"""Models that forecast the same level at all times, whatever the current load."""


@dataclass(frozen=True, slots=True)
class Part:
    """A model in a blend."""

    model: str
    weight: float
    scale: float
    """The model's room above the load (or its level) is multiplied by this, so that all parts cost the same."""


@dataclass(frozen=True, slots=True)
class Blend:
    """Models and plain headroom of the same cost. The weights add up to 1; headroom has what the models leave."""

    headroom_ratio: float
    """Plain headroom that costs as much as each part."""
    parts: tuple[Part, ...] = ()

    @property
    def headroom_weight(self) -> float:
        """Return the weight of plain headroom."""
        return max(0.0, 1.0 - sum(part.weight for part in self.parts))

    @property
    def leader(self) -> str:
        """Return the model with the largest weight, or `headroom`."""
        names = {ModelName.HEADROOM.value: self.headroom_weight, **{part.model: part.weight for part in self.parts}}
        return max(names, key=lambda name: names[name])

    def capacity(self, load: FloatArray, uppers: Mapping[str, FloatArray], missing_ratio: float) -> FloatArray:
        """Return the capacity in units of load; `uppers` are the upper forecasts by model, of the shape of the load."""
        room = self.headroom_weight * self.headroom_ratio * load
        for part in self.parts:
            room = room + part.weight * scaled_room(part.model, part.scale, load, uppers[part.model], missing_ratio)
        return np.asarray(load + room)


def room_of(load: FloatArray, upper: FloatArray, missing_ratio: float) -> FloatArray:
    """Return the capacity that a forecast requests above the load, or a share of the load if there is no forecast."""
    return np.where(np.isnan(upper), load * missing_ratio, np.fmax(upper - load, 0.0))


def scaled_room(
    model: str, scale: FloatArray | float, load: FloatArray, upper: FloatArray, missing_ratio: float
) -> FloatArray:
    """Return the room that a model requests above the load when it is scaled to another cost.

    The room of most models is multiplied. For a model that forecasts a level, the level itself is raised or lowered, as
    if another quantile of the past had been taken: multiplied room would leave out every peak that reaches the level.
    """
    if model in LEVELS:
        return np.where(np.isnan(upper), scale * load * missing_ratio, np.fmax(scale * upper - load, 0.0))
    return np.asarray(scale * room_of(load, upper, missing_ratio))
