"""Why a metric has, or lacks, a value: the question and its answer as values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec

from adapter.objects.selectors import EVERYTHING

if TYPE_CHECKING:
    from adapter.objects.resources import Resource
    from adapter.objects.selectors import Selector
    from adapter.rulebook.model import Api


@dataclass(frozen=True, slots=True)
class Question:
    """What somebody wonders about."""

    name: str
    """Of the metric, in the API."""
    api: Api | None = None
    """None: whichever serves the name."""
    resource: Resource | None = None
    """The kind of object; None for external metrics, and where any kind is meant."""
    namespace: str | None = None
    object: str | None = None
    """One object's name; None for all."""
    selector: Selector = EVERYTHING
    """The metric's."""


class Verdict(StrEnum):
    """The short answer."""

    VALUE = "value"
    NO_VALUE = "no-value"
    ERROR = "error"


class Outcome(StrEnum):
    """How one step went."""

    OK = "ok"
    NO = "no"
    """It ends here, or something is missing from here on."""
    ERROR = "error"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that was looked at."""

    step: str
    outcome: Outcome
    detail: str


@dataclass(frozen=True, slots=True)
class ExplainedValue:
    """One value, and how old what it is made of is."""

    object: str
    """Its object's name; for external metrics the row's labels as a query spells them."""
    value: float
    timestamp: float | None
    """Unix seconds of the newest sample behind it; None where that cannot be asked."""
    age_seconds: float | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """The whole answer."""

    metric: str
    namespace: str | None
    object: str | None
    verdict: Verdict
    cause: str
    fix: str
    rule: str | None = None
    query: str | None = None
    """As sent."""
    steps: tuple[Step, ...] = ()
    values: tuple[ExplainedValue, ...] = ()

    def as_document(self) -> dict[str, Any]:
        """Return it as a JSON document of the stable interface."""
        return {
            "apiVersion": "tidewatch.io/v1alpha1",
            "kind": "Explanation",
            "metric": self.metric,
            "namespace": self.namespace,
            "object": self.object,
            "verdict": self.verdict.value,
            "cause": self.cause,
            "fix": self.fix,
            "rule": self.rule,
            "query": self.query,
            "steps": [{"step": step.step, "outcome": step.outcome.value, "detail": step.detail} for step in self.steps],
            "values": [_value(value) for value in self.values],
        }

    def as_json(self) -> bytes:
        """Return the document as people and programs get it, indented."""
        return msgspec.json.format(msgspec.json.encode(self.as_document()), indent=2)


def _value(value: ExplainedValue) -> dict[str, object]:
    at = value.timestamp
    return {
        "object": value.object,
        "value": value.value,
        "timestamp": None if at is None else datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z"),
        "age_seconds": value.age_seconds,
    }
