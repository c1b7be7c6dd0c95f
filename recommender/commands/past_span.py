"""The length of the past that a command reads, such as `--last 14d`."""

from __future__ import annotations

from typing import Final

from adapter.foundation.objects.durations import format_duration, parse_duration
from adapter.foundation.objects.integers import INT64_MAX
from adapter.foundation.service.flags.table import Kind

DEFAULT_LAST_SECONDS: Final = 14 * 86_400.0
_LONGEST_SECONDS: Final = INT64_MAX / 10**9
"""The longest duration that can be written with units: 292 years."""


def _span(text: str) -> float:
    """Return the seconds of `90`, `90s`, `1m30s` or `8d`; raises ValueError."""
    for parse in (float, parse_duration):
        try:
            seconds = parse(text)
        except ValueError:
            continue
        if 0 <= seconds <= _LONGEST_SECONDS:
            return seconds
    raise ValueError(f"{text!r} is not a duration: write seconds, or numbers with units, such as 90s, 5m or 8d")


def _span_text(seconds: object) -> str:
    return format_duration(seconds) if isinstance(seconds, float | int) else str(seconds)


SPAN: Final = Kind("DURATION", _span, _span_text)
