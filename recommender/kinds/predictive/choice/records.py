"""The records that explain a choice."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import FloatArray
    from recommender.kinds.predictive.choice.blend import Blend
    from recommender.kinds.predictive.simulation.bill import Bill


class ChoiceReason(StrEnum):
    """Why the leading model leads."""

    NOTHING_KNOWN = "no model has been judged for long enough"
    NOT_BETTER = "no model has proven to be short less often than headroom at equal cost"
    RECORD_IS_WORSE = "what acted before has been short more often than headroom of the same mean cost"
    BETTER = "it is short least often at equal cost"


@dataclass(frozen=True, slots=True)
class ModelRecord:
    """A model against plain headroom at equal replica-hours over the trailing days; ratios below 1 are better."""

    name: str
    judged_seconds: float
    """How much time the figures cover."""
    weight: float
    """The model's share in the blend that acts."""
    cost_as_headroom_ratio: float
    """The headroom that costs as much as the capacity that this model alone requests."""
    tau_under_versus_headroom: float
    """The model's short steps relative to headroom's at the cost of the bill; the next ratio is at the same cost."""
    theta_under_versus_headroom: float

    @property
    def shortage_versus_headroom(self) -> float:
        """Return one figure for both measures of shortage: their mean."""
        return (self.tau_under_versus_headroom + self.theta_under_versus_headroom) / 2


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The policy that is in use from a step on, and why."""

    step: int
    blend: Blend
    bill: Bill
    reason: ChoiceReason
    records: tuple[ModelRecord, ...]

    @property
    def model(self) -> str:
        """Return the model that leads."""
        return self.blend.leader

    def record(self, name: str) -> ModelRecord | None:
        """Return the record of a model, if it has been judged."""
        return next((each for each in self.records if each.name == name), None)


@dataclass(frozen=True, slots=True)
class AutoRun:
    """The choices that auto would have made, step by step."""

    capacity: FloatArray
    """Capacity in units of load, shape (steps,); for step i, from the data known at step i. NaN where the load is
    unknown."""
    in_use: tuple[str, ...]
    """The name of the leading model at each step."""
    decisions: tuple[ModelChoice, ...]
    """Decisions in order of time: those at which the leading model changes, and the latest one. Never empty."""
