"""The kinds of recommendations by their keys. Each is loaded when it is requested."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from recommender.kinds.kind import RecommendationKind


def _proportional() -> RecommendationKind[Any]:
    from recommender.kinds.proportional.kind import ProportionalKind  # noqa: PLC0415 - as all of this module

    return ProportionalKind()


def _predictive() -> RecommendationKind[Any]:
    from recommender.kinds.predictive.kind import PredictiveKind  # noqa: PLC0415

    return PredictiveKind()


def _cluster_size() -> RecommendationKind[Any]:
    from recommender.kinds.cluster_size.kind import ClusterSizeKind  # noqa: PLC0415

    return ClusterSizeKind()


def _resources() -> RecommendationKind[Any]:
    from recommender.kinds.resources.kind import ResourcesKind  # noqa: PLC0415

    return ResourcesKind()


KINDS: Final[dict[str, Callable[[], RecommendationKind[Any]]]] = {
    "proportional": cache(_proportional),
    "predictive": cache(_predictive),
    "clusterSize": cache(_cluster_size),
    "resources": cache(_resources),
}
"""The kinds in the order in which messages and metrics name them."""


def kind_named(key: str) -> RecommendationKind[Any] | None:
    """Return a kind; None for entries whose kind cannot be read."""
    return KINDS[key]() if key in KINDS else None


def kind_of(key: str) -> RecommendationKind[Any]:
    """Return the kind of a recommendation, or of a record whose configuration was read. Raises KeyError."""
    return KINDS[key]()


def all_kinds() -> tuple[RecommendationKind[Any], ...]:
    """Return all kinds."""
    return tuple(kind() for kind in KINDS.values())
