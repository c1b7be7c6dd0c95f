"""The floor: Flask handlers that do next to nothing under the product's server: `python -m benchmarks.bare_server`.

`GET /empty` returns an empty body, `GET /bytes/N` a prepared body of N bytes, and `POST /prioritize` decodes the names
of a request of kube-scheduler and gives each the same score. Its argument is the port.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING

import flask
import msgspec

from adapter.foundation.service.server.addresses import Address
from adapter.foundation.service.server.process import serve_forever
from adapter.foundation.service.server.server_settings import ServerOptions

if TYPE_CHECKING:
    from adapter.foundation.service.server.context import WorkerContext
    from adapter.foundation.service.server.process import WsgiApp

SCORE = 5


class _Args(msgspec.Struct, rename="pascal"):
    node_names: list[str]


class _Priority(msgspec.Struct, rename="pascal"):
    host: str
    score: int


def make_worker(_context: WorkerContext) -> WsgiApp:
    """Return the Flask application."""
    app = flask.Flask(__name__, static_folder=None)
    decoder = msgspec.json.Decoder(_Args)
    body_of = functools.cache(bytes)

    @app.get("/empty")
    def empty() -> flask.Response:
        return flask.Response(b"")

    @app.get("/bytes/<int:count>")
    def sized(count: int) -> flask.Response:
        return flask.Response(body_of(count), mimetype="application/json")

    def prioritize() -> flask.Response:
        names = decoder.decode(flask.request.get_data(cache=False)).node_names
        scores = msgspec.json.encode([_Priority(name, SCORE) for name in names])
        return flask.Response(scores, mimetype="application/json")

    app.add_url_rule("/prioritize", view_func=prioritize, methods=["POST"])
    return app


def main(port: int) -> None:
    """Serve until the process is ended."""
    options = ServerOptions(
        program="bare-server",
        version="",
        metrics_prefix="bare",
        address=Address("127.0.0.1", port),
        tls=None,
        plain_address=None,
        shutdown_delay_seconds=0.0,
    )
    serve_forever(options, make_worker)


if __name__ == "__main__":
    main(int(sys.argv[1]))
