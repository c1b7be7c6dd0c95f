from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.cluster.values.constraints import PodScheduling
from adapter.foundation.cluster.values.state import ClusterState, Observed
from adapter.foundation.cluster.values.workloads import WorkloadFacts
from recommender.decisions.record import TargetReference
from recommender.kinds.cluster_size.future.predicted_pods import forecast_pods, future_pods
from recommender.kinds.cluster_size.future.prediction_limits import ForecastBounds
from recommender.kinds.cluster_size.future.predictions import PredictedReplicas
from recommender.kinds.cluster_size.future.resource_quotas import RemainingQuota
from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings, NodeGroupSources
from recommender.kinds.cluster_size.what_if.apply import cluster_under_assumptions
from recommender.kinds.cluster_size.what_if.model import Assumption, WhatIf
from tests.recommender.kinds.cluster_size.builders import controller, pod
from tests.recommender.kinds.cluster_size.scale_up.harnesses import situation

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import ClusterPod

WEB = TargetReference("apps/v1", "Deployment", "default", "web")
SPREAD = PodScheduling(node_selector=(("pool", "a"),))


def workload(kind: str = "Deployment", name: str = "web") -> WorkloadFacts:
    template = pod("", "500m", "1Gi", labels={"app": name}, scheduling=SPREAD, created=5.0, priority=7)
    return WorkloadFacts(kind, "default", name, f"uid-{name}", 3, template)


def web_pods(count: int, *, name: str = "web", phase: str = "Running") -> tuple[ClusterPod, ...]:
    labels = {"app": name, "pod-template-hash": "5d6f"}
    return tuple(
        pod(f"{name}-5d6f-{number}", node="n1", labels=labels, controller=f"{name}-5d6f", phase=phase)
        for number in range(count)
    )


def predicted(replicas: int | None, target: TargetReference = WEB, name: str = "chat") -> PredictedReplicas:
    reason = "" if replicas is not None else "its load is stale"
    return PredictedReplicas(name, target, replicas, reason, max_growth=10.0)


@pytest.mark.parametrize(("existing", "replicas", "missing"), [(3, 5, 2), (3, 3, 0), (3, 1, 0), (0, 2, 2), (3, 0, 0)])
def test_the_pods_that_a_prediction_adds_to_existing_ones_are_made(existing: int, replicas: int, missing: int) -> None:
    found = forecast_pods([predicted(replicas)], [workload()], web_pods(existing), ForecastBounds())
    assert len(found.pods) == missing
    assert found.notes == ()


def test_new_pods_are_copies_of_the_template_with_the_owner_of_the_others() -> None:
    (made, other) = forecast_pods([predicted(3)], [workload()], web_pods(1), ForecastBounds()).pods
    assert (made.name, other.name) == ("web-forecast-0", "web-forecast-1")
    assert made.uid != other.uid
    assert made.controller == controller("web-5d6f")
    assert (made.resources.requests["cpu"], made.labels, made.priority) == (500, {"app": "web"}, 7)
    assert (made.node, made.phase) == ("", "Pending")
    assert made.facts is not None
    assert (made.facts.scheduling, made.facts.created) == (SPREAD, None)


