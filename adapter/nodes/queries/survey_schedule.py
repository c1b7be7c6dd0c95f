"""Sends the survey, and keeps its last answer, which describes the series before they are queried."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

from adapter.foundation.sources.prometheus.errors import (
    ERRORS_OF_SERVER,
    PrometheusError,
    PrometheusTimeoutError,
    QueryRefusedError,
    UnexpectedAnswerError,
    refuse_partial,
)
from adapter.nodes.model.loads import LoadResource
from adapter.nodes.queries.expressions import ResourceQuery, matchers_of, rate_function, resource_query, unions
from adapter.nodes.queries.scrape_intervals import longest_interval
from adapter.nodes.queries.series_survey import SURVEY_SECONDS, Survey, past_of, survey_of, survey_parts

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
    from adapter.foundation.time.pace import Pace
    from adapter.nodes.exporters.claims import Past, Source
    from adapter.nodes.model.samples import SampleGrid
    from adapter.nodes.model.scheduling_settings import SchedulingSettings

LabelledValue: TypeAlias = tuple[Mapping[str, str], float]

_SURVEY_AGAIN_SECONDS: Final = 60.0
_MOST_QUERIES: Final = 8
"""The largest number of queries in which a survey is sent."""


class KeptSurvey:
    """The last survey. Used by one thread at a time."""

    def __init__(
        self, client: PrometheusClient, settings: SchedulingSettings, pace: Pace, monotonic: Callable[[], float]
    ) -> None:
        """Take the client and the configuration."""
        self._client = client
        self._settings = settings
        self._pace = pace
        self._monotonic = monotonic
        self._due = -math.inf
        self._has_asked_for_past = False
        self._past: Mapping[LoadResource, Mapping[Source, Past]] = {}
        self.last = Survey()
        """The last survey; empty before the first answer."""
        self._asked_at = -math.inf
        self._most_queries = 1
        """The number of queries in which the survey is sent."""
        self._sent = 0

    def is_due(self, moment: float) -> bool:
        """Return whether the survey is due at a moment of the monotonic clock."""
        return moment >= self._due

    def hasten(self) -> None:
        """Make the survey due soon, since an answer was too large and there may be new exporters."""
        self._due = min(self._due, self._asked_at + _SURVEY_AGAIN_SECONDS)

    def ask(
        self, now: float, timeout_seconds: float, nodes: int | None, *, needs_past: bool, rest_seconds: float = 0.0
    ) -> int:
        """Send the survey at `now` (Unix seconds), for this number of nodes; return the number of queries sent.

        `needs_past` is whether the sources from before the start still matter, as they do until a query is first
        answered. `rest_seconds` is how long other queries go first if there is no server that answers.

        If the survey fails, the last one stays, unless that found no series: nobody knows whether there are any now, so
        each resource is queried, and the failures of these queries are reported.
        """
        self._asked_at = self._monotonic()
        # Sources from before the start are requested only once, since a store may be slow to answer that.
        with_past = needs_past and not self._has_asked_for_past
        parts = survey_parts(matchers_of(self._settings.matchers), with_past=with_past)
        self._sent = 0
        try:
            samples = self._samples(parts, math.floor(now), timeout_seconds)
        except PrometheusError as e:
            # A server that was not there has not been slow: it is asked again soon, before its first answer.
            is_away = with_past and isinstance(e, ERRORS_OF_SERVER)
            self._has_asked_for_past |= with_past and not is_away
            # Queries also work without it, but may be larger than necessary.
            self._due = self._monotonic() + (rest_seconds if is_away else _SURVEY_AGAIN_SECONDS)
            # What is cached for a survey would grow if the same one stayed for ever.
            self.last = replace(self.last) if self._is_measured else Survey()
            return self._sent
        self.last = survey_of(samples, nodes)
        if with_past:
            self._past, self._has_asked_for_past = past_of(samples, now), True
        # While no node is measured, each refresh looks for the first exporters, and nothing else is queried.
        self._due = self._monotonic() + (SURVEY_SECONDS if self._is_measured else 0.0)
        return self._sent

    def _samples(self, parts: Mapping[str, str], at: int, timeout_seconds: float) -> list[LabelledValue]:
        """Return the samples of the whole survey, which is sent in shorter queries if the server refuses longer ones.

        VictoriaMetrics refuses a query of more than 16 KiB, a gateway may refuse a shorter one.
        """
        while True:
            try:
                return [
                    sample
                    for query in unions(parts, self._most_queries)
                    for sample in self._query_samples(query, at, timeout_seconds)
                ]
            except QueryRefusedError:
                if self._most_queries >= _MOST_QUERIES:
                    raise
                self._most_queries *= 2

    def _query_samples(self, query: str, at: int, timeout_seconds: float) -> list[LabelledValue]:
        left = timeout_seconds - (self._monotonic() - self._asked_at)
        if left <= 0:
            raise PrometheusTimeoutError(query, f"the survey was not answered within {timeout_seconds:.3g} s")
        self._sent += 1
        answer = self._client.instant(query, timeout_seconds=left, at=at)
        samples: list[LabelledValue] = [
            (one.labels, one.value) for batch in answer.batches(self._pace) for one in batch
        ]
        # Partial counts would claim that series in another store do not exist.
        refuse_partial(query, answer.warnings)
        if not all(math.isfinite(value) for _, value in samples):
            raise UnexpectedAnswerError(query, "a count is not a number")
        return samples

    @property
    def _is_measured(self) -> bool:
        return any(self.may_answer(resource) for resource in LoadResource)

    def may_answer(self, resource: LoadResource) -> bool:
        """Return whether a query may have a result; True if nothing is known about its series."""
        is_known = resource in self.last.series and resource not in self._settings.queries
        return not is_known or self.last.series[resource] > 0 or resource in self.last.recorded

    def past(self, resource: LoadResource) -> Mapping[Source, Past]:
        """Return the sources that measured a resource before this process started."""
        # The results of a configured expression do not show their sources as those of the built-in ones do.
        return {} if resource in self._settings.queries else self._past.get(resource, {})

    def query(self, resource: LoadResource, grids: Mapping[LoadResource, SampleGrid]) -> ResourceQuery:
        """Return the query for a resource, with the rate that fits the scrape interval."""
        # Intervals from the times of samples are exact; by the survey's counts, a new target seems to be scraped
        # rarely.
        cpu = grids.get(LoadResource.CPU)
        seen = longest_interval(cpu.scrape_seconds) if cpu is not None else math.nan
        return resource_query(
            resource,
            rate=rate_function(self.last.longest_scrape_seconds if math.isnan(seen) else seen),
            matchers=self.last.matchers(resource, self._settings.matchers),
            override=self._settings.queries.get(resource),
            recorded=resource in self.last.recorded,
        )
