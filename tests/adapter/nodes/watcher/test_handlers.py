from __future__ import annotations

import gzip
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from adapter.foundation.time.clock import Clock
from adapter.foundation.web.http import JSON, TEXT, Request, Response
from adapter.foundation.web.routes import select
from adapter.foundation.web.wsgi import wsgi_application
from adapter.nodes.model.loads import LoadResource, LoadSnapshot, NodeVerdict, UnmappedSeries
from adapter.nodes.watcher.document import NodeTopology
from adapter.nodes.watcher.handlers import watcher_routes
from adapter.nodes.watcher.prepared import PreparedWatcher, prepare_watcher
from tests.adapter.foundation.web.wsgi import call, environ
from tests.adapter.nodes.watcher.snapshots import NOTHING, WINDOW_END, Measured, snapshot_of
from tests.support.trimaran_client import fetched

if TYPE_CHECKING:
    from collections.abc import Mapping

CPU = LoadResource.CPU
STALE = Measured(float("nan"), taken_from=(-1, -1, -1), verdict=NodeVerdict.STALE)
SNAPSHOT = snapshot_of({"a": {CPU: Measured(0.5, 0.1)}, "b": {CPU: Measured(0.25)}, "stale": {CPU: STALE}})


class Service:
    """The routes over one snapshot, `age` seconds after its window ended."""

    def __init__(self, snapshot: LoadSnapshot | None = SNAPSHOT, age: float = 20.0) -> None:
        self.prepared: PreparedWatcher | None = None if snapshot is None else prepare_watcher(snapshot, NodeTopology())
        self.routes = watcher_routes(lambda: self.prepared, Clock(wall=lambda: WINDOW_END + age))

    def get(self, target: str, headers: Mapping[str, str] | None = None, method: str = "GET") -> Response:
        path, _, query = target.partition("?")
        exact = [route for route in self.routes if route.path == path]
        routes = exact or [route for route in self.routes if route.path == "/watcher/<host>"]
        values = {} if exact else {"host": path.removeprefix("/watcher/")}
        request = Request(method, path, query, tuple((headers or {}).items()), path_values=values)
        return select(routes, method).handle(request)


def error_of(response: Response) -> str:
    found: dict[str, Any] = json.loads(response.body)
    assert (found["apiVersion"], found["kind"]) == ("tidewatch.io/v1alpha1", "Error")
    message: str = found["message"]
    return message


@pytest.mark.parametrize(
    ("target", "nodes", "duration"),
    [
        ("/watcher", {"a", "b"}, "15m"),
        ("/watcher?window=10m", {"a", "b"}, "10m"),
        ("/watcher?duration=5m", {"a", "b"}, "15m"),
        ("/watcher?host=", {"a", "b"}, "15m"),
        ("/watcher?host=a", {"a"}, "15m"),
        ("/watcher?host=%61&host=b&window=5m", {"a"}, "5m"),
        ("/watcher/b", {"b"}, "15m"),
        ("/watcher/b?window=5m", {"b"}, "5m"),
    ],
)
def test_trimaran_reads_the_answer_to_every_form_of_request(target: str, nodes: set[str], duration: str) -> None:
    response = Service().get(target)
    found = fetched(response.status, response.body)
    assert (set(found.nodes), found.duration, response.content_type) == (nodes, duration, JSON)


@pytest.mark.parametrize("host", ["nope", "stale", "a.example"])
def test_an_unknown_host_is_404_with_the_error_text_of_load_watcher(host: str) -> None:
    response = Service().get(f"/watcher?host={host}")
    assert (response.status, response.content_type) == (404, TEXT)
    assert response.body == f"No metrics found for host {host}".encode()


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/watcher/nope", "node 'nope' is not known"),
        ("/watcher/", "node '' is not known"),
        ("/watcher/%FF", "is not known"),
        ("/watcher/stale", "node 'stale' has no usable CPU metrics (samples: stale)"),
        ("/watcher/stale?window=1d", "no usable CPU metrics over 1d, of which 80% must be known (samples: stale)"),
    ],
)
def test_an_unknown_host_in_the_path_is_404_with_the_reason(path: str, reason: str) -> None:
    response = Service().get(path)
    assert response.status == 404
    assert reason in error_of(response)


@pytest.mark.parametrize("window", ["", "15", "900s", "2h", "15M"])
@pytest.mark.parametrize("path", ["/watcher", "/watcher/a"])
def test_an_unknown_window_is_refused(path: str, window: str) -> None:
    response = Service().get(f"{path}?window={window}")
    assert response.status == 400
    assert "use one of 15m, 10m, 5m, 1h, 1d" in error_of(response)


def test_a_long_window_that_no_node_has_is_not_reported_as_an_outage() -> None:
    response = Service(NONE_SERVED).get("/watcher?window=1h")
    assert response.status == 503
    assert "no node has usable CPU metrics over 1h, of which 80% must be known" in error_of(response)


NONE_SERVED = snapshot_of({"a": {CPU: STALE}, "b": {CPU: NOTHING}}, query_failures={CPU: "connection refused"})


