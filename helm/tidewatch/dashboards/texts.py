"""All dashboards by the names of their files, and the text of one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from helm.tidewatch.dashboards import adapter, nodes, predictions, recommendations

if TYPE_CHECKING:
    from collections.abc import Callable

DASHBOARDS: Final[dict[str, Callable[[], dict[str, Any]]]] = {
    "adapter": adapter.dashboard,
    "recommendations": recommendations.dashboard,
    "predictions": predictions.dashboard,
    "nodes": nodes.dashboard,
}


def text_of(dashboard: dict[str, Any]) -> str:
    """Return the JSON of a dashboard as it is committed."""
    return json.dumps(dashboard, indent=2) + "\n"
