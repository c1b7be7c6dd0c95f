"""Instant, range and series queries to Prometheus: the hot path, with a time limit on everything and no retries.

A caller that needs an answer within 2 s gains nothing from a second attempt after 4 s, and an overloaded Prometheus
does not recover under twice the load; background refreshes are repeated anyway. There are two exceptions, which cost
nothing: `POST` falls back to `GET` if a proxy refuses it (once, then `sending` remembers this), and a request on a
connection that the server has just closed is sent again on a new one (`transport`).
"""

from __future__ import annotations

import math
import time
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from adapter.foundation.sources.deadlines import Deadline, DeadlinePassedError
from adapter.foundation.sources.prometheus.answers.answer_elements import INSTANT_LIMITS, SERIES_LIMITS, AnswerLimits
from adapter.foundation.sources.prometheus.answers.decoding import InstantAnswer, SeriesAnswer, read_instant
from adapter.foundation.sources.prometheus.answers.matrices import first_points
from adapter.foundation.sources.prometheus.answers.ranges import (
    MOST_MOVES,
    RANGE_LIMITS,
    RangeAnswer,
    RangeJoiner,
    RangeLimits,
    RangePart,
    RangeReader,
    range_parts,
)
from adapter.foundation.sources.prometheus.answers.slicing import MATRIX, SERIES, VECTOR
from adapter.foundation.sources.prometheus.errors import PrometheusTimeoutError, refuse_partial
from adapter.foundation.sources.prometheus.queries.date_header import refuse_other_time
from adapter.foundation.sources.prometheus.queries.runtime import Started, ask_started
from adapter.foundation.sources.prometheus.queries.sending import QuerySender, SentQuery
from adapter.foundation.sources.prometheus.queries.server_time import TIME_LIMITS, TIME_QUERY, ServerTime, stated_time
from adapter.foundation.sources.prometheus.transport.server import Server
from adapter.foundation.time.pace import UNPACED, Pace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
    from adapter.foundation.sources.prometheus.prometheus_telemetry import QueryTelemetry
    from adapter.foundation.sources.prometheus.transport.http_answers import HttpAnswer

COLLECTED_BEFORE = 'count(last_over_time({__name__=~"up|target_info"}[1h]))'
"""A query that is evaluated at the time of the server's start; empty if nothing was collected in the hour before.

Each scraped target has `up`. What applications send by OpenTelemetry has `target_info` instead.
"""
_QUERY_PATH = "/api/v1/query"
_RANGE_PATH = "/api/v1/query_range"
_SERIES_PATH = "/api/v1/series"


