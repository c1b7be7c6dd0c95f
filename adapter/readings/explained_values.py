"""Which samples are whose value, and why the others are nobody's: said aloud (pure).

The same rules as `filing` and `rows` go by for everybody's answers, for one question.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapter.readings.explanation import Outcome, Step
from adapter.readings.rows import as_series

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from adapter.sources.prometheus.decoding import Sample

_MOST_NAMED = 10


@dataclass(frozen=True, slots=True)
class Told:
    """Values, and what was seen on the way to them."""

    values: tuple[tuple[str, float], ...] = ()
    """By object, or by row as a query spells it."""
    steps: tuple[Step, ...] = ()
    cause: str = ""
    """Why there is no value, where there is none."""
    fix: str = ""


def told_of_rows(samples: Sequence[Sample]) -> Told:
    """Return what an external metric's rows give: all of them, or nothing if one is no number."""
    bad = [sample for sample in samples if not math.isfinite(sample.value)]
    if not bad:
        return Told(tuple((as_series(sample.labels), sample.value) for sample in samples))
    cause = (
        f"{len(bad)} of {len(samples)} series have no finite value, such as {as_series(bad[0].labels)}: "
        "a sum without them would be too low"
    )
    fix = "aggregate or filter them in the rule's metricsQuery"
    return Told((), (Step("values", Outcome.NO, cause),), cause, fix)


def told_of_objects(label: str, samples: Sequence[Sample], names: Collection[str] | None) -> Told:
    """Return which object has which value by the label; `names` are the objects that should have one, None: any."""
    by_name: dict[str, list[Sample]] = {}
    for sample in samples:
        by_name.setdefault(sample.labels.get(label, ""), []).append(sample)
    nameless = by_name.pop("", [])
    if nameless and not by_name:
        return _without_label(label, nameless[0])
    several = {name for name, own in by_name.items() if len(own) > 1}
    odd = {name for name, own in by_name.items() if name not in several and not math.isfinite(own[0].value)}
    wanted = by_name.keys() if names is None else set(names)
    values = tuple((name, by_name[name][0].value) for name in sorted(by_name.keys() & wanted - several - odd))
    steps = (
        *_some(several & wanted, "have several samples: aggregate the labels in which they differ away"),
        *_some(odd & wanted, "have a sample that is NaN or infinite, which is no value"),
        *_some(wanted - by_name.keys(), "have no sample"),
        *_some(by_name.keys() - wanted, "have samples and are not asked about"),
    )
    if values:
        return Told(values, (*steps, Step("values", Outcome.OK, f"{len(values)} with a value")))
    cause = f"no object that is asked about has a usable sample: {steps[0].detail if steps else 'none came'}"
    return Told((), steps, cause, "see the steps")


def _without_label(label: str, sample: Sample) -> Told:
    came = ", ".join(sorted(sample.labels)) or "no labels at all"
    cause = f"the samples lack the label {label!r}, which names their object; they have {came}"
    fix = "keep it in the result of the rule's metricsQuery: by (<<.GroupBy>>)"
    return Told((), (Step("values", Outcome.NO, cause),), cause, fix)


def _some(names: Collection[str], what: str) -> tuple[Step, ...]:
    if not names:
        return ()
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return (Step("values", Outcome.NO, f"{', '.join(sorted(names)[:_MOST_NAMED])}{more} {what}"),)
