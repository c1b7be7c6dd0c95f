"""What follows from a configuration: what to look up, and how each recommendation is calculated."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from recommender.configuration.needs import config_maps_of, for_each_in, needs_of, queries_of, targets_of
from recommender.proportional.calculate import calculate_proportional
from recommender.proportional.parameters import ProportionalSettings
from recommender.running.gathering import LookUps

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.cluster.state import ClusterNeeds
    from recommender.configuration.model import Configuration, Recommendation
    from recommender.decisions.calculation import Calculate
    from recommender.running.expansion import EachTarget


@dataclass(frozen=True, slots=True)
class PollPlan:
    """A configuration, with what follows from it."""

    configuration: Configuration
    needs: ClusterNeeds
    look_ups: LookUps
    calculate: Mapping[str, Calculate]
    """By name of the recommendation."""
    for_each: Mapping[str, EachTarget] = field(default_factory=dict)
    """By name of each recommendation with `forEach`."""


def plan_of(configuration: Configuration) -> PollPlan:
    """Return the plan of a configuration."""
    look_ups = LookUps(queries_of(configuration), config_maps_of(configuration), targets_of(configuration))
    calculate = {
        each.policy.name: _calculate(each) for each in configuration.recommendations if not for_each_in(each.subject)
    }
    return PollPlan(configuration, needs_of(configuration), look_ups, calculate)


def _calculate(recommendation: Recommendation) -> Calculate:
    """Return the function of the recommendation's kind."""
    assert isinstance(recommendation.subject, ProportionalSettings), "the only kind that is calculated"
    return calculate_proportional(recommendation.subject)
