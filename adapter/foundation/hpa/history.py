"""The state that the HPA controller keeps about one HPA between two evaluations.

The controller keeps this in memory, and loses it when it restarts. Here it is an argument and a result, so that a
simulation can be stopped, copied and repeated. Times are seconds on any one clock.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapter.foundation.hpa.rules import Behaviour


@dataclass(frozen=True, slots=True)
class PastRecommendation:
    """The number of replicas that the metrics asked for, before any limit."""

    replicas: int
    at: float


@dataclass(frozen=True, slots=True)
class ScaleEvent:
    """A change of the number of replicas; `change` is positive in both directions."""

    change: int
    at: float


@dataclass(frozen=True, slots=True)
class HpaHistory:
    """Recommendations and changes, as far back as they may still matter."""

    recommendations: tuple[PastRecommendation, ...] = ()
    ups: tuple[ScaleEvent, ...] = ()
    downs: tuple[ScaleEvent, ...] = ()


class _Dated(Protocol):
    @property
    def at(self) -> float: ...


_D = TypeVar("_D", bound=_Dated)


def with_recommendation(
    history: HpaHistory, recommendation: PastRecommendation, *, obsolete_before: float
) -> HpaHistory:
    """Return the history with the recommendation, which replaces one that is older than all windows, if any."""
    return replace(history, recommendations=_with_entry(history.recommendations, recommendation, obsolete_before))


def with_change(
    history: HpaHistory, behaviour: Behaviour | None, previous: int, replicas: int, now: float
) -> HpaHistory:
    """Return the history after the number was changed; without a behaviour, changes are not remembered."""
    if behaviour is None or replicas == previous:
        return history
    event = ScaleEvent(abs(replicas - previous), now)
    if replicas > previous:
        return replace(history, ups=_with_entry(history.ups, event, now - behaviour.scale_up.longest_period_seconds))
    return replace(history, downs=_with_entry(history.downs, event, now - behaviour.scale_down.longest_period_seconds))


def change_since(events: Sequence[ScaleEvent], start: float) -> int:
    """Return by how much the events after this time changed the number of replicas."""
    return sum(event.change for event in events if event.at > start)


def _with_entry(entries: tuple[_D, ...], new: _D, obsolete_before: float) -> tuple[_D, ...]:
    """Return the entries with the new one, which replaces the last obsolete entry if there is one.

    Like the controller, it does not drop all obsolete entries at once: an entry that is obsolete for one direction may
    still count for the other direction, whose periods can be longer.
    """
    obsolete = [index for index, entry in enumerate(entries) if entry.at < obsolete_before]
    if not obsolete:
        return (*entries, new)
    return (*entries[: obsolete[-1]], new, *entries[obsolete[-1] + 1 :])
