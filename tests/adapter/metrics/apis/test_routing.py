from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapter.metrics.apis.routing import (
    CustomValues,
    ExternalValues,
    GroupList,
    GroupPath,
    Index,
    OpenApi2,
    OpenApi3,
    OwnMetrics,
    PathError,
    ResourceList,
    Route,
    UsageValues,
    Version,
    group_of,
    route,
)

CUSTOM = "custom.metrics.k8s.io"
EXTERNAL = "external.metrics.k8s.io"
RESOURCE = "metrics.k8s.io"
R1 = f"/apis/{RESOURCE}/v1beta1"
C2 = f"/apis/{CUSTOM}/v1beta2"
E1 = f"/apis/{EXTERNAL}/v1beta1"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/", Index()),
        ("/version", Version()),
        ("/metrics", OwnMetrics()),
        ("/apis", GroupList()),
        ("/apis/", GroupList()),
        (f"/apis/{CUSTOM}", GroupPath(CUSTOM)),
        (f"/apis/{EXTERNAL}/", GroupPath(EXTERNAL)),
        (C2, ResourceList(CUSTOM, "v1beta2")),
        (f"/apis/{CUSTOM}/v1beta1/", ResourceList(CUSTOM, "v1beta1")),
        (E1, ResourceList(EXTERNAL, "v1beta1")),
        (f"{C2}/namespaces/shop/pods/*/rps", CustomValues("v1beta2", "shop", "pods", "*", "rps")),
        (f"{C2}/namespaces/shop/pods/%2A/rps", CustomValues("v1beta2", "shop", "pods", "*", "rps")),
        (f"{C2}/namespaces/shop/pods/%2a/rps/", CustomValues("v1beta2", "shop", "pods", "*", "rps")),
        (
            f"{C2}/namespaces/shop/deployments.apps/web/rps",
            CustomValues("v1beta2", "shop", "deployments.apps", "web", "rps"),
        ),
        (f"{C2}/namespaces/shop/metrics/rps", CustomValues("v1beta2", None, "namespaces", "shop", "rps")),
        (
            f"{C2}/namespaces/shop/pods/metrics/rps",
            CustomValues("v1beta2", "shop", "pods", "metrics", "rps"),
        ),
        (f"{C2}/nodes/n1/load", CustomValues("v1beta2", None, "nodes", "n1", "load")),
        (f"{C2}/nodes/*/load", CustomValues("v1beta2", None, "nodes", "*", "load")),
        (f"{C2}/namespaces/shop/pods/*/ns:rps:rate5m", CustomValues("v1beta2", "shop", "pods", "*", "ns:rps:rate5m")),
        (f"{C2}/namespaces/shop/pods/*/caf%C3%A9", CustomValues("v1beta2", "shop", "pods", "*", "café")),
        (f"{C2}/namespaces/shop/pods/*/caf\xc3\xa9", CustomValues("v1beta2", "shop", "pods", "*", "café")),
        (f"{E1}/namespaces/shop/queue", ExternalValues("v1beta1", "shop", "queue")),
        (f"/apis/{RESOURCE}", GroupPath(RESOURCE)),
        (R1, ResourceList(RESOURCE, "v1beta1")),
        ("/openapi/v2", OpenApi2()),
        ("/openapi/v3", OpenApi3()),
        (f"/openapi/v3/apis/{RESOURCE}/v1beta1", OpenApi3(RESOURCE, "v1beta1")),
        (f"{R1}/nodes", UsageValues("nodes")),
        (f"{R1}/nodes/", UsageValues("nodes")),
        (f"{R1}/nodes/n1", UsageValues("nodes", name="n1")),
        (f"{R1}/pods", UsageValues("pods")),
        (f"{R1}/namespaces/shop/pods", UsageValues("pods", "shop")),
        (f"{R1}/namespaces/shop/pods/web-0", UsageValues("pods", "shop", "web-0")),
        (f"{R1}/namespaces/shop/pods/a%2Fb", UsageValues("pods", "shop", "a/b")),
    ],
)
def test_paths_of_the_apis_are_parsed(path: str, expected: Route) -> None:
    assert route(path) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (f"{C2}/namespaces/shop/pods/a%2Fb/rps", CustomValues("v1beta2", "shop", "pods", "a/b", "rps")),
        (f"{C2}/namespaces/shop/pods/*/a%2Fb", CustomValues("v1beta2", "shop", "pods", "*", "a/b")),
        (f"{C2}/namespaces/shop/pods/*/a%252Fb", CustomValues("v1beta2", "shop", "pods", "*", "a%2Fb")),
        (f"{E1}/namespaces/a%2Fb/queue", ExternalValues("v1beta1", "a/b", "queue")),
    ],
)
def test_an_encoded_slash_never_makes_a_segment_and_decoding_happens_once(path: str, expected: Route) -> None:
    assert route(path) == expected


