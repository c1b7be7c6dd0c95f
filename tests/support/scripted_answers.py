"""Answers of a scripted Prometheus, sample by sample: late ones, native histograms, warnings and failures."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from adapter.foundation.sources.prometheus.answers.answer_elements import AnswerLimits
from adapter.foundation.sources.prometheus.answers.decoding import InstantAnswer, read_instant
from adapter.foundation.time.pace import UNPACED
from tests.support.readings import ScriptedPrometheus

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.sources.prometheus.errors import PrometheusError


@dataclass(frozen=True)
class Came:
    """One sample of an answer."""

    labels: tuple[tuple[str, str], ...]
    value: str
    seconds_late: float = 0.0


@dataclass(frozen=True)
class Script:
    """An answer to a query."""

    samples: tuple[Came, ...] = ()
    warnings: tuple[str, ...] = ()
    failure: PrometheusError | None = None


class Scripted(ScriptedPrometheus):
    """A Prometheus that answers with samples of different lateness, native histograms, warnings and failures."""

    def __init__(self, script_of: Callable[[str], Script]) -> None:
        super().__init__()
        self._script_of = script_of

    def instant(self, query: str, *, timeout_seconds: float, at: float | None = None) -> InstantAnswer:
        assert timeout_seconds > 0
        assert at is not None
        script = self._script_of(query)
        if script.failure is not None:
            raise script.failure
        result = [_written(came, at) for came in script.samples]
        body = {"status": "success", "data": {"resultType": "vector", "result": result}, "warnings": script.warnings}
        raw = bytearray(json.dumps(body, separators=(",", ":")).encode())
        return read_instant(query, raw, evaluated_at=at, limits=AnswerLimits(), pace=UNPACED)


def _written(came: Came, at: float) -> dict[str, object]:
    moment = at - came.seconds_late
    if came.value == "histogram":
        return {"metric": dict(came.labels), "histogram": [moment, {"count": "1", "sum": "1"}]}
    return {"metric": dict(came.labels), "value": [moment, came.value]}


def labels_of(**choices: st.SearchStrategy[str]) -> st.SearchStrategy[tuple[tuple[str, str], ...]]:
    """Return a strategy for label sets, which omit labels with an empty value."""
    return st.fixed_dictionaries(choices).map(
        lambda found: tuple((name, value) for name, value in found.items() if value)
    )
