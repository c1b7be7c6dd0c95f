"""Writes the days before the day that is shown, as blocks of Prometheus's own storage.

Ten days of the same generator with other seeds are written as samples of a recording rule, which Prometheus continues
as soon as it runs, so queries see ten days of recorded load. These days are as compressed as the day that follows, and
end in the evening of the last day. The night after it is the time left for the set-up.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from demo.load import NIGHT_BEGINS, day_of
from demo.machine.processes import ProcessFailedError
from demo.machine.prometheus import program

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from demo.settings import Settings

DAYS: Final = 10
METRIC: Final = "namespace:websocket_connections:sum"
RULES: Final = {
    "groups": [
        {
            "name": "connections",
            "interval": "500ms",
            "rules": [{"record": METRIC, "expr": "sum by (namespace) (websocket_connections)"}],
        }
    ]
}
"""The recording rule whose samples a real Prometheus would have recorded for ten days."""
_MOST_OF_THE_NIGHT: Final = 0.97
_PROMTOOL_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Calendar:
    """The times at which the day that is shown and the days before it begin, in Unix seconds."""

    begins: float
    day_seconds: float

    def next_beginning(self, now: float) -> float:
        """Return when the day can begin: as planned, or days of the same length later."""
        missed = max(0.0, now - self.begins)
        return self.begins + self.day_seconds * -(-missed // self.day_seconds)


def calendar_of(settings: Settings, now: float) -> Calendar:
    """Return the calendar whose last evening is now, so that nearly a whole night is left for the set-up."""
    night_seconds = _MOST_OF_THE_NIGHT * (1 - NIGHT_BEGINS) * settings.seconds
    return Calendar(round(now + night_seconds), settings.seconds)


def past_samples(settings: Settings, calendar: Calendar, until: float) -> Iterator[tuple[float, int]]:
    """Yield the connections at each second of the days before, up to a time."""
    for ago in range(DAYS, 0, -1):
        day, begins = day_of(settings.seconds, seed=settings.seed + ago), calendar.begins - ago * settings.seconds
        for second in range(int(settings.seconds)):
            if begins + second <= until:
                yield begins + second, day.connections(second)


def record_past(data: Path, namespace: str, settings: Settings, calendar: Calendar, until: float) -> None:
    """Write the past of a fleet's connections into the data folder of a Prometheus that does not run yet.

    Raises ProcessFailedError.
    """
    data.mkdir(parents=True, exist_ok=True)
    labels = f'{{namespace="{namespace}"}}'
    lines = [f"{METRIC}{labels} {value} {time:.3f}" for time, value in past_samples(settings, calendar, until)]
    text = data.with_suffix(".openmetrics")
    text.write_text("\n".join([f"# TYPE {METRIC} gauge", *lines, "# EOF", ""]))
    command = [str(program("promtool")), "tsdb", "create-blocks-from", "openmetrics", "--quiet", str(text), str(data)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_PROMTOOL_SECONDS, check=False)
    if done.returncode:
        raise ProcessFailedError(f"promtool cannot write the demo's past: {done.stderr.strip()}")


def write_rules(path: Path) -> Path:
    """Write the recording rule as a file of Prometheus, and return its path; JSON is YAML."""
    path.write_text(json.dumps(RULES))
    return path
