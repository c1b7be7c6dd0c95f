"""Answers requests: identity first, then what the path asks for.

Every request gets a response, and it is a Kubernetes `Status` if something went wrong.
"""

from __future__ import annotations

import functools
import logging
import secrets
from typing import TYPE_CHECKING

from adapter.foundation.promql.quoting import go_quoted
from adapter.foundation.web.http import JSON, TEXT, YAML, RefusedRequestError, Request, Response, json_line
from adapter.foundation.web.metric_text import METRICS_TYPE
from adapter.foundation.web.negotiation import accepts_objects, served_type
from adapter.foundation.web.rendering import render_response
from adapter.foundation.web.routes import Route
from adapter.metrics.apis import routing
from adapter.metrics.apis.discovery.groups import API_GROUPS, groups_response
from adapter.metrics.apis.discovery.lists import ResourceLists
from adapter.metrics.apis.explain import Explanations
from adapter.metrics.apis.hints.hints import Hints
from adapter.metrics.apis.openapi.documents import schemas_response
from adapter.metrics.apis.request_log import LoggedRequest, RequestLog
from adapter.metrics.apis.status import REASONS, ApiError, status_response
from adapter.metrics.apis.values.custom import CustomMetrics
from adapter.metrics.apis.values.external import ExternalMetrics
from adapter.metrics.apis.values.resource import ResourceMetrics
from adapter.metrics.identity.callers import Caller, DeniedError, IdentityError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from adapter.foundation.time.pace import Pace
    from adapter.metrics.apis.services import ApiServices
    from adapter.metrics.apis.values.answered import AnswerValues


MOST_WARNINGS = 8
LONGEST_WARNING = 240
"""Longest text of a warning in characters, before quoting."""

HPA_CONTROLLER = "kube-controller-manager"
"""Prefix of the User-Agent of the HPA controller, which would log every warning of every answer, ten thousand times in
15 seconds."""

_ASCII = str.maketrans({"…": "...", "–": "-", "—": "-", "“": '"', "”": '"', "’": "'", "±": "+-"})  # noqa: RUF001 - likely ones


def warning_headers(warnings: Iterable[str], user_agent: str) -> tuple[tuple[str, str], ...]:
    """Return one header line for each distinct warning; none for the HPA controller."""
    if user_agent.startswith(HPA_CONTROLLER):
        return ()
    texts = [text for text in dict.fromkeys(map(_text, warnings)) if text]
    if len(texts) > MOST_WARNINGS:
        left_out = len(texts) - MOST_WARNINGS + 1
        texts[MOST_WARNINGS - 1 :] = [f"{left_out} further warnings are left out"]
    return tuple(("Warning", f"299 - {go_quoted(text)}") for text in texts)


def _text(warning: str) -> str:
    """Return the warning in printable ASCII, on one line, and not too long."""
    line = " ".join(warning.translate(_ASCII).split())
    plain = "".join(char if " " <= char <= "~" else "?" for char in line)
    return plain if len(plain) <= LONGEST_WARNING else f"{plain[: LONGEST_WARNING - 3]}..."


NOT_HERE = "the server could not find the requested resource"

_APIS = "/apis"

GET = ("GET",)
GET_OR_HEAD = ("GET", "HEAD")
"""Kubernetes API servers also answer HEAD, which load balancers send, on paths outside the APIs."""

_log = logging.getLogger(__name__)


