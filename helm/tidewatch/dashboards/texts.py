"""All dashboards by the names of their files, and their texts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from helm.tidewatch.dashboards import adapter, nodes, predictions, recommendations, workload

if TYPE_CHECKING:
    from collections.abc import Callable

    from grafana_foundation_sdk.models.dashboard import Dashboard

DASHBOARDS: Final[dict[str, Callable[[], Dashboard]]] = {
    "adapter": adapter.dashboard,
    "recommendations": recommendations.dashboard,
    "workload": workload.dashboard,
    "predictions": predictions.dashboard,
    "nodes": nodes.dashboard,
}


def text_of(dashboard: Dashboard) -> str:
    """Return the JSON of a dashboard as it is committed."""
    return json.dumps(dashboard, indent=2, cls=JSONEncoder) + "\n"
