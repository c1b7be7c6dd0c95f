"""Doctor: names ProvisioningRequests that wait for Cluster Autoscaler although an entry writes node groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.objects.resources import UnknownResourceError
from adapter.foundation.options.cluster_checks import unread
from adapter.foundation.reports.counts import count_of
from adapter.foundation.reports.lines import Line, warning
from adapter.foundation.sources.kubernetes.errors import KubernetesError
from recommender.decisions.policy_settings import Output
from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings
from recommender.kinds.cluster_size.node_groups.fields import items, text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapter.foundation.cluster.values.state import JsonObject
    from adapter.foundation.objects.resources import ResolveResource
    from adapter.foundation.sources.kubernetes.writing import ObjectClient
    from recommender.kinds.kind import Recommendation

LINE: Final = "provisioningrequests"
_GROUP: Final = "autoscaling.x-k8s.io"
_CLASSES: Final = frozenset({"check-capacity.autoscaling.x-k8s.io", "best-effort-atomic-scale-up.autoscaling.x-k8s.io"})
"""The classes that Cluster Autoscaler serves; those of clouds have servers of their own."""
_FINAL: Final = frozenset({"Provisioned", "Failed"})
_FIX: Final = (
    "create the pods without a ProvisioningRequest, unless a Cluster Autoscaler of other node groups answers them"
)
_MOST_NAMED: Final = 3


def look_at_provisioning_requests(
    client: ObjectClient, resolve: ResolveResource, recommendations: Iterable[Recommendation]
) -> tuple[Line, ...]:
    """List the ProvisioningRequests, and return a line about those that nobody may ever answer.

    Nothing is returned if none waits, if the cluster has no such kind, or if no recommendation writes node groups:
    Cluster Autoscaler then answers them as before.
    """
    if not any(map(_writes_groups, recommendations)):
        return ()
    try:
        kind = resolve(_GROUP, LINE)
        found = client.get(f"/apis/{kind.api_version}/{LINE}").document.get("items") or ()
    except UnknownResourceError:
        return ()
    except KubernetesError as e:
        return (unread(LINE, e, f"list on {LINE}.{_GROUP}"),)
    waiting = sorted(
        f"{text(one, 'metadata', 'namespace')}/{text(one, 'metadata', 'name')}" for one in _waiting_requests(found)
    )
    if not waiting:
        return ()
    more = len(waiting) - _MOST_NAMED
    names = ", ".join(waiting[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
    waits = "waits" if len(waiting) == 1 else "wait"
    message = f"{count_of(len(waiting), 'ProvisioningRequest')} {waits} ({names}), and the recommender answers none"
    return (warning(LINE, message, _FIX),)


def _writes_groups(recommendation: Recommendation) -> bool:
    return isinstance(recommendation.subject, ClusterSizeSettings) and Output.SCALE in recommendation.policy.outputs


def _waiting_requests(requests: Iterable[JsonObject]) -> Iterable[JsonObject]:
    """Yield the requests of Cluster Autoscaler's classes that are neither provisioned nor failed."""
    for one in requests:
        final = (
            text(each, "type") in _FINAL and text(each, "status") == "True"
            for each in items(one, "status", "conditions")
        )
        if text(one, "spec", "provisioningClassName") in _CLASSES and not any(final):
            yield one
