"""Numbers of things in sentences."""

from __future__ import annotations


def count_of(number: int, noun: str) -> str:
    """Return `1 node`, `2 nodes`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
