from __future__ import annotations

import json

import pytest

from adapter.metrics.apis.discovery.groups import API_GROUP_LIST, API_GROUPS, USAGE_RESOURCES, groups_response

CUSTOM = "custom.metrics.k8s.io"
EXTERNAL = "external.metrics.k8s.io"
RESOURCE = "metrics.k8s.io"

KUBE_APISERVER = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
)
OLDER_KUBE_APISERVER = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"


def test_a_group_prefers_its_newest_version() -> None:
    assert json.loads(API_GROUPS[CUSTOM]) == {
        "kind": "APIGroup",
        "apiVersion": "v1",
        "name": CUSTOM,
        "versions": [
            {"groupVersion": f"{CUSTOM}/v1beta2", "version": "v1beta2"},
            {"groupVersion": f"{CUSTOM}/v1beta1", "version": "v1beta1"},
        ],
        "preferredVersion": {"groupVersion": f"{CUSTOM}/v1beta2", "version": "v1beta2"},
    }


def test_the_group_list_holds_all_groups_even_without_rules() -> None:
    listed = json.loads(API_GROUP_LIST)
    assert (listed["kind"], listed["apiVersion"]) == ("APIGroupList", "v1")
    assert [group["name"] for group in listed["groups"]] == [CUSTOM, EXTERNAL, RESOURCE]


@pytest.mark.parametrize(("accept", "version"), [(KUBE_APISERVER, "v2"), (OLDER_KUBE_APISERVER, "v2beta1")])
def test_aggregated_discovery_is_served_in_the_requested_version(accept: str, version: str) -> None:
    response = groups_response(accept, "")
    document = json.loads(response.body)
    assert (response.status, response.content_type) == (200, AGGREGATED.format(version))
    assert (document["kind"], document["apiVersion"]) == ("APIGroupDiscoveryList", f"apidiscovery.k8s.io/{version}")
    assert [item["metadata"]["name"] for item in document["items"]] == [CUSTOM, EXTERNAL, RESOURCE]
    assert [served["version"] for served in document["items"][0]["versions"]] == ["v1beta2", "v1beta1"]
    assert all(
        (served["freshness"], served["resources"]) == ("Current", [])
        for item in document["items"][:2]
        for served in item["versions"]
    )


@pytest.mark.parametrize("accept", ["", "*/*", "application/json"])
def test_clients_that_do_not_accept_aggregated_discovery_get_the_group_list(accept: str) -> None:
    response = groups_response(accept, "")
    assert (response.content_type, response.body) == ("application/json", API_GROUP_LIST)


@pytest.mark.parametrize("wrapped", ["{}", "W/{}", '"other", {}', 'W/"other" ,W/{} , "more"', "*", " * "])
def test_aggregated_discovery_with_a_matching_etag_is_304(wrapped: str) -> None:
    whole = groups_response(KUBE_APISERVER, "")
    response = groups_response(KUBE_APISERVER, wrapped.format(dict(whole.headers)["ETag"]))
    assert (response.status, response.body) == (304, b"")
    assert (response.headers, response.cache_control) == (whole.headers, "public")


@pytest.mark.parametrize("tag", ["", '"other"', "{unquoted}", '"*"', ",", 'W/"other",'])
def test_aggregated_discovery_with_another_etag_is_sent(tag: str) -> None:
    etag = dict(groups_response(KUBE_APISERVER, "").headers)["ETag"]
    assert groups_response(KUBE_APISERVER, tag.replace("{unquoted}", etag.strip('"'))).status == 200


def test_each_version_has_its_own_etag_and_the_plain_list_has_none() -> None:
    newer, older = (dict(groups_response(accept, "").headers) for accept in (KUBE_APISERVER, OLDER_KUBE_APISERVER))
    assert newer["ETag"] != older["ETag"]
    assert newer["Vary"] == older["Vary"] == "Accept"
    assert groups_response("", "*").status == 200
    assert groups_response("", "").headers == (("Vary", "Accept"),)


def test_the_group_of_resource_metrics_has_one_version() -> None:
    assert json.loads(API_GROUPS[RESOURCE])["preferredVersion"] == {
        "groupVersion": f"{RESOURCE}/v1beta1",
        "version": "v1beta1",
    }


@pytest.mark.parametrize("accept", [KUBE_APISERVER, OLDER_KUBE_APISERVER])
def test_aggregated_discovery_lists_pods_and_nodes_in_every_version(accept: str) -> None:
    response = groups_response(accept, "")
    *_, last = json.loads(response.body)["items"]
    (version,) = last["versions"]
    assert (last["metadata"]["name"], version["version"]) == (RESOURCE, "v1beta1")
    assert [(one["resource"], one["scope"], one["verbs"]) for one in version["resources"]] == [
        ("nodes", "Cluster", ["get", "list"]),
        ("pods", "Namespaced", ["get", "list"]),
    ]
    assert version["resources"][1]["responseKind"] == {"group": RESOURCE, "version": "v1beta1", "kind": "PodMetrics"}


def test_the_resource_list_of_metrics_k8s_io_has_nodes_and_pods() -> None:
    document = json.loads(USAGE_RESOURCES)
    assert (document["kind"], document["groupVersion"]) == ("APIResourceList", f"{RESOURCE}/v1beta1")
    assert {one["name"]: (one["namespaced"], one["kind"]) for one in document["resources"]} == {
        "nodes": (False, "NodeMetrics"),
        "pods": (True, "PodMetrics"),
    }
