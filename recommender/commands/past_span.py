"""The past that a command reads: its length, such as `--last 14d`, its ends and its step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.objects.durations import format_duration, parse_duration
from adapter.foundation.objects.integers import INT64_MAX
from adapter.foundation.service.flags.parsing import UsageError
from adapter.foundation.service.flags.table import Kind
from recommender.backtest.recorded.command_line_times import parse_moment

if TYPE_CHECKING:
    from adapter.foundation.service.flags.table import FlagValues

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


def moment_of(values: FlagValues, name: str, now: float) -> float:
    """Return the Unix seconds that a flag names; raises UsageError."""
    try:
        return parse_moment(values.text(name), now)
    except ValueError as error:
        raise UsageError(f"--{name}: {error}") from error


def whole_step(seconds: float) -> float:
    """Return the step at which Prometheus is asked; raises UsageError."""
    if seconds < 1 or seconds != int(seconds):
        raise UsageError(f"--step of {seconds:g} s: Prometheus is queried in whole seconds, 1 s or more")
    return seconds
