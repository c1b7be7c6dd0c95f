"""Doctor: checks that no HPA writes the size of a node group, which an entry writes too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from adapter.foundation.cluster.values.state import ClusterState, Unknown
from adapter.foundation.options.cluster_checks import unread
from adapter.foundation.reports.lines import Line, error
from adapter.foundation.sources.kubernetes.errors import KubernetesError
from recommender.decisions.policy_settings import Output
from recommender.decisions.record import TargetReference
from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings
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
    """List the HPAs beside node groups of Cluster API, and yield a line for each that scales such a group.

    Unlike a target, a group has no owner that `run` could find: it watches no HPAs in these namespaces.
    """
    settings, policy = recommendation.subject, recommendation.policy
    if not isinstance(settings, ClusterSizeSettings) or Output.SCALE not in policy.outputs:
        return
    groups = settings.node_groups.cluster_api
    for namespace in groups.namespaces if groups is not None else ():
        path = f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers"
        try:
            hpas = client.get(path).document.get("items") or ()
        except KubernetesError as e:
            right = f"list on horizontalpodautoscalers.autoscaling in {namespace}"
            yield unread(f"hpas/{policy.name}/{namespace}", e, right)
            continue
        for hpa in hpas:
            target = _target_of(hpa, namespace)
            if _are_known(target, cluster) and kind_of(policy.type).sizes(settings, target, cluster):
                line = f"hpa/{namespace}/{(hpa.get('metadata') or {}).get('name')}"
                yield error(line, f"it scales {target}, whose size the recommendation {policy.name} writes too", _FIX)


def _are_known(target: TargetReference, cluster: ClusterState) -> bool:
    """Return whether the objects like the target are known; otherwise, each of them counts as a group."""
    wanted = (target.kind, target.namespace)
    return not any(
        isinstance(found, Unknown) for kind, found in cluster.objects.items() if (kind.kind, kind.namespace) == wanted
    )


def _target_of(hpa: Mapping[str, Any], namespace: str) -> TargetReference:
    target = (hpa.get("spec") or {}).get("scaleTargetRef") or {}
    version, kind, name = (str(target.get(key) or "") for key in ("apiVersion", "kind", "name"))
    return TargetReference(version, kind, namespace, name)
