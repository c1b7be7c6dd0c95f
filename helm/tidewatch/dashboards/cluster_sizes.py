"""Rows of the dashboard of recommendations: node groups, pods without a node, and sizes of containers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from grafana_foundation_sdk.models import units

from helm.tidewatch.dashboards.panels import Row, chart, counts, entry_of
from helm.tidewatch.dashboards.queries import CHOSEN, TARGET, gauge, query

if TYPE_CHECKING:
    from grafana_foundation_sdk.builders.prometheus import Dataquery
    from grafana_foundation_sdk.builders.timeseries import Panel

_GROUP: Final = "recommendation, node_group"
_GROUP_NAME: Final = "{{recommendation}} {{node_group}}"


def cluster_sizes() -> Row:
    """Return the row of node groups and of the pods that wait for them."""
    return Row(
        "Cluster size",
        (
            counts(
                "Recommended and actual nodes",
                "The size that each node group should have for all pending pods, the size that was asked for, "
                "and the maximum.",
                _of_groups("tidewatch_recommended_nodes", "recommended"),
                _of_groups("tidewatch_node_group_nodes", "actual"),
                _of_groups("tidewatch_node_group_max_nodes", "maximum"),
                alert="TidewatchNodeGroupAtMaximum",
            ).data_links([entry_of()]),
            counts(
                "Nodes after removals",
                "The recommended size of each node group without the nodes that can be removed now.",
                _of_groups("tidewatch_recommended_nodes_after_removals", ""),
            ).data_links([entry_of()]),
            _of_recommendations(
                "Removable nodes",
                "Removable nodes: now, or after a timer or a cool-down.",
                "tidewatch_removable_nodes",
            ),
            _of_recommendations(
                "Failed machines",
                "Machines that cannot be created, or did not become nodes in time. The page says why they stay.",
                "tidewatch_failed_machines",
            ),
            _of_recommendations(
                "Pods that no node group can hold",
                "Pending pods for which there is no place and no group that may grow. The page says why.",
                "tidewatch_unschedulable_pods",
                alert="TidewatchPodsFitNoNodeGroup",
            ),
            _of_recommendations(
                "Pending pods",
                "Pods without a node when the sizes were decided, those of forecasts and reserves included.",
                "tidewatch_pending_pods",
            ),
            _of_recommendations(
                "Saved by removals",
                "Savings per hour from removing the nodes that can be removed now, in the currency of the prices.",
                "tidewatch_removals_saved_per_hour",
            ).decimals(2),
        ),
        is_collapsed=True,
    )


def _of_groups(metric: str, what: str) -> Dataquery:
    return query(f"max by ({_GROUP}) ({metric}{{{CHOSEN}}})", f"{what} {_GROUP_NAME}".strip())


def _of_recommendations(title: str, description: str, metric: str, alert: str = "") -> Panel:
    lines = counts(title, description, gauge(metric, "recommendation", matchers=CHOSEN), alert=alert)
    return lines.data_links([entry_of()])


def containers() -> Row:
    """Return the row of sizes of containers."""
    return Row(
        "Containers",
        (
            chart(
                "CPU of containers",
                "The CPU that each container should request, in cores: the sizes that grow with the cluster.",
                _of_containers("cpu"),
                unit=units.NoUnit,
            ).data_links([entry_of()]),
            chart(
                "Memory of containers",
                "The memory that each container should request: the sizes that grow with the cluster.",
                _of_containers("memory"),
                unit=units.BytesIEC,
            ).data_links([entry_of()]),
        ),
        is_collapsed=True,
    )


def _of_containers(resource: str) -> Dataquery:
    chosen = f'{CHOSEN},resource="{resource}"'
    expr = f"max by ({TARGET}, container, bound) (tidewatch_recommended_resources{{{chosen}}})"
    return query(expr, "{{target_namespace}}/{{target_name}} {{container}} {{bound}}")