class PrometheusClient:
    """Queries one Prometheus. Thread-safe. Every failure is a PrometheusError."""

    def __init__(
        self,
        settings: PrometheusSettings,
        *,
        telemetry: QueryTelemetry | None = None,
        pace: Pace = UNPACED,
        clock: Callable[[], float] = time.time,
        awaits_credentials: bool = False,
    ) -> None:
        """Read the credentials, without connecting yet.

        Raises SettingsError if they cannot be read; with `awaits_credentials`, queries fail until they can.

        `pace` applies to reading an answer and to the checks before it is returned; decoding has a pace of its own.
        `clock` returns Unix seconds, the evaluation time of queries.
        """
        self._server = Server(settings, awaits_credentials=awaits_credentials)
        self._sender = QuerySender(self._server, settings.verb, telemetry, pace)
        self._collected_before: tuple[float, bool] | None = None
        """The start time of the server, and whether anything had been collected before it."""
        self._pace = pace
        self._clock = clock
        self._server_time = ServerTime(self._ask_time, clock)

    @property
    def address(self) -> str:
        """The server's address without credentials, for messages and logs."""
        return self._server.endpoint.shown

    def instant(
        self, query: str, *, timeout_seconds: float, at: float | None = None, limits: AnswerLimits = INSTANT_LIMITS
    ) -> InstantAnswer:
        """Evaluate a PromQL expression.

        `at` is in Unix seconds, to the millisecond; None means the last whole second of this machine's clock.
        The time is always sent, so that the answer for time T is the one that anybody gets for `time=T`. If
        Prometheus's clock differs from ours by more than a minute, the answer is for another time and is rejected. The
        whole exchange ends within `timeout_seconds`, which is also sent to Prometheus as the time limit of the query.
        Raises PrometheusError.
        """
        evaluated_at = float(math.floor(self._clock())) if at is None else round(at, 3)
        parameters = (("query", query), ("time", _timestamp(evaluated_at)), ("timeout", f"{timeout_seconds:.3f}"))
        question = SentQuery(query, "instant", _QUERY_PATH, parameters, VECTOR, limits, Deadline(timeout_seconds))
        with self._sender.count_result(question):
            answer = self._ask_current(question)
            return read_instant(query, answer.body, evaluated_at=evaluated_at, limits=limits, pace=self._pace)

    def range(
        self,
        query: str,
        *,
        start: float,
        end: float,
        step_seconds: float,
        timeout_seconds: float,
        limits: RangeLimits = RANGE_LIMITS,
    ) -> RangeAnswer:
        """Evaluate a PromQL expression at `start` and each step after it up to `end`.

        Both are Unix seconds, to the millisecond. A range of more points than Prometheus returns at once is queried in
        parts, one after another; all of them end within `timeout_seconds`. The module `ranges` describes the values.
        `start` should be a multiple of the step: some servers move other ranges, and such an answer is rejected. Raises
        PrometheusError, and ValueError for an invalid range.
        """
        joiner = RangeJoiner(query, limits, self._pace)
        self.read_range(
            joiner,
            query,
            start=start,
            end=end,
            step_seconds=step_seconds,
            timeout_seconds=timeout_seconds,
            limits=limits,
        )
        return joiner.answer()

    def read_range(
        self,
        reader: RangeReader,
        query: str,
        *,
        start: float,
        end: float,
        step_seconds: float,
        timeout_seconds: float,
        limits: RangeLimits = RANGE_LIMITS,
    ) -> None:
        """Query as `range` does, and let `reader` read the answers; the reader itself limits the samples."""
        deadline = Deadline(timeout_seconds)
        for part in range_parts(start, end, step_seconds):
            self._read_part(reader, query, part, limits, deadline)

    def _read_part(
        self, reader: RangeReader, query: str, part: RangePart, limits: RangeLimits, deadline: Deadline
    ) -> None:
        """Query one part, or the steps of it that the server keeps, and let `reader` read the answer."""
        asked = part
        for moves_left in range(MOST_MOVES, -1, -1):
            with self._answered_part(query, asked, limits, deadline) as answer:
                kept = asked.kept_steps(first_points(answer.body, self._pace)) if moves_left else None
                if kept is None:
                    reader.add(part, answer.body)
                    return
            # The next one may have to wait until this answer is released.
            del answer
            asked = kept

    @contextmanager
    def _answered_part(
        self, query: str, part: RangePart, limits: RangeLimits, deadline: Deadline
    ) -> Iterator[HttpAnswer]:
        """Yield the answer for a part; what the block raises counts as the query's result."""
        try:
            left = deadline.remaining()
        except DeadlinePassedError as e:
            cause = f"the range was not answered within {deadline.seconds:.3g} s"
            raise PrometheusTimeoutError(query, cause) from e
        parameters = (
            ("query", query),
            ("start", _timestamp(part.start / 1000)),
            ("end", _timestamp(part.end / 1000)),
            ("step", _timestamp(part.step / 1000)),
            ("timeout", f"{left:.3f}"),
        )
        elements = AnswerLimits(limits.max_bytes, limits.max_series)
        question = SentQuery(query, "range", _RANGE_PATH, parameters, MATRIX, elements, deadline)
        with self._sender.count_result(question):
            yield self._ask_current(question)

    def series(
        self,
        selector: str,
        *,
        start: float,
        timeout_seconds: float,
        limit: int | None = None,
        limits: AnswerLimits = SERIES_LIMITS,
    ) -> SeriesAnswer:
        """Return the label sets of the series that match a selector and had samples since `start` (Unix seconds).

        The request is sent when the iteration begins. Request and iteration end within `timeout_seconds`, and raise
        PrometheusError. A server that supports `limit` (by default, the limit in `limits`) returns at most that many
        series, with a warning if there are more; older servers ignore it.
        """
        most = limits.max_samples if limit is None else limit
        parameters = (("match[]", selector), ("start", _timestamp(start)), ("limit", str(most)))
        question = SentQuery(selector, "series", _SERIES_PATH, parameters, SERIES, limits, Deadline(timeout_seconds))
        return SeriesAnswer(selector, lambda: self._stream_answer(question), limits)

    def fetch_start(self, timeout_seconds: float) -> Started:
        """Return when the server started. Each request has half of the time; a second one is sent only after a restart.

        Raises PrometheusError, even if the server only lacks this information.
        """
        found = ask_started(self._server, timeout_seconds / 2)
        if self._collected_before is None or self._collected_before[0] != found.process:
            collected = self.instant(COLLECTED_BEFORE, timeout_seconds=timeout_seconds / 2, at=found.process)
            refuse_partial(COLLECTED_BEFORE, collected.warnings)
            self._collected_before = found.process, any(collected.batches(self._pace))
        return found if self._collected_before[1] else replace(found, configured=-math.inf)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the idle connections."""
        self._server.close()

    @contextmanager
    def _stream_answer(self, question: SentQuery) -> Iterator[Iterable[bytes]]:
        with self._sender.count_result(question):
            with self._sender.success(question) as answer:
                refuse_other_time(question.asked, answer.headers, self._clock())
                yield answer
            # A server that is behind names too few series. They would count as missing until the next look-up, also
            # after its clock is right. It is asked when the connection is free again: there may be no other one.
            self._server_time.refuse_if_wrong(question.asked, question.deadline)

    def _ask_current(self, question: SentQuery) -> HttpAnswer:
        """Return the answer if it is a success, and if the server's clock agrees with ours."""
        answer = self._sender.ask(question)
        refuse_other_time(question.asked, answer.headers, self._clock())
        self._server_time.refuse_if_wrong(question.asked, question.deadline)
        return answer

    def _ask_time(self, timeout_seconds: float) -> float:
        parameters = (("query", TIME_QUERY), ("timeout", f"{timeout_seconds:.3f}"))
        deadline = Deadline(timeout_seconds)
        question = SentQuery(TIME_QUERY, "clock", _QUERY_PATH, parameters, VECTOR, TIME_LIMITS, deadline)
        with self._sender.count_result(question):
            return stated_time(self._sender.ask(question).body).present


def _timestamp(seconds: float) -> str:
    """Return Unix seconds in the format of the API, whose resolution is a millisecond."""
    return f"{seconds:.3f}".rstrip("0").rstrip(".")
