"""Why a metric has, or lacks, a value: the question and its answer as values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from adapter.foundation.objects.decoders import decoder_of
from adapter.foundation.objects.selectors import EVERYTHING, Selector

if TYPE_CHECKING:
    from adapter.foundation.objects.resources import Resource
    from adapter.metrics.rulebook.model import Api

_API_VERSION = "tidewatch.io/v1alpha1"
_KIND = "Explanation"


@dataclass(frozen=True, slots=True)
class Question:
    """The question to explain."""

    name: str
    """Name of the metric in the API."""
    api: Api | None = None
    """The API; None for whichever serves the name."""
    resource: Resource | None = None
    """The kind of object; None for external metrics, and if any kind is meant."""
    namespace: str | None = None
    object: str | None = None
    """The name of one object; None for all."""
    selector: Selector = EVERYTHING
    """Selector of the metric."""

    def of_kind(self, resource: Resource | None) -> Question:
        """Return the question, now that the metric turned out to describe this kind.

        A metric of namespaces describes the namespace that is named, as in the path of the API.
        """
        if self.object or self.namespace in {None, "*"} or resource is None or resource.qualified != "namespaces":
            return self
        return replace(self, resource=resource, object=self.namespace)


class ExplanationVerdict(StrEnum):
    """The short answer to a question: whether the metric has a value."""

    VALUE = "value"
    NO_VALUE = "no-value"
    ERROR = "error"


class Outcome(StrEnum):
    """The result of one step."""

    OK = "ok"
    NO = "no"
    """The request ends at this step, or something is missing from here on."""
    ERROR = "error"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class ExplanationStep:
    """One step of the explanation."""

    step: str
    outcome: Outcome
    detail: str


@dataclass(frozen=True, slots=True)
class ExplainedValue:
    """One value, and the age of its newest sample."""

    object: str
    """Its object's name; for external metrics the row's labels as a query spells them."""
    value: float
    timestamp: float | None
    """Unix seconds of the newest sample that it comes from; None if that cannot be queried."""
    age_seconds: float | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """The whole answer to a question."""

    metric: str
    namespace: str | None
    object: str | None
    verdict: ExplanationVerdict
    cause: str
    fix: str
    """What to do; empty if there is nothing to do, or nothing is known."""
    rule: str | None = None
    query: str | None = None
    """The query as it was sent."""
    steps: tuple[ExplanationStep, ...] = ()
    values: tuple[ExplainedValue, ...] = ()

    def as_document(self) -> ExplanationDocument:
        """Return the explanation as the document of the stable interface."""
        return ExplanationDocument(
            apiVersion=_API_VERSION,
            kind=_KIND,
            metric=self.metric,
            namespace=self.namespace,
            object=self.object,
            verdict=self.verdict,
            cause=self.cause,
            fix=self.fix or None,
            rule=self.rule,
            query=self.query,
            steps=[_Step(step.step, step.outcome, step.detail) for step in self.steps],
            values=[_Value(one.object, one.value, _utc_time(one.timestamp), one.age_seconds) for one in self.values],
        )

    def as_json(self) -> bytes:
        """Return the document as indented JSON."""
        return msgspec.json.format(msgspec.json.encode(self.as_document()), indent=2)


def explanation_of(body: bytes) -> Explanation:
    """Return the explanation in a document. Raises NoExplanationError if it contains none."""
    try:
        document = _DOCUMENT.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NoExplanationError(str(error)) from error
    if document.kind != _KIND:
        raise NoExplanationError(f"its kind is not {_KIND}")
    return Explanation(
        metric=document.metric,
        namespace=document.namespace,
        object=document.object,
        verdict=document.verdict,
        cause=document.cause,
        fix=document.fix or "",
        rule=document.rule,
        query=document.query,
        steps=tuple(ExplanationStep(step.step, step.outcome, step.detail) for step in document.steps),
        values=tuple(
            ExplainedValue(one.object, one.value, one.timestamp.timestamp() if one.timestamp else None, one.age_seconds)
            for one in document.values
        ),
    )


class NoExplanationError(ValueError):
    """A document is not an `Explanation`; the message says why."""


class ExplanationDocument(msgspec.Struct, frozen=True):
    """The stable interface in both directions: `as_document` writes it, and `explanation_of` reads it."""

    apiVersion: str  # noqa: N815 - the wire's name
    kind: str
    metric: str
    namespace: str | None
    object: str | None
    verdict: ExplanationVerdict
    cause: str
    fix: str | None
    rule: str | None
    query: str | None
    steps: list[_Step]
    values: list[_Value]


class _Step(msgspec.Struct, frozen=True):
    step: str
    outcome: Outcome
    detail: str


class _Value(msgspec.Struct, frozen=True):
    object: str
    value: float
    timestamp: datetime | None
    age_seconds: float | None


_DOCUMENT = decoder_of(ExplanationDocument)


def _utc_time(at: float | None) -> datetime | None:
    return None if at is None else datetime.fromtimestamp(at, UTC)
