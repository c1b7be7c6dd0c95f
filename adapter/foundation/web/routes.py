"""Routes as values: which handler answers which paths and methods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from adapter.foundation.web.http import TEXT, RefusedRequestError, Request, Response

Handle: TypeAlias = Callable[[Request], Response]
"""Answers a request; never raises."""
Admit: TypeAlias = Callable[[Request], Response | None]
"""Returns the response that refuses a request, before its body is read; None to let it pass. Never raises."""
Refuse: TypeAlias = Callable[[Request, RefusedRequestError], Response]
"""Returns the response to a request that is refused before a handler sees it; never raises."""

BELOW = "/*"


@dataclass(frozen=True, slots=True)
class Route:
    """One path rule and the handler for it."""

    path: str
    """Matched against the raw path, so `%2F` is not a slash. `<name>` stands for one segment, and `<path:name>` for
    several; both arrive in `Request.path_values`. A rule that ends with `/*` matches every path below, if no other rule
    does."""
    handle: Handle
    methods: tuple[str, ...] = ()
    """Any other method is answered with 405. If empty, the handler decides."""
    largest_body_bytes: int = 0
    """A larger body is answered with 413. If 0, no body is read."""
    admit: Admit | None = None
    """Decides who may ask. It is called before the body is read, so that nobody else can send one."""
    is_frequent: bool = False
    """Whether GETs and POSTs bypass Flask, which would cost them more than the answer does. Only for a path without
    variables."""


def select(routes: Sequence[Route], method: str) -> Route:
    """Return the route that accepts the method, from the routes of one path rule. Raises RefusedRequestError (405)."""
    for route in routes:
        if not route.methods or method in route.methods:
            return route
    allowed = tuple(dict.fromkeys(name for route in routes for name in route.methods))
    raise RefusedRequestError(405, f"{method} is not allowed here: use {' or '.join(allowed)}", allow=allowed)


def plain_refusal(_request: Request, error: RefusedRequestError) -> Response:
    """Return the refusal as plain text, for programs whose clients do not expect another form."""
    headers = (("Allow", ", ".join(error.allow)),) if error.allow else ()
    return Response(error.status, f"{error.message}\n".encode(), TEXT, headers)
