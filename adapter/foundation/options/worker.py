"""Flags of the worker process, which answers requests."""

from __future__ import annotations

from typing import Final

from adapter.foundation.objects.durations import parse_duration
from adapter.foundation.service.flags.table import DURATION, Flag, Kind, in_group, switch

_LONGEST_SECONDS: Final = 86_400.0


def _delay(text: str) -> float:
    seconds = parse_duration(text)
    if not 0 <= seconds <= _LONGEST_SECONDS:
        raise ValueError(f"{text!r} is not a delay: write a duration from 0s to 24h, such as 5s")
    return seconds


DELAY: Final = Kind(DURATION.placeholder, _delay, DURATION.show)
"""How long a process keeps serving after SIGTERM."""


def worker_flags(group: str) -> tuple[Flag, ...]:
    """Return `--shutdown-delay` and `--pin-cpu`."""
    return in_group(
        group,
        Flag(
            "shutdown-delay",
            DELAY,
            "How long to keep serving after SIGTERM, while endpoints are removed.",
            default=5.0,
        ),
        switch("pin-cpu", "Pin the worker to one core, which saves CPU on machines with many cores."),
    )
