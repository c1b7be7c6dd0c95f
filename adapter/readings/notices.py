"""What a person should know of an answer that is good: its rule is refused now, or its refreshes fail.

These sentences go to whoever asks. So they say nothing that Prometheus said, which may name series of other namespaces,
and nothing of the way to Prometheus; both stand in the log. Of the errors that askers are told in place of an answer
that is left out which quotes series.
"""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import TYPE_CHECKING

from adapter.readings.errors import (
    AmbiguousSamplesError,
    AnswerTooOldError,
    ForeignNamespaceError,
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
from adapter.rulebook.model import Api, PlanKind
from adapter.sources.prometheus.errors import QueryRefusedError, shortened

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterable, Iterator, Mapping

    from adapter.readings.failure import Failure
    from adapter.readings.samples.object_reading import Fault
    from adapter.rulebook.model import Metric, Rule, Rulebook
    from adapter.sources.prometheus.errors import PrometheusError

_SERIES = re.compile(r"[{\[]")
"""How a set of labels, or a list of sets, begins."""
_QUOTES = re.compile(r'[{\["]')
"""Likewise, or the value of a label."""
_OF_TEXT = "bad_data"
"""Prometheus's word for a query that it did not begin to evaluate: what it quotes then is the query."""

_CAUSES: Mapping[type[ReadingError], str] = {
    SourceUnreachableError: "Prometheus cannot be asked",
    SourceSlowError: "Prometheus does not answer in time",
    QueryRefusedByPrometheusError: "Prometheus refuses the query",
    PartialAnswerError: "Prometheus answers only a part",
    AmbiguousSamplesError: "several samples claim to be the value",
    ForeignNamespaceError: "the samples bear another namespace",
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


def left_out(names: Collection[str], faults: Mapping[str, Fault]) -> tuple[str, ...]:
    """Return what is to be said of a list that goes without objects whose samples cannot be told to be theirs.

    `names` are those that are asked for. A value that is no number is none, and is passed over as in every answer.
    """
    lacking = [name for name in names if name in faults and faults[name].error is not None]
    if not lacking:
        return ()
    which = f"{len(lacking)} of {len(names)} objects have no value and are left out, such as {lacking[0]!r}"
    return (f"{which}: {faults[lacking[0]].reason}",)


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


def reason_for_askers(failure: Failure, kind: PlanKind) -> str:
    """Return why a query of this plan failed, in words that are fit for any asker.

    A wide query is asked for many namespaces, so of its failure nothing is repeated that Prometheus said.
    """
    if kind is PlanKind.WIDE and not failure.of_source:
        return f"the query for all namespaces does not work: {cause_of(failure.error)}"
    return failure.message if failure.told is None else failure.told


def told_to_askers(error: PrometheusError) -> str | None:
    """Return what any asker may read of an error where that is less than all of it: one query may meet any series."""
    if not isinstance(error, QueryRefusedError):
        return None
    said = _up_to(_SERIES if error.error_type == _OF_TEXT else _QUOTES, error.message)
    return f"query {shortened(error.query)}: Prometheus refused it ({error.error_type}): {said}"


def without_series(text: str) -> str:
    """Return what Prometheus said up to where it begins to quote series or values of their labels."""
    return _up_to(_QUOTES, text)


def _up_to(mark: re.Pattern[str], text: str) -> str:
    plain, *rest = mark.split(text, maxsplit=1)
    return f"{shortened(plain)} … (all of it is in the adapter's log)" if rest else shortened(plain)
