"""The WSGI side: a Flask shell around the handler, and a short way past it for requests that come all the time.

The server must put three things into the environ that WSGI itself loses: `RAW_URI`, the request target as received;
`tidewatch.headers`, each header line by itself; `tidewatch.peer_chain`, the verified client certificate chain. Without
the last two nobody has an identity.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

import flask

from adapter.web.http import Request, Response

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    Handle = Callable[[Request], Response]

_REASONS = {status.value: f"{status.value} {status.phrase}" for status in HTTPStatus}


def wsgi_application(handle: Handle, is_frequent: Callable[[str], bool] = lambda _: False) -> WSGIApplication:
    """Return the WSGI application that answers every request by `handle`.

    A GET whose raw target `is_frequent` goes past Flask, which would cost it more than its answer does.
    """
    shell = flask_application(handle)

    def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] == "GET" and is_frequent(environ["RAW_URI"]):
            return _send(handle(request_of(environ)), start_response)
        return shell(environ, start_response)

    return application


def flask_application(handle: Handle) -> flask.Flask:
    """Return the Flask application; every request is the handler's to answer, none Flask's own."""
    app = flask.Flask(__name__, static_folder=None)

    # Before the routes, of which there are none: Flask would answer OPTIONS, upgrades and odd paths by itself, in HTML.
    @app.before_request
    def answer() -> flask.Response:
        response = handle(request_of(flask.request.environ))
        return flask.Response(
            response.body, _REASONS[response.status], _headers(response), content_type=response.content_type
        )

    return app


def request_of(environ: WSGIEnvironment) -> Request:
    """Return the request as it came over the wire."""
    target = environ["RAW_URI"]
    if not target.startswith("/"):
        target = _without_authority(target)
    path, _, query = target.partition("?")
    return Request(
        method=environ["REQUEST_METHOD"],
        path=path,
        query=query,
        headers=environ.get("tidewatch.headers", ()),
        peer_chain=environ.get("tidewatch.peer_chain", ()),
    )


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
    """Return the headers that the server does not add by itself."""
    return [("Cache-Control", response.cache_control), *response.headers]
