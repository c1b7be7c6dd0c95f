"""The context of an expander, and its answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from recommender.kinds.cluster_size.estimator.estimate_model import ExpansionOption

if TYPE_CHECKING:
    from adapter.foundation.objects.regex import Pattern


@dataclass(frozen=True, slots=True)
class Priorities:
    """Patterns of groups' names by priority, the highest first."""

    patterns: tuple[tuple[int, tuple[Pattern, ...]], ...]

    def of(self, group: str) -> int | None:
        """Return the highest priority with a pattern that is found anywhere in the name; None if there is none."""
        return next((number for number, patterns in self.patterns if any(p.found_in(group) for p in patterns)), None)


@dataclass(frozen=True, slots=True)
class ExpanderContext:
    """The context shared by all options of one decision."""

    node_count: int
    """How many nodes the cluster has; the more there are, the larger the new nodes that the price expander prefers."""
    seed: int = 0
    """The seed of the random choice."""
    priorities: Priorities | None = None
    """The priorities; None if there are none, so the priority expander keeps all options."""
    priorities_problem: str = ""
    """Why there are no priorities, or why they cannot be used."""


@dataclass(frozen=True, slots=True)
class Kept:
    """The best options, in their order, and why they are the best."""

    options: tuple[ExpansionOption, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Choice:
    """The choice among the options; its option is None if there was none to choose from."""

    option: ExpansionOption | None
    reason: str
    """The options that each expander kept and why, in one sentence."""


Expander: TypeAlias = Callable[[Sequence[ExpansionOption], ExpanderContext], Kept]
"""Returns the best of the options, of which there is at least one."""


def names(options: Sequence[ExpansionOption]) -> str:
    """Return the names of the options' groups for a message."""
    return ", ".join(option.group.name for option in options)
