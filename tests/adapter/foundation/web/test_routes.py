"""Requests are routed through Flask, but every answer is a handler's or the program's own refusal."""

from __future__ import annotations

import io
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest

from adapter.foundation.web.body import read_body
from adapter.foundation.web.http import RefusedRequestError, Request, Response
from adapter.foundation.web.routes import Route, plain_refusal, select
from adapter.foundation.web.wsgi import MOST_BODIES, wsgi_application
from tests.adapter.foundation.web.wsgi import call, environ
from tests.support.waiting import until


@dataclass
class RecordingRoutes:
    """Routes whose handlers record their requests; each answers with its own name."""

    requests: list[tuple[str, Request]] = field(default_factory=list)

    def handler(self, name: str, request: Request) -> Response:
        self.requests.append((name, request))
        return Response(200, name.encode())

    def route(self, path: str, *methods: str, name: str = "", largest_body_bytes: int = 0) -> Route:
        return Route(path, lambda request: self.handler(name or path, request), methods, largest_body_bytes)

    def send(self, routes: list[Route], method: str, target: str, **more: object) -> tuple[str, dict[str, str], bytes]:
        application = wsgi_application(
            lambda request: self.handler("fallback", request), routes=routes, refuse=refuse_as_teapot
        )
        # The decoded path must not matter: it no longer distinguishes `%2F` from a slash.
        return call(application, environ(method, target, PATH_INFO="/decoded", **more))


def refuse_as_teapot(_: Request, error: RefusedRequestError) -> Response:
    """Answer in a form that neither Flask nor WSGI would produce."""
    return Response(418, f"{error.status} {error.message} {error.allow}".encode())


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("/exact", "/exact"),
        ("/exact?query=1", "/exact"),
        ("http://host/exact", "/exact"),
        ("/exact/", "fallback"),
        ("//exact", "fallback"),
        ("/exac%74", "fallback"),
        ("/EXACT", "fallback"),
        ("exact", "fallback"),
        ("*", "fallback"),
        ("/slash", "fallback"),
        ("/slash/", "/slash/"),
        ("/items/a", "/items/<item>"),
        ("/items/a%2Fb", "/items/<item>"),
        ("/items/a/b", "fallback"),
        ("/items/", "fallback"),
        ("/items/known", "/items/known"),
        ("/below", "fallback"),
        ("/below/", "/below/*"),
        ("/below//a/../%2f/", "/below/*"),
        ("/below/more/a", "/below/more/*"),
        ("/below/exact", "/below/exact"),
        ("/", "fallback"),
    ],
)
def test_a_target_is_routed_by_its_raw_path(target: str, name: str) -> None:
    rules = ("/exact", "/slash/", "/items/<item>", "/items/known", "/below/*", "/below/more/*", "/below/exact")
    recorder = RecordingRoutes()
    routes = [recorder.route(rule) for rule in rules]
    assert recorder.send(routes, "GET", target)[2] == name.encode()
    assert [handler for handler, _ in recorder.requests] == [name]


@pytest.mark.parametrize(
    ("target", "values"),
    [
        ("/items/a%2Fb%20c", {"item": "a%2Fb%20c"}),
        ("/items/a\xff", {"item": "a%FF"}),
        ("/files/a/b%2F", {"rest": "a/b%2F"}),
    ],
)
def test_path_values_and_the_path_stay_encoded(target: str, values: dict[str, str]) -> None:
    recorder = RecordingRoutes()
    recorder.send([recorder.route("/items/<item>"), recorder.route("/files/<path:rest>")], "GET", target)
    ((_, request),) = recorder.requests
    assert (request.path, request.path_values) == (target, values)


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "OPTIONS", "TRACE", "DELETE", "WEIRD"])
@pytest.mark.filterwarnings("ignore:Unknown REQUEST_METHOD")
def test_a_route_without_methods_takes_every_method(method: str) -> None:
    recorder = RecordingRoutes()
    recorder.send([recorder.route("/a")], method, "/a")
    assert [(name, request.method) for name, request in recorder.requests] == [("/a", method)]


@pytest.mark.parametrize("method", ["HEAD", "PUT", "OPTIONS", "WEIRD"])
@pytest.mark.filterwarnings("ignore:Unknown REQUEST_METHOD")
def test_another_method_is_refused_by_the_program_with_all_allowed_methods(method: str) -> None:
    recorder = RecordingRoutes()
    routes = [recorder.route("/a", "GET", name="get"), recorder.route("/a", "POST", name="post")]
    status, _, body = recorder.send(routes, method, "/a")
    assert (status[:3], recorder.requests) == ("418", [])
    words = f"405 {method} is not allowed here: use GET or POST ('GET', 'POST')"
    assert body == (b"" if method == "HEAD" else words.encode())
    assert recorder.send(routes, "POST", "/a")[2] == b"post"


def test_an_upgrade_or_an_odd_host_does_not_change_the_route() -> None:
    recorder = RecordingRoutes()
    odd = {"HTTP_CONNECTION": "Upgrade", "HTTP_UPGRADE": "websocket", "HTTP_HOST": "not a host/"}
    assert recorder.send([recorder.route("/a")], "GET", "/a", **odd)[2] == b"/a"


