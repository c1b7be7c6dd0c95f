"""Which samples are whose value, and why the others are nobody's: said aloud (pure).

The same rules as `filing` and `rows` go by for everybody's answers, for one question.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec.structs import replace

from adapter.readings.explanation import Outcome, Step
from adapter.readings.rows import as_series

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

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


def of_namespace(
    samples: Sequence[Sample], label: str | None, namespace: str | None
) -> tuple[list[Sample], list[Step]]:
    """Return the samples that are a namespace's own, and a step where others came, of which nothing else is told.

    A sample without the label is the namespace's own: the query was restricted to it. None for either: all are.
    """
    if label is None or namespace is None:
        return list(samples), []
    own = [sample for sample in samples if sample.labels.get(label, namespace) == namespace]
    foreign = len(samples) - len(own)
    if not foreign:
        return own, []
    told = (
        f"{foreign} samples of other namespaces are left out: the rule's metricsQuery does not use <<.LabelMatchers>>"
    )
    return own, [Step("values", Outcome.INFO, told)]


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


def told_of_objects(
    label: str,
    samples: Sequence[Sample],
    names: Collection[str] | None,
    *,
    tell_strangers: bool = True,
    lowest: float = -math.inf,
) -> Told:
    """Return which object has which value by the label; `names` are the objects that should have one, None: any.

    Objects with samples that should have none are named only with `tell_strangers`: without, they may be those of
    another namespace. What is below `lowest` is no value.
    """
    by_name: dict[str, list[Sample]] = {}
    for sample in samples:
        by_name.setdefault(sample.labels.get(label, ""), []).append(sample)
    nameless = by_name.pop("", [])
    if nameless and not by_name:
        return _without_label(label, nameless[0])
    several = {name for name, own in by_name.items() if len(own) > 1}
    odd = {name for name, own in by_name.items() if name not in several and not _is_value(own[0].value, lowest)}
    below = " or negative" if lowest == 0.0 else ""
    wanted = by_name.keys() if names is None else set(names)
    values = tuple((name, by_name[name][0].value) for name in sorted(by_name.keys() & wanted - several - odd))
    strangers = by_name.keys() - wanted
    steps = (
        *_some(several & wanted, f"several samples: {_differing(by_name, several & wanted)}"),
        *_some(odd & wanted, f"a sample that is NaN or infinite{below}, which is no value"),
        *_some(wanted - by_name.keys(), "no sample"),
        *(_nameless(label, nameless) if nameless else ()),
        *_some(strangers if tell_strangers else (), "samples that are not asked about"),
        *(() if tell_strangers else _uncalled(len(strangers))),
    )
    if values:
        return Told(values, (*steps, Step("values", Outcome.OK, f"{len(values)} with a value")))
    cause = f"no object that is asked about has a usable sample: {steps[0].detail if steps else 'none came'}"
    return Told((), steps, cause)


def told_of_containers(
    label: str,
    container_label: str,
    samples: Sequence[Sample],
    names: Collection[str] | None,
    *,
    tell_strangers: bool = True,
) -> Told:
    """Return which container of which pod has which value, as `POD/CONTAINER`; otherwise as `told_of_objects`.

    A pod without any container that has samples is named as such.
    """
    named = [sample for sample in samples if sample.labels.get(container_label) and sample.labels.get(label)]
    if not named:
        return _without_label(container_label, samples[0])
    pods = {sample.labels[label] for sample in named}
    by_container = [
        replace(sample, labels={**sample.labels, label: f"{sample.labels[label]}/{sample.labels[container_label]}"})
        for sample in named
    ]
    wanted = None
    if names is not None:
        keys = {sample.labels[label] for sample in by_container}
        wanted = {key for key in keys if key.partition("/")[0] in names} | (set(names) - pods)
    told = told_of_objects(label, by_container, wanted, tell_strangers=tell_strangers, lowest=0.0)
    lacking = [sample for sample in samples if not sample.labels.get(container_label)]
    if not lacking:
        return told
    step = Step("values", Outcome.INFO, f"{len(lacking)} samples without the label {container_label!r} are nobody's")
    return Told(told.values, (step, *told.steps), told.cause, told.fix)


def _without_label(label: str, sample: Sample) -> Told:
    cause = f"the samples lack the label {label!r}, which names their object; they have {_labels(sample)}"
    fix = "keep it in the result of the rule's metricsQuery: by (<<.GroupBy>>)"
    return Told((), (Step("values", Outcome.NO, cause),), cause, fix)


def _is_value(value: float, lowest: float) -> bool:
    return math.isfinite(value) and value >= lowest


def _nameless(label: str, samples: Sequence[Sample]) -> tuple[Step, ...]:
    what = "1 sample lacks" if len(samples) == 1 else f"{len(samples)} samples lack"
    told = f"{what} the label {label!r}, which names their object, and are nobody's; they have {_labels(samples[0])}"
    return (Step("values", Outcome.NO, told),)


def _differing(by_name: Mapping[str, Sequence[Sample]], several: Collection[str]) -> str:
    """Return what to do about objects with several samples: it is the labels in which they differ that are too many."""
    labels: set[str] = set()
    for name in several:
        first, *others = (sample.labels for sample in by_name[name])
        labels.update(
            one for other in others for one in first.keys() | other.keys() if first.get(one) != other.get(one)
        )
    return f"aggregate the labels in which they differ away ({', '.join(sorted(labels)) or 'none'})"


def _uncalled(strangers: int) -> tuple[Step, ...]:
    if not strangers:
        return ()
    what = "1 other object has" if strangers == 1 else f"{strangers} other objects have"
    return (Step("values", Outcome.NO, f"{what} samples that are not asked about"),)


def _labels(sample: Sample) -> str:
    return ", ".join(sorted(sample.labels)) or "no labels at all"


def _some(names: Collection[str], what: str) -> tuple[Step, ...]:
    """Return the step that says what these objects have; none where there is no object."""
    if not names:
        return ()
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    have = "has" if len(names) == 1 else "have"
    return (Step("values", Outcome.NO, f"{', '.join(sorted(names)[:_MOST_NAMED])}{more} {have} {what}"),)
