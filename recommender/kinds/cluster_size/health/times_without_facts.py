"""Times without facts about the cluster, which do not count for the time limits of nodes. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from recommender.kinds.cluster_size.model.memory import Absence

if TYPE_CHECKING:
    from recommender.decisions.memory import LastValue
    from recommender.kinds.cluster_size.model.memory import ClusterSizeMemory

STILL_SECONDS: Final = 45.0
"""Facts that are older than this at a decision are no longer confirmed: a healthy watch is heard every 40 s at the
latest."""
_MOST: Final = 20
_KEPT_SECONDS: Final = 7 * 86_400.0


def with_absence(
    memory: ClusterSizeMemory, last: LastValue | None, confirmed: float, stale_after_seconds: float
) -> ClusterSizeMemory:
    """Return the memory, to which an absence is added if the facts of the time `confirmed` end one.

    There was an absence if the last decision was made from outdated facts, or if no decision was made for twice the
    allowed age of facts: polls are at least that frequent.
    """
    kept = tuple(each for each in memory.absences if confirmed - each.until < _KEPT_SECONDS)[-_MOST:]
    if last is not None and confirmed > last.confirmed:
        stood_still = last.decided - last.confirmed > STILL_SECONDS
        if stood_still or confirmed - last.confirmed > 2 * stale_after_seconds:
            kept = (*_up_to(kept, last.confirmed), Absence(_start(kept, last.confirmed), confirmed))[-_MOST:]
    return memory if kept == memory.absences else replace(memory, absences=kept)


def _up_to(absences: tuple[Absence, ...], time: float) -> tuple[Absence, ...]:
    """Return the absences that ended before a time; later ones become part of the new absence."""
    return tuple(each for each in absences if each.until < time)


def _start(absences: tuple[Absence, ...], last: float) -> float:
    return min((each.since for each in absences if each.until >= last), default=last)
