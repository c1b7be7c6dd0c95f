from __future__ import annotations

from dataclasses import dataclass, field
from io import BytesIO

import pytest

from adapter.foundation.web.http import Request, Response
from adapter.foundation.web.routes import Route
from adapter.foundation.web.wsgi import request_of, wsgi_application
from adapter.metrics.apis.routing import VERSIONS, is_frequent
from tests.adapter.foundation.web.wsgi import call, environ

HEADERS = (("X-Remote-Group", "a,b"), ("X-Remote-Group", "c"))
CHAIN = (b"leaf", b"root")
FREQUENT = tuple(f"/apis/{group}/" for group in VERSIONS)


@dataclass
class Echo:
    """A handler that records its requests and answers with one response."""

    response: Response = field(default_factory=lambda: Response(429, b"{}", "application/x", (("ETag", '"1"'),)))
    requests: list[Request] = field(default_factory=list)

    def __call__(self, request: Request) -> Response:
        self.requests.append(request)
        return self.response


@pytest.mark.parametrize(
    "target", ["/", "/apis", "/apis/x/y", "//", "//x", "/a//b", "/a/", "/%2F%2f?a=%20b", *FREQUENT]
)
@pytest.mark.filterwarnings("ignore:Unknown REQUEST_METHOD")
def test_every_method_and_path_is_answered_by_the_handler(target: str) -> None:
    path, _, query = target.partition("?")
    for method in ("GET", "POST", "OPTIONS", "DELETE", "PATCH", "TRACE", "WEIRD"):
        echo = Echo()
        status, headers, body = call(wsgi_application(echo, is_frequent=is_frequent), environ(method, target))
        assert echo.requests == [Request(method, path, query)]
        assert (status[:3], body) == ("429", b"{}")
        assert (headers["Content-Type"], headers["Content-Length"], headers["ETag"]) == ("application/x", "2", '"1"')


@pytest.mark.parametrize(
    ("target", "more"),
    [
        ("http://host", {"PATH_INFO": ""}),
        ("/a%0Ab", {"PATH_INFO": "/a\nb"}),
        ("/a%FF", {"PATH_INFO": "/a\xff"}),
        ("/a", {"HTTP_CONNECTION": "Upgrade", "HTTP_UPGRADE": "websocket"}),
        ("/a", {"HTTP_HOST": "not a host/"}),
    ],
)
def test_requests_that_flask_would_answer_in_html_are_answered_by_the_handler(
    target: str, more: dict[str, str]
) -> None:
    echo = Echo()
    assert call(wsgi_application(echo, is_frequent=is_frequent), environ("GET", target, **more))[0][:3] == "429"
    assert len(echo.requests) == 1


@pytest.mark.parametrize("target", ["/apis", f"{FREQUENT[0]}v1beta1"])
def test_the_answer_to_head_has_no_body(target: str) -> None:
    _, _, body = call(wsgi_application(Echo(), is_frequent=is_frequent), environ("HEAD", target))
    assert body == b""


@pytest.mark.parametrize("target", ["/apis", f"{FREQUENT[1]}v1beta1"])
def test_header_lines_and_certificate_chain_reach_the_handler_as_received(target: str) -> None:
    echo = Echo()
    call(
        wsgi_application(echo, is_frequent=is_frequent),
        environ("GET", target, **{"tidewatch.headers": HEADERS, "tidewatch.peer_chain": CHAIN}),
    )
    assert (echo.requests[0].headers, echo.requests[0].peer_chain) == (HEADERS, CHAIN)


def test_joined_headers_of_wsgi_are_never_used() -> None:
    request = request_of(environ("GET", "/apis", HTTP_X_REMOTE_USER="alice", SSL_CLIENT_CERT="x"))
    assert (request.headers, request.peer_chain) == ((), ())


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        ("/a%2Fb?c=%2F", "/a%2Fb", "c=%2F"),
        ("/a??b", "/a", "?b"),
        ("http://host:1/a/b?c", "/a/b", "c"),
        ("https://host", "/", ""),
        ("*", "*", ""),
    ],
)
def test_the_target_is_split_and_not_decoded(target: str, path: str, query: str) -> None:
    request = request_of(environ("GET", target))
    assert (request.path, request.query) == (path, query)


def test_frequent_paths_have_the_same_answer_with_and_without_flask() -> None:
    target = f"{FREQUENT[0]}v1beta1/namespaces/shop/pods/*/rps"
    echo = Echo(Response(200, b'{"items":[]}'))
    past = call(wsgi_application(echo, is_frequent=is_frequent), environ("GET", target))
    through = call(wsgi_application(echo), environ("GET", target))
    assert past == through


@pytest.mark.parametrize("target", ["/scores", "/scores?a=b"])
@pytest.mark.parametrize(
    ("method", "body", "status"),
    [
        ("POST", b"{}", "200"),
        ("POST", b"{} ", "413"),
        ("GET", b"", "405"),
        ("HEAD", b"", "405"),
        ("PUT", b"", "405"),
        ("OPTIONS", b"", "405"),
    ],
)
def test_a_frequent_route_has_the_same_answer_with_and_without_flask(
    target: str, method: str, body: bytes, status: str
) -> None:
    def answer(*, is_frequent: bool) -> tuple[list[Request], tuple[str, dict[str, str], bytes]]:
        echo = Echo(Response(200, b"[]", headers=(("Tidewatch-Basis", "metrics"),)))
        route = Route("/scores", echo, ("POST",), largest_body_bytes=2, is_frequent=is_frequent)
        sent = environ(method, target, **{"wsgi.input": BytesIO(body), "CONTENT_LENGTH": str(len(body))})
        return echo.requests, call(wsgi_application(Echo(), routes=[route]), sent)

    past, through = answer(is_frequent=True), answer(is_frequent=False)
    assert past == through
    assert past[1][0][:3] == status


@pytest.mark.parametrize("target", ["/scores", "/scores?host=a", "/scores?"])
def test_a_frequent_route_bypasses_flask(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    application = wsgi_application(Echo(), routes=[Route("/scores", Echo(), is_frequent=True)])
    monkeypatch.delattr("flask.Flask.wsgi_app")
    assert call(application, environ("GET", target))[0][:3] == "429"


def test_a_304_has_no_body() -> None:
    echo = Echo(Response(304, b"", headers=(("ETag", '"1"'),)))
    status, headers, body = call(wsgi_application(echo, is_frequent=is_frequent), environ("GET", "/apis"))
    assert (status, headers["ETag"], body) == ("304 Not Modified", '"1"', b"")
