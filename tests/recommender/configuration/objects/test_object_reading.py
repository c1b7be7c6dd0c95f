"""The spec of an object is read as an entry of the file for its own namespace, with queries limited to it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.promql.tree_parser import parse_query
from recommender.configuration.objects.object_reading import ObjectRefusal, object_of, read_object
from recommender.configuration.objects.object_settings import RecommendationObjectSettings, TargetKind
from recommender.decisions.policy_settings import Output
from recommender.kinds.kind import Recommendation
from tests.recommender.configuration.objects.objects import (
    EACH,
    LOAD,
    SETTINGS,
    SHARED,
    accepted,
    each,
    linear,
    predictive,
    read,
    refused,
    target,
)

if TYPE_CHECKING:
    from recommender.kinds.predictive.predictive_settings import PredictiveSettings


def nested(levels: int) -> object:
    found: object = True
    for _ in range(levels):
        found = [found]
    return found


def test_an_object_is_named_by_namespace_and_name_and_its_targets_are_in_its_namespace() -> None:
    policy = accepted(predictive(target(), target("api", namespace="shop"))).policy
    assert (policy.name, policy.namespace) == ("shop/web", "shop")
    assert [str(each) for each in policy.targets] == ["Deployment shop/web", "Deployment shop/api"]


def test_every_query_is_limited_to_the_series_of_the_namespace() -> None:
    connections = {"limit": 10, "metric": "max by (pod) (open)"}
    spec = predictive() | {"predictive": LOAD | {"connections": connections, "freezeUnless": "up or down{a='b'}"}}
    settings: PredictiveSettings = accepted(spec).subject
    assert settings.load == 'sum(rate(requests_total{namespace="shop"}[5m]))'
    assert settings.freeze_unless == 'up{namespace="shop"} or down{namespace="shop",a=\'b\'}'
    assert settings.connections is not None
    assert settings.connections.metric == 'max by (pod) (open{namespace="shop"})'
    driver = {"proportional": {"drivers": {"query": {"expr": "sum(x)", "perReplica": 3}}}, "targets": [target()]}
    assert accepted(driver).subject.drivers[0].source.expr == 'sum(x{namespace="shop"})'


def test_a_trusted_namespace_may_query_all_series_but_sizes_only_its_own_targets() -> None:
    trusting = replace(SETTINGS, trusted_namespaces=frozenset({"shop"}))
    assert accepted(predictive(), settings=trusting).subject.load == LOAD["load"]
    assert (
        accepted(predictive(), "team/web", trusting).subject.load == 'sum(rate(requests_total{namespace="team"}[5m]))'
    )
    assert refused(linear(target(namespace="other")), trusting)[0] == "TargetOfAnotherNamespace"
    assert accepted(each(), settings=trusting).subject.for_each.only_namespace == "shop"


@pytest.mark.parametrize(
    ("label", "written"),
    [("exported_namespace", "exported_namespace"), ("k8s.namespace.name", '"k8s.namespace.name"')],
)
def test_the_namespace_label_is_configurable(label: str, written: str) -> None:
    settings = replace(SETTINGS, namespace_label=label)
    load = accepted(predictive(), settings=settings).subject.load
    assert load == f'sum(rate(requests_total{{{written}="shop"}}[5m]))'


def test_a_query_that_names_another_namespace_by_a_quoted_label_stays_in_its_own() -> None:
    settings = replace(SETTINGS, namespace_label="k8s.namespace.name")
    spec = predictive() | {"predictive": LOAD | {"load": 'sum({"http.requests", "k8s.namespace.name"="team"} or x)'}}
    load = accepted(spec, settings=settings).subject.load
    own = '"k8s.namespace.name"="shop"'
    assert load == f'sum({{{own},"http.requests", "k8s.namespace.name"="team"}} or x{{{own}}})'


BY_OBJECTS = {"base": "64Mi", "step": "1Mi", "podsAndServicesPerStep": 100}


@pytest.mark.parametrize(
    ("spec", "reason", "words"),
    [
        (linear(target(namespace="kube-system")), "TargetOfAnotherNamespace", "Deployment kube-system/web"),
        (linear(target(kind="ReplicaSet")), "KindNotAllowed", "Deployment of apps/v1, StatefulSet of apps/v1"),
        (each() | {"predictive": EACH | {"forEach": EACH["forEach"] | {"kind": "ReplicaSet"}}}, "KindNotAllowed", ""),
        ({"clusterSize": {"nodeGroups": []}}, "OnlyInFile", "clusterSize can be used only in the administrator's file"),
        ({"clusterSize": {"nodeGroups": {"byLabel": {"key": "pool"}}}}, "OnlyInFile", "clusterSize can be used only"),
        (
            {"proportional": {"configMap": {"namespace": "shop", "name": "a"}}, "targets": [target()]},
            "OnlyInFile",
            "configMap",
        ),
        (
            {"proportional": {"drivers": {"pods": {"perReplica": 1}}}, "targets": [target()]},
            "OnlyInFile",
            "drivers.pods",
        ),
        (
            {"proportional": {"resources": {"a": {"requests": {"memory": BY_OBJECTS}}}}, "targets": [target()]},
            "OnlyInFile",
            "podsAndServicesPerStep",
        ),
        (predictive() | {"predictive": LOAD | {"load": "info(up)"}}, "QueryNotConfined", "info()"),
        (
            predictive() | {"predictive": LOAD | {"freezeUnless": "up{"}},
            "InvalidSpec",
            "spec.predictive.freezeUnless: no version",
        ),
        (linear(outputs=["capacityBuffer"]), "InvalidSpec", "spec.outputs"),
        (linear(maxStp=1), "InvalidSpec", "spec.maxStp: the key 'maxStp' is not known: did you mean 'maxStep'?"),
        (predictive() | {"predictive": LOAD | {"horizon": "soon"}}, "InvalidSpec", "spec.predictive.horizon: 'soon'"),
        (linear(target(), target()), "InvalidSpec", "spec.targets[1]: Deployment shop/web is listed twice, first at"),
        (linear() | {"targets": ["web"]}, "InvalidSpec", "spec.targets[0]"),
        ({"predictive": None}, "InvalidSpec", "predictive is empty"),
        (linear(paused=nested(5_000)), "InvalidSpec", "is nested in more than 32 levels"),
        (
            predictive() | {"predictive": LOAD | {"load": "up{" + "a" * 4_000 + "}"}},
            "QueryNotConfined",
            "…' cannot be held",
        ),
        ([], "InvalidSpec", "spec: "),
        ({}, "InvalidSpec", "spec: the recommendation does not state what it calculates"),
    ],
)
def test_a_forbidden_field_is_refused_with_its_path(spec: object, reason: str, words: str) -> None:
    why, message = refused(spec)
    assert why == reason
    assert words in message


def test_only_outputs_and_kinds_that_the_administrator_allows_are_accepted() -> None:
    assert refused(linear(outputs=["scale"]), RecommendationObjectSettings(enabled=True)) == (
        "OutputNotAllowed",
        "the output scale is not allowed: the administrator allows metric",
    )
    jobs = RecommendationObjectSettings(enabled=True, target_kinds=(TargetKind("example.com/v1", "Fleet"),))
    assert refused(linear(), jobs)[0] == "KindNotAllowed"
    fleet = linear(target(apiVersion="example.com/v1", kind="Fleet"))
    assert accepted(fleet, settings=jobs).policy.outputs == {Output.METRIC}


def test_only_the_first_problems_are_listed_and_the_rest_are_counted() -> None:
    message = refused(linear(**{f"wrong{place}": 1 for place in range(9)}))[1]
    assert message.count("is not known") == 5
    assert message.endswith("; and 4 more problems")


def test_an_object_that_is_being_deleted_counts_as_gone() -> None:
    metadata = {"namespace": "shop", "name": "web", "uid": "u", "generation": 3}
    found = object_of({"metadata": metadata, "spec": {}})
    assert found is not None
    assert (found.key, found.generation) == ("shop/web", 3)
    assert object_of({"metadata": metadata | {"deletionTimestamp": "2026-01-01T00:00:00Z"}}) is None


LONG_LADDER = {"proportional": {"ladder": {"nodesToReplicas": [[step, 1] for step in range(50_000)]}}}
LONG_TEXTS = {"predictive": {"load": "x" * 1_000_000}}


@pytest.mark.parametrize("spec", [LONG_LADDER, LONG_TEXTS], ids=["values", "characters"])
def test_a_spec_larger_than_any_recommendation_needs_is_refused_and_not_kept(spec: object) -> None:
    metadata = {"namespace": "shop", "name": "web", "uid": "u", "generation": 3}
    found = object_of({"metadata": metadata, "spec": spec, "status": {"message": LONG_TEXTS}})
    assert found is not None
    assert len(repr(found)) < 1000
    message = (
        "spec has more values and characters than any recommendation needs: write shorter lists, or several objects"
    )
    assert read_object(found, SHARED, SETTINGS) == ObjectRefusal("InvalidSpec", message)


def test_the_largest_spec_that_the_schema_intends_is_read() -> None:
    rungs = [[step, step] for step in range(200)]
    resources = {
        f"container-{number}": {"requests": {"cpu": {"base": "100m", "step": "10m", "nodesPerStep": 1}}}
        for number in range(50)
    }
    ladder = {"nodesToReplicas": rungs, "coresToReplicas": rungs}
    driver = {"query": {"expr": "sum(x)", "ladder": rungs}}
    proportional = {"ladder": ladder, "drivers": driver, "resources": resources}
    spec = {"proportional": proportional, "targets": [target(f"web-{number}") for number in range(20)]}
    found = object_of({"metadata": {"namespace": "shop", "name": "web"}, "spec": spec})
    assert found is not None
    assert isinstance(read_object(found, SHARED, SETTINGS), Recommendation)


def test_deeply_nested_versions_of_an_object_can_be_compared() -> None:
    document = {"metadata": {"namespace": "shop", "name": "web"}, "spec": {"paused": nested(900)}}
    assert object_of(document) == object_of(document | {"spec": {"paused": nested(900)}})


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_KEYS = st.sampled_from(
    ["proportional", "predictive", "clusterSize", "targets", "outputs", "paused", "maxStep", "name"]
)


@given(st.dictionaries(_KEYS, _JSON, max_size=4) | _JSON)
def test_any_spec_is_read_or_refused(spec: object) -> None:
    assert isinstance(read(spec), Recommendation | ObjectRefusal)


def test_the_namespaced_query_is_valid_promql() -> None:
    parse_query(accepted(predictive()).subject.load)
