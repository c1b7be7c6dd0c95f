"""Labels of the metrics whose samples the code writes as text, or with a function of its own.

`tests/helm/test_dashboards.py` compares them with the series that a Prometheus has scraped.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_RECOMMENDATION: Final = ("recommendation",)
_TARGET: Final = ("recommendation", "target_kind", "target_name", "target_namespace")
_GROUP: Final = ("node_group", "recommendation")
_MODEL: Final = ("model", "recommendation")

LABELS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "tidewatch_adapter_metric_rules": ("state",),
        "tidewatch_adapter_rule_last_success_timestamp_seconds": ("rule",),
        "tidewatch_adapter_rule_plan": ("rule", "plan"),
        "tidewatch_adapter_rule_plan_distrusted": ("rule",),
        "tidewatch_adapter_rules": ("state",),
        "tidewatch_build_info": ("version", "python_version"),
        "tidewatch_forecast_budget_ratio": _RECOMMENDATION,
        "tidewatch_forecast_cost_ratio": _RECOMMENDATION,
        "tidewatch_model_active": _MODEL,
        "tidewatch_model_shortage_versus_headroom": _MODEL,
        "tidewatch_node_forecasts": ("verdict",),
        "tidewatch_node_group_max_nodes": _GROUP,
        "tidewatch_node_group_min_nodes": _GROUP,
        "tidewatch_node_group_nodes": _GROUP,
        "tidewatch_node_group_registered_nodes": _GROUP,
        "tidewatch_node_hot": ("node",),
        "tidewatch_node_sample_age_seconds": ("node",),
        "tidewatch_node_utilization_ratio": ("node", "resource", "window", "stat"),
        "tidewatch_node_verdicts": ("resource", "verdict"),
        "tidewatch_nodes": ("state",),
        "tidewatch_observed_load": _TARGET,
        "tidewatch_pending_pods": _RECOMMENDATION,
        "tidewatch_predicted_load": (*_TARGET, "quantile"),
        "tidewatch_readiness_reads_total": ("result",),
        "tidewatch_recommendation_binding": ("recommendation", "step"),
        "tidewatch_recommendation_status": ("recommendation", "status"),
        "tidewatch_recommendation_step": ("recommendation", "step"),
        "tidewatch_recommendation_timestamp_seconds": _RECOMMENDATION,
        "tidewatch_recommended_nodes": _GROUP,
        "tidewatch_recommended_nodes_after_removals": _GROUP,
        "tidewatch_recommended_replicas": _TARGET,
        "tidewatch_recommended_resources": (*_TARGET, "container", "resource", "bound"),
        "tidewatch_removable_nodes": _RECOMMENDATION,
        "tidewatch_failed_machines": _RECOMMENDATION,
        "tidewatch_removals_saved_per_hour": _RECOMMENDATION,
        "tidewatch_replicas_on_hot_nodes_ratio": ("controller_namespace", "controller"),
        "tidewatch_target_replicas": _TARGET,
        "tidewatch_unschedulable_pods": _RECOMMENDATION,
    }
)
"""Names of labels by the name of the metric. With `forEach`, a target's status has its labels, too."""
