"""Owners that own each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

Key: TypeAlias = "tuple[str, str, str]"
"""Kind, namespace and name."""


def owner_cycles(owners: Mapping[Key, Key]) -> dict[Key, str]:
    """Return the objects whose owners lead back to themselves, with the reason.

    `owners` has the controller of each object that has one, both as kind, namespace and name.
    """
    cycles: dict[Key, str] = {}
    checked: set[Key] = set()
    for start in owners:
        path: dict[Key, int] = {}
        at: Key | None = start
        while at is not None and at not in checked and at not in path:
            path[at] = len(path)
            at = owners.get(at)
        if at is not None and at in path:
            circle = list(path)[path[at] :]
            for key in circle:
                cycles[key] = _reason(key, circle)
        checked.update(path)
    return cycles


def _reason(key: Key, circle: list[Key]) -> str:
    kind, namespace, name = key
    at = circle.index(key)
    through = " -> ".join(f"{kind} {name}" for kind, _, name in (*circle[at:], *circle[:at], key))
    return f"{kind} {namespace}/{name} is its own owner ({through}): remove one of the owner references"
