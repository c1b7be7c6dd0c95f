"""The routes of `nodes`, which stay the same when a changed configuration brings new handlers."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.forms.pods import PodForm
from adapter.foundation.files.gzip_format import Piece, compress, text_of_pieces
from adapter.foundation.objects.decoders import decoder_of
from adapter.foundation.time.thread_limit import ThreadLimit
from adapter.foundation.web.http import TEXT, RefusedRequestError, Request, Response
from adapter.foundation.web.metric_text import METRICS_TYPE
from adapter.foundation.web.negotiation import accepts_gzip
from adapter.foundation.web.routes import Handle, Route
from adapter.nodes.extender.handlers import Extender
from adapter.nodes.extender.scores_page import scores_routes
from adapter.nodes.hotspots.descheduler_query import query_routes
from adapter.nodes.hotspots.hotspots_page import hotspots_routes
from adapter.nodes.model.answers import error_answer
from adapter.nodes.placement.pending_pod import pending_pod
from adapter.nodes.watcher.handlers import watcher_routes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from adapter.foundation.service.runtime.health import Health
    from adapter.foundation.service.server.plain_port.paced_text import PacedText
    from adapter.foundation.time.clock import Clock
    from adapter.nodes.model.columns import PendingPod
    from adapter.nodes.model.scheduling_settings import SchedulingSettings
    from adapter.nodes.snapshot.snapshot_keeper import SnapshotKeeper

HEALTH_PATHS: Final = ("/livez", "/readyz", "/healthz")
_GET: Final = ("GET", "HEAD")
_SLASHES: Final = re.compile("/{2,}")
_SERVED: Final = ("/watcher", "/scheduler/", "/nodes/unmapped", "/scores", "/hotspots", "/api/v1/query")
_MOST_READERS: Final = 2
"""The maximum number of requests on the main port that wait for the text of metrics; each occupies a thread."""
_LONGEST_WAIT_SECONDS: Final = 10.0


class Answers:
    """The handlers of the configuration in force."""

    def __init__(self, keeper: SnapshotKeeper, settings: SchedulingSettings, clock: Clock) -> None:
        self._keeper = keeper
        self._clock = clock
        self._decoder = decoder_of(PodForm)
        self._routes = self._make_routes(settings)

    def use(self, settings: SchedulingSettings) -> None:
        """Replace the handlers with those of another configuration."""
        self._routes = self._make_routes(settings)

    def routes(self) -> tuple[Route, ...]:
        """Return the routes. They stay the same, and call the handlers of the configuration in force."""
        return tuple(replace(route, handle=self._current(place)) for place, route in enumerate(self._routes))

    def _current(self, place: int) -> Handle:
        def handle(request: Request) -> Response:
            return self._routes[place].handle(request)

        return handle

    def _make_routes(self, settings: SchedulingSettings) -> tuple[Route, ...]:
        keeper = self._keeper

        def pending_of(body: bytes) -> PendingPod:
            return pending_pod(self._decoder.decode(body), keeper.published.selectors, settings.gpu)

        return (
            *watcher_routes(lambda: keeper.published.watcher, self._clock),
            *Extender(lambda: keeper.published.snapshot, pending_of, settings).routes(),
            *scores_routes(lambda: keeper.published.snapshot, settings),
            *hotspots_routes(lambda: keeper.published.snapshot, lambda: keeper.published.heat, settings.hotspots),
            *query_routes(lambda: keeper.published.snapshot, self._clock.wall, settings.hotspots),
        )


def own_routes(
    health: Health, own: PacedText, pieces: Callable[[], Iterable[Piece]], packed: Callable[[], bytes]
) -> tuple[Route, ...]:
    """Return the routes for health and metrics on the main port.

    `own` is the text of the metrics of the process itself. `pieces` returns the metrics of nodes as text, and `packed`
    returns the same text in gzip format.
    """

    def answer_health(request: Request) -> Response:
        found = health.answer(request.path, request.query)
        if found is None:
            return not_found(request)
        return Response(found[0], found[1].encode(), TEXT)

    readers = ThreadLimit(_MOST_READERS, lambda: RefusedRequestError(503, "too many readers of metrics: try again"))

    def answer_metrics(request: Request) -> Response:
        try:
            with readers.entered():
                made = own.wait(_LONGEST_WAIT_SECONDS)
        except RefusedRequestError as error:
            return error_answer(error.status, error.message)
        if made is None:
            return error_answer(503, "the metrics could not be written in time: try again")
        if not accepts_gzip(request.header("Accept-Encoding")):
            return Response(200, text_of_pieces((*made, *pieces())), METRICS_TYPE, (("Vary", "Accept-Encoding"),))
        return Response(
            200,
            compress(text_of_pieces(made)) + packed(),
            METRICS_TYPE,
            (("Vary", "Accept-Encoding"), ("Content-Encoding", "gzip")),
        )

    paths = [path for root in HEALTH_PATHS for path in (root, f"{root}/<check>")]
    return (*(Route(path, answer_health, _GET) for path in paths), Route("/metrics", answer_metrics, _GET))


def not_found(request: Request) -> Response:
    """Answer a path that is not served with 404, or redirect a path with repeated slashes to the path without them.

    The server of load-watcher does the same, and its clients follow the redirect: with a `watcherAddress` that ends in
    a slash, they request `//watcher`.
    """
    meant = _SLASHES.sub("/", request.path)
    if meant != request.path and meant.startswith(_SERVED):
        query = f"?{request.query}" if request.query else ""
        location = ("Location", meant + query)
        return Response(307, f"see {meant}\n".encode(), TEXT, (location,))
    return error_answer(404, f"{request.path[:200]} is not served: see docs/node-answers.md for the paths")
