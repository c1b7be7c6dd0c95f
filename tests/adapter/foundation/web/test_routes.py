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
class Noting:
    """Routes whose handlers record their requests; each answers with its own name."""

    asked: list[tuple[str, Request]] = field(default_factory=list)

    def handler(self, name: str, request: Request) -> Response:
        self.asked.append((name, request))
        return Response(200, name.encode())

    def route(self, path: str, *methods: str, name: str = "", largest_body_bytes: int = 0) -> Route:
        return Route(path, lambda request: self.handler(name or path, request), methods, largest_body_bytes)

    def ask(self, routes: list[Route], method: str, target: str, **more: object) -> tuple[str, dict[str, str], bytes]:
        application = wsgi_application(
            lambda request: self.handler("fallback", request), routes=routes, refuse=refuse_as_teapot
        )
        # The decoded path must not matter: it no longer tells `%2F` from a slash.
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
    noting = Noting()
    routes = [noting.route(rule) for rule in rules]
    assert noting.ask(routes, "GET", target)[2] == name.encode()
    assert [asked for asked, _ in noting.asked] == [name]


@pytest.mark.parametrize(
    ("target", "values"),
    [
        ("/items/a%2Fb%20c", {"item": "a%2Fb%20c"}),
        ("/items/a\xff", {"item": "a%FF"}),
        ("/files/a/b%2F", {"rest": "a/b%2F"}),
    ],
)
def test_path_values_stay_encoded_and_so_does_the_path(target: str, values: dict[str, str]) -> None:
    noting = Noting()
    noting.ask([noting.route("/items/<item>"), noting.route("/files/<path:rest>")], "GET", target)
    ((_, request),) = noting.asked
    assert (request.path, request.path_values) == (target, values)


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "OPTIONS", "TRACE", "DELETE", "WEIRD"])
@pytest.mark.filterwarnings("ignore:Unknown REQUEST_METHOD")
def test_a_route_without_methods_takes_every_method(method: str) -> None:
    noting = Noting()
    noting.ask([noting.route("/a")], method, "/a")
    assert [(name, request.method) for name, request in noting.asked] == [("/a", method)]


@pytest.mark.parametrize("method", ["HEAD", "PUT", "OPTIONS", "WEIRD"])
@pytest.mark.filterwarnings("ignore:Unknown REQUEST_METHOD")
def test_another_method_is_refused_in_the_programs_shape_with_all_that_are_allowed(method: str) -> None:
    noting = Noting()
    routes = [noting.route("/a", "GET", name="get"), noting.route("/a", "POST", name="post")]
    status, _, body = noting.ask(routes, method, "/a")
    assert (status[:3], noting.asked) == ("418", [])
    words = f"405 {method} is not allowed here: use GET or POST ('GET', 'POST')"
    assert body == (b"" if method == "HEAD" else words.encode())
    assert noting.ask(routes, "POST", "/a")[2] == b"post"


def test_an_upgrade_or_an_odd_host_does_not_change_the_route() -> None:
    noting = Noting()
    odd = {"HTTP_CONNECTION": "Upgrade", "HTTP_UPGRADE": "websocket", "HTTP_HOST": "not a host/"}
    assert noting.ask([noting.route("/a")], "GET", "/a", **odd)[2] == b"/a"


def test_what_a_handler_raises_is_left_to_the_server() -> None:
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
    noting = Noting()
    sent = more["wsgi.input"].getvalue() if more else b""  # type: ignore[attr-defined] # it is a BytesIO
    assert noting.ask([noting.route("/a", largest_body_bytes=8)], "POST", "/a", **more)[0][:3] == "200"
    assert noting.asked[0][1].body == sent


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
    noting = Noting()
    answered, _, body = noting.ask([noting.route("/a", largest_body_bytes=8)], "POST", "/a", **more)
    assert (answered[:3], body.split()[0], noting.asked) == ("418", str(status).encode(), [])


@pytest.mark.parametrize("length", ["-4", "\xb2", "4,4"])
def test_a_length_that_is_no_number_is_refused(length: str) -> None:
    with pytest.raises(RefusedRequestError, match="Content-Length") as refused:
        read_body({"CONTENT_LENGTH": length, "wsgi.input": io.BytesIO(b"1234")}, 8)
    assert refused.value.status == 400


def test_bodies_that_never_end_leave_threads_for_other_requests() -> None:
    noting, waiting = Noting(), Waiting()
    application = wsgi_application(
        lambda request: noting.handler("fallback", request),
        routes=[noting.route("/a", "GET", "POST", largest_body_bytes=8), noting.route("/b", "GET")],
    )

    def ask(method: str, path: str, **more: object) -> str:
        return call(application, environ(method, path, PATH_INFO=path, **more))[0][:3]

    with ThreadPoolExecutor(MOST_BODIES) as threads:
        slow = [
            threads.submit(ask, "POST", "/a", **{"wsgi.input": waiting, "CONTENT_LENGTH": "5"})
            for _ in range(MOST_BODIES)
        ]
        until(lambda: waiting.count == MOST_BODIES)
        assert ask("POST", "/a", **with_body(b"12345")) == "503"
        assert ask("GET", "/b") == "200"
        waiting.arrived.set()
        assert {each.result(20) for each in slow} == {"200"}
    assert ask("POST", "/a", **with_body(b"12345")) == "200"


@pytest.mark.parametrize("path", ["/a", "/unrouted"])
def test_a_body_is_not_read_where_none_is_accepted(path: str) -> None:
    noting = Noting()
    more = {"wsgi.input": Stalled(), "CONTENT_LENGTH": "5"}
    assert noting.ask([noting.route("/a")], "GET", path, **more)[0][:3] == "200"
    assert noting.asked[0][1].body == b""


def test_a_plain_refusal_names_the_methods_that_are_allowed() -> None:
    with pytest.raises(RefusedRequestError) as refused:
        select([Route("/a", lambda _: Response(200, b""), ("GET", "HEAD"))], "PUT")
    response = plain_refusal(Request("PUT", "/a"), refused.value)
    assert (response.status, response.headers) == (405, (("Allow", "GET, HEAD"),))
    assert response.body == b"PUT is not allowed here: use GET or HEAD\n"
