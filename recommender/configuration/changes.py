"""Determines what a new configuration leaves unchanged (pure)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recommender.configuration.recommender_configuration import Configuration


def unchanged_names(before: Configuration, now: Configuration) -> frozenset[str] | None:
    """Return the names of the unchanged recommendations, whose decisions by the former configuration remain valid.

    Return None if the file has changed: then none of its decisions is valid, and the poll ends. Objects may change at
    any time, so a change of an object ends only the decisions about that object.
    """
    if before is now:
        return frozenset(each.policy.name for each in now.recommendations)
    if _without_objects(before) != _without_objects(now):
        return None
    former = {each.policy.name: each for each in before.recommendations}
    return frozenset(each.policy.name for each in now.recommendations if former.get(each.policy.name) == each)


def _without_objects(configuration: Configuration) -> Configuration:
    entries = tuple(each for each in configuration.recommendations if not each.policy.namespace)
    return replace(configuration, recommendations=entries, object_names=None)
