"""Metrics of cluster-scoped objects, at the path by which autoscalers ask for every object."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from adapter.foundation.objects.resources import Resource
from adapter.foundation.objects.selectors import EVERYTHING
from adapter.metrics.identity.attributes import Attributes, attributes_of
from adapter.metrics.readings.answers import ByName
from adapter.metrics.readings.catalogue.catalogue import Catalogue, metric_in_namespace
from adapter.metrics.readings.errors import NoSampleError
from adapter.metrics.rulebook.resources import ResourceMapping
from tests.adapter.metrics.apis.fakes import NAMESPACES, AskedObjects, FakeReadings, Server, answer, custom_metric

TENANTS = Resource("example.com", "v1", "tenants", "tenant", "Tenant", namespaced=False)
CUSTOM = "/apis/custom.metrics.k8s.io"
PATH = "namespaces/shop/tenants.example.com/acme/load"

_LOAD = custom_metric("load", TENANTS)
LOAD = replace(_LOAD, rule=replace(_LOAD.rule, resources=ResourceMapping((("namespace", NAMESPACES),))))
WITHIN = metric_in_namespace(LOAD)


def server() -> Server:
    return Server(FakeReadings(Catalogue([LOAD], generation=1)))


def asked_within() -> AskedObjects:
    assert WITHIN is not None
    return AskedObjects(WITHIN, "shop", ByName("acme"), EVERYTHING)


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_the_value_is_that_of_the_namespace_and_names_it(version: str) -> None:
    serving = server()
    serving.readings.answers[asked_within()] = answer(("acme", 30))
    (item,) = json.loads(serving.get(f"{CUSTOM}/{version}/{PATH}").body)["items"]
    described = {"kind": "Tenant", "namespace": "shop", "name": "acme", "apiVersion": "example.com/v1"}
    assert (item["describedObject"], item["value"]) == (described, "30")


def test_without_a_value_the_message_names_the_required_namespace_label() -> None:
    serving = server()
    serving.readings.answers[asked_within()] = NoSampleError("'acme' has no value: Prometheus has no sample for it")
    response = serving.get(f"{CUSTOM}/v1beta2/{PATH}")
    assert response.status == 404
    assert json.loads(response.body)["message"] == (
        "the server could not find the metric load for tenants.example.com acme: 'acme' has no value: Prometheus has "
        'no sample for it; within a namespace, only series with namespace="shop" count'
    )


def test_all_objects_of_the_kind_cannot_be_requested_within_a_namespace() -> None:
    response = server().get(f"{CUSTOM}/v1beta2/namespaces/shop/tenants.example.com/*/load?labelSelector=a=b")
    assert response.status == 404
    assert "tenants.example.com are not namespaced: name one of them" in json.loads(response.body)["message"]


def test_the_metric_is_listed_once_and_as_cluster_scoped() -> None:
    serving = server()
    serving.get(f"{CUSTOM}/v1beta2/{PATH}")
    (listed,) = json.loads(serving.get(f"{CUSTOM}/v1beta2").body)["resources"]
    assert (listed["name"], listed["namespaced"]) == ("tenants.example.com/load", False)


def test_access_to_the_metric_is_checked_within_the_namespace() -> None:
    assert attributes_of("GET", f"{CUSTOM}/v1beta2/{PATH}") == Attributes(
        "get", "custom.metrics.k8s.io", "v1beta2", "tenants.example.com", "load", "acme", "shop"
    )
