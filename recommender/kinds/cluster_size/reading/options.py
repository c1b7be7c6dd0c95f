"""The shapes of the settings that a node group overrides, and of `scaleDown`."""

from __future__ import annotations

from typing import Final

from adapter.foundation.documents.scalars import BOOLEAN, Bounds, duration, percentage, whole
from adapter.foundation.documents.sections import Key, Section
from recommender.kinds.cluster_size.model.groups import GroupOptions
from recommender.kinds.cluster_size.model.size_settings import ScaleDownSettings

LONGEST_SECONDS: Final = 31 * 86_400.0
TIME: Final = duration(0, LONGEST_SECONDS)
_SHARE: Final = percentage(Bounds(0, 100))
_AT_ONCE: Final = whole(1, 10_000)
_COUNT: Final = whole(0, 10_000)

_UTILIZATION: Final = (
    Key(
        "utilizationThreshold",
        _SHARE,
        "Requests below which a node can be removed.",
        into="utilization_threshold_ratio",
    ),
    Key("gpuUtilizationThreshold", _SHARE, "The same for nodes with GPUs.", into="gpu_utilization_threshold_ratio"),
    Key("unneededTime", TIME, "How long a node is not needed before it is removed.", into="unneeded_seconds"),
    Key("unreadyTime", TIME, "The same for nodes that are not ready.", into="unready_seconds"),
)
_DAEMON_SETS: Final = Key("ignoreDaemonSetsUtilization", BOOLEAN, "Whether DaemonSets do not count as requests.")
OPTIONS: Final = Section(
    "options",
    GroupOptions,
    (
        *_UTILIZATION,
        Key("maxNodeProvisionTime", TIME, "How long a new node may take.", into="max_node_provision_seconds"),
        Key("zeroOrMax", BOOLEAN, "Whether the group has either no node or all of them."),
        _DAEMON_SETS,
    ),
)
SCALE_DOWN: Final = Section(
    "scaleDown",
    ScaleDownSettings,
    (
        Key("enabled", BOOLEAN, "Whether nodes are removed at all."),
        *_UTILIZATION,
        Key("unreadyEnabled", BOOLEAN, "Whether nodes that are not ready are removed."),
        Key("delayAfterAdd", TIME, "Pause after nodes were added.", into="delay_after_add_seconds"),
        Key("delayAfterDelete", TIME, "Pause after a node was removed.", into="delay_after_delete_seconds"),
        Key("delayAfterFailure", TIME, "Pause after a removal failed.", into="delay_after_failure_seconds"),
        Key("maxParallelism", _AT_ONCE, "Maximum number of nodes that are removed at once."),
        Key("maxDrainParallelism", _COUNT, "Maximum number of nodes with pods that are removed at once."),
        Key("skipNodesWithSystemPods", BOOLEAN, "Whether pods of kube-system block."),
        Key("skipNodesWithLocalStorage", BOOLEAN, "Whether local storage blocks."),
        Key("skipNodesWithCustomControllerPods", BOOLEAN, "Whether pods of unknown controllers block."),
        Key("minReplicaCount", _COUNT, "Minimum number of replicas of a controller whose pods may move."),
        _DAEMON_SETS,
        Key("ignoreMirrorPodsUtilization", BOOLEAN, "The same for mirror pods."),
        Key("systemPodTime", TIME, "Age from which a pod of kube-system does not block.", into="system_pod_seconds"),
    ),
)
