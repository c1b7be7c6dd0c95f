"""The schemas of the three groups are complete, have no dangling references, and cost nothing when requested again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from adapter.foundation.objects.selectors import EVERYTHING
from adapter.metrics.apis.openapi.schemas import GVK
from adapter.metrics.apis.routing import VERSIONS
from adapter.metrics.readings.answers import BySelector, UsageAnswer, UsageItem
from adapter.metrics.readings.catalogue.catalogue import Catalogue
from tests.adapter.metrics.apis.fakes import (
    PODS,
    AskedUsage,
    FakeReadings,
    Server,
    all_pods,
    answer,
    custom_metric,
    external_metric,
    resource_rules,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

GROUPS = [(group, version) for group, versions in VERSIONS.items() for version in versions]
DOCUMENTS = ["/openapi/v2", *(f"/openapi/v3/apis/{group}/{version}" for group, version in GROUPS)]
RPS = custom_metric("rps")


def got(target: str) -> dict[str, Any]:
    response = Server().get(target)
    assert (response.status, response.content_type) == (200, "application/json")
    document: dict[str, Any] = json.loads(response.body)
    return document


def found(value: object, key: str) -> Iterator[Any]:
    """Yield the values under a key, at any depth."""
    if isinstance(value, dict):
        yield from (one for name, one in value.items() if name == key)
        for one in value.values():
            yield from found(one, key)
    elif isinstance(value, list):
        for one in value:
            yield from found(one, key)


@pytest.mark.parametrize("target", DOCUMENTS)
def test_every_reference_resolves_and_every_schema_is_referenced(target: str) -> None:
    document = got(target)
    schemas = document.get("definitions") or document["components"]["schemas"]
    prefix = "#/definitions/" if "definitions" in document else "#/components/schemas/"
    references = set(found(document, "$ref"))
    assert references == {f"{prefix}{name}" for name in schemas}


@pytest.mark.parametrize("target", DOCUMENTS)
def test_parameters_are_those_of_the_path_and_operation_ids_are_unique(target: str) -> None:
    document = got(target)
    for path, item in document["paths"].items():
        in_path = [segment[1:-1] for segment in path.split("/") if segment.startswith("{")]
        assert [parameter["name"] for parameter in item.get("parameters", [])] == in_path
    names = list(found(document, "operationId"))
    assert len(set(names)) == len(names) == len(document["paths"])


def test_the_index_links_to_each_document_with_the_hash_of_its_content() -> None:
    paths = got("/openapi/v3")["paths"]
    assert list(paths) == [f"apis/{group}/{version}" for group, version in GROUPS]
    for place, address in paths.items():
        url, _, digest = address["serverRelativeURL"].partition("?hash=")
        assert url == f"/openapi/v3/{place}"
        assert dict(Server().get(url).headers)["ETag"] == f'"{digest}"'
        assert got(address["serverRelativeURL"])["openapi"] == "3.0.0"


@pytest.mark.parametrize("target", [*DOCUMENTS, "/openapi/v3"])
def test_a_schema_with_a_matching_etag_is_304(target: str) -> None:
    server = Server()
    tag = dict(server.get(target).headers)["ETag"]
    again = server.get(target, ("If-None-Match", tag))
    assert (again.status, again.body) == (304, b"")
    assert server.get(target, ("If-None-Match", '"other"')).status == 200


@pytest.mark.parametrize("accept", ["application/com.github.proto-openapi.spec.v2@v1.0+protobuf", "text/html", ""])
def test_the_schema_is_json_whatever_the_client_accepts(accept: str) -> None:
    response = Server().get("/openapi/v2", ("Accept", accept))
    assert (response.status, response.content_type) == (200, "application/json")


@pytest.mark.parametrize("target", ["/openapi", "/openapi/v1", "/openapi/v2/apis", "/openapi/v3/apis/apps/v1"])
def test_other_paths_of_openapi_are_404(target: str) -> None:
    assert Server().get(target).status == 404


def properties_of(group: str, version: str, kind: str) -> set[str]:
    schemas = got(f"/openapi/v3/apis/{group}/{version}")["components"]["schemas"].values()
    wanted = {"group": group, "version": version, "kind": kind}
    (schema,) = [schema for schema in schemas if wanted in schema.get(GVK, [])]
    return set(schema["properties"])


@pytest.mark.parametrize("version", VERSIONS["custom.metrics.k8s.io"])
def test_the_schema_of_custom_metrics_has_the_fields_of_answers(version: str) -> None:
    server = Server(FakeReadings(Catalogue([RPS, external_metric("queue")])))
    server.readings.answers[all_pods(RPS)] = answer(("web-0", 1))
    document = json.loads(server.get(f"/apis/custom.metrics.k8s.io/{version}/namespaces/shop/pods/*/rps").body)
    assert set(document) == properties_of("custom.metrics.k8s.io", version, "MetricValueList")
    assert set(document["items"][0]) <= properties_of("custom.metrics.k8s.io", version, "MetricValue")


def test_the_schema_of_pod_usage_has_the_fields_of_answers() -> None:
    server = Server(FakeReadings(Catalogue(resource=resource_rules("cpu", "memory"))))
    item = UsageItem("shop", "web-0", {"app": "web"}, 1.0, {"app": {"cpu": 1.0, "memory": 2.0}})
    server.readings.answers[AskedUsage(PODS, "shop", BySelector(EVERYTHING))] = UsageAnswer((item,), 60.0, 1.0)
    document = json.loads(server.get("/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods").body)
    assert set(document) == properties_of("metrics.k8s.io", "v1beta1", "PodMetricsList")
    fields = properties_of("metrics.k8s.io", "v1beta1", "PodMetrics")
    assert {*document["items"][0], "apiVersion", "kind"} == fields
