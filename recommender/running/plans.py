"""What follows from a configuration: what to look up, and how each recommendation is calculated."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from recommender.cluster_size.model.settings import ClusterSizeSettings
from recommender.configuration.needs import config_maps_of, for_each_in, needs_of, queries_of, targets_of
from recommender.predictive.calculate import calculate_predictive
from recommender.predictive.settings import PredictiveSettings
from recommender.proportional.calculate import calculate_proportional
from recommender.running.expansion import EachTarget
from recommender.running.gathering import LookUps
from recommender.running.loads.needs import load_needs_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.cluster.state import ClusterNeeds
    from recommender.configuration.model import Configuration
    from recommender.decisions.calculation import Calculate
    from recommender.decisions.settings import RecommendationPolicy
    from recommender.predictive.settings import ForEach
    from recommender.proportional.parameters import ProportionalSettings


@dataclass(frozen=True, slots=True)
class PollPlan:
    """A configuration, with what follows from it."""

    configuration: Configuration
    needs: ClusterNeeds
    look_ups: LookUps
    calculate: Mapping[str, Calculate]
    """By name of each recommendation with one number of replicas."""
    sizes: Mapping[str, ClusterSizeSettings] = field(default_factory=dict)
    """By name of each cluster size recommendation."""
    for_each: Mapping[str, EachTarget] = field(default_factory=dict)
    """By name of each recommendation with `forEach`."""


def plan_of(configuration: Configuration) -> PollPlan:
    """Return the plan of a configuration."""
    look_ups = LookUps(
        queries_of(configuration),
        config_maps_of(configuration),
        targets_of(configuration),
        load_needs_of(configuration),
    )
    calculate = {
        each.policy.name: _calculate(each.subject, each.policy)
        for each in configuration.recommendations
        if not isinstance(each.subject, ClusterSizeSettings) and not for_each_in(each.subject)
    }
    sizes = {
        each.policy.name: each.subject
        for each in configuration.recommendations
        if isinstance(each.subject, ClusterSizeSettings)
    }
    for_each = {
        each.policy.name: _each_target(each.policy.name, each.subject, each.subject.for_each)
        for each in configuration.recommendations
        if isinstance(each.subject, PredictiveSettings) and each.subject.for_each is not None
    }
    return PollPlan(configuration, needs_of(configuration), look_ups, calculate, sizes, for_each)


def _calculate(subject: ProportionalSettings | PredictiveSettings, policy: RecommendationPolicy) -> Calculate:
    """Return the function of the recommendation's kind."""
    if isinstance(subject, PredictiveSettings):
        return calculate_predictive(subject, policy.name, targets=policy.targets)
    return calculate_proportional(subject)


def _each_target(name: str, settings: PredictiveSettings, for_each: ForEach) -> EachTarget:
    calculate = partial(calculate_predictive, settings, name)
    return EachTarget(calculate, for_each.max_targets, for_each.most_memory_shards)
