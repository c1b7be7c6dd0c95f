"""Metrics of MetricRule objects: found after those of the rule files, in their namespace alone, and in no list."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pytest

from adapter.foundation.objects.selectors import EVERYTHING
from adapter.foundation.web.http import Request
from adapter.metrics.identity.callers import DeniedError
from adapter.metrics.readings.catalogue.catalogue import Catalogue
from adapter.metrics.readings.errors import FirstAnswerPendingError
from adapter.metrics.readings.explain.explanation import Question
from adapter.metrics.rulebook.model import Api
from tests.adapter.metrics.apis.fakes import (
    NAMESPACES,
    AskedExternal,
    FakeReadings,
    Server,
    all_pods,
    answer,
    custom_metric,
    external_metric,
    rows,
)
from tests.adapter.metrics.apis.test_explain import FakeAuthorizer, explanations

if TYPE_CHECKING:
    from adapter.metrics.rulebook.model import Metric

CUSTOM: Final = "/apis/custom.metrics.k8s.io/v1beta2"
EXTERNAL: Final = "/apis/external.metrics.k8s.io/v1beta1"
LAG, RPS = external_metric("lag"), custom_metric("rps")


def of_object(metric: Metric) -> Metric:
    return replace(metric, rule=replace(metric.rule, id="MetricRule shop/web"))


OWN_LAG, DEPTH, HITS = of_object(LAG), of_object(external_metric("depth")), of_object(custom_metric("hits"))
READS: Final = [
    (f"{EXTERNAL}/namespaces/shop/depth", 200),
    (f"{EXTERNAL}/namespaces/bank/depth", 404),
    (f"{EXTERNAL}/namespaces/*/depth", 404),
    (f"{CUSTOM}/namespaces/shop/pods/*/hits", 200),
    (f"{CUSTOM}/namespaces/shop/pod/*/hits", 200),
    (f"{CUSTOM}/namespaces/bank/pods/*/hits", 404),
    (f"{CUSTOM}/namespaces/shop/metrics/own", 404),
]


def server() -> Server:
    of_objects = Catalogue([OWN_LAG, DEPTH, HITS, custom_metric("own", NAMESPACES)], generation=1)
    serving = Server(FakeReadings(Catalogue([LAG, RPS], generation=1), of_objects={"shop": of_objects}))
    answers = serving.readings.answers
    answers[AskedExternal(LAG, "shop", EVERYTHING)] = rows(({}, 1.0))
    answers[AskedExternal(OWN_LAG, "shop", EVERYTHING)] = rows(({}, 2.0))
    answers[AskedExternal(DEPTH, "shop", EVERYTHING)] = rows(({}, 3.0))
    answers[all_pods(HITS)] = answer(("web-0", 4))
    return serving


@pytest.mark.parametrize(("path", "status"), READS)
def test_a_metric_of_an_object_is_found_only_in_its_namespace(path: str, status: int) -> None:
    assert server().get(path).status == status


def test_a_metric_of_the_files_takes_precedence_over_one_of_an_object() -> None:
    (item,) = json.loads(server().get(f"{EXTERNAL}/namespaces/shop/lag").body)["items"]
    assert item["value"] == "1"


def test_metrics_of_objects_are_not_listed() -> None:
    listed = [json.loads(server().get(path).body)["resources"] for path in (CUSTOM, EXTERNAL)]
    assert [[each["name"] for each in resources] for resources in listed] == [["pods/rps"], ["lag"]]


@pytest.mark.parametrize("path", [f"{EXTERNAL}/namespaces/shop/new", f"{CUSTOM}/namespaces/shop/pods/*/new"])
def test_a_metric_is_504_while_series_of_objects_are_looked_up(path: str) -> None:
    serving = server()
    serving.readings.first_look_ups_of_objects = FirstAnswerPendingError("try again in a moment")
    assert serving.get(path).status == 504
    known = path.replace("/namespaces/shop/new", "/namespaces/shop/depth").replace("/new", "/hits")
    assert serving.get(known).status == 200, "it was found by an earlier look-up"


@pytest.mark.parametrize(
    ("query", "right", "api"),
    [
        ("metric=depth&namespace=shop", "list external depth/", Api.EXTERNAL),
        ("metric=hits&namespace=shop", "get custom pods/hits", Api.CUSTOM),
        ("metric=pods/hits&namespace=shop", "get custom pods/hits", Api.CUSTOM),
    ],
)
def test_the_right_to_read_a_metric_of_an_object_allows_its_explanation(query: str, right: str, api: Api) -> None:
    made, served = explanations(FakeAuthorizer({right}), server().readings)
    assert made.get(Request("GET", "/debug/explain", query)).status == 200
    ((question, _),) = served.explained
    assert (question.api, question.namespace) == (api, "shop")


def _explained(readings: FakeReadings, query: str, rights: set[str]) -> object:
    """Return which question is answered, or the refusal."""
    made, served = explanations(FakeAuthorizer(rights), readings)
    try:
        made.get(Request("GET", "/debug/explain", query))
    except DeniedError as e:
        return e.message
    ((question, _),) = served.explained
    return question


@pytest.mark.parametrize(
    "query", ["metric=depth&namespace=shop", "metric=hits&namespace=shop", "metric=lag&namespace=shop"]
)
@pytest.mark.parametrize("rights", [set(), {"get custom pods/depth", "list external hits/", "get custom pods/lag"}])
def test_whoever_may_not_read_a_metric_of_an_object_does_not_learn_whether_it_exists(
    query: str, rights: set[str]
) -> None:
    without_objects = FakeReadings(server().readings.catalogue)
    assert _explained(server().readings, query, rights) == _explained(without_objects, query, rights)


@pytest.mark.parametrize(("name", "api"), [("rps", Api.CUSTOM), ("lag", Api.EXTERNAL), ("depth", Api.EXTERNAL)])
def test_a_metric_of_an_object_hides_none_of_the_files_from_an_explanation(name: str, api: Api) -> None:
    of_objects = Catalogue([DEPTH, of_object(external_metric("rps")), of_object(custom_metric("lag"))], generation=1)
    readings = FakeReadings(Catalogue([LAG, RPS], generation=1), of_objects={"shop": of_objects})
    rights = {f"get custom pods/{name}", f"list external {name}/"}
    question = _explained(readings, f"metric={name}&namespace=shop", rights)
    assert isinstance(question, Question)
    assert question.api is api