@pytest.mark.parametrize(
    "path",
    [
        "//",
        "/apis//",
        "/api",
        "/openapi",
        "/openapi/v3/apis",
        f"/openapi/v3/apis/{RESOURCE}/v1",
        f"/apis/{RESOURCE}/v1",
        f"{R1}/pods/web-0",
        f"{R1}/services",
        f"{R1}/namespaces",
        f"{R1}/namespaces/shop",
        f"{R1}/namespaces/shop/nodes",
        f"{R1}/namespaces//pods",
        f"{R1}/namespaces/shop/pods/web-0/log",
        f"{R1}/nodes/n1/more",
        f"/apis/{CUSTOM}/v1",
        f"/apis/{EXTERNAL}/v1beta2",
        f"/apis/{EXTERNAL}/v1beta2/namespaces/shop/queue",
        f"{C2}/nodes",
        f"{C2}/nodes/n1",
        f"{C2}/namespaces/shop/pods/rps",
        f"{C2}/namespaces//pods/*/rps",
        f"{C2}/namespaces/shop/pods/*/",
        f"{C2}/namespaces/shop/pods/*/rps//",
        f"{C2}/namespaces/shop/pods/*/rps/more",
        f"{C2}/namespaces/shop",
        f"{E1}/queue",
        f"{E1}/namespaces/shop",
        f"{E1}/namespaces/shop/queue/more",
        f"{E1}/namespaces/shop/",
        f"{E1}//shop/queue",
        f"/apis%2F{CUSTOM}",
        "*",
    ],
)
def test_other_paths_have_no_route(path: str) -> None:
    assert route(path) is None


@pytest.mark.parametrize("last", ["rps", "pods", "metrics", "metrics/", "*"])
def test_a_path_without_a_kind_is_an_error_that_shows_the_full_form(last: str) -> None:
    with pytest.raises(PathError, match="namespaces/NAMESPACE/KIND/NAME/METRIC"):
        route(f"{C2}/namespaces/shop/{last}")


@pytest.mark.parametrize("path", ["/%", "/apis/%2", "/%zz", "/%+1", "/%FF", "/\xff"])
def test_an_invalid_path_is_an_error(path: str) -> None:
    with pytest.raises(PathError):
        route(path)


@pytest.mark.parametrize(
    ("path", "group"),
    [
        (f"{C2}/namespaces/shop/pods/*/rps", CUSTOM),
        (E1, EXTERNAL),
        (f"/apis/{CUSTOM}", CUSTOM),
        (f"{R1}/pods", RESOURCE),
        ("/apis/apps/v1", "other"),
        ("/apis", "other"),
        ("/", "other"),
        (f"/other/{CUSTOM}", "other"),
        ("", "other"),
    ],
)
def test_the_group_of_a_path_is_one_of_ours_or_other(path: str, group: str) -> None:
    assert group_of(path) == group


SEGMENTS = st.sampled_from(
    [
        *("apis", CUSTOM, EXTERNAL, RESOURCE, "v1beta1", "v1beta2", "namespaces", "metrics", "pods", "nodes"),
        *("%2F", "%", "", ".", "..", "*", "\xe9"),
    ]
)
PATHS = st.one_of(
    st.text(st.characters(max_codepoint=255)), st.lists(SEGMENTS, max_size=9).map(lambda parts: "/" + "/".join(parts))
)


@given(PATHS)
@example("")
def test_no_path_breaks_the_routing_and_none_gains_a_segment(path: str) -> None:
    try:
        found = route(path)
    except PathError:
        return
    group_of(path)
    if isinstance(found, CustomValues):
        assert path.rstrip("/").count("/") in {6, 7, 8}
    if isinstance(found, ExternalValues):
        assert path.rstrip("/").count("/") == 6
    if isinstance(found, UsageValues):
        assert path.rstrip("/").count("/") in {4, 5, 6, 7}
