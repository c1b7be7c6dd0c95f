"""Times as people read them: how long ago they were."""

from __future__ import annotations

from typing import Final

_UNITS: Final = ((86_400, "d"), (3600, "h"), (60, "min"))


def ago(moment: float, now: float) -> str:
    """Return how long ago a time was, in the largest unit of which at least two have passed, such as `3 min ago`."""
    passed = max(now - moment, 0.0)
    for size, unit in _UNITS:
        if passed >= 2 * size:
            return f"{passed // size:.0f} {unit} ago"
    return f"{passed:.0f} s ago"
