"""Keeps the size while the query of a driver may lack series, such as after Prometheus has started without data (pure).

A rise is followed at once, and no lack of series keeps a size for longer than `WHOLE_SECONDS`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from recommender.decisions.inputs import WHOLE_SECONDS, QueryAnswer
from recommender.decisions.texts.times import rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterable

    from recommender.decisions.limits import SizeTrail

STEP: Final = "missingSeries"
SCRAPED_SECONDS: Final = 60.0
"""The time in which a source that has just started scrapes all of its targets once: the default interval of
Prometheus."""


def partial_since(
    answers: Iterable[object], since: float | None, now: float, *, is_first_process: bool
) -> float | None:
    """Return since when a query may lack series, in Unix seconds; None if it lacks none.

    `since` is that of the last decision. `is_first_process` says whether this process decided the first size, and may
    not know all series yet: then those that the query had at its first answer are all of them, unless others came
    within `SCRAPED_SECONDS`.
    """
    whole_seconds = _whole_seconds(answers)
    if whole_seconds is None:
        # A value that has not fallen does not show that the first answers of this process were complete.
        return since if since is not None and now - since < WHOLE_SECONDS else None
    if whole_seconds >= WHOLE_SECONDS or (is_first_process and whole_seconds >= SCRAPED_SECONDS):
        return None
    return now if since is None else since


def may_lack_series(answers: Iterable[object]) -> bool:
    """Return whether a query is not known to have all series that it had `WHOLE_SECONDS` ago."""
    whole_seconds = _whole_seconds(answers)
    return whole_seconds is not None and whole_seconds < WHOLE_SECONDS


def _whole_seconds(answers: Iterable[object]) -> float | None:
    return min((each.whole_seconds for each in answers if isinstance(each, QueryAnswer)), default=None)


def keep_size(trail: SizeTrail, since: float | None, last: int | None, now: float) -> str:
    """Keep the last size while series may be missing; return why, or an empty text if nothing is kept."""
    if since is None or last is None or last <= trail.value or now - since >= WHOLE_SECONDS:
        return ""
    until = rfc3339(since + WHOLE_SECONDS)
    hold = (
        f"{last} is kept, and not reduced to {trail.value}, until {until} at the latest: the query has fewer series "
        f"than before, or had none {WHOLE_SECONDS:g} s before, or Prometheus did not say how many, so its value may be "
        "a part of the load"
    )
    trail.raise_to(STEP, last, f"not below {last} until {until}, because the query may lack series")
    return hold
