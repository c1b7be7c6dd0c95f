"""Keeps the last day and week of nodes, and requests missing parts with queries that refreshes leave unused."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from adapter.nodes.queries.query_steps import queries_allowed
from adapter.nodes.windows.day import with_day

if TYPE_CHECKING:
    from adapter.nodes.model.loads import LoadSnapshot
    from adapter.nodes.queries.refresh_results import RefreshResult
    from adapter.nodes.queries.refresher import SampleRefresher
    from adapter.nodes.snapshot.day_keeper import DayKeeper
    from adapter.nodes.snapshot.machine_identity import Machines
    from adapter.nodes.snapshot.week_keeper import WeekKeeper

_LONGEST_FILL_SECONDS: Final = 5.0
_SHARE_OF_A_REFRESH: Final = 0.25
_KEPT_EVERY: Final = 10
"""If refreshes need all allowed queries, one query in this many refreshes is reserved for the past."""


@dataclass(slots=True)
class PastKeeper:
    """The past of one configuration. Refreshes come from one task; the files may be written by another."""

    day: DayKeeper
    week: WeekKeeper
    refresh_seconds: float
    refreshes: int = 0
    fills: int = 0
    """How many refreshes have left a query for the past; the day and the week take turns by this number."""

    @property
    def kept_queries(self) -> int:
        """How many queries the next refresh reserves for the past."""
        return 1 if self.refreshes % _KEPT_EVERY == _KEPT_EVERY - 1 else 0

    def read_files(self) -> None:
        """Take the content of the state files."""
        self.day.read_file()
        self.week.read_file()

    def add_refresh(self, result: RefreshResult, machines: Machines) -> None:
        """Add the samples of a refresh."""
        self.refreshes += 1
        self.day.add_refresh(result, machines)
        self.week.add_refresh(self.day.day, result, machines)

    def added_to(self, snapshot: LoadSnapshot) -> LoadSnapshot:
        """Return the snapshot with the windows of the day and the forecast of the next hour added."""
        found = with_day(snapshot, self.day.day)
        return replace(found, forecast=self.week.forecast(found))

    def fill(
        self,
        refresher: SampleRefresher,
        result: RefreshResult,
        machines: Machines,
        *,
        needs_week: bool,
        is_answered: bool = True,
    ) -> None:
        """Ask for a part of the past if a query is left for that, then backtest the week. Day and week take turns.

        `needs_week` is whether a policy of the configuration predicts; `is_answered` is whether Prometheus answers now.
        """
        if is_answered and result.queries < queries_allowed(self.refresh_seconds):
            seconds = min(_LONGEST_FILL_SECONDS, _SHARE_OF_A_REFRESH * self.refresh_seconds)
            week = partial(self.week.fill, is_needed=needs_week)
            turns = (week, self.day.fill) if self.fills % 2 else (self.day.fill, week)
            self.fills += 1
            # The second one asks if the first one has nothing to ask.
            any(turn(refresher, machines, seconds) for turn in turns)
        self.week.judge()

    def write_files(self) -> None:
        """Write those state files that are due."""
        self.day.write_file()
        self.week.write_file()
