"""Determines which lists of a cluster's objects are accepted only when a second list confirms them.

Sizes follow from these objects, so a list without them would shrink a service, or hide the owner of its size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from adapter.foundation.cluster.stores.value_stores import ValueReplacement
from adapter.foundation.sources.stores import KubernetesObject, Replacement, Store

if TYPE_CHECKING:
    from adapter.foundation.sources.kubernetes.lists.list_checks import Doubt

F = TypeVar("F", bound=KubernetesObject)


def when_empty(store: Store[F]) -> Doubt[F]:
    """Doubt an empty list while objects are known: keep all of them until a second list confirms it."""

    def doubt(replacement: Replacement[F], listed: int, *, is_second: bool) -> int:  # noqa: ARG001 - as the protocol
        return 0 if listed or is_second else len(store)

    return doubt


def when_one_is_missing() -> Doubt[F]:
    """Doubt the absence of known objects from a list: accept the list, but keep what it lacks until a second agrees."""
    doubted: set[tuple[str, str]] = set()
    """What has been missing from each list since the one that the second list may confirm."""
    pending: set[tuple[str, str]] = set()

    def doubt(replacement: Replacement[F], listed: int, *, is_second: bool) -> int:  # noqa: ARG001 - as the protocol
        if not isinstance(replacement, ValueReplacement):
            return 0
        missing = set(replacement.missing_keys())
        kept = missing - doubted if is_second else missing
        if is_second or not pending:
            doubted.clear()
            doubted.update(kept)
        else:
            # What is missing only now is not confirmed by a second list that is due sooner.
            doubted.intersection_update(kept)
        pending.clear()
        pending.update(kept)
        if kept:
            replacement.keep(kept)
            replacement.commit()
        return len(kept)

    return doubt
