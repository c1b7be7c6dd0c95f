from __future__ import annotations

import json

import pytest

from adapter.apis.discovery import ResourceLists, api_group, api_group_list, groups_response
from adapter.readings.catalogue import Catalogue
from tests.apis.fakes import DEPLOYMENTS, NAMESPACES, custom_metric, external_metric

CUSTOM = "custom.metrics.k8s.io"
EXTERNAL = "external.metrics.k8s.io"

KUBE_APISERVER = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
)
OLDER_KUBE_APISERVER = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"


@pytest.fixture(name="catalogue")
def _catalogue() -> Catalogue:
    metrics = [
        custom_metric("http_rps", NAMESPACES),
        external_metric("queue_depth"),
        custom_metric("http_rps"),
        custom_metric("http_rps", DEPLOYMENTS),
    ]
    return Catalogue(metrics, generation=1)


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_custom_metrics_to_the_byte(catalogue: Catalogue, version: str) -> None:
    assert (
        ResourceLists().get(catalogue, CUSTOM, version)
        == (
            b'{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"custom.metrics.k8s.io/%b","resources":['
            b'{"name":"deployments.apps/http_rps","singularName":"","namespaced":true,"kind":"MetricValueList","verbs":["get"]},'
            b'{"name":"namespaces/http_rps","singularName":"","namespaced":false,"kind":"MetricValueList","verbs":["get"]},'
            b'{"name":"pods/http_rps","singularName":"","namespaced":true,"kind":"MetricValueList","verbs":["get"]}]}'
        )
        % version.encode()
    )


def test_external_metrics_to_the_byte(catalogue: Catalogue) -> None:
    assert ResourceLists().get(catalogue, EXTERNAL, "v1beta1") == (
        b'{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"external.metrics.k8s.io/v1beta1","resources":['
        b'{"name":"queue_depth","singularName":"","namespaced":true,"kind":"ExternalMetricValueList","verbs":["get"]}]}'
    )


@pytest.mark.parametrize(("group", "version"), [(CUSTOM, "v1beta1"), (CUSTOM, "v1beta2"), (EXTERNAL, "v1beta1")])
def test_without_metrics_the_list_is_empty_and_not_null(group: str, version: str) -> None:
    assert json.loads(ResourceLists().get(Catalogue(), group, version))["resources"] == []


def test_documents_are_made_once_for_each_catalogue(catalogue: Catalogue) -> None:
    lists = ResourceLists()
    first = lists.get(catalogue, CUSTOM, "v1beta1")
    assert lists.get(catalogue, CUSTOM, "v1beta1") is first
    assert lists.get(Catalogue([external_metric("new")], 2), EXTERNAL, "v1beta1").count(b'"new"') == 1


def test_a_group_prefers_its_newest_version() -> None:
    assert json.loads(api_group(CUSTOM)) == {
        "kind": "APIGroup",
        "apiVersion": "v1",
        "name": CUSTOM,
        "versions": [
            {"groupVersion": f"{CUSTOM}/v1beta2", "version": "v1beta2"},
            {"groupVersion": f"{CUSTOM}/v1beta1", "version": "v1beta1"},
        ],
        "preferredVersion": {"groupVersion": f"{CUSTOM}/v1beta2", "version": "v1beta2"},
    }


def test_the_group_list_holds_both_groups() -> None:
    listed = json.loads(api_group_list())
    assert (listed["kind"], listed["apiVersion"]) == ("APIGroupList", "v1")
    assert [group["name"] for group in listed["groups"]] == [CUSTOM, EXTERNAL]


@pytest.mark.parametrize(
    ("accept", "version"),
    [
        (KUBE_APISERVER, "v2"),
        (OLDER_KUBE_APISERVER, "v2beta1"),
        ("application/json; g=apidiscovery.k8s.io; v=v2; as=APIGroupDiscoveryList", "v2"),
        (AGGREGATED.format("v3") + "," + AGGREGATED.format("v2"), "v2"),
        (
            "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList," + KUBE_APISERVER,
            "v2",
        ),
    ],
)
def test_aggregated_discovery_comes_in_the_version_asked_for(accept: str, version: str) -> None:
    response = groups_response(accept, "")
    document = json.loads(response.body)
    assert (response.status, response.content_type) == (200, AGGREGATED.format(version))
    assert (document["kind"], document["apiVersion"]) == ("APIGroupDiscoveryList", f"apidiscovery.k8s.io/{version}")
    assert [item["metadata"]["name"] for item in document["items"]] == [CUSTOM, EXTERNAL]
    assert [served["version"] for served in document["items"][0]["versions"]] == ["v1beta2", "v1beta1"]
    assert all(
        (served["freshness"], served["resources"]) == ("Current", [])
        for item in document["items"]
        for served in item["versions"]
    )


@pytest.mark.parametrize(
    "accept",
    [
        "",
        "*/*",
        "application/json",
        "application/json, */*",
        "application/json," + KUBE_APISERVER,
        AGGREGATED.format("v3"),
        "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
        ";;=,,",
    ],
)
def test_who_does_not_ask_for_aggregated_discovery_gets_the_group_list(accept: str) -> None:
    response = groups_response(accept, "")
    assert (response.content_type, response.body) == ("application/json", api_group_list())


@pytest.mark.parametrize("wrapped", ["{}", "W/{}", '"other", {}'])
def test_aggregated_discovery_that_the_client_has_is_304(wrapped: str) -> None:
    etag = dict(groups_response(KUBE_APISERVER, "").headers)["ETag"]
    response = groups_response(KUBE_APISERVER, wrapped.format(etag))
    assert (response.status, response.body, dict(response.headers)["ETag"]) == (304, b"", etag)


def test_versions_of_aggregated_discovery_have_different_etags() -> None:
    etags = {dict(groups_response(accept, "").headers)["ETag"] for accept in (KUBE_APISERVER, OLDER_KUBE_APISERVER)}
    assert len(etags) == 2
