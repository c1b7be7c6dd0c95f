"""Describes the values of a reading for the requested objects, as the steps of an explanation (pure).

It decides nothing: the answer made from the reading determines which values are served.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING

from adapter.foundation.objects.quantities import fits_milli_units
from adapter.foundation.reports.counts import agreeing, count_of, first_names
from adapter.metrics.readings.explain.explanation import ExplanationStep, Outcome
from adapter.metrics.readings.samples.object_reading import ROOT, Dropped, ObjectReading
from adapter.metrics.readings.samples.object_reading_builder import BEYOND_MILLI_UNITS
from adapter.metrics.readings.samples.series import as_series

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterator, Mapping, Sequence

    from adapter.metrics.rulebook.requests import Row

_MOST_NAMED = 10
NO_SAMPLE = "no sample"
_DROPPED_TEXTS: Mapping[Dropped, str] = {
    Dropped.FOREIGN_NAMESPACE: (
        "samples of other namespaces are left out: the rule's metricsQuery does not use <<.LabelMatchers>>"
    ),
    Dropped.UNKNOWN_OBJECT: "samples that were not requested, or that name no object or container, are left out",
    Dropped.STALE: "samples of another time than that of the query are left out",
}


def names_in(reading: ObjectReading, namespace: str | None) -> list[str]:
    """Return the objects of a namespace that have samples, in ascending order."""
    if reading.containers is not None:
        return sorted(reading.containers.get(namespace or ROOT, {}))
    return sorted({*reading.values.get(namespace or ROOT, {}), *reading.faults.get(namespace or ROOT, {})})


def steps_of_objects(
    reading: ObjectReading,
    namespace: str | None,
    names: Collection[str],
    served: Container[str],
    *,
    limit_seconds: float | None,
    name_others: bool,
) -> Iterator[ExplanationStep]:
    """Yield why objects lack a value, and which other samples came; `served` are the objects that get a value.

    Objects that were not asked about are named only with `name_others`: otherwise they may belong to another
    namespace. `limit_seconds` is the largest age of samples that the rule allows.
    """
    values, faults = reading.values.get(namespace or ROOT, {}), reading.faults.get(namespace or ROOT, {})
    lacking: defaultdict[str, list[str]] = defaultdict(list)
    aged: list[str] = []
    for name in names:
        if name in faults:
            lacking[f"no value: {faults[name].reason}"].append(name)
        elif name not in values:
            lacking[NO_SAMPLE].append(name)
        elif name not in served and limit_seconds is not None:
            aged.append(f"{name} ({_age(reading.sample_age(namespace, name))})")
    for what, of in lacking.items():
        yield ExplanationStep("values", Outcome.NO, f"{first_names(of, _MOST_NAMED)} {_have(len(of))} {what}")
    if aged:
        too_old = f"the samples are older than the rule allows ({limit_seconds:g} s): {first_names(aged, _MOST_NAMED)}"
        yield ExplanationStep("maxSampleAge", Outcome.NO, too_old)
    if reading.note:
        yield ExplanationStep("values", Outcome.NO, reading.note)
    others = sorted({*values, *faults}.difference(names))
    if others:
        what = first_names(others, _MOST_NAMED) if name_others else count_of(len(others), "other object")
        yield ExplanationStep("values", Outcome.NO, f"{what} {_have(len(others))} samples that were not requested")


def steps_of_rows(rows: Sequence[Row], note: str | None) -> Iterator[ExplanationStep]:
    """Yield the reasons why rows of an external metric are not served as values."""
    bad = [as_series(row.labels) for row in rows if not math.isfinite(row.value)]
    if bad:
        text = f"{len(bad)} of {len(rows)} series {_have(len(bad))} no finite value: {first_names(bad, _MOST_NAMED)}"
        yield ExplanationStep("values", Outcome.NO, text)
    large = [as_series(row.labels) for row in rows if math.isfinite(row.value) and not fits_milli_units(row.value)]
    if large:
        examples = first_names(large, _MOST_NAMED)
        are = agreeing(len(large), "is", "are")
        text = f"{len(large)} of {len(rows)} series {are} too large, as {BEYOND_MILLI_UNITS}: {examples}"
        yield ExplanationStep("values", Outcome.NO, text)
    if note:
        yield ExplanationStep("values", Outcome.NO, note)


def steps_of_dropped_samples(dropped: Mapping[Dropped, int]) -> Iterator[ExplanationStep]:
    """Yield why samples that belong to no object are left out, for each reason that no other step shows."""
    for reason, text in _DROPPED_TEXTS.items():
        if dropped.get(reason):
            yield ExplanationStep("values", Outcome.INFO, text)


def _have(number: int) -> str:
    return "has" if number == 1 else "have"


def _age(seconds: float | None) -> str:
    return "no current sample" if seconds is None else f"{seconds:.0f} s"
