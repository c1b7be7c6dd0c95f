"""How many predicted pods count: whatever load a tenant states, no more nodes are added than its quota allows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.foundation.cluster.values.state import Autoscaler, ClusterState, Observed, Unknown
from adapter.foundation.cluster.values.workloads import WorkloadFacts
from adapter.foundation.objects.pod_requests import PodResources
from recommender.decisions.record import TargetReference
from recommender.kinds.cluster_size.future.predicted_pods import FuturePods, forecast_pods
from recommender.kinds.cluster_size.future.prediction_limits import ForecastBounds, bounds_of
from recommender.kinds.cluster_size.future.predictions import PredictedReplicas
from recommender.kinds.cluster_size.future.resource_quotas import QUOTAS
from tests.recommender.kinds.cluster_size.builders import pod

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import ClusterPod, JsonObject

WEB = TargetReference("apps/v1", "Deployment", "shop", "web")
LABELS = {"pod-template-hash": "5d"}


def quota(hard: dict[str, Any], *, used: dict[str, Any] | None = None, name: str = "q", **spec: object) -> JsonObject:
    status = {} if used is None else {"used": used}
    metadata = {"namespace": "shop", "name": name}
    return {"kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard, **spec}, "status": status}


def hpa(most: int, name: str = "web") -> Autoscaler:
    return Autoscaler("shop", name, {}, "apps/v1", "Deployment", name, 1, most, None, None, ())


def present(count: int, name: str = "web") -> tuple[ClusterPod, ...]:
    return tuple(
        pod(f"{name}-5d-{number}", "500m", "1Gi", namespace="shop", node="n", labels=LABELS, controller=f"{name}-5d")
        for number in range(count)
    )


def workload(name: str = "web") -> WorkloadFacts:
    return WorkloadFacts("Deployment", "shop", name, f"uid-{name}", 1, pod("", "500m", "1Gi", namespace="shop"))


def bounds(
    quotas: tuple[JsonObject, ...] = (), autoscalers: tuple[Autoscaler, ...] = (), pods: int = 0
) -> ForecastBounds:
    state = ClusterState(objects={QUOTAS: Observed(quotas, 1.0)}, autoscalers={"": Observed(autoscalers, 1.0)})
    return bounds_of(state, present(pods))


def counted(replicas: int, existing: int, its: ForecastBounds, growth: float | None = 1e9) -> FuturePods:
    prediction = PredictedReplicas("chat", WEB, replicas, max_growth=growth)
    return forecast_pods([prediction], [workload()], present(existing), its)


@pytest.mark.parametrize(
    ("hard", "existing", "further"),
    [
        pytest.param({"pods": "5"}, 2, 3, id="pods"),
        pytest.param({"count/pods": 5}, 2, 3, id="count-of-pods"),
        pytest.param({"requests.cpu": "4"}, 2, 6, id="cpu"),
        pytest.param({"cpu": "1200m"}, 2, 0, id="cpu-is-used-up"),
        pytest.param({"requests.memory": "4Gi", "pods": "100"}, 2, 2, id="memory"),
        pytest.param({"memory": "1Gi"}, 2, 0, id="more-is-used-than-allowed"),
        pytest.param({"services": "0", "count/secrets": "0", "persistentvolumeclaims": "1"}, 2, 8, id="of-other-kinds"),
        pytest.param({"limits.cpu": "1"}, 2, 8, id="limits-that-pods-do-not-have"),
    ],
)
def test_predicted_pods_count_only_within_a_quota(hard: dict[str, Any], existing: int, further: int) -> None:
    found = counted(10, existing, bounds((quota(hard),), pods=existing))
    assert len(found.pods) == further
    assert [step.step for step in found.steps] == (["forecast/resourceQuota"] if further < 10 - existing else [])


def test_used_amounts_of_the_quota_count_and_the_strictest_quota_applies() -> None:
    quotas = (quota({"pods": "9"}, used={"pods": "6"}), quota({"pods": "8"}, used={"pods": "6"}, name="other"))
    found = counted(10, 2, bounds(quotas, pods=2))
    assert len(found.pods) == 2
    assert found.steps[-1].detail == (
        "chat predicts 10 pods of Deployment shop/web, and 4 are counted: the ResourceQuota shop/other allows no more"
    )
    assert found.steps[-1].value == 4


def test_targets_of_one_namespace_share_its_quota() -> None:
    api = replace(WEB, name="api")
    predictions = [PredictedReplicas("chat", target, 10, max_growth=1e9) for target in (WEB, api)]
    its = bounds((quota({"pods": "12"}),), pods=2)
    found = forecast_pods(predictions, [workload(), workload("api")], present(2), its)
    assert len(found.pods) == 10


@pytest.mark.parametrize(
    ("spec", "is_bound"),
    [
        ({"scopes": ["NotBestEffort"]}, True),
        ({"scopes": ["BestEffort"]}, False),
        ({"scopes": ["NotTerminating"]}, True),
        ({"scopes": ["Terminating"]}, False),
        ({"scopes": ["PriorityClass"]}, False),
        ({"scopeSelector": {"matchExpressions": [{"scopeName": "NotBestEffort", "operator": "Exists"}]}}, True),
        ({"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In"}]}}, False),
    ],
)
def test_a_quota_applies_only_to_pods_of_its_scopes(spec: dict[str, Any], *, is_bound: bool) -> None:
    found = counted(10, 1, bounds((quota({"pods": "3"}, **spec),), pods=1))
    assert len(found.pods) == (2 if is_bound else 9)


def test_pods_without_requests_are_best_effort() -> None:
    bare = replace(workload(), template=replace(pod("", namespace="shop"), resources=PodResources()))
    its = bounds((quota({"pods": "2"}, scopes=["BestEffort"]),))
    found = forecast_pods([PredictedReplicas("chat", WEB, 9, max_growth=1e9)], [bare], (), its)
    assert len(found.pods) == 2


@pytest.mark.parametrize(("existing", "most", "further"), [(2, 5, 3), (2, 1, 0), (0, 5, 5)])
def test_predicted_pods_count_up_to_the_maximum_of_the_hpa(existing: int, most: int, further: int) -> None:
    found = counted(10, existing, bounds(autoscalers=(hpa(most), hpa(1, "api"))))
    assert len(found.pods) == further
    assert [step.step for step in found.steps] == ["forecast/maxReplicas"]


@pytest.mark.parametrize(
    ("existing", "growth", "further"), [(4, None, 4), (0, None, 2), (4, 1.1, 1), (4, 1.0, 0), (1, 3.0, 2)]
)
def test_predicted_pods_count_only_up_to_the_growth_limit(existing: int, growth: float | None, further: int) -> None:
    found = counted(10**12, existing, ForecastBounds(), growth)
    assert len(found.pods) == further
    assert [step.step for step in found.steps] == ["forecast/maxGrowth"]


def test_unknown_quotas_and_hpas_limit_nothing_and_are_reported() -> None:
    state = ClusterState(objects={QUOTAS: Unknown("403: no right")}, autoscalers={"": Unknown("403: no right, too")})
    its = bounds_of(state, ())
    assert len(counted(10, 2, its).pods) == 8
    assert its.problems == (
        "ResourceQuotas are not known, so predicted pods are counted even beyond them: 403: no right",
        "HPAs are not known, so predicted pods are counted even beyond their maxReplicas: 403: no right, too",
    )


def test_an_unreadable_amount_is_reported_and_the_others_apply() -> None:
    its = bounds((quota({"cpu": "x", "pods": "3"}), {"kind": "ResourceQuota", "spec": "?"}), pods=2)
    assert len(counted(10, 2, its).pods) == 1
    assert len(its.problems) == 1
    assert "ResourceQuota shop/q: spec.hard[cpu] is not counted" in its.problems[0]


@given(
    st.integers(0, 10**15),
    st.integers(0, 20),
    st.integers(0, 30),
    st.integers(0, 30),
    st.integers(0, 40),
    st.floats(1.0, 10.0),
)
@settings(max_examples=150)
def test_no_more_predicted_pods_count_than_any_bound_allows(
    replicas: int, existing: int, pods: int, cores: int, most: int, growth: float
) -> None:
    its = bounds((quota({"pods": pods, "requests.cpu": cores}),), (hpa(most),), existing)
    found = counted(replicas, existing, its, growth)
    total = existing + len(found.pods)
    for bound in (pods, 2 * cores, most, max(existing, 1) * growth + 1, replicas):
        assert total <= max(bound, existing)
    unbound = min(pods, 2 * cores, most, int(max(existing, 1) * growth), replicas)
    assert total >= max(existing, unbound)
    assert bool(found.steps) is (total < replicas and replicas > existing)
