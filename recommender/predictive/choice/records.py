"""What a choice is explained by."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recommender.predictive.arrays import FloatArray


class ChoiceReason(StrEnum):
    """Why the model that is in use changed, or did not."""

    NOTHING_KNOWN = "no model has been judged for long enough"
    NOT_BETTER = "no model is short less often than headroom at equal cost"
    PROVED_BETTER = "the model is short less often than headroom at equal cost"
    STILL_BETTER = "the model in use is still short less often than headroom at equal cost"
    CLEARLY_BETTER = "another model is short clearly less often than the one in use"
    NO_LONGER_BETTER = "the model's advantage over headroom is gone"
    RECENTLY_WORSE = "the model was recently short more often than headroom at equal cost"
    TOO_EXPENSIVE = "the model costs more than the most headroom that a model may cost"
    HELD_BACK = "the model that was given up must prove itself again"


@dataclass(frozen=True, slots=True)
class ModelRecord:
    """A model beside plain headroom at equal replica-hours, over the trailing days; ratios below 1: it is better."""

    name: str
    judged_seconds: float
    """How much time the figures cover."""
    lead_seconds: float
    """The horizon that the figures belong to."""
    cost_as_headroom_ratio: float
    tau_under_versus_headroom: float
    theta_under_versus_headroom: float
    lost_load_versus_headroom: float
    pinball_loss: float
    """Of the upper forecast at the task's quantile, as a share of the mean load."""
    pinball_versus_headroom: float
    """Relative to plain headroom at equal replica-hours."""

    @property
    def shortage_versus_headroom(self) -> float:
        """Return one figure for both measures of shortage: their mean."""
        return (self.tau_under_versus_headroom + self.theta_under_versus_headroom) / 2


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """What is in use from a step on, and why."""

    step: int
    model: str
    headroom_ratio: float
    """What is added to the load while `model` is headroom."""
    reason: ChoiceReason
    records: tuple[ModelRecord, ...]

    def record(self, name: str) -> ModelRecord | None:
        """Return the record of a model, if it has been judged."""
        return next((each for each in self.records if each.name == name), None)


@dataclass(frozen=True, slots=True)
class AutoRun:
    """What auto would have done, step by step."""

    capacity: FloatArray
    """In units of load, shape (steps,); at step i made of what was known at step i. NaN before the first known load."""
    in_use: tuple[str, ...]
    """The name of the model at each step."""
    decisions: tuple[ModelChoice, ...]
    """In order of time, never empty; the last one is the present one."""
