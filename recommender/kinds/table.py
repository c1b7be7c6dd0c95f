"""The kinds of recommendations by their keys. Each kind is loaded when it is first requested."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from recommender.kinds.kind import RecommendationKind


def _kind_in(folder: str) -> Callable[[], RecommendationKind[Any]]:
    """Return a loader of the `KIND` of a folder, which imports it by name so that unused kinds are not loaded."""

    @cache
    def kind() -> RecommendationKind[Any]:
        loaded: RecommendationKind[Any] = import_module(f"recommender.kinds.{folder}.kind").KIND
        return loaded

    return kind


KINDS: Final[dict[str, Callable[[], RecommendationKind[Any]]]] = {
    "proportional": _kind_in("proportional"),
    "predictive": _kind_in("predictive"),
    "clusterSize": _kind_in("cluster_size"),
    "resources": _kind_in("resources"),
}
"""The kinds in the order in which messages and metrics name them."""


def kind_named(key: str) -> RecommendationKind[Any] | None:
    """Return the kind with this key; None if there is none, as for entries whose kind cannot be read."""
    return KINDS[key]() if key in KINDS else None


def kind_of(key: str) -> RecommendationKind[Any]:
    """Return the kind of a recommendation, or of a record whose configuration was read. Raises KeyError."""
    return KINDS[key]()


def all_kinds() -> tuple[RecommendationKind[Any], ...]:
    """Return all kinds."""
    return tuple(kind() for kind in KINDS.values())
