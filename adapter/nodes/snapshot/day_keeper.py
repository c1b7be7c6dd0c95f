"""Keeps the load of the last day: from the samples of each refresh, from Prometheus's past, and across restarts."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from adapter.foundation.service.runtime.logs import StateLog
from adapter.nodes.model.day import LoadDay
from adapter.nodes.windows.day import complete_slots, day_after, day_of_samples, samples_of_day

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.nodes.queries.refresh_results import RefreshResult
    from adapter.nodes.queries.refresher import SampleRefresher
    from adapter.nodes.snapshot.machine_identity import Machines
    from adapter.nodes.state_file.state_file import SampleFile

_log = logging.getLogger(__name__)


class DayKeeper:
    """The day of one configuration. Refreshes come from one task; the file may be written by another."""

    def __init__(self, file: SampleFile | None, wall: Callable[[], float]) -> None:
        """`wall` returns Unix seconds."""
        self._file = file
        self._wall = wall
        self._day = LoadDay()
        self._states = StateLog(_log)

    @property
    def day(self) -> LoadDay:
        """The load of the last day."""
        return self._day

    def read_file(self) -> None:
        """Take the content of the state file."""
        samples = None if self._file is None else self._file.read()
        if samples is not None:
            self._use(day_of_samples(samples, self._wall()))

    def add_refresh(self, result: RefreshResult, machines: Machines) -> None:
        """Add the samples of a refresh."""
        now = self._wall()
        slots = complete_slots(result.samples, now).values()
        self._use(day_after(self._day, slots, now, machines.names, result.moved))

    def fill(self, refresher: SampleRefresher, machines: Machines, seconds: float) -> int:
        """Ask for a part of the past, and wait at most `seconds` for it; return the number of queries sent."""
        answer = refresher.fill_day(self._wall(), self._day, machines.nodes, seconds)
        if answer.failure:
            message = "the load of the last day is not complete, so windows of an hour and a day may be missing"
            self._states.failed("day", f"{message}: {answer.failure}", level=logging.WARNING)
        elif answer.queries:
            self._states.recovered("day", "the load of the last day is read again")
        if answer.slots:
            slots = [machines.own(slots) for slots in answer.slots]
            self._use(day_after(self._day, slots, self._wall(), machines.names))
        return answer.queries

    def write_file(self) -> None:
        """Write the day to the state file if that is due."""
        if self._file is not None:
            self._file.write_if_due()

    def _use(self, day: LoadDay) -> None:
        if day is self._day:
            return
        self._day = day
        if self._file is not None and day.means:
            self._file.offer(samples_of_day(day))
