"""Determines the cluster from which `serve` reads objects, and in which it keeps its certificate."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from adapter.foundation.options.cluster import ClusterSettings, cluster_settings

if TYPE_CHECKING:
    from adapter.foundation.service.flags.table import FlagValues


def lister_cluster(values: FlagValues) -> ClusterSettings:
    """Return the cluster that the flags name; --lister-kubeconfig takes precedence over --kubeconfig."""
    named = cluster_settings(values)
    return replace(named, kubeconfig=values.path("lister-kubeconfig") or named.kubeconfig)
