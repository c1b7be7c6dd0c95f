"""The attributes of access reviews, path by path, as kube-apiserver derives them from the same path."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.metrics.apis.routing import CustomValues, ExternalValues, PathError, UsageValues, route
from adapter.metrics.identity import attributes
from adapter.metrics.identity.attributes import Attributes, KnownAttributes, attributes_of
from adapter.metrics.identity.callers import BadPathError

CUSTOM = "custom.metrics.k8s.io"
EXTERNAL = "external.metrics.k8s.io"
RESOURCE = "metrics.k8s.io"
C1, C2, E1, R1 = (
    f"/apis/{CUSTOM}/v1beta1",
    f"/apis/{CUSTOM}/v1beta2",
    f"/apis/{EXTERNAL}/v1beta1",
    f"/apis/{RESOURCE}/v1beta1",
)


def custom(verb: str, resource: str, subresource: str = "", name: str = "", namespace: str = "") -> Attributes:
    return Attributes(verb, CUSTOM, "v1beta2", resource, subresource, name, namespace)


def external(verb: str, resource: str, subresource: str = "", name: str = "", namespace: str = "") -> Attributes:
    return Attributes(verb, EXTERNAL, "v1beta1", resource, subresource, name, namespace)


def resource(verb: str, plural: str, name: str = "", namespace: str = "") -> Attributes:
    return Attributes(verb, RESOURCE, "v1beta1", plural, "", name, namespace)


RESOURCES = [
    (f"{C2}/namespaces/shop/pods/%2A/requests", custom("get", "pods", "requests", "*", "shop")),
    (f"{C2}/namespaces/shop/pods/*/requests", custom("get", "pods", "requests", "*", "shop")),
    (f"{C2}/namespaces/shop/pods/web-0/requests", custom("get", "pods", "requests", "web-0", "shop")),
    (f"{C2}/namespaces/shop/pods/web-0/requests/", custom("get", "pods", "requests", "web-0", "shop")),
    (f"{C2}/namespaces/shop/pods/*/ns:http:rate5m", custom("get", "pods", "ns:http:rate5m", "*", "shop")),
    (
        f"{C2}/namespaces/shop/ingresses.networking.k8s.io/front/requests",
        custom("get", "ingresses.networking.k8s.io", "requests", "front", "shop"),
    ),
    (f"{C2}/namespaces/shop/metrics/requests", custom("get", "metrics", "", "requests", "shop")),
    (f"{C2}/nodes/n1/load", custom("get", "nodes", "load", "n1")),
    (f"{C2}/nodes/%2A/load", custom("get", "nodes", "load", "*")),
    (f"{C2}/namespaces/shop", custom("get", "namespaces", "", "shop", "shop")),
    (f"{C2}/namespaces/shop/status", custom("get", "namespaces", "status", "shop", "shop")),
    (f"{C2}/namespaces/shop/pods", custom("list", "pods", namespace="shop")),
    (f"{C2}/namespaces/a%20b/pods/x/m", custom("get", "pods", "m", "x", "a b")),
    (f"{C2}/namespaces/shop/pods/a%2Fb/m", custom("get", "pods", "m", "a/b", "shop")),
    (f"{C2}/watch/pods/x", custom("watch", "pods", "", "x")),
    (f"{C2}/watch/namespaces/shop/pods", custom("watch", "pods", namespace="shop")),
    (f"{C2}/proxy/pods/x/m", custom("proxy", "pods", "", "x")),
    (f"{E1}/namespaces/shop/queue_depth", external("list", "queue_depth", namespace="shop")),
    (f"{E1}/namespaces/shop/status", external("get", "namespaces", "status", "shop", "shop")),
    (f"{E1}/namespaces/shop/watch", external("list", "watch", namespace="shop")),
    (f"{E1}/queue_depth", external("list", "queue_depth")),
    (f"{R1}/nodes", resource("list", "nodes")),
    (f"{R1}/nodes/n1", resource("get", "nodes", "n1")),
    (f"{R1}/pods", resource("list", "pods")),
    (f"{R1}/namespaces/shop/pods", resource("list", "pods", namespace="shop")),
    (f"{R1}/namespaces/shop/pods/web-0", resource("get", "pods", "web-0", "shop")),
    ("/api/v1/namespaces/shop/pods/web-0/log", Attributes("get", "", "v1", "pods", "log", "web-0", "shop")),
]
PATHS = [
    ("/", "/"),
    ("", "/"),
    ("/metrics", "/metrics"),
    ("/%6detrics", "/metrics"),
    ("/metrics/", "/metrics/"),
    ("//metrics", "//metrics"),
    ("/metrics%2Fx", "/metrics/x"),
    ("/version", "/version"),
    ("/apis", "/apis"),
    ("/apis/", "/apis/"),
    (f"/apis/{CUSTOM}", f"/apis/{CUSTOM}"),
    (C1, C1),
    (f"{E1}/", f"{E1}/"),
    ("/api/v1", "/api/v1"),
    ("/openapi/v2", "/openapi/v2"),
    ("/debug/explain", "/debug/explain"),
    (f"/other{C2}/namespaces/shop/pods/x/m", f"/other{C2}/namespaces/shop/pods/x/m"),
]


@pytest.mark.parametrize(("path", "expected"), RESOURCES)
def test_a_resource_is_named_as_kube_apiserver_names_it(path: str, expected: Attributes) -> None:
    assert attributes_of("GET", path) == expected


@pytest.mark.parametrize(("path", "expected"), PATHS)
def test_other_paths_are_reviewed_as_paths(path: str, expected: str) -> None:
    assert attributes_of("GET", path) == Attributes("get", path=expected)


@pytest.mark.parametrize(
    ("method", "of_resource", "of_path"),
    [
        ("GET", "get", "get"),
        ("HEAD", "get", "head"),
        ("POST", "create", "post"),
        ("PUT", "update", "put"),
        ("PATCH", "patch", "patch"),
        ("DELETE", "delete", "delete"),
        ("OPTIONS", "", "options"),
    ],
)
def test_the_verb_follows_the_method(method: str, of_resource: str, of_path: str) -> None:
    assert attributes_of(method, f"{C2}/nodes/n1/load").verb == of_resource
    assert attributes_of(method, "/metrics").verb == of_path


def test_a_delete_without_a_name_is_deletecollection() -> None:
    assert attributes_of("DELETE", f"{R1}/pods").verb == "deletecollection"


@pytest.mark.parametrize(
    ("query", "verb"),
    [
        ("", "list"),
        ("watch=true", "watch"),
        ("watch=1", "watch"),
        ("watch", "watch"),
        ("watch=", "watch"),
        ("%77atch=true", "watch"),
        ("labelSelector=a%3Db&watch=yes", "watch"),
        ("watch=false", "list"),
        ("watch=False", "list"),
        ("watch=0&watch=1", "list"),
        ("labelSelector=watch%3Dtrue", "list"),
        ("labelSelector=a%26watch%3Dtrue", "list"),
        ("watched=true", "list"),
        ("fieldSelector=metadata.name%3Dx", "list"),
    ],
)
def test_a_list_with_a_watch_parameter_is_a_watch(query: str, verb: str) -> None:
    path = f"{E1}/namespaces/shop/queue_depth"
    assert attributes_of("GET", path, query) == external(verb, "queue_depth", namespace="shop")
    known = KnownAttributes()
    assert {known.of("GET", path, query).verb for _ in range(3)} == {verb}
    assert attributes_of("GET", f"{C2}/nodes/n1/load", query).verb == "get"


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("fieldSelector=metadata.name%3Dweb-0", "web-0"),
        ("fieldSelector=metadata.name=web-0", "web-0"),
        ("fieldSelector=metadata.name%3D%3Dweb-0", "web-0"),
        ("limit=500&%66ieldSelector=metadata.namespace%3Dshop%2Cmetadata.name%3Dweb-0", "web-0"),
        ("fieldSelector=metadata.name!%3Dweb-0", ""),
        ("fieldSelector=metadata.namespace%3Dshop", ""),
        ("fieldSelector=metadata.name", ""),
        ("fieldSelector=metadata.name%3D", ""),
        ("fieldSelector=", ""),
        ("fieldSelector=metadata.name%3Dweb-0&fieldSelector=metadata.name%3Dweb-1", ""),
        ("labelSelector=fieldSelector%3Dmetadata.name%3Dweb-0", ""),
        ("labelSelector=a%26fieldSelector=metadata.name%3Dweb-0", ""),
    ],
)
def test_a_field_selector_sets_the_name_of_the_listed_pod(query: str, name: str) -> None:
    path = f"{R1}/namespaces/shop/pods"
    assert attributes_of("GET", path, query) == resource("list", "pods", name, "shop")
    known = KnownAttributes()
    assert {known.of("GET", path, query).name for _ in range(3)} == {name}
    assert known.of("GET", path, "").name == ""
    # In the other APIs nothing is selected by fields.
    assert attributes_of("GET", f"{E1}/namespaces/shop/queue", query).name == ""
    assert attributes_of("GET", f"{path}/web-9", query).name == "web-9"


def test_the_memory_for_requested_paths_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths may be 8,000 characters long: 65,536 of them would take all the memory of a pod."""
    monkeypatch.setattr(attributes, "MOST_CHARACTERS", 10_000)
    monkeypatch.setattr(attributes, "MOST_PATHS", 100)
    known = KnownAttributes()
    for number in range(1000):
        path = f"{C2}/namespaces/{number}/pods/%2A/{'m' * 1000}"
        assert known.of("GET", path, "") == attributes_of("GET", path)
        assert sum(len(path) for _, path in known._known) <= 10_000
    for number in range(1000):
        known.of("GET", f"/{number}", "")
        assert len(known._known) <= 100


