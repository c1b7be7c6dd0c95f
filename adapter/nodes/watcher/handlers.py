"""Routes of load-watcher's service, and of `/nodes/unmapped`. Each answer comes from memory.

The answers are in their final form, compressed if the client allows it; nothing renders them again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, unquote

from adapter.foundation.web.http import TEXT, Request, Response
from adapter.foundation.web.negotiation import accepts_gzip
from adapter.foundation.web.rendering import render_response
from adapter.foundation.web.routes import Route
from adapter.foundation.web.tagged import unless_current
from adapter.nodes.model.answers import error_answer
from adapter.nodes.model.loads import (
    SLOT_WINDOWS_SECONDS,
    VERDICTS,
    WINDOW_NAMES,
    WINDOWS_SECONDS,
    LoadResource,
    LoadSnapshot,
    NodeVerdict,
)
from adapter.nodes.watcher.prepared import DEFAULT_WINDOW, PreparedWatcher

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.time.clock import Clock

_METHODS: Final = ("GET", "HEAD")


def watcher_routes(current: Callable[[], PreparedWatcher | None], clock: Clock) -> tuple[Route, ...]:
    """Return the routes. `current` returns the last prepared value, or None before the first data."""
    handlers = _Handlers(current, clock)
    return (
        Route("/watcher", handlers.watcher, _METHODS, is_frequent=True),
        Route("/watcher/health", handlers.health, _METHODS),
        Route("/watcher/<host>", handlers.host, _METHODS),
        Route("/nodes/unmapped", handlers.unmapped, _METHODS),
    )


@dataclass(frozen=True, slots=True)
class _Handlers:
    current: Callable[[], PreparedWatcher | None]
    clock: Clock

    def watcher(self, request: Request) -> Response:
        """Answer `/watcher` and `/watcher?host=H`."""
        given = _parameters(request)
        host = given.get("host", "")
        if isinstance(asked := self._requested_window(given), Response):
            return asked
        prepared, window = asked
        if host:
            return self._host_response(request, prepared, window, host, _unknown_as_go)
        return _response_for(prepared.windows[window].whole, request)

    def host(self, request: Request) -> Response:
        """Answer `/watcher/H`."""
        host = unquote(request.path_values["host"])
        if isinstance(asked := self._requested_window(_parameters(request)), Response):
            return asked
        return self._host_response(request, *asked, host, _unknown)

    def health(self, _request: Request) -> Response:
        """Answer `/watcher/health`: 200 without a body if the default window can be served."""
        asked = self._requested_window({})
        return asked if isinstance(asked, Response) else Response(200, b"", TEXT)

    def unmapped(self, request: Request) -> Response:
        """Answer `/nodes/unmapped`."""
        prepared = self.current()
        if prepared is None:
            return error_answer(503, _NO_DATA)
        return _response_for(prepared.unmapped, request)

    def _requested_window(self, given: dict[str, str]) -> tuple[PreparedWatcher, int] | Response:
        """Return the prepared documents and the index of the window, or an error answer."""
        name = given.get("window", WINDOW_NAMES[DEFAULT_WINDOW])
        if name not in WINDOW_NAMES:
            return error_answer(400, f"window {name[:40]!r} is not known: use one of {', '.join(WINDOW_NAMES)}")
        prepared = self.current()
        if prepared is None:
            return error_answer(503, _NO_DATA)
        window = WINDOW_NAMES.index(name)
        age = self.clock.wall() - prepared.snapshot.window_end
        if age > WINDOWS_SECONDS[0]:
            return error_answer(503, f"the newest samples are {age:.0f} s old: see the log for the reason")
        if not prepared.windows[window].hosts:
            return error_answer(503, _none_served(prepared.snapshot, window))
        return prepared, window

    @staticmethod
    def _host_response(
        request: Request,
        prepared: PreparedWatcher,
        window: int,
        host: str,
        unknown: Callable[[str, LoadSnapshot, int], Response],
    ) -> Response:
        number = prepared.snapshot.index.get(host)
        found = None if number is None else prepared.windows[window].of_host(number)
        if found is None:
            return unknown(host, prepared.snapshot, window)
        return _response_for(found, request)


_NO_DATA: Final = "no data yet: the first refresh has not ended"


def _response_for(prepared: Response, request: Request) -> Response:
    """Return the answer in the form that the client prefers; 304 if the client has it already.

    Documents that were compressed in advance may be large. They are never turned into YAML or indented, which would
    block the process for seconds.
    """
    response = unless_current(prepared, request.header("If-None-Match"))
    if prepared.gzipped is None or response is not prepared:
        return render_response(response, request)
    varied = (*response.headers, ("Vary", "Accept-Encoding"))
    if not accepts_gzip(request.header("Accept-Encoding")):
        return replace(response, headers=varied)
    return replace(response, body=prepared.gzipped, headers=(*varied, ("Content-Encoding", "gzip")), gzipped=None)


def _unknown_as_go(host: str, _snapshot: LoadSnapshot, _window: int) -> Response:
    """Return the error answer in load-watcher's words."""
    return Response(404, f"No metrics found for host {host}".encode(errors="replace"), TEXT)


