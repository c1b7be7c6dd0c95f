"""What a person should know of an answer that is good: its rule is refused now, or its refreshes fail.

These sentences go to whoever asks. So they say nothing that Prometheus said, which may name series of other namespaces,
and nothing of the way to Prometheus; both stand in the log.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from adapter.readings.errors import (
    AmbiguousSamplesError,
    AnswerTooOldError,
    NoSampleError,
    ObjectsNotKnownError,
    PartialAnswerError,
    QueryRefusedByPrometheusError,
    ReadingError,
    SourceSlowError,
    SourceUnreachableError,
    TooMuchDemandError,
    UnanswerableSelectorError,
)
from adapter.rulebook.model import Api

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping

    from adapter.readings.queries import Failure
    from adapter.rulebook.model import Metric, Rule, Rulebook

_CAUSES: Mapping[type[ReadingError], str] = {
    SourceUnreachableError: "Prometheus cannot be asked",
    SourceSlowError: "Prometheus does not answer in time",
    QueryRefusedByPrometheusError: "Prometheus refuses the query",
    PartialAnswerError: "Prometheus answers only a part",
    AmbiguousSamplesError: "several samples claim to be the value",
    AnswerTooOldError: "the last good answer is too old",
    NoSampleError: "Prometheus has no sample",
    TooMuchDemandError: "too many different things are asked for in this namespace",
    UnanswerableSelectorError: "no query can be made of what is asked",
    ObjectsNotKnownError: "the objects of this kind are not known at the moment",
    ReadingError: "a fault of the adapter, see its log",
}


def notices(rule: Rule, retained: Container[str], failure: Failure | None, age_seconds: float) -> Iterator[str]:
    """Yield what is to be said of an answer by this rule.

    `retained` are the ids of rules that serve as they last held; `failure` is why the last refresh brought nothing.
    """
    if rule.id in retained:
        yield retained_notice(rule)
    if failure is not None:
        yield f"this answer is {age_seconds:.0f} s old: {cause_of(failure.error)}"


def retained_notice(rule: Rule) -> str:
    """Return what is said of a rule that serves as it last held."""
    place = f"{PurePath(rule.file).name}:{rule.line}"
    return f"the rule of this metric is refused as it stands now ({rule.id}, {place}): its last good version answers"


def usage_notices(rulebook: Rulebook, metrics: Iterable[Metric]) -> Iterator[str]:
    """Yield what is to be said of the resource rules behind an answer: which serve as they last held, which not."""
    for metric in metrics:
        if metric.rule.id in rulebook.retained:
            yield retained_notice(metric.rule)
    for refused in rulebook.refused:
        if refused.api is Api.RESOURCE and refused.id not in rulebook.retained:
            place = f"{PurePath(refused.file).name}:{refused.line}"
            yield f"{refused.id} ({place}) is refused, so nothing is told of that resource"


def cause_of(error: type[ReadingError]) -> str:
    """Return why there is no newer value, in words that are fit for any asker."""
    return next((_CAUSES[kind] for kind in error.__mro__ if kind in _CAUSES), _CAUSES[ReadingError])
