"""One function from request to response: identity first, then what the path asks for.

Whatever happens, a response comes back, and it is a Kubernetes `Status` where something went wrong.
"""

from __future__ import annotations

import logging
import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapter.apis import routing
from adapter.apis.custom import CustomMetrics
from adapter.apis.discovery import api_group, groups_response
from adapter.apis.external import ExternalMetrics
from adapter.apis.hints import Hints
from adapter.apis.http import TEXT, Response, json_line
from adapter.apis.lists import ResourceLists
from adapter.apis.rendering import rendered
from adapter.apis.status import REASONS, ApiError, status_response
from adapter.identity.callers import DeniedError, IdentityError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from adapter.apis.answered import Answered
    from adapter.apis.http import Request
    from adapter.apis.served import Served
    from adapter.apis.slices import Slices
    from adapter.apis.telemetry import Telemetry
    from adapter.identity.callers import Caller
    from adapter.objects.resources import ResolveResource

METRICS_TEXT = "text/plain; version=0.0.4; charset=utf-8"

NOT_HERE = "the server could not find the requested resource"

GET = ("GET",)
GET_OR_HEAD = ("GET", "HEAD")
"""What load balancers look at by HEAD, Kubernetes' API servers answer too. Of APIs they route GET alone."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a handler is made of."""

    admit: Callable[[Request], Caller]
    """Who asks, if they may have what they ask for; raises IdentityError. `Gate.admit` is one."""
    served: Served
    resolve: ResolveResource
    """Kinds of objects by group and name."""
    health: Callable[[str, str], tuple[int, str] | None]
    """Path and raw query of a health check to HTTP code and text; None for a check that is not there."""
    metrics: Callable[[], bytes]
    """The process's own metrics in Prometheus's text format."""
    telemetry: Telemetry
    version: str
    empty_is_error: bool = False
    """Whether an answer without any value is a 404 (`--on-no-data=error`)."""
    wall: Callable[[], float] = time.time
    """Unix seconds, to tell the age of answers."""
    timer: Callable[[], float] = time.perf_counter
    """Seconds from anywhere, to measure how long requests take."""


class Handler:
    """Answers requests; safe to call from many threads at once."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        catalogue = parts.served.catalogue
        self._hints = Hints(catalogue)
        self._lists = ResourceLists(catalogue)
        self._custom = CustomMetrics(parts.served, parts.resolve, self._hints, empty_is_error=parts.empty_is_error)
        self._external = ExternalMetrics(parts.served, self._hints, empty_is_error=parts.empty_is_error)

    def prepare(self, slices: Slices) -> None:
        """Make anew what is told of the catalogue, if that has changed: to be called often, beside the requests.

        Until it has been, lists and hints are those of the catalogue before; values are always the newest.
        """
        catalogue = self._parts.served.catalogue
        self._lists.prepare(catalogue, slices)
        self._hints.prepare(catalogue, slices)

    def handle(self, request: Request) -> Response:
        """Return the response to any request; never raises."""
        started = self._parts.timer()
        response = rendered(self._response(request), request)
        seconds = self._parts.timer() - started
        self._parts.telemetry.answered(routing.group_of(request.path), request.method, response.status, seconds)
        return response

    def _response(self, request: Request) -> Response:
        try:
            return self._answer(request)
        except ApiError as e:
            return status_response(e)
        except IdentityError as e:
            # An access review's refusal is a sentence of Kubernetes' own, which clients and people look for.
            message = e.message if isinstance(e, DeniedError) else f"{REASONS[e.code]}: {e.message}"
            return status_response(ApiError(e.code, message))
        except Exception:  # noqa: BLE001 - the last line of defence: a fault of the program must not hang a caller
            return _unexpected(request)

    def _answer(self, request: Request) -> Response:
        if routing.is_health(request.path):
            _require(request, GET_OR_HEAD)
            return self._health(request)
        self._parts.admit(request)
        try:
            asked = routing.route(request.path)
        except routing.PathError as e:
            raise ApiError(400, str(e)) from e
        if asked is None:
            raise ApiError(404, NOT_HERE)
        _require(request, GET_OR_HEAD if isinstance(asked, routing.Index | routing.OwnMetrics) else GET)
        return self._dispatch(asked, request)

    def _health(self, request: Request) -> Response:
        answer = self._parts.health(request.path, request.query)
        if answer is None:
            raise ApiError(404, NOT_HERE)
        code, text = answer
        return Response(code, text.encode(), TEXT)

    def _dispatch(self, asked: routing.Route, request: Request) -> Response:
        match asked:
            case routing.CustomValues():
                return self._values(routing.CUSTOM, self._custom.get(asked, request.query))
            case routing.ExternalValues():
                return self._values(routing.EXTERNAL, self._external.get(asked, request.query))
            case routing.GroupList():
                return groups_response(request.header("Accept"), request.header("If-None-Match"))
            case routing.OwnMetrics():
                return Response(200, self._parts.metrics(), METRICS_TEXT)
            case routing.ResourceList(group, version):
                return self._lists.get(group, version)
            case _:
                return Response(200, self._document(asked))

    def _document(self, asked: routing.Document) -> bytes:
        match asked:
            case routing.Group(group):
                return api_group(group)
            case routing.Version():
                return json_line({"gitVersion": self._parts.version})
            case routing.Index():
                return json_line({"paths": routing.PATHS})

    def _values(self, group: str, answered: Answered) -> Response:
        self._parts.telemetry.served(group, self._parts.wall() - answered.evaluated_at)
        return Response(200, answered.body)


def _require(request: Request, allowed: Sequence[str]) -> None:
    if request.method not in allowed:
        raise ApiError(405, f"{request.method} is not allowed here: use {' or '.join(allowed)}", allow=allowed)


def _unexpected(request: Request) -> Response:
    """Log the exception at hand and return what tells the caller where to look for it."""
    request_id = secrets.token_hex(8)
    about = {"request_id": request_id, "method": request.method, "path": request.path}
    _log.exception("a request failed through a fault of the program", extra={"fields": about})
    message = f"Internal error occurred: a fault of the program, logged with request_id {request_id}"
    return status_response(ApiError(500, message))
