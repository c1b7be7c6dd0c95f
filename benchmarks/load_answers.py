"""A stand-in for Prometheus in another process, whose work is not counted: it answers each query with one vector."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import msgspec

from benchmarks.separate_answers import separate_answers
from demo.machine.http_answers import AnswerHandler

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager


def load_answers(series: Mapping[str, int]) -> AbstractContextManager[str]:
    """Answer each of these queries with its number of series, in another process; yield the URL."""
    return separate_answers(_Answers, series)


class _Answers(AnswerHandler):
    """Answers each query with one vector, whose loads rise and fall with time."""

    def __init__(self, series: Mapping[str, int], *arguments: object) -> None:
        self._series = series
        super().__init__(*arguments)  # type: ignore[arg-type] # what the server hands on

    def do_POST(self) -> None:
        """Answer a query whose parameters are in the body."""
        self._reply(parse_qs(self.request_body().decode()))

    def do_GET(self) -> None:
        """Answer a query whose parameters are in the path."""
        self._reply(parse_qs(urlsplit(self.path).query))

    def _reply(self, parameters: dict[str, list[str]]) -> None:
        query = parameters.get("query", [""])[0]
        # As in Prometheus, this is the requested time, however long the answer takes.
        now = float(parameters.get("time", [str(time.time())])[0])
        result = [
            {
                "metric": {"namespace": f"ns-{number % 50}", "deployment": f"{query.replace('_', '-')}-{number}"},
                "value": [now, str(100.0 + (number * 7 + int(now) // 10 * 3) % 50)],
            }
            for number in range(self._series.get(query, 0))
        ]
        self.answer(msgspec.json.encode({"status": "success", "data": {"resultType": "vector", "result": result}}))
