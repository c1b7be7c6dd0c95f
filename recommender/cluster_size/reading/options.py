"""Reads what a node group overrides, and `scaleDown`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from recommender.cluster_size.model.groups import GroupOptions
from recommender.cluster_size.model.settings import ScaleDownSettings

if TYPE_CHECKING:
    from adapter.documents.tree import MappingNode, Node
    from recommender.reading.fields import ValueReader

SCALE_DOWN_KEYS: Final = (
    "enabled",
    "utilizationThreshold",
    "gpuUtilizationThreshold",
    "unneededTime",
    "unreadyTime",
    "unreadyEnabled",
    "delayAfterAdd",
    "delayAfterDelete",
    "delayAfterFailure",
    "maxParallelism",
    "maxDrainParallelism",
    "skipNodesWithSystemPods",
    "skipNodesWithLocalStorage",
    "skipNodesWithCustomControllerPods",
    "minReplicaCount",
    "ignoreDaemonSetsUtilization",
    "ignoreMirrorPodsUtilization",
    "systemPodTime",
)
OPTION_KEYS: Final = (
    "utilizationThreshold",
    "gpuUtilizationThreshold",
    "unneededTime",
    "unreadyTime",
    "maxNodeProvisionTime",
    "zeroOrMax",
    "ignoreDaemonSetsUtilization",
)
LONGEST_SECONDS: Final = 31 * 86_400.0
_WHOLE_PERCENT: Final = 101
_MOST_AT_ONCE: Final = 10_000


def read_options(node: Node | None, fields: ValueReader) -> GroupOptions | None:
    """Return what a group overrides; None if the key is absent."""
    mapping = fields.mapping(node, OPTION_KEYS)
    if mapping is None:
        return None
    return GroupOptions(
        utilization_threshold_ratio=fields.percentage(mapping.get("utilizationThreshold"), below=_WHOLE_PERCENT),
        gpu_utilization_threshold_ratio=fields.percentage(mapping.get("gpuUtilizationThreshold"), below=_WHOLE_PERCENT),
        unneeded_seconds=fields.seconds(mapping.get("unneededTime"), LONGEST_SECONDS),
        unready_seconds=fields.seconds(mapping.get("unreadyTime"), LONGEST_SECONDS),
        max_node_provision_seconds=fields.seconds(mapping.get("maxNodeProvisionTime"), LONGEST_SECONDS),
        zero_or_max=fields.flag(mapping.get("zeroOrMax")) or False,
        ignore_daemon_sets_utilization=fields.flag(mapping.get("ignoreDaemonSetsUtilization")),
    )


def read_scale_down(node: Node | None, fields: ValueReader) -> ScaleDownSettings:
    """Return which nodes may go, and when; the defaults if the key is absent."""
    default = ScaleDownSettings()
    mapping = fields.mapping(node, SCALE_DOWN_KEYS)
    if mapping is None:
        return default
    read = _Defaulting(mapping, fields)
    return ScaleDownSettings(
        enabled=read.flag("enabled", fallback=default.enabled),
        utilization_threshold_ratio=read.percentage("utilizationThreshold", default.utilization_threshold_ratio),
        gpu_utilization_threshold_ratio=read.percentage(
            "gpuUtilizationThreshold", default.gpu_utilization_threshold_ratio
        ),
        unneeded_seconds=read.seconds("unneededTime", default.unneeded_seconds),
        unready_seconds=read.seconds("unreadyTime", default.unready_seconds),
        unready_enabled=read.flag("unreadyEnabled", fallback=default.unready_enabled),
        delay_after_add_seconds=read.seconds("delayAfterAdd", default.delay_after_add_seconds),
        delay_after_delete_seconds=read.seconds("delayAfterDelete", default.delay_after_delete_seconds),
        delay_after_failure_seconds=read.seconds("delayAfterFailure", default.delay_after_failure_seconds),
        max_parallelism=read.count("maxParallelism", 1, _MOST_AT_ONCE, default.max_parallelism),
        max_drain_parallelism=read.count("maxDrainParallelism", 0, _MOST_AT_ONCE, default.max_drain_parallelism),
        skip_nodes_with_system_pods=read.flag("skipNodesWithSystemPods", fallback=default.skip_nodes_with_system_pods),
        skip_nodes_with_local_storage=read.flag(
            "skipNodesWithLocalStorage", fallback=default.skip_nodes_with_local_storage
        ),
        skip_nodes_with_custom_controller_pods=read.flag(
            "skipNodesWithCustomControllerPods", fallback=default.skip_nodes_with_custom_controller_pods
        ),
        min_replica_count=read.count("minReplicaCount", 0, _MOST_AT_ONCE, default.min_replica_count),
        ignore_daemon_sets_utilization=read.flag(
            "ignoreDaemonSetsUtilization", fallback=default.ignore_daemon_sets_utilization
        ),
        ignore_mirror_pods_utilization=read.flag(
            "ignoreMirrorPodsUtilization", fallback=default.ignore_mirror_pods_utilization
        ),
        system_pod_seconds=read.seconds("systemPodTime", default.system_pod_seconds),
    )


class _Defaulting:
    """Reads the keys of one mapping; absent and wrong values become the default."""

    def __init__(self, mapping: MappingNode, fields: ValueReader) -> None:
        self._mapping = mapping
        self._fields = fields

    def flag(self, key: str, *, fallback: bool) -> bool:
        value = self._fields.flag(self._mapping.get(key))
        return fallback if value is None else value

    def percentage(self, key: str, default: float) -> float:
        value = self._fields.percentage(self._mapping.get(key), below=_WHOLE_PERCENT)
        return default if value is None else value

    def seconds(self, key: str, default: float) -> float:
        value = self._fields.seconds(self._mapping.get(key), LONGEST_SECONDS)
        return default if value is None else value

    def count(self, key: str, least: int, most: int, default: int) -> int:
        value = self._fields.count_within(self._mapping, key, least, most)
        return default if value is None else value
