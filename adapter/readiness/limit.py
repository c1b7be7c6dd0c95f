"""Decides when a pod is full, and when it has room again."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConnectionLimit:
    """The number of connections at which a pod is full, and the number below which it has room again."""

    full_at: int
    resume_below: float

    def is_full(self, connections: float, *, was_full: bool) -> bool:
        """Return whether a pod is full; between the two numbers, the result is `was_full`."""
        return connections >= self.full_at or (was_full and connections >= self.resume_below)


def connection_limit(limit: int, resume_ratio: float) -> ConnectionLimit:
    """Return the limit for a pod that is full at `limit` connections.

    The pod has room again below `resume_ratio` times that number. Raises ValueError, whose message names the flag and
    states what to write instead.
    """
    if limit < 1:
        raise ValueError(f"--limit={limit}: write the number of connections at which the pod is full, 1 or more")
    if not 0 < resume_ratio <= 1:
        raise ValueError(f"--resume-ratio={resume_ratio:g}: write a number above 0 and at most 1, such as 0.95")
    # Rounded, because 0.07 * 100 is 7.000000000000001.
    return ConnectionLimit(limit, round(limit * resume_ratio, 6))
