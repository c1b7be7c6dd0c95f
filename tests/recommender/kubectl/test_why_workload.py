"""`why deployment/NAME`: who sets the size, what is recommended, what was written, and what cannot be read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from recommender.decisions.publication import Publication
from recommender.page.handler import _unavailable
from tests.recommender.kubectl import shop

if TYPE_CHECKING:
    from tests.recommender.kubectl.conftest import Plugin


@pytest.fixture
def web(plugin: Plugin) -> Plugin:
    shop.put_workload(plugin)
    plugin.answer(shop.HPAS, {"items": []})
    return plugin


def test_the_recommendation_shows_its_steps_and_the_binding_step(web: Plugin) -> None:
    shop.put_recommender(web, shop.recommendation())
    answered = web.why("deployment/web")
    assert (answered.status, answered.err) == (0, "")
    assert answered.out.startswith("deployment/web wants 2 replicas: recommendation web sets its size.\n")
    assert "max: 5 (at most 5) <- decides" in answered.out
    assert "kube-controller-manager wrote the size by its scale" in answered.out


@pytest.mark.parametrize(
    ("replicas", "first", "size"),
    [
        (1, "deployment/web wants 1 replica: ", "1 wanted, 1 pod, 1 ready."),
        (2, "deployment/web wants 2 replicas: ", "2 wanted, 2 pods, 2 ready."),
    ],
)
def test_sizes_agree_with_their_nouns(web: Plugin, replicas: int, first: str, size: str) -> None:
    shop.put_workload(web, replicas)
    answered = web.why("deployment/web")
    assert answered.out.startswith(first)
    assert size in answered.out


def test_pods_that_a_quota_refuses_are_named_with_the_size(web: Plugin) -> None:
    shop.put_recommender(web)
    refusal = 'pods "web-6bf7" is forbidden: exceeded quota: few, requested: pods=1, used: pods=2, limited: pods=2'
    deployment = web.server.answers[shop.DEPLOYMENT][1]
    deployment["spec"]["replicas"] = 5
    deployment["status"]["conditions"] = [
        {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "timed out"},
        {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": refusal},
    ]
    shown = " ".join(web.why("deployment/web").out.split())
    assert f"5 wanted, 2 pods, 2 ready. ReplicaFailure (FailedCreate): {refusal}" in shown
    document = web.why("deployment/web", "-o", "json").document
    assert document["replica_failures"] == [f"ReplicaFailure (FailedCreate): {refusal}"]


def test_an_hpa_is_the_owner(web: Plugin) -> None:
    shop.put_hpa(web, shop.pods_metric())
    shop.put_recommender(web, shop.recommendation("refused", "HorizontalPodAutoscaler shop/web"))
    document = web.why("deploy/web", "-o", "json").document
    assert document["owners"] == ["hpa/web"]
    assert document["recommendations"][0]["targets"][0]["owner"] == "HorizontalPodAutoscaler shop/web"


def scaled_object(name: str = "web", **target: str) -> dict[str, Any]:
    spec = {"scaleTargetRef": {"name": "web", **target}}
    return {"metadata": {"name": name, "namespace": "shop"}, "spec": spec}


def test_a_paused_scaled_object_is_the_owner_although_it_has_no_hpa(web: Plugin) -> None:
    shop.put_recommender(web)
    web.answer(shop.KEDA, {"kind": "APIGroup"})
    web.answer(shop.SCALED_OBJECTS, {"items": [scaled_object(), scaled_object("batch", kind="StatefulSet")]})
    answered = web.why("deployment/web")
    assert answered.status == 0
    assert "ScaledObject web (without an HPA, as while it is paused) sets its size." in " ".join(answered.out.split())


def test_a_scaled_object_with_an_hpa_is_named_once(web: Plugin) -> None:
    shop.put_recommender(web)
    shop.put_hpa(web, shop.pods_metric())
    (hpa,) = web.server.answers[shop.HPAS][1]["items"]
    hpa["metadata"]["ownerReferences"] = [{"kind": "ScaledObject", "name": "web"}]
    web.answer(shop.KEDA, {"kind": "APIGroup"})
    web.answer(shop.SCALED_OBJECTS, {"items": [scaled_object()]})
    assert web.why("deployment/web", "-o", "json").document["owners"] == ["ScaledObject web by hpa/web"]


def test_scaled_objects_that_may_not_be_listed_are_named(web: Plugin) -> None:
    shop.put_recommender(web)
    web.answer(shop.KEDA, {"kind": "APIGroup"})
    web.forbid(shop.SCALED_OBJECTS)
    answered = web.why("deployment/web")
    assert answered.status == 1
    assert "list scaledobjects.keda.sh in shop" in " ".join(answered.out.split())


@pytest.mark.parametrize(
    ("action", "answer"),
    [
        pytest.param("metric", "nothing sets its size by itself, and", id="only published"),
        pytest.param("none", "nothing sets its size by itself unless recommendation web does, and", id="idle"),
    ],
)
def test_a_recommendation_that_writes_nothing_is_no_owner_and_may_be_one_later(
    web: Plugin, action: str, answer: str
) -> None:
    shop.put_recommender(web, shop.recommendation(action))
    document = web.why("deployment/web", "-o", "json").document
    assert document["owners"] == []
    assert answer in document["answer"]


@pytest.mark.parametrize(
    ("path", "right"),
    [
        (shop.PAGE, "get pods/proxy in monitoring"),
        (shop.RECOMMENDERS, "list pods"),
        (shop.HPAS, "list horizontalpodautoscalers.autoscaling in shop"),
        (shop.EVENTS, "list events in shop"),
    ],
)
def test_a_missing_right_is_named_and_the_rest_is_shown(web: Plugin, path: str, right: str) -> None:
    shop.put_recommender(web, shop.recommendation())
    web.forbid(path)
    answered = web.why("deployment/web")
    assert answered.status == 1
    shown = " ".join(answered.out.split())
    assert f"you lack the right to {right}" in shown
    assert "kube-controller-manager wrote the size by its scale" in shown


def test_the_recommender_flag_names_the_service(web: Plugin) -> None:
    path = "/api/v1/namespaces/monitoring/services/https:recommender:8081/proxy/api/v1/recommendations"
    web.answer(path, {"kind": "RecommendationList", "items": [shop.recommendation()]})
    assert web.why("deployment/web", "--recommender=monitoring/https:recommender:8081").status == 0
    for wrong in ("recommender:8081", "monitoring/recommender", "monitoring/ftp:recommender:1", "a/b:0x"):
        assert web.why("deployment/web", f"--recommender={wrong}").status == 2


def test_a_standby_of_the_recommender_is_skipped(web: Plugin) -> None:
    shop.put_recommender(web, shop.recommendation())
    _, pods = web.server.answers[shop.RECOMMENDERS]
    standby = {**pods["items"][0], "metadata": {"name": "recommender-1", "namespace": "monitoring"}}
    web.answer(shop.RECOMMENDERS, {"items": [standby, *pods["items"]]})
    web.answer(shop.PAGE.replace("recommender-0", "recommender-1"), {"message": "this process does not lead"}, 503)
    assert web.why("deployment/web").status == 0


def test_a_standby_does_not_hide_why_the_page_of_the_leader_cannot_be_read(web: Plugin) -> None:
    shop.put_recommender(web, shop.recommendation())
    _, pods = web.server.answers[shop.RECOMMENDERS]
    leader = pods["items"][0]
    standby = leader | {"metadata": leader["metadata"] | {"name": "recommender-1"}}
    web.answer(shop.RECOMMENDERS, {"items": [leader, standby]})
    web.answer(shop.PAGE, {"kind": "Status", "message": "no route to host"}, 502)
    waits = _unavailable(Publication(leader="recommender-0"))
    web.answer(shop.PAGE.replace("recommender-0", "recommender-1"), waits, 503)
    (missing,) = web.why("deployment/web", "-o", "json").document["missing"]
    assert "no route to host" in missing
    assert "bindAddress" in missing


@pytest.mark.parametrize(
    "published",
    [
        Publication(),
        Publication(leader="recommender-1"),
        Publication(leads=True),
        Publication(leads=True, time=0.0, has_expired=True),
    ],
    ids=["nobody leads", "another one leads", "no decision yet", "too old"],
)
def test_a_page_that_answers_without_decisions_needs_no_other_address(web: Plugin, published: Publication) -> None:
    shop.put_recommender(web, shop.recommendation())
    web.answer(shop.PAGE, _unavailable(published), 503)
    (missing,) = web.why("deployment/web", "-o", "json").document["missing"]
    assert str(_unavailable(published)["message"]) in missing
    assert "bindAddress" not in missing


def test_terminated_pods_of_the_recommender_are_not_queried(web: Plugin) -> None:
    shop.put_recommender(web, shop.recommendation())
    _, pods = web.server.answers[shop.RECOMMENDERS]
    for phase in ("Failed", "Succeeded"):
        metadata = {"name": f"recommender-{phase.lower()}", "namespace": f"was-{phase.lower()}"}
        pods["items"].append({**pods["items"][0], "metadata": metadata, "status": {"phase": phase}})
    answered = web.why("deployment/web", "-o", "json")
    assert (answered.status, answered.document["missing"]) == (0, [])


def test_a_recommendation_sets_a_size_that_its_kind_has_elsewhere_than_in_spec_replicas(web: Plugin) -> None:
    """A kind of a CustomResourceDefinition chooses the field, as a Prometheus is scaled by its shards."""
    shop.put_recommender(web, shop.recommendation("none"))
    _, deployment = web.server.answers[shop.DEPLOYMENT]
    fields: dict[str, Any] = {"f:spec": {"f:shards": {}}}
    entry = {"manager": "tidewatch", "subresource": "scale", "time": shop.now(), "fieldsV1": fields}
    deployment["metadata"]["managedFields"] = [entry]
    assert web.why("deployment/web", "-o", "json").document["owners"] == ["recommendation web"]


def test_each_installation_of_the_recommender_is_queried(web: Plugin) -> None:
    shop.put_recommender(web, shop.recommendation("metric"))
    _, pods = web.server.answers[shop.RECOMMENDERS]
    other = {**pods["items"][0], "metadata": {"name": "recommender-0", "namespace": "other"}}
    web.answer(shop.RECOMMENDERS, {"items": [*pods["items"], other]})
    page = shop.PAGE.replace("/monitoring/", "/other/")
    web.answer(page, {"kind": "RecommendationList", "items": [shop.recommendation() | {"name": "second"}]})
    assert web.why("deployment/web", "-o", "json").document["owners"] == ["recommendation second"]
    web.forbid(page)
    answered = web.why("deployment/web", "-o", "json")
    assert answered.status == 1
    assert [one["name"] for one in answered.document["recommendations"]] == ["web"]
    assert "get pods/proxy in other" in answered.document["missing"][0]


def test_a_recommender_of_another_version_is_reported(web: Plugin) -> None:
    shop.put_recommender(web, {"name": "web", "targets": []})
    answered = web.why("deployment/web")
    assert answered.status == 1
    assert "no RecommendationList of this version" in " ".join(answered.out.split())


def test_the_owner_is_found_even_without_a_recommender(web: Plugin) -> None:
    web.answer(shop.RECOMMENDERS, {"items": []})
    shop.put_hpa(web, shop.pods_metric())
    answered = web.why("deployment/web", "-o", "json")
    assert answered.status == 1
    assert answered.document["owners"] == ["hpa/web"]
    assert "name the Service" in answered.document["missing"][0]


def test_events_are_listed_in_order_of_time(web: Plugin) -> None:
    shop.put_recommender(web)
    events = [
        {"reason": "B", "message": "later", "lastTimestamp": "2026-01-02T00:00:00Z", "source": {"component": "x"}},
        {"reason": "A", "message": "sooner", "eventTime": "2026-01-01T00:00:00.000000Z", "reportingComponent": "y"},
    ]
    web.answer(shop.EVENTS, {"items": events})
    found = web.why("deployment/web", "-o", "json").document["events"]
    assert [(one["reason"], one["source"]) for one in found] == [("A", "y"), ("B", "x")]


CORE = {"kind": "APIVersions", "versions": ["v1"]}
GROUPS = {
    "kind": "APIGroupList",
    "groups": [{"name": "argoproj.io", "versions": [{"groupVersion": "argoproj.io/v1alpha1", "version": "v1alpha1"}]}],
}


def test_a_list_of_kinds_that_may_not_be_read_is_the_reason_not_a_kind_that_does_not_exist(plugin: Plugin) -> None:
    plugin.forbid("/api")
    plugin.forbid("/apis")
    answered = plugin.why("rollout/web")
    assert answered.status == 2
    assert "no resource" not in answered.err
    assert "the kinds of the cluster could not be read" in answered.err
    assert "403" in answered.err


def test_a_kind_of_a_group_whose_server_does_not_answer_is_not_called_unknown(plugin: Plugin) -> None:
    plugin.answer("/api", CORE)
    plugin.answer("/apis", GROUPS)
    plugin.answer("/api/v1", {"kind": "APIResourceList", "resources": []})
    plugin.answer("/apis/argoproj.io/v1alpha1", {"message": "no endpoints"}, 503)
    for subject in ("rollout/web", "rollouts.argoproj.io/web"):
        answered = plugin.why(subject)
        assert answered.status == 2
        assert "may be a kind of argoproj.io/v1alpha1, whose server does not answer" in answered.err


def test_a_kind_that_no_server_has_is_unknown(plugin: Plugin) -> None:
    plugin.answer("/api", CORE)
    plugin.answer("/apis", {"kind": "APIGroupList", "groups": []})
    plugin.answer("/api/v1", {"kind": "APIResourceList", "resources": []})
    answered = plugin.why("rollout/web")
    assert answered.status == 2
    assert "no resource 'rollout' in any API group" in answered.err


FLEET = "/apis/odd.example.com/v1/namespaces/shop/fleets/f1"


def put_fleet(plugin: Plugin, spec: dict[str, Any], scale: dict[str, Any] | None) -> None:
    """Serve an object of a custom kind; `scale` is its scale subresource, None if it has none."""
    group = {"name": "odd.example.com", "versions": [{"groupVersion": "odd.example.com/v1", "version": "v1"}]}
    fleets = {"name": "fleets", "singularName": "fleet", "namespaced": True, "kind": "Fleet"}
    plugin.answer("/api", CORE)
    plugin.answer("/apis", {"kind": "APIGroupList", "groups": [group]})
    plugin.answer("/api/v1", {"kind": "APIResourceList", "resources": []})
    plugin.answer("/apis/odd.example.com/v1", {"kind": "APIResourceList", "resources": [fleets]})
    plugin.answer(FLEET, {"metadata": {"name": "f1", "namespace": "shop"}, "spec": spec})
    if scale is not None:
        plugin.answer(f"{FLEET}/scale", scale)


@pytest.mark.parametrize(
    ("spec", "scale", "size"),
    [
        ({}, {"spec": {"replicas": 3}, "status": {"replicas": 2}}, (3, 2, None)),
        ({}, {"spec": {}, "status": {}}, (0, 0, None)),
        ({"replicas": 2}, {"spec": {"replicas": 5}, "status": {"replicas": 5}}, (5, 5, None)),
        ({"replicas": 2}, None, (2, None, None)),
        ({}, None, (None, None, None)),
    ],
    ids=["elsewhere", "none", "two fields", "without scale", "without size"],
)
def test_the_size_of_a_custom_kind_is_that_of_its_scale(
    web: Plugin, spec: dict[str, Any], scale: dict[str, Any] | None, size: tuple[int | None, ...]
) -> None:
    shop.put_recommender(web)
    put_fleet(web, spec, scale)
    answered = web.why("fleet/f1", "-o", "json")
    assert answered.status == 0
    assert tuple(answered.document["replicas"][each] for each in ("wanted", "pods", "ready")) == size


def test_a_scale_that_may_not_be_read_is_named(web: Plugin) -> None:
    shop.put_recommender(web)
    put_fleet(web, {"replicas": 2}, None)
    web.forbid(f"{FLEET}/scale")
    answered = web.why("fleet/f1", "-o", "json")
    assert answered.status == 1
    assert answered.document["missing"] == [
        "its scale: you lack the right to get fleets.odd.example.com/scale f1 in shop: ask for a role that has it"
    ]


def test_the_scale_of_a_built_in_kind_without_one_is_not_asked(web: Plugin) -> None:
    """The role `view` has no right to it, and it would not exist."""
    shop.put_recommender(web)
    agents = "/apis/apps/v1/namespaces/shop/daemonsets/agent"
    web.answer(agents, {"metadata": {"name": "agent", "namespace": "shop"}, "spec": {}})
    web.forbid(f"{agents}/scale")
    answered = web.why("daemonset/agent", "-o", "json")
    assert (answered.status, answered.document["missing"]) == (0, [])
