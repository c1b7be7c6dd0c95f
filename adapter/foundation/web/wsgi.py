"""The WSGI application: Flask routes requests to handlers, and frequent requests bypass Flask.

The server must put three things into the environ that WSGI itself loses: `RAW_URI`, the request target as received;
`tidewatch.headers`, each header line by itself; `tidewatch.peer_chain`, the verified client certificate chain. Without
the last two, no caller can be identified. The server may also put there `tidewatch.body`, a body that it has received.
"""

from __future__ import annotations

import re
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import flask

from adapter.foundation.time.thread_limit import ThreadLimit
from adapter.foundation.web.body import RECEIVED, read_body
from adapter.foundation.web.http import RefusedRequestError, Request, Response
from adapter.foundation.web.routes import BELOW, Handle, Refuse, Route, plain_refusal, select

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

_REASONS = {status.value: f"{status.value} {status.phrase}" for status in HTTPStatus}
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
MOST_BODIES: Final = 8
"""Limit on the bodies that are received at once: clients that never finish one must leave threads for others."""
_RECEIVED = "tidewatch.received"
"""The key in Flask's environ under which the original environ of the server is kept."""
_SHORT_WAY = frozenset({"GET", "POST"})
"""Methods of requests that may bypass Flask. HEAD may not, since Flask removes the body from the answer."""


def wsgi_application(
    fallback: Handle,
    *,
    routes: Sequence[Route] = (),
    refuse: Refuse = plain_refusal,
    is_frequent: Callable[[str], bool] = lambda _: False,
    most_bodies: int = MOST_BODIES,
) -> WSGIApplication:
    """Return the WSGI application that answers requests by the routes, and those without a route by `fallback`.

    `refuse` answers requests with a method or body that their route does not accept. A GET goes straight to `fallback`
    if `is_frequent` returns true for its raw target, because Flask would cost it more than the answer does; requests
    for frequent routes also bypass Flask. `most_bodies` limits how many bodies request threads receive at once.
    """
    router = _Router(routes, fallback, refuse, most_bodies)
    shell = _flask_application(router)
    straight = router.frequent_routes()

    def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        method, target = environ["REQUEST_METHOD"], environ["RAW_URI"]
        if method == "GET" and is_frequent(target):
            return _send(fallback(request_of(environ)), start_response)
        if method in _SHORT_WAY and (found := straight.get(target.partition("?")[0])):
            return _send(router.answer_by(found, environ), start_response)
        return shell(_routable(environ), start_response)

    return application


def request_of(environ: WSGIEnvironment) -> Request:
    """Return the request as it came over the wire, without its body."""
    path, _, query = _target(environ).partition("?")
    return Request(
        method=environ["REQUEST_METHOD"],
        path=path,
        query=query,
        headers=environ.get("tidewatch.headers", ()),
        peer_chain=environ.get("tidewatch.peer_chain", ()),
    )


def _too_many_bodies(most: int) -> RefusedRequestError:
    return RefusedRequestError(503, f"{most} request bodies are being received already: try again in a second")


