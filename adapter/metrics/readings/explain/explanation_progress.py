"""The findings of an explanation so far, from the rule to the values."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from adapter.foundation.sources.prometheus.public_errors import public_text
from adapter.metrics.readings.explain.explanation import ExplanationStep, ExplanationVerdict, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.sources.prometheus.errors import PrometheusError
    from adapter.metrics.readings.explain.explanation import ExplainedValue, Question

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ExplainDeadlines:
    """Time limits for Prometheus, in seconds."""

    look_ups: float = 30.0
    """Limit for the look-ups of all rules together."""
    request: float = 10.0
    """Limit for each query and each look-up."""
    total: float = 60.0
    """Limit for the whole explanation."""


PATIENT = ExplainDeadlines()
"""Time limits of a command."""
HASTY = ExplainDeadlines(look_ups=3.0, request=2.5, total=5.0)
"""Time limits of a process that serves other requests meanwhile."""


class Answered(Exception):  # noqa: N818 - the end of the steps, good or bad
    """The result of the steps."""

    def __init__(self, verdict: ExplanationVerdict, cause: str, fix: str) -> None:
        super().__init__(cause)
        self.verdict, self.cause, self.fix = verdict, cause, fix


@dataclass(slots=True)
class Progress:
    """The findings so far, and the time that is left."""

    question: Question
    patience: ExplainDeadlines
    clock: Callable[[], float]
    """Returns monotonic seconds."""
    to_owner: bool = True
    """Whether the reader can read the rule files and Prometheus anyway; if not, series of others are not shown."""
    began: float = field(init=False)
    steps: list[ExplanationStep] = field(default_factory=list)
    sees_all: bool = True
    """Whether all series that the rules select were received."""
    rule: str | None = None
    query: str | None = None
    values: tuple[ExplainedValue, ...] = ()
    absent: str = ""
    """The statement that the requested object does not exist; empty if it exists or if that is not known."""

    def __post_init__(self) -> None:
        """Start the clock of the explanation."""
        self.began = self.clock()

    def seconds_to_look_up(self) -> float:
        """Return how long the next look-up may take; 0 or less if no time is left."""
        spent = self.clock() - self.began
        return min(self.patience.request, self.patience.look_ups - spent, self.patience.total - spent)

    def seconds_to_ask(self) -> float:
        """Return how long the next query may take; 0 or less if no time is left."""
        return min(self.patience.request, self.seconds_left())

    def seconds_left(self) -> float:
        """Return how long everything may still take; 0 or less if no time is left."""
        return self.patience.total - (self.clock() - self.began)

    def note(self, step: str, outcome: Outcome, detail: str) -> None:
        """Record a step."""
        self.steps.append(ExplanationStep(step, outcome, detail))

    def reason(self, error: PrometheusError) -> str:
        """Return why Prometheus did not answer, without what the client must not see; the log has everything."""
        text = None if self.to_owner else public_text(error)
        if text is None:
            return str(error)
        _log.info("explaining %s: %s", name_in_question(self.question), error)
        return text

    def end(self, step: str, verdict: ExplanationVerdict, cause: str, fix: str) -> Answered:
        """Record the last step, and return the exception to raise."""
        self.note(step, Outcome.ERROR if verdict is ExplanationVerdict.ERROR else Outcome.NO, cause)
        return Answered(verdict, cause, fix)


def name_in_question(question: Question) -> str:
    """Return the metric's name as the question states it."""
    return f"{question.resource.qualified}/{question.name}" if question.resource else question.name
