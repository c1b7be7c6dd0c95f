"""Describes why a metric has, or lacks, a value: the question and its answer as values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime  # noqa: TC003 - msgspec reads the annotation
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from adapter.foundation.objects.decoders import decoder_of
from adapter.foundation.objects.selectors import EVERYTHING, Selector

if TYPE_CHECKING:
    from adapter.foundation.objects.resources import Resource
    from adapter.metrics.rulebook.model import Api

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


class ExplanationStep(msgspec.Struct, frozen=True):
    """One step of the explanation."""

    step: str
    outcome: Outcome
    detail: str


class ExplainedValue(msgspec.Struct, frozen=True):
    """One value, and the age of its newest sample."""

    object: str
    """Its object's name; for external metrics the row's labels as a query spells them."""
    value: float
    timestamp: datetime | None
    """When the newest sample was taken that it comes from; None if that cannot be queried."""
    age_seconds: float | None


class Explanation(msgspec.Struct, frozen=True, kw_only=True, rename={"api_version": "apiVersion"}):
    """The whole answer to a question: a document whose fields are a stable interface."""

    api_version: str = "tidewatch.io/v1alpha1"
    kind: str = _KIND
    metric: str
    namespace: str | None
    object: str | None
    verdict: ExplanationVerdict
    cause: str
    fix: str | None
    """What to do; None if there is nothing to do, or nothing is known."""
    rule: str | None = None
    query: str | None = None
    """The query as it was sent."""
    steps: tuple[ExplanationStep, ...] = ()
    values: tuple[ExplainedValue, ...] = ()

    def as_json(self) -> bytes:
        """Return the document as indented JSON."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2)


_EXPLANATION = decoder_of(Explanation)


def explanation_of(body: bytes) -> Explanation:
    """Return the explanation in a document. Raises NoExplanationError if it contains none."""
    try:
        found = _EXPLANATION.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NoExplanationError(str(error)) from error
    if found.kind != _KIND:
        raise NoExplanationError(f"its kind is not {_KIND}")
    return found


class NoExplanationError(ValueError):
    """A document is not an `Explanation`; the message says why."""
