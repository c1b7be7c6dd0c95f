"""Names of the annotations that decide whether a node may be removed; most are those of Cluster Autoscaler."""

from __future__ import annotations

from typing import Final

_PREFIX: Final = "cluster-autoscaler.kubernetes.io/"
DAEMON_SET_POD: Final = _PREFIX + "daemonset-pod"
SAFE_TO_EVICT: Final = _PREFIX + "safe-to-evict"
SAFE_TO_EVICT_LOCAL_VOLUMES: Final = _PREFIX + "safe-to-evict-local-volumes"
SCALE_DOWN_DISABLED: Final = _PREFIX + "scale-down-disabled"
DELAY_DELETION: Final = ("delay-deletion." + _PREFIX, _PREFIX + "delay-deletion.")
"""The prefixes of annotations that delay the deletion of a node; each program that needs time adds its own name."""
MIRROR_POD: Final = "kubernetes.io/config.mirror"
