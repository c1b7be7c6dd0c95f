"""The definition of a mode: its keys, the checks of values, and the function from counts to steps.

To add a mode, write a file like `ladder.py` and add its definition to `registry.py`. Both readers of keys (for the
ConfigMap of cluster-proportional-autoscaler and for the configuration file), the calculation and the contract test then
know the new mode.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Generic, TypeVar

from recommender.kinds.proportional.parameters import Mode, Rungs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from recommender.decisions.limits import Limit
    from recommender.decisions.record import Step

M = TypeVar("M", bound=Mode)


class ParameterKind(Enum):
    """The type of a parameter."""

    RATIO = auto()
    """A number, which may have a fraction."""
    COUNT = auto()
    """A whole number."""
    FLAG = auto()
    """true or false."""
    RUNGS = auto()
    """A list of `[threshold, replicas]`."""


@dataclass(frozen=True, slots=True)
class Values:
    """The parameters as they were written, by key; absent ones have their zero value, as in Go."""

    ratios: Mapping[str, float] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    flags: Mapping[str, bool] = field(default_factory=dict)
    rungs: Mapping[str, Rungs] = field(default_factory=dict)
    """The rungs in the order of the file."""

    def ratio(self, key: str) -> float:
        """Return the number under the key, or 0."""
        return self.ratios.get(key, 0.0)

    def count(self, key: str) -> int:
        """Return the whole number under the key, or 0."""
        return self.counts.get(key, 0)

    def flag(self, key: str) -> bool:
        """Return the boolean under the key, or False."""
        return self.flags.get(key, False)

    def ladder(self, key: str) -> Rungs:
        """Return the rungs under the key, sorted by threshold; rungs with equal thresholds keep the file's order."""
        return tuple(sorted(self.rungs.get(key, ()), key=lambda rung: rung[0]))


@dataclass(frozen=True, slots=True)
class Flaw:
    """A problem with values, and its repair."""

    key: str | None
    """The key at fault; None if the parameters as a whole are at fault."""
    message: str
    fix: str


@dataclass(frozen=True, slots=True)
class ClusterSize:
    """The sizes of the cluster that a mode uses."""

    nodes: float
    cores: float


@dataclass(frozen=True, slots=True)
class ModeSteps:
    """The result of a mode for some counts."""

    drivers: tuple[Step, ...]
    """The raw value of each driver, at least one; of equal values, the first counts."""
    limits: tuple[Limit, ...] = ()


@dataclass(frozen=True, slots=True)
class ModeDefinition(Generic[M]):
    """A mode, with its keys, its checks and its functions."""

    name: str
    parameters: type[M]
    keys: Mapping[str, ParameterKind]
    parameters_of: Callable[[Values], M]
    """Returns the parameters that flawless values describe."""
    steps: Callable[[ClusterSize, M], ModeSteps]
    flaws: Callable[[Values], Iterable[Flaw]]
    """Yields the flaws that are errors in any source of parameters, in the order in which
    cluster-proportional-autoscaler checks them."""
    strict_flaws: Callable[[Values], Iterable[Flaw]] = lambda _: ()
    """Yields the flaws that are tolerated only in a ConfigMap, since cluster-proportional-autoscaler accepts them."""
