"""Flags of the process that serves."""

from __future__ import annotations

from adapter.foundation.service.flags.table import BOOLEAN, DURATION, Flag


def worker_flags(group: str) -> tuple[Flag, ...]:
    """Return `--shutdown-delay` and `--pin-cpu`."""
    return (
        Flag(
            name="shutdown-delay",
            kind=DURATION,
            default=5.0,
            help="How long to keep serving after SIGTERM, while endpoints are removed.",
            group=group,
        ),
        Flag(
            name="pin-cpu",
            kind=BOOLEAN,
            default=False,
            help="Pin the worker to one core, which saves CPU on machines with many cores.",
            group=group,
        ),
    )
