"""Flags that say which cluster a program talks to, and as whom."""

from __future__ import annotations

from adapter.service.flags.table import PATH, TEXT, Flag

_CLUSTER = "Cluster"

CLUSTER_FLAGS: tuple[Flag, ...] = (
    Flag(name="kubeconfig", kind=PATH, help="How to reach the cluster (default: in a pod its own).", group=_CLUSTER),
    Flag(name="context", kind=TEXT, help="Which context of the kubeconfig (default: its current one).", group=_CLUSTER),
)
