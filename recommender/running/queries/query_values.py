"""The value of a PromQL expression, as an input: exactly one number, or the reason why there is none."""

from __future__ import annotations

import logging
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.state import Observed, Unknown
from adapter.foundation.service.runtime.logs import StateLog
from adapter.foundation.sources.prometheus.answers.decoding import Sample
from adapter.foundation.sources.prometheus.errors import PrometheusError, QueryRefusedError
from adapter.foundation.sources.prometheus.public_errors import public_text, without_series
from recommender.decisions.texts.times import CLOCK_SLACK_SECONDS
from recommender.running.queries.sample_times import TimesQuery, must_search, times_of, times_query
from recommender.running.queries.series_counts import series_query, whole_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
    from adapter.foundation.time.pace import Pace

_log = logging.getLogger(__name__)

_SHOWN_WARNING_CHARACTERS = 200
NO_PROMETHEUS: Final = "the configuration has no `prometheus:`: add its url"
COUNT_SECONDS: Final = 2.0
"""How long the numbers of series may take beside the value: it is already known, and late for its poll after 8 s."""
_MILLISECOND = 0.001
"""The minimum time between two samples, in seconds."""


class QueryValues:
    """Queries one Prometheus. `value` is for any number of threads."""

    def __init__(
        self,
        client: PrometheusClient | None,
        pace: Pace,
        timeout_seconds: float,
        backend: str = "",
        lacking: str = NO_PROMETHEUS,
        *,
        is_public: bool = False,
    ) -> None:
        """Without a client, there is no Prometheus to query, for the reason `lacking`.

        `backend` is the name of this Prometheus in messages, if there are several. With `is_public`, tenants read why a
        query has no value, in the status of their objects and in events, so the log alone has the words and the address
        of Prometheus.
        """
        self._client = client
        self._pace = pace
        self._timeout_seconds = timeout_seconds
        self._called = f"Prometheus {backend}" if backend else "Prometheus"
        self._lacking = f"{self._called}: {lacking}" if backend else lacking
        self._is_public = is_public
        self._states = StateLog(_log)

    def close(self) -> None:
        """Close the connections; no query is sent any more."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def client(self) -> PrometheusClient | None:
        """Return the client of the Prometheus; None if there is none."""
        return self._client

    def value(self, query: str) -> Observed[float] | Unknown:
        """Return the single value of the query at present, with the time of its samples."""
        found = self.samples(query)
        if isinstance(found, Unknown):
            return found
        if not found.value:
            return Unknown(f"{query} has no value at present: check that its series exist")
        if len(found.value) != 1:
            fix = "write an expression that has exactly one value, such as sum(…)"
            return Unknown(f"{query} has {len(found.value)} values: {fix}")
        return Observed(found.value[0].value, found.value[0].timestamp)

    def samples(self, query: str, by: tuple[str, ...] = ()) -> Observed[tuple[Sample, ...]] | Unknown:
        """Return all samples of the query at present, observed at the time of the evaluation.

        The `timestamp` of each sample is the time of the data that it comes from (`sample_times`); `by` has the labels
        that name the target of a sample, if each target has its own data. A partial answer counts as no
        answer, because a sum would be too small.
        """
        found = self._query_samples(query, None)
        if isinstance(found, Unknown) or not found.value:
            return found
        # Prometheus states the time of the evaluation: an answer for another time counts as being of that time.
        stated = [sample.timestamp for sample in found.value]
        if max(stated) > found.time + CLOCK_SLACK_SECONDS:
            ahead = max(stated) - found.time
            return Unknown(f"{self._called} answered {query} for a time {ahead:.0f} s in the future: check its clock")
        asked = times_query(query, by)
        if math.isinf(asked.range_seconds):
            return Unknown(
                f"it is not known how far back {query} looks: write its ranges and offsets as durations, as in [2h]"
            )
        times = self._times(asked, found.value, found.time)
        if isinstance(times, Unknown):
            return times
        dated = (
            Sample(sample.labels, sample.value, min(sample.timestamp, time))
            for sample, time in zip(found.value, times, strict=True)
        )
        return Observed(tuple(dated), found.time)

    def spacing_seconds(self, query: str, newest: float) -> float | None:
        """Return the time between the newest sample of a query, at `newest`, and the one before it; None if unknown."""
        # The first sample of a series has none before it.
        asked = replace(times_query(query), needed=0)
        times = self._times(asked, (Sample({}, 0.0, newest),), newest - _MILLISECOND, is_logged=False)
        return None if isinstance(times, Unknown) else newest - times[0]

    def whole_value(
        self, query: str, found: Observed[float], seconds: float, took_seconds: float
    ) -> Observed[float] | None:
        """Return the value of the query if it has at least the series that it had that many seconds ago.

        It is None if it had none then, or has fewer now, or if that cannot be asked. `found` is its value a moment ago,
        which is returned for a query of whose series nothing can be said. The server took `took_seconds` for it and has
        as much time for the value again, but no more than for any query.
        """
        counts = series_query(query, seconds)
        if not counts:
            return found
        limit = COUNT_SECONDS + min(took_seconds, self._timeout_seconds)
        answer = self._query_samples(counts, None, limit, is_logged=False)
        value = whole_value(answer.value) if isinstance(answer, Observed) else None
        return None if value is None else replace(found, value=value)

    def _times(
        self, asked: TimesQuery, samples: Sequence[Sample], at: float, *, is_logged: bool = True
    ) -> list[float] | Unknown:
        """Return the time of each sample's data."""
        rows: tuple[Sample, ...] = ()
        for query in (asked.text, asked.search):
            if query and (query == asked.text or must_search(asked, rows)):
                found = self._query_samples(query, at, is_logged=is_logged)
                if isinstance(found, Unknown):
                    return replace(found, reason=f"the age of its samples cannot be asked: {found.reason}")
                rows += found.value
        return times_of(asked, samples, rows, at)

    def _query_samples(
        self, query: str, at: float | None, seconds: float | None = None, *, is_logged: bool = True
    ) -> Observed[tuple[Sample, ...]] | Unknown:
        """Return the samples of an answer; `at` is the time for which the query is evaluated, None for now.

        `seconds` is the time limit; None means the usual one. A look-up whose caller can do without it is not logged.
        """
        client = self._client
        if client is None:
            return Unknown(self._lacking)
        try:
            answer = client.instant(query, timeout_seconds=seconds or self._timeout_seconds, at=at)
            samples = tuple(sample for batch in answer.batches(self._pace) for sample in batch)
        except PrometheusError as error:
            problem, public = f"{self._called} has no value: ", public_text(error)
            reason = self._reason(query, problem, str(error), public, is_logged=is_logged)
            return Unknown(reason, is_refused=isinstance(error, QueryRefusedError))
        if answer.warnings:
            warning = answer.warnings[0][:_SHOWN_WARNING_CHARACTERS]
            partial = f"{self._called} answered {query} with a warning, so the value may be partial: "
            return Unknown(self._reason(query, partial, warning, without_series(warning), is_logged=is_logged))
        self._states.recovered(query, f"{self._called} answers again", query=query)
        if answer.histograms_skipped:
            fix = "write an expression that has numbers, such as histogram_count(…)"
            return Unknown(f"{query} has a histogram: {fix}")
        return Observed(samples, answer.evaluated_at)

    def _reason(self, query: str, problem: str, detail: str, public_detail: str | None, *, is_logged: bool) -> str:
        """Return why a query has no value; tenants may read all of the detail if there is no `public_detail`."""
        if not self._is_public or public_detail in {None, detail}:
            return problem + detail
        message = f"{problem}{public_detail}"
        if is_logged:
            self._states.failed_because(query, message, detail, level=logging.WARNING, error=detail)
        return message
