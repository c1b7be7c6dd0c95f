"""Keeps the load of the last week and its backtest: from the day, from Prometheus's past, and across restarts."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from adapter.foundation.service.runtime.logs import StateLog
from adapter.nodes.model.week import Backtest, HourForecast, LoadWeek
from adapter.nodes.windows.next_hour_forecast import backtest, forecast
from adapter.nodes.windows.week import week_at, with_day, with_past

if TYPE_CHECKING:
    from adapter.foundation.time.clock import Clock
    from adapter.foundation.time.pace import Pace
    from adapter.nodes.model.day import LoadDay
    from adapter.nodes.model.loads import LoadSnapshot
    from adapter.nodes.queries.refresh_results import RefreshResult
    from adapter.nodes.queries.refresher import SampleRefresher
    from adapter.nodes.snapshot.machine_identity import Machines
    from adapter.nodes.state_file.state_file import WeekFile

_log = logging.getLogger(__name__)

_SHARE_OF_JUDGING: Final = 0.05
"""Largest share of time that backtests may take while the past is being filled."""


class WeekKeeper:
    """The week of one configuration. Refreshes come from one task; the file may be written by another."""

    def __init__(self, file: WeekFile | None, clock: Clock, pace: Pace) -> None:
        self._file = file
        self._clock = clock
        self._pace = pace
        self._week = LoadWeek()
        self._day: LoadDay | None = None
        self._backtest = Backtest()
        self._judged: LoadWeek | None = None
        self._judge_again_at = float("-inf")
        """Time of the next backtest, in seconds of the monotonic clock."""
        self._is_from_file = False
        self._states = StateLog(_log)

    def read_file(self) -> None:
        """Use the week of the state file, if there is one."""
        week = None if self._file is None else self._file.read()
        if week is not None:
            self._use(week_at(week, self._clock.wall()))
            self._is_from_file = True

    def add_refresh(self, day: LoadDay, result: RefreshResult, machines: Machines) -> None:
        """Bring the week up to date with the clock, the nodes and the day after a refresh."""
        week = week_at(self._week, self._clock.wall(), machines.names, result.moved)
        if day is not self._day:
            self._day, week = day, with_day(week, day)
        self._use(week)
        if self._is_from_file:
            # This is not done when the file is read, because the first answer of a restarted process waits for that.
            self._is_from_file = False
            self.judge()

    def fill(self, refresher: SampleRefresher, machines: Machines, seconds: float, *, is_needed: bool) -> int:
        """Ask for a part of the past, and wait at most `seconds` for it; return the number of queries sent.

        `is_needed` is whether a policy of the configuration predicts.
        """
        answer = refresher.fill_week(self._clock.wall(), self._week, machines.nodes, seconds, is_needed=is_needed)
        if answer.failure:
            message = "the load of the last week is not complete, so the next hour of nodes may not be predicted"
            self._states.failed("week", f"{message}: {answer.failure}", level=logging.WARNING)
        elif answer.queries:
            self._states.recovered("week", "the load of the last week is read again")
        week = self._week
        for past in answer.slots:
            week = with_past(week, machines.own(past))
        self._use(week)
        return answer.queries

    def judge(self) -> None:
        """Backtest the week if it has changed: right after each quarter of an hour, or else as often as is cheap."""
        began, judged = self._clock.monotonic(), self._judged
        if judged is self._week or (judged and judged.end == self._week.end and began < self._judge_again_at):
            return
        self._judged, self._backtest = self._week, backtest(self._week, self._pace)
        ended = self._clock.monotonic()
        self._judge_again_at = ended + (ended - began) / _SHARE_OF_JUDGING

    def forecast(self, snapshot: LoadSnapshot) -> HourForecast:
        """Return the forecast of the next hour for a snapshot's nodes."""
        return forecast(snapshot, self._week, self._backtest, self._clock.wall())

    def write_file(self) -> None:
        """Write the week to the state file if that is due."""
        if self._file is not None:
            self._file.write_if_due()

    def _use(self, week: LoadWeek) -> None:
        if week is self._week:
            return
        self._week = week
        if self._file is not None and week.nodes:
            self._file.offer(week)