def test_an_exception_of_a_handler_is_left_to_the_server() -> None:
    def broken(_: Request) -> Response:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        wsgi_application(broken)(environ("GET", "/a"), lambda *_: lambda _: None)


def with_body(body: bytes, **more: object) -> dict[str, object]:
    return {"wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body)), **more}


CHUNKED = {"HTTP_TRANSFER_ENCODING": "chunked", "CONTENT_LENGTH": ""}


class Stalled(io.BytesIO):
    def read(self, _size: int | None = -1) -> bytes:
        raise TimeoutError


class Cut(io.BytesIO):
    def read(self, _size: int | None = -1) -> bytes:
        raise ConnectionResetError


class Waiting(io.BytesIO):
    """A body that arrives when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.arrived = threading.Event()
        self.count = 0

    def read(self, _size: int | None = -1) -> bytes:
        self.count += 1
        assert self.arrived.wait(20)
        return b"12345"


@pytest.mark.parametrize(
    "more",
    [
        with_body(b"12345"),
        with_body(b"12345", **CHUNKED),
        with_body(b"12345678", **CHUNKED),
        with_body(b"12345678"),
        with_body(b""),
        {},
    ],
)
def test_a_body_up_to_the_largest_size_reaches_the_handler(more: dict[str, object]) -> None:
    recorder = RecordingRoutes()
    sent = more["wsgi.input"].getvalue() if more else b""  # type: ignore[attr-defined] # it is a BytesIO
    assert recorder.send([recorder.route("/a", largest_body_bytes=8)], "POST", "/a", **more)[0][:3] == "200"
    assert recorder.requests[0][1].body == sent


@pytest.mark.parametrize(
    ("more", "status"),
    [
        (with_body(b"123456789"), 413),
        (with_body(b"123456789", **CHUNKED), 413),
        ({"wsgi.input": Stalled(), "CONTENT_LENGTH": "9"}, 413),
        ({"wsgi.input": Stalled(), "CONTENT_LENGTH": "5"}, 408),
        ({"wsgi.input": Stalled(), **CHUNKED}, 408),
        ({"wsgi.input": Cut(), "CONTENT_LENGTH": "5"}, 400),
        (with_body(b"1234", CONTENT_LENGTH="5"), 400),
    ],
)
def test_a_body_that_is_too_large_or_not_whole_never_reaches_the_handler(more: dict[str, object], status: int) -> None:
    recorder = RecordingRoutes()
    answered, _, body = recorder.send([recorder.route("/a", largest_body_bytes=8)], "POST", "/a", **more)
    assert (answered[:3], body.split()[0], recorder.requests) == ("418", str(status).encode(), [])


@pytest.mark.parametrize("length", ["-4", "\xb2", "4,4"])
def test_a_length_that_is_not_a_number_is_refused(length: str) -> None:
    with pytest.raises(RefusedRequestError, match="Content-Length") as refused:
        read_body({"CONTENT_LENGTH": length, "wsgi.input": io.BytesIO(b"1234")}, 8)
    assert refused.value.status == 400


def test_bodies_that_never_end_leave_threads_for_other_requests() -> None:
    recorder, waiting = RecordingRoutes(), Waiting()
    application = wsgi_application(
        lambda request: recorder.handler("fallback", request),
        routes=[recorder.route("/a", "GET", "POST", largest_body_bytes=8), recorder.route("/b", "GET")],
    )

    def send(method: str, path: str, **more: object) -> str:
        return call(application, environ(method, path, PATH_INFO=path, **more))[0][:3]

    with ThreadPoolExecutor(MOST_BODIES) as threads:
        slow = [
            threads.submit(send, "POST", "/a", **{"wsgi.input": waiting, "CONTENT_LENGTH": "5"})
            for _ in range(MOST_BODIES)
        ]
        until(lambda: waiting.count == MOST_BODIES)
        assert send("POST", "/a", **with_body(b"12345")) == "503"
        assert send("GET", "/b") == "200"
        waiting.arrived.set()
        assert {each.result(20) for each in slow} == {"200"}
    assert send("POST", "/a", **with_body(b"12345")) == "200"


@pytest.mark.parametrize("path", ["/a", "/unrouted"])
def test_a_body_is_not_read_where_none_is_accepted(path: str) -> None:
    recorder = RecordingRoutes()
    more = {"wsgi.input": Stalled(), "CONTENT_LENGTH": "5"}
    assert recorder.send([recorder.route("/a")], "GET", path, **more)[0][:3] == "200"
    assert recorder.requests[0][1].body == b""


def test_a_plain_refusal_names_the_allowed_methods() -> None:
    with pytest.raises(RefusedRequestError) as refused:
        select([Route("/a", lambda _: Response(200, b""), ("GET", "HEAD"))], "PUT")
    response = plain_refusal(Request("PUT", "/a"), refused.value)
    assert (response.status, response.headers) == (405, (("Allow", "GET, HEAD"),))
    assert response.body == b"PUT is not allowed here: use GET or HEAD\n"
