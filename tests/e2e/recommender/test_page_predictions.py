"""Forecasts and ten thousand targets on the recommender's page in a real browser."""

from __future__ import annotations

import math
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.web.http import Request
from recommender.decisions.history_point import HistoryPoint, LoadPoint
from recommender.decisions.loads.prediction import PredictedLoad, Prediction
from recommender.decisions.publication import Publication
from recommender.decisions.record import Record, Status, Step, TargetAction, TargetOutcome, TargetReference
from recommender.page.handler import PageHandler
from tests.e2e.recommender.test_page import BLOCKED, SIZES, screenshot
from tests.e2e.support.browser import needs_browser

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOW = 1_795_341_000.0
LEAD_SECONDS = 600.0
TARGETS = 10_000


def day(_name: str, since: float) -> tuple[HistoryPoint, ...]:
    """Return a day with a wave of load and forecasts of it."""
    return tuple(point_at(since + 60.0 * minute) for minute in range(1440))


def load_at(time: float) -> float:
    return 120_000.0 + 80_000.0 * math.sin(time / 86_400 * 2 * math.pi)


def point_at(time: float) -> HistoryPoint:
    median = load_at(time + LEAD_SECONDS)
    load = LoadPoint(load_at(time), median, 1.1 * median, time + LEAD_SECONDS)
    return HistoryPoint(time, math.ceil(median / 20_000), "ok", None, math.ceil(load_at(time) / 20_000), load)


def record(name: str, target: TargetReference, load: float, *, each: bool = False) -> Record:
    predicted = PredictedLoad(load, 1.1 * load, NOW + LEAD_SECONDS, {"0.5": load, "0.95": 1.1 * load})
    ratios = {"quantile": 0.4, "linear": 1.3, "headroom": 1.0, "reactive": None}
    return Record(
        name,
        "predictive",
        NOW,
        Status.OK,
        "",
        9,
        steps=(Step("quantile/load", 9, "ceil(214902 / 25000)"),),
        binding="quantile/load",
        targets=(TargetOutcome(target, 8, TargetAction.METRIC, recommended_replicas=9),),
        details=Prediction(predicted, "quantile", "it was short least", ratios, "0.4% short, headroom 1.1%"),
        each=target if each else None,
    )


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Yield the page of a predictive recommendation, and of one with ten thousand targets."""
    many = (TargetReference("apps/v1", "Deployment", f"tenant-{number}", "web") for number in range(TARGETS))
    one = TargetReference("apps/v1", "Deployment", "chat", "gateway")
    records = (record("chat", one, 180_000.0), *(record("tenants", target, 100.0, each=True) for target in many))
    publication = Publication(leads=True, time=NOW, valid_until=NOW + 60, records=records)
    handler = PageHandler(lambda: publication, day, "1.0")
    with ThreadingHTTPServer(("127.0.0.1", 0), answering(handler)) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join(10.0)


def answering(handler: PageHandler) -> type[BaseHTTPRequestHandler]:
    """Return a handler that serves the routes of the page."""
    routes = {route.path: route for route in handler.routes()}

    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            if path not in routes:
                self.send_error(404)
                return
            response = routes[path].handle(Request("GET", path, query))
            self.send_response(response.status)
            for name, value in (("Content-Type", response.content_type), *response.headers):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(response.body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - named by the standard library
            del format, args

    return Answering


@needs_browser
@pytest.mark.parametrize(("device", "dark"), [("desk", False), ("phone", True)], ids=["desk, light", "phone, dark"])
@pytest.mark.parametrize("query", ["", "?show=tenants&filter=tenant-77"], ids=["all", "targets"])
def test_forecasts_are_drawn(address: str, tmp_path: Path, device: str, query: str, *, dark: bool) -> None:
    picture, logged = screenshot(address + query, tmp_path / "page.png", SIZES[device], dark=dark)
    assert picture.colors() > 20, "text, lines, bands and badges"
    assert (picture.brightness() < 90) if dark else (picture.brightness() > 190)
    assert not [line for line in logged.splitlines() if "CONSOLE" in line and BLOCKED.search(line)]
