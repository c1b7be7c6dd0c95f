"""Static node groups, discovered from nodes and pods."""

from __future__ import annotations

from dataclasses import replace

from adapter.foundation.objects.selectors import parse_selector
from recommender.kinds.cluster_size.model.size_settings import StaticGroup

POOL_A = {"pool": "a"}


def static(name: str = "a", selector: str = "pool=a", **more: object) -> StaticGroup:
    return replace(StaticGroup(name, 0, 20, parse_selector(selector)), **more)  # type: ignore[arg-type]