def _unknown(host: str, snapshot: LoadSnapshot, window: int) -> Response:
    number = snapshot.index.get(host)
    if number is None:
        return error_answer(
            404, f"node {host[:253]!r} is not known: names are those of Node objects; see /nodes/unmapped"
        )
    cpu = snapshot.resources.get(LoadResource.CPU)
    if cpu is None:
        reason = "no CPU metrics"
    elif cpu.is_estimated[number]:
        reason = f"only an estimate of its CPU (samples: {VERDICTS[cpu.verdicts[number]]})"
    else:
        reason = f"no usable CPU metrics{_long_window_text(window)} (samples: {VERDICTS[cpu.verdicts[number]]})"
    return error_answer(404, f"node {host!r} has {reason}")


def _none_served(snapshot: LoadSnapshot, window: int) -> str:
    resources: dict[str, list[str]] = {}
    for resource, why in snapshot.query_failures.items():
        resources.setdefault(why, []).append(resource)
    failures = "; ".join(f"{', '.join(those)}: {why}" for why, those in resources.items())
    refused = sum(bool(series.refused_for) for series in snapshot.unmapped)
    found = f"no node has usable CPU metrics{_long_window_text(window)}; nodes known: {len(snapshot.nodes)}"
    if snapshot.unmapped:
        unmapped = len(snapshot.unmapped) - refused
        found = f"{found}, series without a node: {unmapped}, refused series: {refused} (see /nodes/unmapped)"
    if failures:
        return f"{found}; failed queries: {failures}"
    if snapshot.unmapped:
        return found
    if not _measures_cpu(snapshot):
        return (
            f"{found}; Prometheus has no CPU series of any node: scrape node_exporter on every node, and check the "
            "matchers if there are any"
        )
    return f"{found}; the samples are too old or too few: see tidewatch_node_verdicts in /metrics"


def _measures_cpu(snapshot: LoadSnapshot) -> bool:
    """Return whether any node has a series of its CPU, usable or not."""
    cpu = snapshot.resources.get(LoadResource.CPU)
    return cpu is not None and any(VERDICTS[each] is not NodeVerdict.MISSING for each in cpu.verdicts)


def _long_window_text(window: int) -> str:
    """Return a text that names a long window, which may lack metrics although shorter ones have them; else empty."""
    is_long = WINDOWS_SECONDS[window] in SLOT_WINDOWS_SECONDS
    return f" over {WINDOW_NAMES[window]}, of which 80% must be known" if is_long else ""


def _parameters(request: Request) -> dict[str, str]:
    """Return the first value of each parameter, as Go's service reads them."""
    return dict(reversed(parse_qsl(request.query, keep_blank_values=True)))
