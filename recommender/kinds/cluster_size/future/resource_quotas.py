"""ResourceQuotas: how many further pods of a template the API server would admit to a namespace."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.state import ObjectKind
from adapter.foundation.objects.pod_requests import CPU, MEMORY, units_of
from adapter.foundation.objects.quantities import QuantityError, parse_quantity
from recommender.kinds.cluster_size.node_groups.fields import items, object_text, section, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from adapter.foundation.cluster.values.state import ClusterPod, JsonObject

QUOTAS: Final = ObjectKind("", "resourcequotas", "ResourceQuota")
_PODS: Final = frozenset({"pods", "count/pods"})
_LIMITS: Final = "limits."
_REQUESTS: Final = "requests."
_BEST_EFFORT, _NOT_BEST_EFFORT = "BestEffort", "NotBestEffort"
_TERMINATING, _NOT_TERMINATING = "Terminating", "NotTerminating"
_JUDGED: Final = frozenset({_BEST_EFFORT, _NOT_BEST_EFFORT, _TERMINATING, _NOT_TERMINATING})


@dataclass(slots=True)
class RemainingQuota:
    """The remainder of a ResourceQuota. Pods that are counted use it up."""

    namespace: str
    name: str
    scopes: frozenset[str]
    left: dict[str, int] = field(default_factory=dict)
    """What remains of each key of `spec.hard` that pods use up, in the units of pods' requests; never less than 0."""

    def count_admitted(self, pod: ClusterPod, wanted: int) -> int:
        """Return how many pods like this one, at most `wanted`, are admitted."""
        if not self.covers(pod):
            return wanted
        needs = ((left, _amount_used(pod, key)) for key, left in self.left.items())
        return min([wanted, *(left // need for left, need in needs if need > 0)])

    def take(self, pod: ClusterPod, count: int) -> None:
        """Deduct pods like this one."""
        for key in self.left if self.covers(pod) else ():
            self.left[key] = max(0, self.left[key] - count * _amount_used(pod, key))

    def covers(self, pod: ClusterPod) -> bool:
        """Return whether the quota applies to pods like this one; it does not if its scopes depend on unknown facts."""
        requests, limits = pod.resources.requests, pod.resources.limits
        states_any = any(amounts.get(name, 0) > 0 for amounts in (requests, limits) for name in (CPU, MEMORY))
        # A workload that can be predicted makes pods without activeDeadlineSeconds.
        own = {_NOT_BEST_EFFORT if states_any else _BEST_EFFORT, _NOT_TERMINATING}
        return self.scopes <= own


def remaining_quotas(
    quotas: Iterable[JsonObject], pods: Iterable[ClusterPod]
) -> tuple[dict[str, list[RemainingQuota]], tuple[str, ...]]:
    """Return the remaining quotas by namespace, and one sentence for each amount that cannot be read.

    Without `status.used`, as in files, the requests of the namespace's pods count instead.
    """
    remaining: dict[str, list[RemainingQuota]] = {}
    problems: list[str] = []
    for one in quotas:
        quota = RemainingQuota(
            text(one, "metadata", "namespace"), text(one, "metadata", "name"), frozenset(_scopes(one))
        )
        hard = _amounts(one, problems, "spec", "hard")
        used = _amounts(one, problems, "status", "used")
        quota.left = {key: max(0, amount - used.get(key, 0)) for key, amount in hard.items()}
        remaining.setdefault(quota.namespace, []).append(quota)
        _count_present(quota, pods, [key for key in hard if key not in used])
    return remaining, tuple(problems)


def _count_present(quota: RemainingQuota, pods: Iterable[ClusterPod], keys: list[str]) -> None:
    if not keys:
        return
    for pod in pods:
        if pod.namespace == quota.namespace and not pod.has_ended and quota.covers(pod):
            for key in keys:
                quota.left[key] = max(0, quota.left[key] - _amount_used(pod, key))


def _amount_used(pod: ClusterPod, key: str) -> int:
    """Return how much a pod uses of the resource that a key of `spec.hard` limits, in the units of its requests."""
    if key in _PODS:
        return 1
    if key.startswith(_LIMITS):
        return pod.resources.limits.get(key.removeprefix(_LIMITS), 0)
    return pod.resources.requests.get(key.removeprefix(_REQUESTS), 0)


def _amounts(one: JsonObject, problems: list[str], *path: str) -> Mapping[str, int]:
    found: dict[str, int] = {}
    for key, value in section(one, *path).items():
        if key.startswith("count/") and key not in _PODS:
            continue
        resource = key.removeprefix(_REQUESTS).removeprefix(_LIMITS)
        try:
            found[key] = units_of(resource, parse_quantity(str(value)))
        except QuantityError as error:
            problems.append(f"{object_text(one)}: {'.'.join(path)}[{key}] is not counted: {error}")
    return found


def _scopes(one: JsonObject) -> Iterator[str]:
    """Yield the names of the scopes; a scope that is not known matches no pod."""
    listed = section(one, "spec").get("scopes")
    for name in listed if isinstance(listed, list) else ():
        yield str(name)
    for expression in items(one, "spec", "scopeSelector", "matchExpressions"):
        name = text(expression, "scopeName")
        yield name if name in _JUDGED and text(expression, "operator") == "Exists" else f"unknown {name}"
