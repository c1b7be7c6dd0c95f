"""Requests for other things than values: access, health, discovery, own metrics; no request makes the handler fail."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.web.http import RefusedRequestError, Request
from adapter.metrics.readings.answers import ObjectsAnswer
from tests.adapter.metrics.apis.fakes import CHAIN, NOW, FakeReadings, Server, all_pods, answer
from tests.adapter.metrics.apis.handler_harness import C1, C2, CATALOGUE, E1, PODS_RPS, RPS, failure


class TestAccess:
    @pytest.mark.parametrize(
        "path",
        ["/", "/version", "/metrics", "/apis", C2, E1, PODS_RPS, f"{E1}/namespaces/shop/queue", "/nowhere", "/%"],
    )
    def test_without_identity_everything_but_health_is_401(self, server: Server, path: str) -> None:
        response = server.handler.handle(Request("GET", path, headers=(("X-Remote-User", "alice"),)))
        assert failure(response) == (401, "Unauthorized", "Unauthorized: no verified client certificate")

    @pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/livez/ping", "/readyz/", "/livez//a//"])
    def test_health_needs_no_identity(self, server: Server, path: str) -> None:
        response = server.routed("GET", f"{path}?verbose", chain=())
        assert (response.status, response.body) == (200, b"ok")
        assert response.content_type.startswith("text/plain")
        assert server.health_asked == [(path, "verbose")]

    def test_a_failed_health_check_is_500_with_its_text(self, server: Server) -> None:
        response = server.routed("GET", "/readyz?fail", chain=())
        assert (response.status, response.body) == (500, b"[-]sync failed")

    def test_an_unknown_health_check_is_404(self, server: Server) -> None:
        assert failure(server.routed("GET", "/livez/none", chain=()))[0] == 404

    @pytest.mark.parametrize("path", ["/livezz", "/health", "/%6civez", "//livez", "/apis/livez", "/Livez"])
    def test_paths_similar_to_health_checks_need_an_identity(self, server: Server, path: str) -> None:
        assert server.routed("GET", path, chain=()).status == 401
        assert server.health_asked == []

    @pytest.mark.parametrize(
        "path",
        [
            "/version",
            "/apis",
            "/apis/custom.metrics.k8s.io",
            C2,
            E1,
            PODS_RPS,
            f"{C2}/namespaces/shop/metrics/rps",
            f"{C2}/nodes/n1/load",
            f"{E1}/namespaces/shop/queue",
        ],
    )
    def test_other_methods_are_405(self, server: Server, path: str) -> None:
        for method in ("HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "WEIRD"):
            response = server.handler.handle(Request(method, path, peer_chain=CHAIN))
            assert failure(response) == (405, "MethodNotAllowed", f"{method} is not allowed here: use GET")
            assert dict(response.headers)["Allow"] == "GET", method

    @pytest.mark.parametrize("path", ["/livez", "/readyz/ping", "/healthz", "/", "/metrics"])
    @pytest.mark.filterwarnings("ignore:Unknown REQUEST_METHOD")
    def test_paths_outside_the_apis_allow_only_get_and_head(self, server: Server, path: str) -> None:
        for method in ("OPTIONS", "POST", "PUT", "PATCH", "DELETE", "WEIRD"):
            response = server.routed(method, path)
            assert failure(response) == (405, "MethodNotAllowed", f"{method} is not allowed here: use GET or HEAD")
            assert dict(response.headers)["Allow"] == "GET, HEAD", method
        assert server.routed("HEAD", path).status == 200

    @pytest.mark.parametrize("status", [(408, "Timeout"), (413, "RequestEntityTooLarge")])
    def test_a_refused_body_returns_a_status_and_is_counted(self, server: Server, status: tuple[int, str]) -> None:
        response = server.handler.refuse(Request("POST", "/livez"), RefusedRequestError(status[0], "no"))
        assert failure(response) == (*status, "no")
        labels = {"group": "other", "verb": "POST", "code": str(status[0])}
        assert server.sample("tidewatch_adapter_requests_total", **labels) == 1

    @pytest.mark.parametrize("path", ["/nowhere", "/openapi", "/openapi/v1", f"{E1}/queue", "/apis/apps/v1"])
    @pytest.mark.parametrize("method", ["GET", "POST"])
    def test_unknown_paths_are_404_for_every_method(self, server: Server, path: str, method: str) -> None:
        response = server.handler.handle(Request(method, path, peer_chain=CHAIN))
        assert failure(response) == (404, "NotFound", "the server could not find the requested resource")


class TestDocuments:
    def test_custom_and_external_metrics_are_listed(self, server: Server) -> None:
        assert b'"pods/rps"' in server.get(C1).body
        assert b'"queue"' in server.get(E1).body

    def test_the_group_list_and_single_groups_are_served(self, server: Server) -> None:
        assert json.loads(server.get("/apis").body)["kind"] == "APIGroupList"
        assert json.loads(server.get("/apis/external.metrics.k8s.io").body)["kind"] == "APIGroup"

    def test_aggregated_discovery_is_served_and_then_304(self, server: Server) -> None:
        accept = ("accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
        first = server.get("/apis", accept)
        assert json.loads(first.body)["kind"] == "APIGroupDiscoveryList"
        assert server.get("/apis", accept, ("If-None-Match", dict(first.headers)["ETag"])).status == 304

    def test_version_and_index_are_served(self, server: Server) -> None:
        assert json.loads(server.get("/version").body) == {"gitVersion": "1.2.3"}
        assert C2 in json.loads(server.get("/").body)["paths"]

    def test_own_metrics_are_served(self, server: Server) -> None:
        response = server.get("/metrics")
        assert response.content_type.startswith("text/plain; version=0.0.4")
        assert b"tidewatch_adapter_request_duration_seconds" in response.body


class TestTelemetry:
    def test_requests_are_counted_and_timed_by_group_verb_and_code(self, server: Server) -> None:
        server.readings.answers[all_pods(RPS)] = answer(("web-0", 1))
        for path in (PODS_RPS, PODS_RPS, f"{E1}/namespaces/shop/none", "/nowhere"):
            server.get(path)
        server.handler.handle(Request("WEIRD", C2, peer_chain=CHAIN))
        custom, external = "custom.metrics.k8s.io", "external.metrics.k8s.io"
        requests = "tidewatch_adapter_requests_total"
        assert server.sample(requests, group=custom, verb="GET", code="200") == 2
        assert server.sample(requests, group=external, verb="GET", code="404") == 1
        assert server.sample(requests, group="other", verb="GET", code="404") == 1
        assert server.sample(requests, group=custom, verb="OTHER", code="405") == 1
        assert server.sample("tidewatch_adapter_request_duration_seconds_sum", group=custom) == 3 * 0.25

    def test_the_age_of_answers_is_exposed_under_both_names(self, server: Server) -> None:
        server.readings.answers[all_pods(RPS)] = answer(("web-0", 1))
        server.get(PODS_RPS)
        age = server.sample("tidewatch_adapter_answer_age_seconds_sum")
        freshness = server.sample("metrics_apiserver_metric_freshness_seconds_sum", group="custom.metrics.k8s.io")
        assert age == freshness == pytest.approx(4.0)

    def test_an_answer_from_before_the_clock_was_set_back_has_no_age(self, server: Server) -> None:
        """A negative age would lower the sums, which Prometheus takes for a restart of a counter."""
        server.readings.answers[all_pods(RPS)] = ObjectsAnswer((("web-0", 1),), NOW + 3600.0)
        server.get(PODS_RPS)
        assert server.sample("tidewatch_adapter_answer_age_seconds_sum") == 0.0
        freshness = server.sample("metrics_apiserver_metric_freshness_seconds_sum", group="custom.metrics.k8s.io")
        assert freshness == 0.0


RAW = st.text(st.characters(max_codepoint=255))
HEADERS = st.lists(
    st.tuples(st.sampled_from(["Accept", "If-None-Match", "User-Agent", "Accept-Encoding"]), RAW | st.just("*/*")),
    max_size=3,
)


@given(
    st.sampled_from(["GET", "POST", "HEAD", ""]),
    st.sampled_from(["", "/apis", PODS_RPS, C1 + "/", E1 + "/namespaces/", "/livez"]),
    RAW,
    RAW,
    HEADERS,
    st.sampled_from([(), CHAIN]),
)
def test_no_request_makes_the_handler_raise_or_fail(
    method: str, prefix: str, path: str, query: str, headers: list[tuple[str, str]], chain: tuple[bytes, ...]
) -> None:
    server = Server(FakeReadings(CATALOGUE, {all_pods(RPS): answer()}))
    request = Request(method, prefix + path, query, tuple(headers), chain)
    assert server.handler.handle(request).status in {200, 304, 400, 401, 404, 405, 406}
