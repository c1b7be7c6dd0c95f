"""Determines which clients may use which paths, by a bearer token or by the client certificate of the scheduler."""

from __future__ import annotations

import hmac
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import msgspec

from adapter.foundation.files.credential_files import followed_credentials, token_of
from adapter.foundation.service.server.connections.bodies import BodyPlan
from adapter.foundation.web.http import Request, Response
from adapter.nodes.model.answers import API_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from pathlib import Path

    from adapter.commands.nodes.client_certificate import ClientCertificate
    from adapter.foundation.service.server.connections.bodies import Head, PlanBody
    from adapter.foundation.web.routes import Admit, Route

QUERY_PATH: Final = "/api/v1/query"
"""The path whose errors have the form of errors of the Prometheus API."""
SCHEDULER: Final = "/scheduler/"
TOKEN_PATHS: Final = ("/watcher", "/nodes/unmapped", "/scores", "/hotspots", QUERY_PATH)
OPEN_PATHS: Final = ("/watcher/health",)
LARGEST_UNAUTHENTICATED_BODY_BYTES: Final = 4 * 2**20
"""The largest body from callers of `/scheduler` without credentials, which has room for the names of 20,000 nodes and
a pod."""
WATCHER_PATHS: Final = ("/watcher", "/watcher/<host>")
"""The routes that Trimaran's plugins request; the plugins cannot send a token."""


class BearerToken:
    """A bearer token that is read from a file, which may be replaced while the process runs. Thread-safe."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        """Read the file. Raises OSError or ValueError, whose message states the reason but never the content."""
        self._followed = followed_credentials("token file", [path], lambda: _digest(token_of(path).encode()), clock)

    def is_in(self, head: Head) -> bool:
        """Return whether the head of a request carries the token."""
        return self.problem(Request(head.method, head.target, "", head.headers)) is None

    def problem(self, request: Request) -> str | None:
        """Return why the request must not be answered; None if it carries the token."""
        scheme, _, token = request.header("Authorization").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return "a bearer token is required"
        # Digests have equal lengths, so the duration of the comparison reveals nothing.
        given = _digest(token.strip().encode(errors="surrogateescape"))
        return None if hmac.compare_digest(given, self._followed.current()) else "the bearer token is not valid"


def protected_routes(
    routes: Iterable[Route],
    token: BearerToken | None,
    certificate: ClientCertificate | None,
    open_paths: Collection[str] = OPEN_PATHS,
) -> tuple[Route, ...]:
    """Return the routes with their access rules.

    A request that lacks the required credentials gets status 401 before its body is read. If a token but no client CA
    is configured, `/scheduler` is open, but accepts only smaller bodies.
    """
    return tuple(_protected_route(route, token, certificate, open_paths) for route in routes)


def plan_by_routes(routes: Iterable[Route]) -> PlanBody:
    """Return a plan for bodies, by which only callers that a frequent route admits may send it bodies.

    Requests for paths below `/scheduler/` get one of the reserved threads; without a client certificate, only those
    with small bodies do. For all other requests the plan is None, and an ordinary request thread decides.
    """
    by_path = {route.path: route for route in routes if route.is_frequent and route.largest_body_bytes}

    def plan(head: Head) -> BodyPlan | None:
        path, _, query = head.target.partition("?")
        route = by_path.get(path)
        if route is None or (route.methods and head.method not in route.methods):
            return None
        request = Request(head.method, path, query, head.headers, head.peer_chain)
        if route.admit is not None and route.admit(request) is not None:
            return None
        largest = route.largest_body_bytes
        if not path.startswith(SCHEDULER):
            return BodyPlan(largest)
        return BodyPlan(largest, largest if head.peer_chain else min(largest, LARGEST_UNAUTHENTICATED_BODY_BYTES))

    return plan


def _protected_route(
    route: Route, token: BearerToken | None, certificate: ClientCertificate | None, open_paths: Collection[str]
) -> Route:
    if certificate is not None and route.path.startswith(SCHEDULER):
        return replace(route, admit=_refuse_with(certificate.problem))
    if token is not None and route.path.startswith(SCHEDULER):
        return replace(route, largest_body_bytes=min(route.largest_body_bytes, LARGEST_UNAUTHENTICATED_BODY_BYTES))
    if token is not None and _needs_token(route.path, open_paths):
        return replace(route, admit=_refuse_with(token.problem))
    return route


def _needs_token(path: str, open_paths: Collection[str]) -> bool:
    return path not in open_paths and any(path == one or path.startswith(f"{one}/") for one in TOKEN_PATHS)


def _refuse_with(problem: Callable[[Request], str | None]) -> Admit:
    def admit(request: Request) -> Response | None:
        reason = problem(request)
        return None if reason is None else _unauthorized_response(request.path, reason)

    return admit


def _unauthorized_response(path: str, reason: str) -> Response:
    if path == QUERY_PATH:
        content: dict[str, str] = {"status": "error", "errorType": "unauthorized", "error": reason}
    else:
        content = {"apiVersion": API_VERSION, "kind": "Error", "message": reason}
    return Response(401, msgspec.json.encode(content) + b"\n", headers=(("WWW-Authenticate", "Bearer"),))


def _digest(token: bytes) -> bytes:
    return hmac.digest(b"tidewatch", token, "sha256")
