"""Turns decoded nodes into values that include what decides whether a node may be removed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.facts.objects import node_of
from adapter.foundation.cluster.facts.pod_constraints import annotations_of
from adapter.foundation.cluster.facts.pods import shared_labels

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.cluster.forms.scheduling_objects import SizedNodeForm
    from adapter.foundation.cluster.values.state import ClusterNode

_DOMAINS: Final = ("cluster-autoscaler.kubernetes.io", "cluster.x-k8s.io", "karpenter.sh", "tidewatch.io")
"""Domains of the annotations that are kept: they protect a node, or name its machine."""


def sized_node_of(form: SizedNodeForm) -> ClusterNode:
    """Return the node. Raises FactError for a quantity, time or annotation that cannot be read.

    As with the API server, a node that states no allocatable amounts offers its capacity.
    """
    node = node_of(form)
    info = form.status.node_info if form.status else None
    return replace(
        node,
        allocatable=node.allocatable or node.capacity,
        annotations=_kept_annotations(annotations_of(f"Node {node.name}", bytes(form.metadata.annotations))),
        provider_id=(form.spec.provider_id if form.spec else None) or "",
        system_uuid=(info.system_uuid if info else None) or "",
        is_terminating=form.metadata.deleted is not None,
    )


def _kept_annotations(found: Mapping[str, str]) -> Mapping[str, str]:
    kept = ((key, value) for key, value in found.items() if key.partition("/")[0].endswith(_DOMAINS))
    return shared_labels(tuple(sorted(kept)))