@pytest.mark.parametrize("path", ["/%", "/%zz", f"{C2}/namespaces/%ff/pods/x/m", f"{E1}/watch", f"{C2}/proxy"])
def test_an_invalid_path_is_an_error(path: str) -> None:
    with pytest.raises(BadPathError):
        attributes_of("GET", path)
    with pytest.raises(BadPathError):
        KnownAttributes().of("GET", path, "")


@pytest.mark.parametrize(
    ("attributes", "sentence"),
    [
        (
            custom("get", "pods", "M", "*", "ns"),
            (
                'pods.custom.metrics.k8s.io "*" is forbidden: '
                'User "u" cannot get resource "pods/M" in API group "custom.metrics.k8s.io" in the namespace "ns"'
            ),
        ),
        (
            custom("get", "nodes", "load", "n1"),
            (
                'nodes.custom.metrics.k8s.io "n1" is forbidden: '
                'User "u" cannot get resource "nodes/load" in API group "custom.metrics.k8s.io" at the cluster scope'
            ),
        ),
        (
            external("list", "queue", namespace="shop"),
            (
                "queue.external.metrics.k8s.io is forbidden: "
                'User "u" cannot list resource "queue" in API group "external.metrics.k8s.io" in the namespace "shop"'
            ),
        ),
        (
            Attributes("list", "", "v1", "pods", namespace="ns"),
            'pods is forbidden: User "u" cannot list resource "pods" in API group "" in the namespace "ns"',
        ),
        (Attributes("get", path="/metrics"), 'forbidden: User "u" cannot get path "/metrics"'),
    ],
)
def test_a_refusal_has_the_wording_of_kubernetes(attributes: Attributes, sentence: str) -> None:
    assert attributes.refusal("u") == sentence


