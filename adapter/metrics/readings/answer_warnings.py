"""Warnings that accompany a good answer although its rule is refused now, or its refreshes fail.

Any client may read them, as `public_reasons` describes.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from adapter.metrics.readings.public_reasons import cause_of
from adapter.metrics.rulebook.model import Api, Metric, Rule, Rulebook

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

    from adapter.foundation.objects.resources import Resource
    from adapter.metrics.readings.failure import Failure


def rule_warnings(rule: Rule, retained: Container[str], failure: Failure | None, age_seconds: float) -> Iterator[str]:
    """Yield the warnings about an answer of this rule.

    `retained` has the ids of rules whose last good version is in use; `failure` is why the last refresh failed.
    """
    if rule.id in retained:
        yield retained_warning(rule)
    if failure is not None:
        yield f"this answer is {age_seconds:.0f} s old: {cause_of(failure.error)}"


def retained_warning(rule: Rule) -> str:
    """Return the warning about a rule whose last good version is in use."""
    place = f"{PurePath(rule.file).name}:{rule.line}"
    return f"the current version of this metric's rule is refused ({rule.id}, {place}): its last good version is used"


def unreadable_warnings(resource: Resource, count: int) -> tuple[str, ...]:
    """Return the warning that a list may lack objects, with the number of objects of this kind that are unreadable."""
    if not count:
        return ()
    which = f"{count} of the {resource.qualified} cannot be read"
    return (f"{which}, so objects that match may be missing here: the adapter's log says why",)


def usage_warnings(rulebook: Rulebook, metrics: Iterable[Metric]) -> Iterator[str]:
    """Yield the warnings about the resource rules of an answer: which are refused, and which former versions serve."""
    for metric in metrics:
        if metric.rule.id in rulebook.retained:
            yield retained_warning(metric.rule)
    for refused in rulebook.refused:
        if refused.api is Api.RESOURCE and refused.id not in rulebook.retained:
            place = f"{PurePath(refused.file).name}:{refused.line}"
            yield f"{refused.id} ({place}) is refused, so that resource is missing"
