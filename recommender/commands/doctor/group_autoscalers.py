"""Doctor: checks that no HPA writes the size of a node group, which an entry writes too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from adapter.foundation.cluster.values.state import ClusterState, Observed
from adapter.foundation.options.cluster_checks import unread
from adapter.foundation.reports.lines import Line, error
from adapter.foundation.sources.kubernetes.errors import KubernetesError
from recommender.configuration.configured_targets import identity_of
from recommender.decisions.policy_settings import Output
from recommender.decisions.record import TargetReference
from recommender.kinds.cluster_size.node_groups.fields import text
from recommender.kinds.table import kind_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from adapter.foundation.sources.kubernetes.writing import ObjectClient
    from recommender.kinds.kind import Recommendation

_FIX: Final = (
    "delete the HPA, or take the object out of the groups by removing its annotations "
    "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size and -max-size"
)


def look_at_group_autoscalers(
    client: ObjectClient, recommendation: Recommendation, cluster: ClusterState
) -> Iterator[Line]:
    """List the HPAs beside the node groups that are written, and yield a line for each that scales such a group.

    `run` watches no HPAs in these namespaces: it notices one only while that changes the size.
    """
    policy = recommendation.policy
    if Output.SCALE not in policy.outputs:
        return
    is_written = kind_of(policy.type).sizes
    groups = {identity_of(each) for each in _objects_read(cluster) if is_written(recommendation.subject, each, cluster)}
    for namespace in sorted({group.namespace for group in groups}):
        path = f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers"
        try:
            hpas = client.get(path).document.get("items") or ()
        except KubernetesError as e:
            right = f"list on horizontalpodautoscalers.autoscaling in {namespace}"
            yield unread(f"hpas/{policy.name}/{namespace}", e, right)
            continue
        for hpa in hpas:
            target = _target_of(hpa, namespace)
            if identity_of(target) in groups:
                line = f"hpa/{namespace}/{(hpa.get('metadata') or {}).get('name')}"
                yield error(line, f"it scales {target}, whose size the recommendation {policy.name} writes too", _FIX)


def _objects_read(cluster: ClusterState) -> Iterator[TargetReference]:
    """Yield the objects that were read, such as those of Cluster API."""
    for kind, found in cluster.objects.items():
        for one in found.value if isinstance(found, Observed) else ():
            # Items of a list do not state their version, and an identity has none.
            namespace, name = text(one, "metadata", "namespace"), text(one, "metadata", "name")
            yield TargetReference(f"{kind.group}/", kind.kind, namespace, name)


def _target_of(hpa: Mapping[str, Any], namespace: str) -> TargetReference:
    target = (hpa.get("spec") or {}).get("scaleTargetRef") or {}
    version, kind, name = (str(target.get(key) or "") for key in ("apiVersion", "kind", "name"))
    return TargetReference(version, kind, namespace, name)
