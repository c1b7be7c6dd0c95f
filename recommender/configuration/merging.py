"""Merges recommendations with each other, and with their previous versions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from recommender.configuration.configured_targets import identity_of
from recommender.configuration.conflicts import conflicts_of, leaves_alone
from recommender.decisions.policy_settings import Output, RecommendationPolicy

if TYPE_CHECKING:
    from recommender.configuration.recommender_configuration import Configuration, RefusedRecommendation
    from recommender.decisions.record import TargetReference
    from recommender.kinds.kind import Recommendation


def with_last_good(read: Configuration, last: Configuration) -> Configuration:
    """Return the configuration `read`, in which last good versions from `last` replace refused entries.

    The records of such an entry state that its last good version is in use (`RecommendationPolicy.note`). An entry
    stays refused if it has no last good version, if another entry now has its name, or if its last good version would
    size node groups of another entry.
    """
    names = {each.policy.name for each in read.recommendations}
    earlier = {each.policy.name: each for each in last.recommendations if each.policy.name not in names}
    kept = {
        each.name: _last_good_version(earlier[each.name], each, read) for each in read.refused if each.name in earlier
    }
    conflicts = conflicts_of((*read.recommendations, *kept.values()))
    kept = {name: each for name, each in kept.items() if leaves_alone(each) or name not in conflicts}
    refused = tuple(each for each in read.refused if each.name not in kept)
    return with_rivals(replace(read, recommendations=(*read.recommendations, *kept.values()), refused=refused))


def with_rivals(configuration: Configuration) -> Configuration:
    """Return the configuration with the names of rivals, which scale the same targets, in each recommendation."""
    policies = [each.policy for each in configuration.recommendations]
    recommendations = tuple(
        replace(each, policy=replace(each.policy, rivals=_rivals(each.policy, policies)))
        for each in configuration.recommendations
    )
    return replace(configuration, recommendations=recommendations)


def _last_good_version(last: Recommendation, refused: RefusedRecommendation, read: Configuration) -> Recommendation:
    problems = "; ".join(str(problem) for problem in refused.problems)
    policy = replace(
        last.policy,
        owners=read.owners,
        stale_after_seconds=read.stale_after_seconds,
        note=f"its last good version is in use, because the file has an error: {problems}",
    )
    return replace(last, policy=policy)


def _rivals(
    policy: RecommendationPolicy, policies: list[RecommendationPolicy]
) -> dict[TargetReference, tuple[str, ...]]:
    if Output.SCALE not in policy.outputs:
        return {}
    found: dict[TargetReference, tuple[str, ...]] = {}
    for target in policy.targets:
        names = tuple(each.name for each in policies if each is not policy and _scales(each, target))
        if names:
            found[target] = names
    return found


def _scales(policy: RecommendationPolicy, target: TargetReference) -> bool:
    """Return whether a recommendation scales this object, whatever version of the API group it names."""
    if Output.SCALE not in policy.outputs:
        return False
    return any(identity_of(each) == identity_of(target) for each in policy.targets)
