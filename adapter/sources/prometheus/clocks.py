"""Whether Prometheus's clock and ours tell the same time, by the `Date` of its answers (RFC 9110).

Queries carry our time. Where our clock is an hour behind, Prometheus gives, quite rightly, what was an hour ago, and it
would be served as what is now. A minute is as old as an answer may be by default, and far more than clocks that anybody
keeps differ.
"""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from adapter.sources.prometheus.errors import UnexpectedAnswerError

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_CLOCK_DIFFERENCE_SECONDS = 60.0


def refuse_other_time(query: str, headers: Mapping[str, str], now: float) -> None:
    """Raise UnexpectedAnswerError where the answer's `date` is not about `now` (Unix seconds); one may be missing."""
    try:
        told = parsedate_to_datetime(headers["date"]).timestamp()
    except (KeyError, ValueError, OverflowError):
        return
    difference = told - now
    if abs(difference) > MOST_CLOCK_DIFFERENCE_SECONDS:
        behind = "behind" if difference > 0 else "ahead of"
        raise UnexpectedAnswerError(
            query,
            f"this machine's clock is {abs(difference):.0f} s {behind} Prometheus's, so the values are of another time:"
            " set both clocks by NTP",
        )
