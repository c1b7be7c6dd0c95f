"""Sends one query to Prometheus, and counts its result."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapter.foundation.sources.prometheus.answers.answer_elements import AnswerLimits, ElementGuard
from adapter.foundation.sources.prometheus.errors import PrometheusError
from adapter.foundation.sources.prometheus.transport.requests import ApiRequest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapter.foundation.sources.deadlines import Deadline
    from adapter.foundation.sources.prometheus.answers.slicing import Shape
    from adapter.foundation.sources.prometheus.prometheus_settings import Verb
    from adapter.foundation.sources.prometheus.prometheus_telemetry import QueryTelemetry
    from adapter.foundation.sources.prometheus.transport.http_answers import HttpAnswer, OpenAnswer
    from adapter.foundation.sources.prometheus.transport.server import Server
    from adapter.foundation.time.pace import Pace

_POST_REFUSED = frozenset({405, 501})


@dataclass(frozen=True, slots=True)
class SentQuery:
    """One query that is being sent."""

    asked: str
    """Expression or selector, for messages."""
    kind: str
    path: str
    parameters: tuple[tuple[str, str], ...]
    shape: Shape
    limits: AnswerLimits
    deadline: Deadline


class QuerySender:
    """Sends queries to one Prometheus; `POST` becomes `GET` once a proxy has refused it. Thread-safe."""

    def __init__(self, server: Server, verb: Verb, telemetry: QueryTelemetry | None, pace: Pace) -> None:
        self._server = server
        self._verb = verb
        self._telemetry = telemetry
        self._pace = pace

    @contextmanager
    def count_result(self, question: SentQuery) -> Iterator[None]:
        """Count the result and the duration of a query."""
        began = time.monotonic()
        result = "ok"
        try:
            yield
        except PrometheusError as e:
            result = e.result
            raise
        finally:
            if self._telemetry is not None:
                self._telemetry.record_query(
                    kind=question.kind,
                    path=question.path,
                    server=self._server.endpoint.shown,
                    result=result,
                    seconds=time.monotonic() - began,
                )

    def ask(self, question: SentQuery) -> HttpAnswer:
        """Send a query, and return the answer if it is a success. Raises PrometheusError."""
        with self.success(question) as answer:
            return answer.whole()

    @contextmanager
    def success(self, question: SentQuery) -> Iterator[OpenAnswer]:
        """Send a query, and yield the answer while it arrives if it is a success. Raises PrometheusError."""
        # While this answer was on its way, another query may have learnt that POST is refused.
        verb = self._verb
        with ExitStack() as stack:
            answer = stack.enter_context(self._open_answer(question, verb))
            if answer.status in _POST_REFUSED and verb == "POST":
                answer.read_beginning()
                stack.close()
                self._verb = "GET"
                answer = stack.enter_context(self._open_answer(question, "GET"))
            if not answer.is_success:
                refusal = answer.read_beginning()
                # Only after an answer without an error is the connection used for the next request.
                stack.close()
                self._server.success(question.asked, refusal)
            yield answer

    def _open_answer(self, question: SentQuery, verb: Verb) -> AbstractContextManager[OpenAnswer]:
        request = ApiRequest(
            question.path,
            question.parameters,
            verb=verb,
            max_bytes=question.limits.max_bytes,
            watch=ElementGuard(question.asked, question.shape, question.limits, self._pace),
        )
        return self._server.open_answer(question.asked, request, question.deadline)
