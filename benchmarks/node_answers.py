"""A stand-in for Prometheus with the exporters of many nodes: `python -m benchmarks.node_answers --nodes 5000`.

It answers the built-in expressions of `tidewatch-adapter nodes`, by their exact text, in the form and with the samples
that Prometheus would send; every other query is refused and counted. It runs in a process of its own, whose work is not
counted, and prints its port. `/asked` returns how many queries it has received.
"""

from __future__ import annotations

import argparse
import time
from http.server import ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

import msgspec

from adapter.foundation.sources.prometheus.queries.server_time import TIME_QUERY
from adapter.nodes.model.loads import LoadResource
from adapter.nodes.queries.expressions import BUSY, IDLE, NEWEST, PART_LABEL, RATIO, rate_function, resource_query
from adapter.nodes.queries.past_queries import DAY, WEEK, past_expression
from adapter.nodes.queries.scrape_intervals import COUNT_WINDOW_SECONDS
from adapter.nodes.queries.series_survey import survey_query
from benchmarks.node_loads import CLASSES, SCRAPE_SECONDS, class_of, ratio_at, scraped_at
from benchmarks.scripted_cluster import node_address, node_name
from demo.machine.http_answers import AnswerHandler

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

CPUS = 16
_MODES = 8
_SERIES_OF_A_NODE: Mapping[LoadResource, int] = {
    LoadResource.CPU: CPUS * _MODES,
    LoadResource.MEMORY: 1,
    LoadResource.NETWORK: 1,
    LoadResource.DISK: 2,
    LoadResource.GPU: 0,
}
_PARTS: Mapping[str, Callable[[int, float], float]] = {
    RATIO: ratio_at,
    BUSY: ratio_at,
    IDLE: lambda of_class, at: 1 - ratio_at(of_class, at),
    NEWEST: scraped_at,
}


class Asked(msgspec.Struct, kw_only=True):
    """How many queries were received."""

    ranges: int = 0
    instants: int = 0
    refused: int = 0
    times: int = 0
    """The number of queries for the server's time."""
    samples: int = 0
    """The number of samples in the answers to range queries."""

    @property
    def queries(self) -> int:
        """Return the number of queries for data."""
        return self.ranges + self.instants + self.refused


class NodeAnswers:
    """The answers for a number of nodes."""

    def __init__(self, nodes: int) -> None:
        self.asked = Asked()
        self._nodes = nodes
        self._surveys = {survey_query((), with_past=with_past) for with_past in (False, True)}
        self._resources = {
            resource_query(resource, rate=rate_function(interval), matchers=()).expression: resource
            for resource in _SERIES_OF_A_NODE
            for interval in (float("nan"), float(SCRAPE_SECONDS))
        }
        self._past = {
            past_expression(resource, (), recorded=False, slot_seconds=span.slot_seconds): resource
            for span in (DAY, WEEK)
            for resource in span.resources
        }

    def answer(self, path: str, parameters: Mapping[str, str]) -> tuple[int, bytes]:
        """Return status and body."""
        query = parameters.get("query", "")
        if path == "/asked":
            return 200, msgspec.json.encode(self.asked)
        if path == "/api/v1/query" and query in self._surveys:
            self.asked.instants += 1
            return 200, self._survey_answer(float(parameters.get("time", time.time())))
        if path == "/api/v1/query_range" and query in self._resources:
            self.asked.ranges += 1
            return 200, self._range_answer(self._resources[query], parameters, (NEWEST,))
        if path == "/api/v1/query_range" and query in self._past:
            self.asked.ranges += 1
            return 200, self._range_answer(self._past[query], parameters)
        return self._small_answer(path, query)

    def _small_answer(self, path: str, query: str) -> tuple[int, bytes]:
        if path == "/api/v1/query" and query == TIME_QUERY:
            self.asked.times += 1
            now = time.time()
            data = {"resultType": "vector", "result": [{"metric": {}, "value": [now, str(now)]}]}
            return 200, msgspec.json.encode({"status": "success", "data": data})
        if path == "/api/v1/query" and query == "vector(1)":
            # This is how a connection is checked.
            return 200, b'{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"1"]}]}}'
        if path == "/api/v1/status/buildinfo":
            return 200, b'{"status":"success","data":{"version":"3.5.0"}}'
        self.asked.refused += 1
        return 400, msgspec.json.encode({"status": "error", "errorType": "bad_data", "error": "not a built-in query"})

    def _range_answer(
        self, resource: LoadResource, parameters: Mapping[str, str], judging: tuple[str, ...] = ()
    ) -> bytes:
        start, end, step = (float(parameters[name]) for name in ("start", "end", "step"))
        times = [start + place * step for place in range(int((end - start) // step) + 1)]
        parts = (*((IDLE, BUSY) if resource is LoadResource.CPU else (RATIO,)), *judging)
        series: list[bytes] = []
        for part in parts if _SERIES_OF_A_NODE[resource] else ():
            points = [_points(part, of_class, times) for of_class in range(CLASSES)]
            series += (
                b'{"metric":{"instance":"%b:9100","job":"node-exporter","namespace":"monitoring","%b":"%b"},"values":%b}'
                % (node_address(node).encode(), PART_LABEL.encode(), part.encode(), points[class_of(node)])
                for node in range(self._nodes)
            )
        self.asked.samples += len(series) * len(times)
        return b'{"status":"success","data":{"resultType":"matrix","result":[' + b",".join(series) + b"]}}"

    def _survey_answer(self, at: float) -> bytes:
        numbers: list[tuple[dict[str, str], float]] = []
        for resource, series in _SERIES_OF_A_NODE.items():
            if not series:
                # `count()` of nothing has no value.
                continue
            numbers.append(({PART_LABEL: f"series:{resource.value}"}, self._nodes * series))
            numbers.append(({PART_LABEL: f"exporters:{resource.value}"}, self._nodes))
        for node in range(self._nodes):
            instance = f"{node_address(node)}:9100"
            who = {"instance": instance, "job": "node-exporter", "namespace": "monitoring"}
            numbers.append(({**who, PART_LABEL: "scrapes"}, COUNT_WINDOW_SECONDS / SCRAPE_SECONDS))
            numbers.append(({**who, "nodename": node_name(node), PART_LABEL: "uname"}, 1))
        result = [{"metric": labels, "value": [at, f"{value:g}"]} for labels, value in numbers]
        return msgspec.json.encode({"status": "success", "data": {"resultType": "vector", "result": result}})


def _points(part: str, of_class: int, times: Sequence[float]) -> bytes:
    return msgspec.json.encode([(at, f"{_PARTS[part](of_class, at):.15g}") for at in times])


class AnswerServer(ThreadingHTTPServer):
    """Serves the answers on a free port of loopback."""

    def __init__(self, answers: NodeAnswers) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers = answers

    def handle_error(self, request: object, client_address: object) -> None:
        """Print nothing: a process that is killed closes its connections during queries."""


class _Handler(AnswerHandler):
    server: AnswerServer

    def do_GET(self) -> None:
        """Answer a query whose parameters are in the path."""
        path, _, query = self.path.partition("?")
        self._reply(path, query)

    def do_POST(self) -> None:
        """Answer a query whose parameters are in the body."""
        self._reply(self.path.partition("?")[0], self.request_body().decode())

    def _reply(self, path: str, query: str) -> None:
        status, body = self.server.answers.answer(path, dict(parse_qsl(query)))
        self.answer(body, status=status)


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until the process is ended."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.node_answers", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--nodes", type=int, required=True)
    server = AnswerServer(NodeAnswers(parser.parse_args(arguments).nodes))
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
