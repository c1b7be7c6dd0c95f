"""Node groups of the made-up past."""

from __future__ import annotations

from typing import Final

from adapter.foundation.objects.selectors import parse_selector
from recommender.kinds.cluster_size.model.size_settings import StaticGroup

STATIC_GROUPS: Final = (
    StaticGroup("small", 0, 100, parse_selector("pool=small"), price=0.4),
    StaticGroup("large", 0, 100, parse_selector("pool=large"), price=0.82),
)
