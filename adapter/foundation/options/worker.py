"""Flags of the worker process, which answers requests."""

from __future__ import annotations

from adapter.foundation.service.flags.table import DURATION, Flag, in_group, switch


def worker_flags(group: str) -> tuple[Flag, ...]:
    """Return `--shutdown-delay` and `--pin-cpu`."""
    return in_group(
        group,
        Flag(
            "shutdown-delay",
            DURATION,
            "How long to keep serving after SIGTERM, while endpoints are removed.",
            default=5.0,
        ),
        switch("pin-cpu", "Pin the worker to one core, which saves CPU on machines with many cores."),
    )
