"""Requests whose status differs from prometheus-adapter's though nothing is wrong with Prometheus or the cluster.

`there` is what prometheus-adapter 0.12.0 answered beside a kube-apiserver of version 1.36 that had these objects. Each
test covers one row of the page on migration.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import pytest

from adapter.foundation.objects.selectors import EVERYTHING
from adapter.metrics.readings.catalogue.catalogue import Catalogue
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
from tests.adapter.metrics.apis.golden_usage import usage_readings

if TYPE_CHECKING:
    from tests.adapter.metrics.apis.fakes import Answer, Asked

CUSTOM: Final = "/apis/custom.metrics.k8s.io/v1beta2"
EXTERNAL: Final = "/apis/external.metrics.k8s.io/v1beta1"
USAGE: Final = "/apis/metrics.k8s.io/v1beta1"
RPS, SHOP_RPS, QUEUE = custom_metric("rps"), custom_metric("rps", NAMESPACES), external_metric("queue")
PODS_RPS: Final = f"{CUSTOM}/namespaces/shop/pods/*/rps"
SHOP_QUEUE: Final = f"{EXTERNAL}/namespaces/shop/queue"


@pytest.fixture
def server() -> Server:
    answers: dict[Asked, Answer | Exception] = {
        all_pods(RPS): answer(("web-0", 1)),
        AskedExternal(QUEUE, "shop", EVERYTHING): rows(({}, 1)),
    }
    return Server(FakeReadings(Catalogue([RPS, SHOP_RPS, QUEUE], generation=1), answers))


@pytest.fixture
def usage() -> Server:
    return Server(usage_readings())


@pytest.mark.parametrize(
    ("path", "there"),
    [
        (f"{CUSTOM}/namespaces/SHOP/pods/*/rps", 404),
        (f"{CUSTOM}/namespaces/*/pods/*/rps", 404),
        (f"{CUSTOM}/namespaces/shop/pods/web%2F0/rps", 404),
        (f"{CUSTOM}/namespaces/shop/pods/../rps", 404),
        (f"{CUSTOM}/namespaces/shop/pods/web%00/rps", 404),
        (f"{CUSTOM}/namespaces/shop/pods/{'x' * 254}/rps", 404),
        (f"{EXTERNAL}/namespaces/SHOP/queue", 200),
        (f"{EXTERNAL}/namespaces/sh%22op/queue", 200),
        (f"{USAGE}/namespaces/{'x' * 64}/pods", 200),
        (f"{USAGE}/namespaces/*/pods", 200),
        (f"{USAGE}/nodes/..", 404),
    ],
)
def test_an_invalid_name_is_400(server: Server, path: str, there: int) -> None:
    found = server.get(path) if not path.startswith(USAGE) else Server(usage_readings()).get(path)
    assert found.status == 400 != there
    assert b"cannot be the name of" in found.body


@pytest.mark.parametrize(
    ("path", "there"),
    [
        (f"{EXTERNAL}/namespaces//queue", 200),
        (f"{USAGE}/namespaces//pods", 200),
        (f"{CUSTOM}/namespaces/shop/pods//rps", 200),
        (f"{CUSTOM}/namespaces%2Fshop/pods/*/rps", 200),
        (f"{CUSTOM}/namespaces/shop/metrics/rps/x", 200),
    ],
)
def test_a_path_of_another_form_is_404(server: Server, path: str, there: int) -> None:
    assert server.get(path).status == 404 != there


@pytest.mark.parametrize("given", ["metadata.name=web-0", "metadata.namespace=other", "metadata.name!=x", "="])
@pytest.mark.parametrize("path", [SHOP_QUEUE, PODS_RPS], ids=["external", "custom"])
def test_a_field_selector_that_selects_no_metric_is_400(server: Server, path: str, given: str) -> None:
    found = server.get(f"{path}?fieldSelector={given.replace('=', '%3D')}")
    assert (found.status, b"cannot be met" in found.body) == (400, True)


@pytest.mark.parametrize(
    "options", ["resourceVersionMatch=Exact", "resourceVersionMatch=bad", "sendInitialEvents=true", "continue=x"]
)
def test_options_of_versioned_lists_are_ignored(server: Server, options: str) -> None:
    assert server.get(f"{SHOP_QUEUE}?{options}").status == 200
    assert Server(usage_readings()).get(f"{USAGE}/nodes?{options}").status == 200


@pytest.mark.parametrize("path", [CUSTOM, EXTERNAL, USAGE, "/apis"])
def test_discovery_ignores_an_invalid_timeout(server: Server, path: str) -> None:
    """prometheus-adapter answers 400."""
    assert server.get(f"{path}?timeout=x").status == 200


@pytest.mark.parametrize("options", ["limit=x", "timeoutSeconds=x", "watch=true", "watch"])
@pytest.mark.parametrize("path", [f"{USAGE}/namespaces/shop/pods/web-0", f"{USAGE}/nodes/n1"])
def test_requests_for_one_object_ignore_list_options_as_in_prometheus_adapter(
    usage: Server, path: str, options: str
) -> None:
    assert usage.get(path).status == 200
    assert usage.get(f"{path}?{options}").status == 200


@pytest.mark.parametrize(
    ("path", "accept", "there", "here"),
    [
        (PODS_RPS, "application/*", 406, 200),
        (SHOP_QUEUE, "application/json;q=0", 200, 406),
        (SHOP_QUEUE, "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json", 500, 200),
        (SHOP_QUEUE, "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", 500, 406),
        (f"{USAGE}/nodes", "application/json;as=Foo;v=v1;g=meta.k8s.io", 406, 200),
        ("/apis", "application/json;as=Table;v=v1;g=meta.k8s.io", 406, 200),
        ("/version", "text/html", 406, 200),
    ],
)
def test_the_form_is_negotiated_by_the_accept_header(
    server: Server, usage: Server, path: str, accept: str, there: int, here: int
) -> None:
    asked = usage if path.startswith(USAGE) else server
    assert asked.get(path, ("Accept", accept)).status == here != there


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("path", ["/", "/healthz", "/metrics", "/openapi/v2"])
def test_read_only_paths_refuse_other_methods(server: Server, method: str, path: str) -> None:
    """prometheus-adapter answers each of them with 200."""
    assert server.routed(method, path).status == 405


@pytest.mark.parametrize("path", ["/debug/pprof", "/debug/pprof/", "/debug/flags/v"])
def test_profiles_are_404(server: Server, path: str) -> None:
    assert server.get(path).status == 404


@pytest.mark.parametrize("path", ["/healthz", "/livez/ping", "/healthz/"])
def test_health_checks_need_no_credentials(server: Server, path: str) -> None:
    """prometheus-adapter answers 401 to invalid credentials, and 403 to a caller without rights for a single check."""
    assert server.routed("GET", path, ()).status == 200


@pytest.mark.parametrize("path", [f"{CUSTOM}/pods", f"{USAGE}/nodes/none", f"{USAGE}/pods?watch=true"])
def test_an_error_has_no_details(usage: Server, path: str) -> None:
    """prometheus-adapter adds them to each of these."""
    status = json.loads(usage.get(path).body)
    assert set(status) == {"kind", "apiVersion", "metadata", "status", "message", "reason", "code"}