class Handler:
    """Answers requests; safe to call from many threads at once."""

    def __init__(self, services: ApiServices) -> None:
        self._services = services
        provider = services.provider
        catalogue = provider.catalogue
        self._hints = Hints(catalogue, provider.look_ups, services.wall, provider.refused)
        self._request_log = RequestLog(wall=services.wall)
        self._explanations = Explanations(services, self._hints, self._request_log)
        self._documents: dict[routing.Document, bytes] = {
            routing.Index(): json_line({"paths": routing.PATHS}),
            routing.Version(): json_line({"gitVersion": services.version}),
        }
        self._documents |= {routing.GroupPath(group): document for group, document in API_GROUPS.items()}
        self._lists = ResourceLists(catalogue)
        self._custom = CustomMetrics(services, self._hints)
        self._external = ExternalMetrics(services, self._hints)
        self._resource = ResourceMetrics(provider, services.wall)

    def prepare(self, pace: Pace) -> None:
        """Rebuild the lists and hints if the catalogue has changed; call it often, in the background.

        Until then, lists and hints come from the previous catalogue. Values always come from the current one.
        """
        catalogue = self._services.provider.catalogue
        self._hints.prepare(catalogue, pace)
        self._lists.prepare(catalogue, pace)

    def is_prepared(self) -> bool:
        """Return whether lists and hints are those of the current catalogue."""
        return self._lists.catalogue is self._services.provider.catalogue

    def handle(self, request: Request) -> Response:
        """Return the response to a request for an API, or for a path that does not exist; never raises."""
        return self._respond(self._answer, request)

    def routes(self) -> tuple[Route, ...]:
        """Return the routes of requests that are not authorized by their path: health checks and explanations."""
        health = functools.partial(self._respond, self._health)
        checks = tuple(Route(path, health, GET_OR_HEAD) for check in routing.HEALTH for path in (check, f"{check}/*"))
        # All methods, because only authenticated callers learn that a method is not allowed.
        return (*checks, Route(routing.EXPLAIN, functools.partial(self._respond, self._explanations.get)))

    def refuse(self, request: Request, error: RefusedRequestError) -> Response:
        """Return the response to a request whose method or body its route does not accept; never raises."""

        def refused(_: Request) -> Response:
            raise ApiError(error.status, error.message, allow=error.allow)

        return self._respond(refused, request)

    def _respond(self, answer: Callable[[Request], Response], request: Request) -> Response:
        started = self._services.timer()
        response = render_response(self._response(answer, request), request)
        seconds = self._services.timer() - started
        self._services.telemetry.record_request(
            routing.group_of(request.path), request.method, response.status, seconds
        )
        return response

    def _response(self, answer: Callable[[Request], Response], request: Request) -> Response:
        try:
            return answer(request)
        except ApiError as e:
            return status_response(self._services.compatibility.error(e))
        except IdentityError as e:
            # The refusal of an access review is worded as Kubernetes words it, and clients and people search for that.
            message = e.message if isinstance(e, DeniedError) else f"{REASONS[e.code]}: {e.message}"
            return status_response(ApiError(e.code, message))
        except Exception:  # noqa: BLE001 - the last line of defence: a bug in the program must not hang a caller
            return _internal_error(request)

    def _answer(self, request: Request) -> Response:
        caller = self._services.authorizer.check(request)
        try:
            asked = routing.route(request.path)
        except routing.PathError as e:
            raise ApiError(400, str(e)) from e
        if asked is None:
            raise ApiError(404, NOT_HERE)
        _require(request, GET_OR_HEAD if isinstance(asked, routing.Index | routing.OwnMetrics) else GET)
        _require_type(asked, request)
        return self._dispatch(asked, request, caller)

    def _dispatch(self, asked: routing.Route, request: Request, caller: Caller) -> Response:
        match asked:
            case routing.CustomValues():
                self._note(routing.CUSTOM, asked.resource, asked.tenant, asked.metric, caller)
                response = self._values(routing.CUSTOM, self._custom.get(asked, request.query), request)
            case routing.ExternalValues():
                self._note(routing.EXTERNAL, "", asked.namespace, asked.metric, caller)
                response = self._values(routing.EXTERNAL, self._external.get(asked, request.query), request)
            case routing.UsageValues():
                self._note(routing.RESOURCE, asked.resource, asked.namespace, "", caller)
                answered = self._resource.get(asked, request.query, request.header("Accept"))
                response = self._values(routing.RESOURCE, answered, request)
            case routing.ResourceList():
                response = self._lists.get(asked.group, asked.version)
            case routing.GroupList():
                response = groups_response(request.header("Accept"), request.header("If-None-Match"))
            case routing.OpenApi2() | routing.OpenApi3():
                response = schemas_response(asked, request.header("If-None-Match"))
            case routing.OwnMetrics():
                response = Response(200, self._services.metrics(), METRICS_TYPE)
            case routing.Index() | routing.Version() | routing.GroupPath():
                response = Response(200, self._documents[asked])
        return response

    def _note(self, group: str, resource: str, namespace: str | None, metric: str, caller: Caller) -> None:
        """Remember who asks for values, so that explanations can name them."""
        self._request_log.note(LoggedRequest(group, resource, namespace, metric, caller.name))

    def _health(self, request: Request) -> Response:
        answer = self._services.health(request.path, request.query)
        if answer is None:
            raise ApiError(404, NOT_HERE)
        code, text = answer
        return Response(code, text.encode(), TEXT)

    def _values(self, group: str, answered: AnswerValues, request: Request) -> Response:
        # The answer is from the future if the clock was set back since; a negative age would lower a sum.
        self._services.telemetry.observe_age(group, max(0.0, self._services.wall() - answered.evaluated_at))
        if not answered.warnings:
            return Response(200, answered.body, gzipped=answered.gzipped)
        headers = warning_headers(answered.warnings, request.header("User-Agent"))
        return Response(200, answered.body, headers=headers, gzipped=answered.gzipped)


def _require(request: Request, allowed: Sequence[str]) -> None:
    if request.method not in allowed:
        raise ApiError(405, f"{request.method} is not allowed here: use {' or '.join(allowed)}", allow=allowed)


def _require_type(asked: routing.Route, request: Request) -> None:
    """Raise ApiError 406 if a request for an API accepts none of the forms that are served.

    Values of metrics have no metadata and no columns, so there are no other forms of them.
    """
    accept = request.header("Accept")
    is_metric = isinstance(asked, routing.CustomValues | routing.ExternalValues)
    if request.path.startswith(_APIS) and not (accepts_objects(accept) if is_metric else served_type(accept)):
        raise ApiError(406, f"only the following media types are accepted: {JSON}, {YAML}")


def _internal_error(request: Request) -> Response:
    """Log the current exception and return a response that names its log line."""
    request_id = secrets.token_hex(8)
    about = {"request_id": request_id, "method": request.method, "path": request.path}
    _log.exception("a request failed: internal error", extra={"fields": about})
    message = f"Internal error occurred: logged with request_id {request_id}"
    return status_response(ApiError(500, message))
