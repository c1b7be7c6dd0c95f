"""What a kind of recommendation calculates, before the constraints that all kinds share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from recommender.decisions.inputs import Inputs
    from recommender.decisions.memory import Memory
    from recommender.decisions.record import ContainerResources, Prediction, Step


@dataclass(frozen=True, slots=True)
class Calculation:
    """A value and the way to it."""

    replicas: int | None
    """None for recommendations that only size resources."""
    confirmed: float
    """The time of the oldest input, in seconds since the Unix epoch."""
    memory: Memory
    """The memory that was passed in, with what this kind remembers brought up to date."""
    inputs: Mapping[str, float] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    binding: str | None = None
    resources: ContainerResources | None = None
    note: str = ""
    """What the user should know, such as that parameters are the last good ones; empty otherwise."""
    hold: str = ""
    """Why the value is a held one, such as a query that freezes it; empty otherwise."""
    prediction: Prediction | None = None


class InputMissingError(Exception):
    """An input is unknown at present; the message names it and the reason. The last value is held."""


class CalculationError(Exception):
    """No value can be calculated from the inputs as they are; the message says why and what to do."""


Calculate: TypeAlias = Callable[["Inputs", "Memory", float], Calculation]
"""(inputs, memory, now in seconds since the Unix epoch). Raises InputMissingError or CalculationError."""
