"""Limits how many predicted pods are counted: a load that a tenant states must not grow nodes without limit."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.state import Observed, Unknown
from adapter.foundation.reports.counts import agreeing, count_of
from recommender.kinds.cluster_size.future.resource_quotas import QUOTAS, remaining_quotas
from recommender.kinds.cluster_size.model.answer import SizeStep

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adapter.foundation.cluster.values.state import Autoscaler, ClusterPod, ClusterState
    from recommender.decisions.record import TargetReference
    from recommender.kinds.cluster_size.future.predictions import PredictedReplicas
    from recommender.kinds.cluster_size.future.resource_quotas import RemainingQuota

DEFAULT_GROWTH: Final = 2.0
"""The growth relative to the existing pods if the forecast states no `maxGrowth`."""


@dataclass(slots=True)
class ForecastBounds:
    """The bounds of predicted pods at one moment. Pods that are counted use up the quotas."""

    maxima: Mapping[tuple[str, str, str, str], int] = field(default_factory=dict)
    """The maxima of HPAs, by API group, kind, namespace and name of the target."""
    quotas: Mapping[str, list[RemainingQuota]] = field(default_factory=dict)
    """The remaining quotas, by namespace."""
    steps: list[SizeStep] = field(default_factory=list)
    """The steps that have reduced predictions so far."""
    problems: tuple[str, ...] = ()
    """The bounds that are not known and therefore limit nothing."""

    def replicas(self, prediction: PredictedReplicas, present: int) -> int:
        """Return how many replicas of a target count, given how many pods it has; existing pods are never cut."""
        target = prediction.target
        wanted = count = max(prediction.replicas or 0, present)
        growth = DEFAULT_GROWTH if prediction.max_growth is None else prediction.max_growth
        most = max(present, math.ceil(max(present, 1) * growth))
        if count > most:
            count = most
            self._note_cut("maxGrowth", prediction, wanted, count, f"at most {growth:g} times the {present} that exist")
        maximum = self.maxima.get(_place(target))
        if maximum is not None and count > max(maximum, present):
            count = max(maximum, present)
            self._note_cut("maxReplicas", prediction, wanted, count, f"its HPA has maxReplicas {maximum}")
        return count

    def count_admitted(self, prediction: PredictedReplicas, pod: ClusterPod, present: int, missing: int) -> int:
        """Return how many of the missing pods, which equal the given one, the quotas of the namespace admit."""
        count = missing
        remaining = self.quotas.get(prediction.target.namespace, ())
        for quota in remaining:
            fitting = quota.count_admitted(pod, count)
            if fitting < count:
                count = fitting
                why = f"the ResourceQuota {quota.namespace}/{quota.name} allows no more"
                self._note_cut("resourceQuota", prediction, present + missing, present + count, why)
        for quota in remaining:
            quota.take(pod, count)
        return count

    def _note_cut(self, name: str, prediction: PredictedReplicas, wanted: int, count: int, why: str) -> None:
        detail = (
            f"{prediction.recommendation} predicts {count_of(wanted, 'pod')} of {prediction.target}, "
            f"and {count} {agreeing(count, 'is', 'are')} counted: {why}"
        )
        self.steps.append(SizeStep(f"forecast/{name}", "", count, detail))


def bounds_of(cluster: ClusterState, pods: Iterable[ClusterPod]) -> ForecastBounds:
    """Return the bounds that a cluster's HPAs and ResourceQuotas state."""
    problems: list[str] = []
    quotas = cluster.objects.get(QUOTAS, Unknown("they are not read"))
    remaining: dict[str, list[RemainingQuota]] = {}
    if isinstance(quotas, Unknown):
        problems.append(
            f"ResourceQuotas are not known, so predicted pods are counted even beyond them: {quotas.reason}"
        )
    else:
        remaining, unreadable = remaining_quotas(quotas.value, tuple(pods))
        problems += unreadable
    maxima: dict[tuple[str, str, str, str], int] = {}
    for found in cluster.autoscalers.values():
        if isinstance(found, Observed):
            maxima |= {_target_of(one): one.max_replicas for one in found.value}
        else:
            problems.append(
                f"HPAs are not known, so predicted pods are counted even beyond their maxReplicas: {found.reason}"
            )
    return ForecastBounds(maxima, remaining, problems=tuple(dict.fromkeys(problems)))


def _target_of(one: Autoscaler) -> tuple[str, str, str, str]:
    return one.target_api_version.rpartition("/")[0], one.target_kind, one.namespace, one.target_name


def _place(target: TargetReference) -> tuple[str, str, str, str]:
    return target.api_version.rpartition("/")[0], target.kind, target.namespace, target.name
