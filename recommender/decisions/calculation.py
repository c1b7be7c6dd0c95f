"""The calculation of a kind of recommendation, before the brakes that all kinds share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias

from recommender.decisions.constraints.brakes import Braking

if TYPE_CHECKING:
    from recommender.decisions.inputs import Inputs
    from recommender.decisions.limits import Limit
    from recommender.decisions.memory import KindMemory, Memory
    from recommender.decisions.policy_settings import RecommendationPolicy
    from recommender.decisions.record import Details, Step, TargetOutcome
    from recommender.decisions.targets.target_situation import Situation


@dataclass(frozen=True, slots=True)
class SettledValue:
    """The value after the brakes."""

    replicas: int | None
    is_remembered: bool
    """Whether the value is stored in the memory, so that the next decision begins from it."""
    has_changed: bool
    """Whether the value differs from the last one; `maxChangesPerHour` counts such changes."""
    is_held: bool
    own: KindMemory | None
    changes: tuple[float, ...] | None = None
    """The changes that are remembered besides this one, ascending; None if they are those of the memory."""
    inputs: Mapping[str, float] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    binding: str | None = None
    reasons: tuple[str, ...] = ()
    """The parts of the message: what keeps the value, or what determined it."""
    notes: tuple[str, ...] = ()
    """Notes for the user, such as objects that are left out."""
    details: Details | None = None
    writes: object = None
    """The writes other than the sizes of targets; the writers of the kind know their form."""
    decide_again: float | None = None
    """The time, in Unix seconds, from which another value is possible even if no input changes; None if
    that is not before the next poll."""
    outcomes: tuple[TargetOutcome, ...] | None = None
    """The outcomes for the targets if the value is not a number of replicas; None if they follow from the replicas."""


class BrakedValue(Braking, Protocol):
    """A value that the brakes act on, and that becomes part of a record."""

    @property
    def replicas(self) -> int | None:
        """The number of replicas; None for a value that is not a single number, or that is not known."""

    def settled(self, context: DecisionContext) -> SettledValue:
        """Return the final value, after the brakes, with what the record and the memory need."""


@dataclass(frozen=True, slots=True)
class Calculation:
    """A value and the steps that led to it."""

    value: BrakedValue
    confirmed: float
    """The time of the oldest input, in Unix seconds."""
    own: KindMemory | None = None
    """The memory of this kind, after this calculation."""
    inputs: Mapping[str, float] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    binding: str | None = None
    limits: tuple[Limit, ...] | None = None
    """Bounds that the value must keep after all brakes and holds; None means the bounds of the policy."""
    note: str = ""
    """A note for the user, such as that parameters are the last good ones; empty otherwise."""
    hold: str = ""
    """Why the value is held, such as because a query freezes it; empty otherwise."""
    begins_at: int | None = None
    """The current size, if it counts instead of the last value, which was decided for another object or long ago; None
    if the last value counts."""
    details: Details | None = None
    known: Mapping[str, int] | None = None
    """The known facts of the cluster (`Memory.known`); None if they have not changed."""
    changes: tuple[float, ...] | None = None
    """The changes that count for the brakes, ascending; None if they are those of the memory (`Memory.changes`)."""

    @property
    def replicas(self) -> int | None:
        """The value if it is a number of replicas; otherwise None."""
        return self.value.replicas


@dataclass(frozen=True, slots=True)
class DecisionContext:
    """Everything that one decision depends on after its value was calculated."""

    policy: RecommendationPolicy
    calculation: Calculation
    inputs: Inputs
    memory: Memory
    situation: Situation


@dataclass(frozen=True, slots=True)
class KeptValue:
    """Texts and details that show a last value, if it is not a number of replicas, while inputs are missing."""

    details: Details
    sentence: str
    """A clause that states what is kept: `the last sizes are kept`."""
    ending: str = ""
    """A text that follows the time until which the value is kept; it begins with a comma."""
    decided: str = ""
    """The clause about the last value once it is too old, to which its time is added: `the last sizes were decided`."""


class InputMissingError(Exception):
    """An input is unknown at present; the message names it and the reason. The last value is held."""

    def __init__(
        self,
        message: str,
        limits: tuple[Limit, ...] | None = None,
        *,
        is_refused: bool = False,
        kept: KeptValue | None = None,
    ) -> None:
        """`limits` are bounds that the held value must keep; None means the bounds of the policy.

        With `is_refused`, waiting does not help: somebody must correct the configuration. `kept` is the last value if
        the memory does not have it as a number.
        """
        super().__init__(message)
        self.limits = limits
        self.is_refused = is_refused
        self.kept = kept


class CalculationError(Exception):
    """No value can be calculated from the current inputs; the message says why and what to do."""


Calculate: TypeAlias = Callable[["Inputs", "Memory", float], Calculation]
"""The calculation of one kind, called with the inputs, the memory, and the time in Unix seconds.

Raises InputMissingError or CalculationError."""
