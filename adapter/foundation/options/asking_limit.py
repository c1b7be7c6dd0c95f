"""Flags that limit how often a program sends requests to the API server, and the limit that is made from them."""

from __future__ import annotations

from typing import Final

from adapter.foundation.options.clients import AskingLimit
from adapter.foundation.service.flags.parsing import UsageError
from adapter.foundation.service.flags.table import INTEGER, NUMBER, Flag, FlagValues, in_group

_QPS_BESIDE_BURST: Final = 5.0
"""prometheus-adapter's default for `--client-qps`, which applies if only the burst is set."""


def client_limit_flags(group: str) -> tuple[Flag, ...]:
    """Return `--client-qps` and `--client-burst`."""
    return in_group(
        group,
        Flag(
            "client-qps",
            NUMBER,
            "Requests per second that lists, watches and discovery may send to the API server; 0 sets no limit "
            "(default: no limit, since pods are watched and not listed for each request; 5 with --client-burst).",
        ),
        Flag("client-burst", INTEGER, "How many requests may be sent to the API server at once.", default=10),
    )


def asking_limit(values: FlagValues) -> AskingLimit | None:
    """Return the limit on requests to the API server, or None; a negative rate means no limit, as in Go."""
    if not values.given & {"client-qps", "client-burst"}:
        return None
    per_second, burst = values.number("client-qps"), values.integer("client-burst")
    if burst < 1:
        raise UsageError(f"--client-burst is {burst}: write at least 1")
    if per_second is None:
        per_second = _QPS_BESIDE_BURST
    return AskingLimit(per_second, burst) if per_second > 0 else None
