"""The routes of the process. A changed configuration puts new handlers behind the same routes."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final

import msgspec

from adapter.cluster.pods.forms import PodForm
from adapter.nodes.extender.handlers import Extender
from adapter.nodes.extender.scores_page import scores_routes
from adapter.nodes.hotspots.page import hotspots_routes
from adapter.nodes.hotspots.query import query_routes
from adapter.nodes.model.answers import error_answer
from adapter.nodes.placement.pending import pending_pod
from adapter.nodes.watcher.handlers import watcher_routes
from adapter.service.runtime.telemetry import exposition
from adapter.web.http import TEXT, Response
from adapter.web.negotiation import accepts_gzip
from adapter.web.rendering import GZIP_FORMAT, GZIP_LEVEL
from adapter.web.routes import Route

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from prometheus_client import CollectorRegistry

    from adapter.nodes.board.keeper import BoardKeeper
    from adapter.nodes.model.columns import PendingPod
    from adapter.nodes.model.settings import SchedulingSettings
    from adapter.service.runtime.health import Health
    from adapter.timing.clock import Clock
    from adapter.web.http import Request
    from adapter.web.routes import Handle

HEALTH_PATHS: Final = ("/livez", "/readyz", "/healthz")
_GET: Final = ("GET", "HEAD")


class Answers:
    """The handlers of the configuration in force."""

    def __init__(self, keeper: BoardKeeper, settings: SchedulingSettings, clock: Clock) -> None:
        self._keeper = keeper
        self._clock = clock
        self._decoder = msgspec.json.Decoder(PodForm)
        self._first = self._made(settings)
        self._handles = _by_place(self._first)

    def use(self, settings: SchedulingSettings) -> None:
        """Answer by another configuration from now on."""
        self._handles = _by_place(self._made(settings))

    def routes(self) -> tuple[Route, ...]:
        """Return the routes, which stay the same."""
        return tuple(
            Route(
                route.path,
                self._current(place),
                route.methods,
                route.largest_body_bytes,
                is_frequent=route.is_frequent,
            )
            for place, route in enumerate(self._first)
        )

    def _current(self, place: int) -> Handle:
        def handle(request: Request) -> Response:
            return self._handles[place](request)

        return handle

    def _made(self, settings: SchedulingSettings) -> tuple[Route, ...]:
        keeper = self._keeper

        def pending_of(body: bytes) -> PendingPod:
            return pending_pod(self._decoder.decode(body), keeper.published.selectors, settings.gpu)

        return (
            *watcher_routes(lambda: keeper.published.watcher, self._clock),
            *Extender(lambda: keeper.published.board, pending_of, settings).routes(),
            *scores_routes(lambda: keeper.published.board, settings),
            *hotspots_routes(lambda: keeper.published.board, lambda: keeper.published.heat, settings.hotspots),
            *query_routes(lambda: keeper.published.board, self._clock.wall),
        )


def _by_place(routes: tuple[Route, ...]) -> Mapping[int, Handle]:
    return {place: route.handle for place, route in enumerate(routes)}


def own_routes(
    health: Health, registry: CollectorRegistry, text: Callable[[], bytes], packed: Callable[[], bytes]
) -> tuple[Route, ...]:
    """Return the routes for health and metrics on the main port.

    `text` returns the metrics of nodes as text, `packed` the same in the gzip format.
    """

    def answer_health(request: Request) -> Response:
        found = health.answer(request.path, request.query)
        if found is None:
            return not_found(request)
        return Response(found[0], found[1].encode(), TEXT)

    def answer_metrics(request: Request) -> Response:
        own, content_type = exposition(registry)
        if not accepts_gzip(request.header("Accept-Encoding")):
            return Response(200, own + text(), content_type, (("Vary", "Accept-Encoding"),))
        # Members of a gzip file follow each other (RFC 1952, 2.2).
        body = zlib.compress(own, GZIP_LEVEL, wbits=GZIP_FORMAT) + packed()
        return Response(200, body, content_type, (("Vary", "Accept-Encoding"), ("Content-Encoding", "gzip")))

    paths = [path for root in HEALTH_PATHS for path in (root, f"{root}/<check>")]
    return (*(Route(path, answer_health, _GET) for path in paths), Route("/metrics", answer_metrics, _GET))


def not_found(request: Request) -> Response:
    """Answer a path that is not served."""
    return error_answer(404, f"{request.path[:200]} is not served: see docs/nodes.md for the paths")
