"""Values that enable the recommender, or the loads of nodes."""

from __future__ import annotations

from typing import Any

RESOURCE = "v1beta1.metrics.k8s.io"


def recommender(config: object, **settings: object) -> dict[str, Any]:
    """Return values with this recommender."""
    return {"recommender": {"enabled": True, "config": config, **settings}}


def nodes(**settings: object) -> dict[str, Any]:
    """Return values with the loads of nodes."""
    return {"nodes": {"enabled": True, **settings}}
