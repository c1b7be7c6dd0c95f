"""The decision of a poll, and the interface of the code that decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recommender.decisions.inputs import Inputs
    from recommender.decisions.loop import Decision
    from recommender.decisions.memory import Memory
    from recommender.running.inputs.poll_plan import PollPlan


@dataclass(frozen=True, slots=True)
class Decided:
    """The decision of a poll for one recommendation."""

    name: str
    decisions: tuple[Decision, ...]
    """One decision; with `forEach`, one for each target, and one more if there is a problem with all of them."""
    memory: Memory | None
    """The memory of the whole recommendation; None if it cannot be read."""


class Decisions(Protocol):
    """Makes the decisions of polls. Not thread-safe."""

    def decided(self, plan: PollPlan, inputs: Inputs, now: float) -> Sequence[Decided]:
        """Return the decisions in the order of the configuration; never raises."""
        ...

    def forget(self) -> None:
        """Drop everything that is under way: another process leads."""
        ...
