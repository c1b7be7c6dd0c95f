"""The sources of readings in one record, which the code that queries, answers and explains receives as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adapter.foundation.sources.objects import ObjectSource
    from adapter.foundation.time.clock import Clock
    from adapter.foundation.time.pace import Pace
    from adapter.metrics.readings.backends import Backends
    from adapter.metrics.readings.readings_settings import ReadingSettings
    from adapter.metrics.readings.samples.silent_series import SilentSeries


@dataclass(frozen=True, slots=True)
class ReadingSources:
    """The servers and objects that readings are made from, and how: settings, clock and pace."""

    backends: Backends
    objects: ObjectSource
    settings: ReadingSettings
    clock: Clock
    pace: Pace
    silent_series: SilentSeries | None = None
    """The series that a serving process remembers as silent; None if that is not known."""