class _Router:
    """Answers each request by the routes of the path rule that Flask found."""

    def __init__(self, routes: Sequence[Route], fallback: Handle, refuse: Refuse, most_bodies: int) -> None:
        self.by_rule: dict[str, list[Route]] = {}
        self._by_prefix: dict[str, list[Route]] = {}
        self._fallback = fallback
        self._refuse = refuse
        self._bodies = ThreadLimit(most_bodies, lambda: _too_many_bodies(most_bodies))
        for route in routes:
            if route.path.endswith(BELOW):
                self._by_prefix.setdefault(route.path.removesuffix("*"), []).append(route)
            else:
                self.by_rule.setdefault(route.path, []).append(route)

    def answer(self, environ: WSGIEnvironment, rule: str | None, values: Mapping[str, str]) -> Response:
        """Return the answer to a request that matches this path rule; None means that it matches no rule."""
        request = request_of(environ)
        # Flask ignores how many slashes a path begins with, and that there may be none.
        is_usual = request.path.startswith("/") and not request.path.startswith("//")
        routes = self.by_rule[rule] if rule and is_usual else self._routes_below(request.path)
        if not routes:
            return self._fallback(request)
        return self._answer(routes, request, environ, values)

    def answer_by(self, routes: Sequence[Route], environ: WSGIEnvironment) -> Response:
        """Return the answer to a request whose path is known to match these routes and has no variables."""
        return self._answer(routes, request_of(environ), environ, {})

    def frequent_routes(self) -> Mapping[str, Sequence[Route]]:
        """Return the routes of each path that has a frequent route."""
        return {path: routes for path, routes in self.by_rule.items() if any(route.is_frequent for route in routes)}

    def _answer(
        self, routes: Sequence[Route], request: Request, environ: WSGIEnvironment, values: Mapping[str, str]
    ) -> Response:
        try:
            route = select(routes, request.method)
            refusal = route.admit(request) if route.admit else None
            if refusal is not None:
                return refusal
            body = self._body(environ, route.largest_body_bytes)
        except RefusedRequestError as e:
            return self._refuse(request, e)
        return route.handle(replace(request, body=body, path_values=values))

    def _body(self, environ: WSGIEnvironment, largest_bytes: int) -> bytes | bytearray:
        if largest_bytes == 0:
            return b""
        if RECEIVED in environ:
            return read_body(environ, largest_bytes)
        with self._bodies.entered():
            return read_body(environ, largest_bytes)

    def _routes_below(self, path: str) -> Sequence[Route]:
        matching = [prefix for prefix in self._by_prefix if path.startswith(prefix)]
        return self._by_prefix[max(matching, key=len)] if matching else ()


def _flask_application(router: _Router) -> flask.Flask:
    """Return the Flask application, which finds the path rule and leaves every answer to the router."""
    app = flask.Flask(__name__, static_folder=None)
    # The server logs and answers whatever a handler raises; Flask would answer it in HTML.
    app.config["PROPAGATE_EXCEPTIONS"] = True
    app.url_map.merge_slashes = False
    for rule in router.by_rule:
        # Rules for any method: Flask's own would answer HEAD and OPTIONS by themselves.
        app.url_map.add(app.url_rule_class(rule, endpoint=rule))

    # Before the views, of which there are none: Flask would answer unknown methods and paths by itself, in HTML.
    @app.before_request
    def answer() -> flask.Response:
        found = flask.request.url_rule
        response = router.answer(
            flask.request.environ[_RECEIVED], found.endpoint if found else None, flask.request.view_args or {}
        )
        return flask.Response(
            response.body, _REASONS[response.status], _headers(response), content_type=response.content_type
        )

    return app


def _routable(environ: WSGIEnvironment) -> WSGIEnvironment:
    """Return the environ that Flask routes by: the raw path, and nothing by which Flask would refuse a request."""
    path = _NOT_ASCII.sub(lambda found: f"%{ord(found[0]):02X}", _target(environ).partition("?")[0])
    without_upgrade = {name: value for name, value in environ.items() if name != "HTTP_UPGRADE"}
    return without_upgrade | {"PATH_INFO": path, "HTTP_HOST": "localhost", _RECEIVED: environ}


def _target(environ: WSGIEnvironment) -> str:
    """Return the path and query of the request target, as received."""
    target: str = environ["RAW_URI"]
    return target if target.startswith("/") else _without_authority(target)


def _without_authority(target: str) -> str:
    """Return the path of an absolute request target (`http://host/path`), which servers must accept (RFC 9112)."""
    _, scheme, rest = target.partition("://")
    return f"/{rest.partition('/')[2]}" if scheme else target


def _send(response: Response, start_response: StartResponse) -> Iterable[bytes]:
    headers = [
        ("Content-Type", response.content_type),
        ("Content-Length", str(len(response.body))),
        *_headers(response),
    ]
    start_response(_REASONS[response.status], headers)
    return [response.body]


def _headers(response: Response) -> list[tuple[str, str]]:
    """Return the headers of a response that the server does not add by itself."""
    return [("Cache-Control", response.cache_control), *response.headers]