def test_quotes_in_names_are_escaped() -> None:
    assert Attributes("get", path='/a"b').refusal("x\\y") == 'forbidden: User "x\\\\y" cannot get path "/a\\"b"'


SEGMENT = st.sampled_from(
    [
        "",
        "namespaces",
        "pods",
        "metrics",
        "nodes",
        "shop",
        "*",
        "%2A",
        "status",
        "watch",
        "proxy",
        "a%2Fb",
        "m",
        ".",
        "..",
    ]
)
ROOT = st.sampled_from([C1, C2, E1, R1, "/apis", f"/apis/{CUSTOM}", f"{C2}/", f"/{C2}"])


@given(ROOT, st.lists(SEGMENT, max_size=6))
def test_the_served_values_are_those_that_were_reviewed(root: str, rest: list[str]) -> None:
    """Values are returned only for the resource, object, metric and namespace that a review would name."""
    path = "/".join([root, *rest])
    try:
        routed = route(path)
    except PathError:
        return
    if isinstance(routed, CustomValues):
        found = attributes_of("GET", path)
        if routed.resource == "namespaces" and routed.namespace is None:
            named = ("metrics", "", routed.metric, routed.name)
        else:
            named = (routed.resource, routed.metric, routed.name, routed.namespace or "")
        assert found.path == ""
        assert (found.resource, found.subresource, found.name, found.namespace) == named or is_odd(routed)
    elif isinstance(routed, ExternalValues):
        found = attributes_of("GET", path)
        assert found.path == ""
        assert (found.resource, found.namespace) == (routed.metric, routed.namespace) or routed.metric == "status"
    elif isinstance(routed, UsageValues):
        verb = "list" if routed.name is None else "get"
        assert attributes_of("GET", path) == resource(verb, routed.resource, routed.name or "", routed.namespace or "")


def is_odd(routed: CustomValues) -> bool:
    """Return whether Kubernetes reads the path differently; there are no kinds with these names."""
    return routed.resource in {"watch", "proxy", "status"}
