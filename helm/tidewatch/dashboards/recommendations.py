"""The dashboard of `tidewatch-recommender run`."""

from __future__ import annotations

from typing import Any, Final

from helm.tidewatch.dashboards.panels import (
    SCRAPED,
    Panel,
    Query,
    Row,
    age,
    gauge,
    increase,
    quantiles,
    rate,
    variable,
)
from helm.tidewatch.dashboards.panels import dashboard as dashboard_of

_STATUS: Final = "tidewatch_recommendation_status"
_CHOSEN: Final = f'{SCRAPED},recommendation=~"$recommendation"'
_TARGET: Final = "recommendation, target_namespace, target_kind, target_name"
_NAME: Final = "{{target_namespace}}/{{target_name}}"
_CALLS: Final = "tidewatch_scale_calls_total"
_GROUP: Final = "recommendation, node_group"
_GROUP_NAME: Final = "{{recommendation}} {{node_group}}"


def dashboard() -> dict[str, Any]:
    """Return its model."""
    return dashboard_of(
        "tidewatch-recommendations",
        "Tidewatch / Recommendations",
        "Recommended and actual sizes, the reasons, and how they are carried out.",
        (
            variable("namespace", "tidewatch_leader", "namespace"),
            variable("job", "tidewatch_leader", "job"),
            variable("recommendation", _STATUS, "recommendation"),
        ),
        (_sizes(), _containers(), _reasons(), *_cluster_size(), _scaling(), _process()),
    )


def _sizes() -> Row:
    return Row(
        "Recommendations",
        (
            Panel(
                "Recommended and actual replicas",
                "The recommended and the actual size of each target.",
                (
                    Query(f"max by ({_TARGET}) (tidewatch_recommended_replicas{{{_CHOSEN}}})", f"recommended {_NAME}"),
                    Query(f"max by ({_TARGET}) (tidewatch_target_replicas{{{_CHOSEN}}})", f"actual {_NAME}"),
                ),
            ),
            Panel(
                "Status",
                "Whether each recommendation can be followed. Without a value (stale, error) targets keep their size.",
                (
                    Query(
                        f"max by (recommendation, status) ({_STATUS}{{{_CHOSEN}}}) == 1",
                        "{{recommendation}} {{status}}",
                    ),
                ),
                kind="state-timeline",
                names={1: "now"},
            ),
            Panel(
                "Age",
                "How long ago each value was decided. A value that is held because an input is missing grows older.",
                (age("tidewatch_recommendation_timestamp_seconds", "recommendation", _CHOSEN),),
                "s",
            ),
        ),
    )


def _containers() -> Row:
    return Row(
        "Containers",
        (
            Panel(
                "CPU of containers",
                "The CPU that each container should request: the sizes that grow with the cluster.",
                (_of_containers("cpu"),),
            ),
            Panel(
                "Memory of containers",
                "The memory that each container should request: the sizes that grow with the cluster.",
                (_of_containers("memory"),),
                "bytes",
            ),
        ),
    )


def _of_containers(resource: str) -> Query:
    chosen = f'{_CHOSEN},resource="{resource}"'
    query = f"max by ({_TARGET}, container, bound) (tidewatch_recommended_resources{{{chosen}}})"
    return Query(query, f"{_NAME} {{{{container}}}} {{{{bound}}}}")


def _reasons() -> Row:
    return Row(
        "Why",
        (
            Panel(
                "Binding step",
                "The driver or constraint that decides the size: the last step that changed the value.",
                (gauge("tidewatch_recommendation_binding", "recommendation, step", matchers=_CHOSEN),),
                kind="state-timeline",
                names={1: "binds"},
            ),
            Panel(
                "Steps of the calculation",
                "The value of each driver, and the value after each constraint that changed it.",
                (gauge("tidewatch_recommendation_step", "recommendation, step", matchers=_CHOSEN),),
            ),
        ),
    )


def _cluster_size() -> tuple[Row, ...]:
    return (
        Row(
            "Cluster size",
            (
                Panel(
                    "Recommended and actual nodes",
                    "The size that each node group should have for all pending pods, the size that was asked for, "
                    "and the maximum.",
                    (
                        _of_groups("tidewatch_recommended_nodes", "recommended"),
                        _of_groups("tidewatch_node_group_nodes", "actual"),
                        _of_groups("tidewatch_node_group_max_nodes", "maximum"),
                    ),
                ),
                Panel(
                    "Nodes after removals",
                    "The recommended size of each node group without the nodes that can be removed now.",
                    (_of_groups("tidewatch_recommended_nodes_after_removals", ""),),
                ),
                Panel(
                    "Removable nodes",
                    "Removable nodes: now, or after a timer or a cool-down.",
                    (gauge("tidewatch_removable_nodes", "recommendation", matchers=_CHOSEN),),
                ),
            ),
        ),
        Row(
            "Pods without a node",
            (
                Panel(
                    "Pods that no node group can hold",
                    "Pending pods for which there is no place and no group that may grow. The page says why.",
                    (gauge("tidewatch_unschedulable_pods", "recommendation", matchers=_CHOSEN),),
                ),
                Panel(
                    "Pending pods",
                    "Pods without a node when the sizes were decided, those of forecasts and reserves included.",
                    (gauge("tidewatch_pending_pods", "recommendation", matchers=_CHOSEN),),
                ),
                Panel(
                    "Saved by removals",
                    "Savings per hour from removing the nodes that can be removed now, in the currency of the prices.",
                    (gauge("tidewatch_removals_saved_per_hour", "recommendation", matchers=_CHOSEN),),
                ),
            ),
        ),
    )


def _of_groups(metric: str, what: str) -> Query:
    return Query(f"max by ({_GROUP}) ({metric}{{{_CHOSEN}}})", f"{what} {_GROUP_NAME}".strip())


def _scaling() -> Row:
    return Row(
        "Scaling",
        (
            Panel(
                "Scale calls",
                "Scale calls, and decisions not to send one, by result.",
                (increase(_CALLS, "result", _CHOSEN),),
            ),
            Panel(
                "Refusals",
                "Scale calls that are not sent because something else owns the target. The page names the owner.",
                (increase(_CALLS, "recommendation", f'{_CHOSEN},result="refused"'),),
            ),
            Panel(
                "Events",
                "Kubernetes events by result.",
                (increase("tidewatch_recommender_events_total", "result"),),
            ),
            Panel(
                "Writes of memories",
                "Writes of what decisions remember, by result. Without them nothing is scaled.",
                (increase("tidewatch_recommender_memory_writes_total", "result"),),
            ),
        ),
    )


def _process() -> Row:
    return Row(
        "Process",
        (
            Panel(
                "Leader",
                "Which replica leads. None: nothing is recommended and nothing is scaled.",
                (gauge("tidewatch_leader", "instance"),),
                kind="state-timeline",
                names={0: "standby", 1: "leads"},
            ),
            Panel(
                "Polls",
                "Polls by result. In a poll with an error, a recommendation has no value.",
                (rate("tidewatch_recommender_polls_total", "result"),),
                "cps",
            ),
            Panel(
                "Time since the last poll",
                "How long ago a poll ended.",
                (age("tidewatch_recommender_last_poll_timestamp_seconds", "job"),),
                "s",
            ),
            Panel(
                "Duration of decisions",
                "How long the decision of one recommendation takes.",
                quantiles("tidewatch_recommender_decision_duration_seconds", "recommendation", _CHOSEN),
                "s",
            ),
        ),
    )