@pytest.mark.parametrize(
    ("existing", "requests"),
    [
        pytest.param((), (500, 1 << 30), id="no-pod"),
        pytest.param((("5d6f", "750m", "1Gi", 1.0),), (750, 1 << 30), id="overhead"),
        pytest.param((("5d6f", "250m", "2Gi", 1.0),), (500, 2 << 30), id="never-less-than-the-template"),
        pytest.param((("5d6f", "600m", "1Gi", 1.0), ("5d6f", "700m", "1Gi", 2.0)), (700, 1 << 30), id="the-newest"),
        pytest.param((("old", "900m", "4Gi", 2.0), ("5d6f", "600m", "1Gi", 1.0)), (600, 1 << 30), id="of-its-owner"),
    ],
)
def test_new_pods_request_what_admission_has_added_to_the_newest_pod(
    existing: tuple[tuple[str, str, str, float], ...], requests: tuple[int, int]
) -> None:
    """LimitRanges, the overhead of a RuntimeClass and webhooks change a pod when it is created, and no template."""
    web = workload()
    assert web.template is not None
    web = replace(web, template=replace(web.template, controller=controller("web-5d6f")))
    present = tuple(
        pod(
            f"web-{number}",
            cpu,
            memory,
            node="n1",
            labels={"pod-template-hash": owner},
            controller=f"web-{owner}",
            created=created,
        )
        for number, (owner, cpu, memory, created) in enumerate(existing)
    )
    count = len(present) + 1
    cluster = ClusterState(pods=Observed(present, 1.0), workloads=Observed((web,), 1.0))
    asked = cluster_under_assumptions(cluster, WhatIf(assumptions=(Assumption("default", "web", count),))).pods
    bounds = ForecastBounds(quotas={"default": [RemainingQuota("default", "q", frozenset(), {"requests.cpu": 1000})]})
    predictions = [predicted(count)]
    for (made,) in (asked, forecast_pods(predictions, [web], present, bounds).pods):
        found = made.resources
        assert (found.requests["cpu"], found.requests["memory"]) == requests
        assert found.non_zero_requests == found.requests
    assert bounds.quotas["default"][0].left == {"requests.cpu": 1000 - requests[0]}


def test_without_existing_pods_the_workload_itself_is_the_owner() -> None:
    (made,) = forecast_pods([predicted(1)], [workload()], (), ForecastBounds()).pods
    assert made.controller is not None
    assert (made.controller.kind, made.controller.name) == ("Deployment", "web")


def test_ended_pods_and_pods_of_other_workloads_do_not_count() -> None:
    others = (
        *web_pods(2, phase="Succeeded"),
        *web_pods(2, name="web-api"),
        *(replace(one, namespace="other") for one in web_pods(1)),
        pod("bare"),
        pod("other", controller="web-zz"),
    )
    assert len(forecast_pods([predicted(3)], [workload()], (*web_pods(1), *others), ForecastBounds()).pods) == 2


@pytest.mark.parametrize("kind", ["StatefulSet", "ReplicaSet", "ReplicationController", "Job"])
def test_pods_of_other_kinds_are_found_by_their_owner(kind: str) -> None:
    target = TargetReference("x/v1", kind, "default", "db")
    existing = tuple(pod(f"db-{number}", node="n1", controller=controller("db", kind)) for number in range(2))
    assert len(forecast_pods([predicted(5, target)], [workload(kind, "db")], existing, ForecastBounds()).pods) == 3


def test_the_largest_of_several_predictions_for_one_target_counts() -> None:
    predictions = [predicted(4), predicted(6, name="b"), predicted(5, name="c")]
    found = forecast_pods(predictions, [workload()], web_pods(3), ForecastBounds())
    assert len(found.pods) == 3


@pytest.mark.parametrize(
    ("prediction", "known", "note"),
    [
        (predicted(None), (workload(),), "chat predicts nothing for Deployment default/web now: its load is stale"),
        (predicted(5), (), "what chat predicts for Deployment default/web is left out: there is no such workload"),
        (
            predicted(5),
            (replace(workload(), template=None, problem="its template asks for 'x' CPU"),),
            "is left out: its template asks for 'x' CPU",
        ),
    ],
)
def test_a_prediction_that_cannot_be_used_is_reported(
    prediction: PredictedReplicas, known: tuple[WorkloadFacts, ...], note: str
) -> None:
    found = forecast_pods([prediction], known, web_pods(3), ForecastBounds())
    assert found.pods == ()
    assert len(found.notes) == 1
    assert note in found.notes[0]


def test_the_reserve_includes_predicted_pods() -> None:
    settings = ClusterSizeSettings(NodeGroupSources(), headroom_ratio=0.5)
    its = replace(situation([], pods=web_pods(2)), workloads=(workload(),))
    found = future_pods(settings, [predicted(4)], its, ClusterState())
    predicted_pods = [one for one in found.pods if "forecast" in one.name]
    reserve = [one for one in found.pods if "headroom" in one.name]
    assert len(predicted_pods) == 2
    # Two pods of 100m exist, two of 500m are predicted.
    assert sum(one.resources.requests["cpu"] for one in reserve) == 600
    assert found.notes == (
        "2 predicted pods count as pending",
        f"{len(reserve)} pods that reserve capacity count as pending: headroom 50%",
    )
