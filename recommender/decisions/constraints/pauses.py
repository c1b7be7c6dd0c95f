"""Pauses: how they are written, which ones are in force, and what they stop.

A pause is set in the configuration (`paused`) or on a target (the annotation `tidewatch.io/paused`): `true`, `up`,
`down`, or the time until which both directions are stopped. `false` does not pause. An annotation that cannot be read
stops both directions, since somebody evidently wanted a pause.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapter.foundation.documents.tree import shorten
from recommender.decisions.policy_settings import Brakes, Direction, Pause
from recommender.decisions.texts.times import parse_rfc3339, rfc3339

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recommender.decisions.targets.target_situation import KnownTarget

ANNOTATION = "tidewatch.io/paused"
_WORDS = {"true": Pause(Direction.BOTH), "up": Pause(Direction.UP), "down": Pause(Direction.DOWN), "false": None}


@dataclass(frozen=True, slots=True)
class ActivePause:
    """A pause that is in force."""

    pause: Pause
    source: str
    """Who pauses, as the end of the phrase `paused by …`."""

    @property
    def sentence(self) -> str:
        """Return a clause that states what is paused, by whom, and until when."""
        what = {Direction.UP: "increases are ", Direction.DOWN: "decreases are ", Direction.BOTH: ""}
        until = "" if self.pause.until is None else f" until {rfc3339(self.pause.until)}"
        return f"{what[self.pause.direction]}paused by {self.source}{until}"


def read_pause(text: str) -> Pause | None:
    """Return the pause that a text describes, None for `false`. Raises ValueError, whose message says what to write."""
    if text in _WORDS:
        return _WORDS[text]
    try:
        return Pause(Direction.BOTH, parse_rfc3339(text))
    except ValueError as error:
        message = (
            f"{shorten(text)!r} is not a pause: write true, false, up, down, or a time such as 2026-11-21T06:00:00Z"
        )
        raise ValueError(message) from error


def active_pauses(brakes: Brakes, targets: Sequence[KnownTarget], now: float) -> tuple[ActivePause, ...]:
    """Return the pauses that are in force; the pause of the configuration is first."""
    found = [ActivePause(brakes.paused, "the configuration")] if brakes.paused else []
    for target in targets:
        if target.state.paused is not None:
            found += _pauses_of_annotation(target.state.paused, f"the annotation {ANNOTATION} of {target.reference}")
    return tuple(each for each in found if each.pause.until is None or each.pause.until > now)


def stops(pauses: Sequence[ActivePause], direction: Direction) -> bool:
    """Return whether changes in this direction, up or down, are stopped."""
    return any(each.pause.direction in {direction, Direction.BOTH} for each in pauses)


def _pauses_of_annotation(text: str, source: str) -> list[ActivePause]:
    try:
        pause = read_pause(text)
    except ValueError as error:
        return [ActivePause(Pause(Direction.BOTH), f"{source}, which cannot be read ({error})")]
    return [ActivePause(pause, source)] if pause else []