REFUSED = UnmappedSeries("10.0.0.1:9100", {"job": "mine"}, (CPU,), "Find out.", "Node a is measured by another job.")
UNMAPPED = UnmappedSeries("10.0.0.2:9100", {}, (CPU,), "Add the label.")
MANY_FAILED = replace(NONE_SERVED, query_failures={CPU: "no TLS", LoadResource.MEMORY: "no TLS", LoadResource.GPU: "x"})


@pytest.mark.parametrize(
    ("service", "reason"),
    [
        pytest.param(Service(None), "no data yet", id="first"),
        pytest.param(Service(NONE_SERVED), "failed queries: cpu: connection refused", id="none-served"),
        pytest.param(Service(MANY_FAILED), "failed queries: cpu, memory: no TLS; gpu: x", id="one-cause"),
        pytest.param(Service(snapshot_of({})), "nodes known: 0", id="no-nodes"),
        pytest.param(Service(snapshot_of({"a": {CPU: NOTHING}})), "scrape node_exporter", id="no-series"),
        pytest.param(Service(snapshot_of({"a": {CPU: STALE}})), "too old or too few: see tidewatch_node", id="stale"),
        pytest.param(
            Service(replace(snapshot_of({"a": {CPU: STALE}}), unmapped=(UNMAPPED, REFUSED, REFUSED))),
            "nodes known: 1, series without a node: 1, refused series: 2 (see /nodes/unmapped)",
            id="refused",
        ),
        pytest.param(Service(age=901), "the newest samples are 901 s old", id="too-old"),
    ],
)
@pytest.mark.parametrize("path", ["/watcher", "/watcher?host=a", "/watcher/a", "/watcher?window=5m", "/watcher/health"])
def test_an_empty_map_is_503_with_the_reason(service: Service, reason: str, path: str) -> None:
    response = service.get(path)
    assert response.status == 503
    assert reason in error_of(response)


def test_health_has_no_body() -> None:
    response = Service().get("/watcher/health")
    assert (response.status, response.body) == (200, b"")


def test_a_client_that_accepts_gzip_gets_the_prepared_bytes() -> None:
    service = Service()
    plain = service.get("/watcher")
    packed = service.get("/watcher", {"Accept-Encoding": "gzip"})
    assert gzip.decompress(packed.body) == plain.body
    assert dict(packed.headers)["Content-Encoding"] == "gzip"
    assert dict(packed.headers)["Vary"] == dict(plain.headers)["Vary"] == "Accept-Encoding"
    assert service.prepared is not None
    assert packed.body is service.prepared.windows[0].whole.gzipped


@pytest.mark.parametrize("target", ["/watcher", "/watcher?host=a", "/watcher/a", "/nodes/unmapped"])
def test_a_client_that_has_the_current_document_gets_304(target: str) -> None:
    first = Service().get(target)
    again = Service().get(target, {"If-None-Match": dict(first.headers)["ETag"], "Accept-Encoding": "gzip"})
    assert (first.status, again.status, again.body) == (200, 304, b"")


MANY_UNMAPPED = tuple(UnmappedSeries(f"10.0.0.1:{port}", {}, (CPU,), "Add the label.") for port in range(2000))


@pytest.mark.parametrize("path", ["/watcher", "/nodes/unmapped"])
def test_large_documents_are_never_converted_to_yaml(path: str) -> None:
    service = Service(snapshot_of({"a": {CPU: Measured(0.5)}}, unmapped=MANY_UNMAPPED))
    plain = service.get(path)
    for_a_person = {"Accept": "application/yaml", "User-Agent": "curl/8"}
    assert service.get(path, for_a_person).body == plain.body
    assert gzip.decompress(service.get(path, {"Accept-Encoding": "gzip"}).body) == plain.body


@pytest.mark.parametrize(
    ("method", "target", "status"),
    [
        ("GET", "/watcher", "200 OK"),
        ("HEAD", "/watcher?host=a", "200 OK"),
        ("GET", "/watcher/a", "200 OK"),
        ("GET", "/watcher/health", "200 OK"),
        ("POST", "/watcher", "405 Method Not Allowed"),
        ("GET", "/watcher/", "404 Not Found"),
        ("GET", "/watcher/a/b", "404 Not Found"),
    ],
)
def test_the_paths_are_found_by_the_application(method: str, target: str, status: str) -> None:
    application = wsgi_application(lambda _: Response(404, b"", TEXT), routes=Service().routes)
    assert call(application, environ(method, target))[0] == status


def test_unmapped_series_before_the_first_data_are_unknown() -> None:
    assert Service(None).get("/nodes/unmapped").status == 503


@pytest.mark.parametrize("target", ["/watcher", "/watcher/health", "/watcher/<host>", "/nodes/unmapped"])
def test_only_get_and_head_are_allowed(target: str) -> None:
    [route] = [route for route in Service().routes if route.path == target]
    assert route.methods == ("GET", "HEAD")
