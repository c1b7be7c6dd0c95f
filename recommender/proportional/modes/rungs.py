"""What can be wrong with the rungs of a ladder."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from recommender.proportional.modes.definition import Flaw

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recommender.proportional.modes.definition import Values

LADDERS: Final = ("coresToReplicas", "nodesToReplicas")
"""The keys that hold rungs, in the order in which they are checked."""


def negative_rungs(values: Values) -> Iterator[Flaw]:
    """Yield a flaw for each rung with a negative number."""
    for key in LADDERS:
        for rung in values.rungs.get(key, ()):
            if min(rung) < 0:
                yield Flaw(key, f"the rung {list(rung)} of `{key}` has a negative number", "write 0 or more")


def missing_rungs(values: Values) -> Iterator[Flaw]:
    """Yield a flaw if there is no rung at all."""
    if not any(values.rungs.get(key) for key in LADDERS):
        fix = "write at least one rung, such as nodesToReplicas: [[1, 1]]"
        yield Flaw(None, "neither `coresToReplicas` nor `nodesToReplicas` has a rung", fix)


def ambiguous_rungs(values: Values) -> Iterator[Flaw]:
    """Yield a flaw for each threshold that several rungs of one ladder have."""
    for key in LADDERS:
        thresholds = Counter(threshold for threshold, _ in values.rungs.get(key, ()))
        for threshold in (threshold for threshold, times in thresholds.items() if times > 1):
            yield Flaw(key, f"several rungs of `{key}` have the threshold {threshold}", "keep one of them")
