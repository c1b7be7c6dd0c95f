"""Checks of the rungs of a ladder."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from recommender.kinds.proportional.modes.mode_definition import Flaw, Values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recommender.kinds.proportional.parameters import Rungs

LADDERS: Final = ("coresToReplicas", "nodesToReplicas")
"""The keys of modes under which there are rungs, in the order in which they are checked."""


def negative_rungs(values: Values) -> Iterator[Flaw]:
    """Yield a flaw for each rung with a negative number."""
    for key in LADDERS:
        yield from negative(key, values.rungs.get(key, ()))


def ambiguous_rungs(values: Values) -> Iterator[Flaw]:
    """Yield a flaw for each threshold that several rungs of one ladder have."""
    for key in LADDERS:
        yield from ambiguous(key, values.rungs.get(key, ()))


def missing_rungs(values: Values) -> Iterator[Flaw]:
    """Yield a flaw if there is no rung at all."""
    if not any(values.rungs.get(key) for key in LADDERS):
        fix = "write at least one rung, such as nodesToReplicas: [[1, 1]]"
        yield Flaw(None, "neither `coresToReplicas` nor `nodesToReplicas` has a rung", fix)


def negative(key: str, rungs: Rungs) -> Iterator[Flaw]:
    """Yield a flaw for each rung of one ladder with a negative number."""
    for rung in rungs:
        if min(rung) < 0:
            yield Flaw(key, f"the rung {list(rung)} of `{key}` has a negative number", "write 0 or more")


def ambiguous(key: str, rungs: Rungs) -> Iterator[Flaw]:
    """Yield a flaw for each threshold that several rungs of one ladder have."""
    times = Counter(threshold for threshold, _ in rungs)
    for threshold in (threshold for threshold, count in times.items() if count > 1):
        yield Flaw(key, f"several rungs of `{key}` have the threshold {threshold}", "keep one of them")
