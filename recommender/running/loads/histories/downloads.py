"""Asks Prometheus for past loads, in pieces, and only for missing parts.

The newest piece comes first, since the recent past is what models need most. A piece that is too large for Prometheus,
or takes too long, is halved. Between two pieces there is a pause as long as the last piece took, two seconds at most.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from adapter.foundation.service.runtime.logs import StateLog
from adapter.foundation.sources.prometheus.answers.ranges import RangeLimits
from adapter.foundation.sources.prometheus.errors import (
    AnswerTooLargeError,
    PrometheusError,
    PrometheusTimeoutError,
    QueryRefusedError,
)
from adapter.foundation.time.backoff import Backoff

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
    from recommender.running.loads.histories.load_histories import TargetHistory
    from recommender.running.loads.histories.sample_ring import Span
    from recommender.running.loads.load_needs import LoadNeed

_log = logging.getLogger(__name__)

MOST_POINTS: Final = 10_000
"""The largest number of points of one series in one request; Prometheus returns at most 11,000."""
MOST_SAMPLES: Final = 400_000
"""The largest number of samples of all series in one request: about 8 MB of JSON."""
PIECE_SECONDS: Final = 60.0
"""Time limit of a request."""
PAUSE_SECONDS: Final = 2.0
CHECK_SECONDS: Final = 300.0
"""How often a complete history is checked for missing parts."""
_MOST_FAILURES: Final = 6
"""The number of consecutive failures after which the download ends; after a failure of a piece that is too large, the
next piece has half of its size."""
_SERIES_OF_THE_PAST: Final = 5
"""How many series a query may have had in the past, for each series that it has now."""


@dataclass(slots=True)
class _Progress:
    """The progress of the download of one history."""

    history: TargetHistory
    most_samples: int = MOST_SAMPLES
    due: float = 0.0
    spans: list[Span] = field(default_factory=list)
    """The spans that are still to be requested in this round, oldest first."""
    backoff: Backoff = field(default_factory=lambda: Backoff(5.0, CHECK_SECONDS, jitter_ratio=0.2))

    def points(self) -> int:
        """Return how many grid times one request may ask for."""
        return max(1, min(MOST_POINTS, self.most_samples // max(1, len(self.history.targets()))))


@dataclass(slots=True)
class Downloads:
    """Downloads the missing parts of histories. Not thread-safe."""

    client: Callable[[LoadNeed], PrometheusClient | None]
    """Returns the client to query for a load; None if there is none."""
    count: Callable[[str, str], None]
    """Called with the recommendation and the result of each request."""
    monotonic: Callable[[], float]
    wall: Callable[[], float]
    _progress: dict[str, _Progress] = field(default_factory=dict)
    _states: StateLog = field(default_factory=lambda: StateLog(_log))

    def keep(self, names: set[str]) -> None:
        """Forget the progress of all but these recommendations."""
        self._progress = {name: each for name, each in self._progress.items() if name in names}

    def step(self, history: TargetHistory) -> bool:
        """Ask for the newest piece that a history lacks, if one is due; return whether more pieces are to follow."""
        progress = self._progress_of(history)
        started, client = self.monotonic(), self.client(history.need)
        if started < progress.due or client is None:
            return bool(progress.spans) and client is not None
        if not progress.spans:
            progress.spans = history.missing_times(self.wall())
        if not progress.spans:
            history.is_downloaded = True
            progress.due = started + CHECK_SECONDS
            return False
        if not self._take_piece(client, progress):
            progress.spans = []
            progress.due = self.monotonic() + progress.backoff.delay()
            return False
        self._states.recovered(history.need.name, f"the history of {history.need.name} is downloaded again")
        progress.backoff.reset()
        ended = self.monotonic()
        progress.due = ended + (min(ended - started, PAUSE_SECONDS) if progress.spans else CHECK_SECONDS)
        history.is_downloaded = history.is_downloaded or not progress.spans
        return bool(progress.spans)

    def all(self, history: TargetHistory, report: Callable[[float], None]) -> None:
        """Ask for everything that a history lacks, without pauses; give up after some consecutive failures.

        `report` gets the share of the history that is still lacking.
        """
        progress, failures = _Progress(history), 0
        progress.spans = history.missing_times(self.wall())
        while progress.spans and failures < _MOST_FAILURES and (client := self.client(history.need)) is not None:
            lacking = sum(last - first + 1 for first, last in progress.spans)
            report(lacking * history.step_seconds / history.need.settings.history_seconds)
            failures = 0 if self._take_piece(client, progress) else failures + 1

    def _progress_of(self, history: TargetHistory) -> _Progress:
        """Return the progress of a history; drop the progress of a former history of the same recommendation."""
        progress = self._progress.get(history.need.name)
        if progress is None or progress.history is not history:
            progress = self._progress[history.need.name] = _Progress(history)
        return progress

    def _take_piece(self, client: PrometheusClient, progress: _Progress) -> bool:
        """Ask for the newest piece of the spans; return whether it has been downloaded, and keep it there if not."""
        name, (first, last) = progress.history.need.name, progress.spans.pop()
        begin = max(first, last - progress.points() + 1)
        if problem := self._download_piece(client, progress.history, (begin, last), progress):
            progress.spans.append((first, last))
            message = f"the history of {name} is not complete: {problem}"
            self._states.failed(name, message, level=logging.WARNING)
        elif begin > first:
            progress.spans.append((first, begin - 1))
        return not problem

    def _download_piece(self, client: PrometheusClient, history: TargetHistory, span: Span, progress: _Progress) -> str:
        """Return why the piece has not been downloaded; empty if it has."""
        series, points = max(1, len(history.targets())), span[1] - span[0] + 1
        try:
            answer = client.range(
                history.need.query,
                start=span[0] * history.step_seconds,
                end=span[1] * history.step_seconds,
                step_seconds=history.step_seconds,
                timeout_seconds=PIECE_SECONDS,
                limits=RangeLimits(
                    max_series=max(1_000, _SERIES_OF_THE_PAST * series),
                    max_samples=max(MOST_SAMPLES, _SERIES_OF_THE_PAST * series * points),
                ),
            )
        except PrometheusError as error:
            self.count(history.need.name, error.result)
            if isinstance(error, AnswerTooLargeError | PrometheusTimeoutError | QueryRefusedError):
                progress.most_samples = max(series, progress.most_samples // 2)
            return str(error)
        if answer.warnings:
            # A part of the series would result in a load that is too small.
            self.count(history.need.name, "partial")
            return f"Prometheus answered with a warning, so the values may be partial: {answer.warnings[0]}"
        history.fill(span, answer.series)
        self.count(history.need.name, "ok")
        return ""
