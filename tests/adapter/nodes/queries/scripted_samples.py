"""A scripted Prometheus with the samples of nodes, and with surveys of their exporters."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from adapter.foundation.sources.prometheus.answers.answer_elements import INSTANT_LIMITS
from adapter.foundation.sources.prometheus.answers.decoding import read_instant
from adapter.foundation.sources.prometheus.answers.ranges import range_parts
from adapter.foundation.sources.prometheus.errors import PrometheusTimeoutError, PrometheusUnreachableError
from adapter.foundation.time.pace import UNPACED
from adapter.nodes.model.loads import LoadResource
from adapter.nodes.queries.expressions import NEWEST, PART_LABEL, RATIO
from tests.adapter.nodes.queries.answers import matrix_body

if TYPE_CHECKING:
    from adapter.foundation.sources.prometheus.answers.ranges import RangeReader

START = 1_800_000_000.0
INTERVAL = 30.0
PARTS = re.compile(rf'"{PART_LABEL}", "([^"]+)", "", ""')


class Scripted:
    """A Prometheus that answers range queries with a steady load, with nothing, or too late."""

    mode = "steady"

    def __init__(self) -> None:
        self.loads = {"a": 0.5}
        self.warnings: list[str] = []
        """What the answers to range queries warn of."""
        self.modes: dict[str, float] = {}
        """CPU seconds per second by part (`IDLE`, `BUSY`); where there are any, they take the place of the ratios."""
        self.empty = range(0)
        """Unix seconds without samples; steps at these times repeat the last sample before."""
        self.behind: dict[str, range] = {}
        """The same for single instances."""
        self.lost: dict[str, range] = {}
        """Unix seconds at which scrapes of an instance fail: it has no sample then, but rates repeat the last one."""
        self.steps = 0
        """Steps that were asked for."""

    def instant(self, query: str, **_: object) -> Any:  # noqa: ANN401 - it never returns
        raise PrometheusUnreachableError(query, "no survey here")

    def read_range(
        self, reader: RangeReader, query: str, *, start: float, end: float, step_seconds: float, **_: object
    ) -> None:
        if self.mode == "hangs":
            raise PrometheusTimeoutError(query, "no answer")
        (part,) = range_parts(start, end, step_seconds)
        times = range(int(start), int(end) + 1, int(step_seconds))
        self.steps += len(times)
        series = []
        for instance, load in self.loads.items():
            parts = self.modes or {RATIO: load}
            values = {part: dict.fromkeys(times, value) for part, value in parts.items()}
            empty = self.behind.get(instance, self.empty)
            scraped = [time for time in times if time not in self.lost.get(instance, ())]
            values |= {NEWEST: {time: float(empty.start - 1 if time in empty else time) for time in scraped}}
            series += [({"instance": instance, PART_LABEL: name}, found) for name, found in values.items() if found]
        reader.add(part, matrix_body([] if self.mode == "empty" else series, warnings=self.warnings))


class Surveyed(Scripted):
    """A Prometheus that also answers the survey, with so many series for each resource."""

    def __init__(self, series: float, envelope: dict[str, Any]) -> None:
        super().__init__()
        self.series = series
        self.envelope = envelope
        self.surveys = 0

    def instant(self, query: str, **_: object) -> Any:  # noqa: ANN401 - as above
        self.surveys += 1
        if self.mode == "hangs" and not self.series:
            raise PrometheusTimeoutError(query, "no answer")
        counts = [
            {"metric": {PART_LABEL: f"series:{one.value}"}, "value": [START, str(self.series)]} for one in LoadResource
        ]
        document = {"status": "success", "data": {"resultType": "vector", "result": counts}, **self.envelope}
        body = bytearray(json.dumps(document).encode())
        return read_instant(query, body, evaluated_at=START, limits=INSTANT_LIMITS, pace=UNPACED)
