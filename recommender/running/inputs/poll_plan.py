"""The plan of a poll: the look-ups, and the calculation of each recommendation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from recommender.configuration.needs import (
    config_maps_of,
    needs_of,
    needs_of_one,
    payers_of,
    queries_of,
    targets_of,
    targets_of_objects,
)
from recommender.decisions.expansion import EachTarget
from recommender.kinds.table import kind_of
from recommender.running.inputs.input_gathering import LookUps
from recommender.running.loads.load_needs import load_needs_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adapter.foundation.cluster.values.state import ClusterNeeds
    from recommender.configuration.recommender_configuration import Configuration
    from recommender.decisions.calculation import Calculate
    from recommender.decisions.record import TargetReference


@dataclass(frozen=True, slots=True)
class PollPlan:
    """A configuration, with its look-ups and calculations."""

    configuration: Configuration
    needs: ClusterNeeds
    look_ups: LookUps
    calculations: Mapping[str, Callable[[TargetReference | None], Calculate]]
    """For each recommendation, by name, a function that returns its calculation or the calculation of one target."""
    for_each: Mapping[str, EachTarget] = field(default_factory=dict)
    """The recommendations whose targets are decided one by one, by name."""
    object_targets: frozenset[TargetReference] = frozenset()
    """Targets of objects. They take turns: a poll may look up only some of them."""
    slow: frozenset[str] = frozenset()
    """Names of the recommendations that are decided last, in threads of their own."""
    backends: Mapping[str, str] = field(default_factory=dict)
    """The backends of recommendations that do not query the default one, by name."""


def plan_of(configuration: Configuration) -> PollPlan:
    """Return the plan of a configuration."""
    look_ups = LookUps(
        queries_of(configuration),
        config_maps_of(configuration),
        targets_of(configuration),
        load_needs_of(configuration),
        payers_of(configuration),
    )
    recommendations = configuration.recommendations
    kinds = {each.policy.name: kind_of(each.policy.type) for each in recommendations}
    calculations = {
        each.policy.name: kinds[each.policy.name].calculation(each, recommendations) for each in recommendations
    }
    for_each = {
        each.policy.name: EachTarget(calculations[each.policy.name], found.max_targets, found.shards)
        for each in recommendations
        if (found := needs_of_one(each).for_each) is not None
    }
    slow = frozenset(name for name, kind in kinds.items() if kind.is_slow)
    needs, in_turn = needs_of(configuration), targets_of_objects(configuration)
    backends = {
        each.policy.name: backend
        for each in recommendations
        if (backend := configuration.backend_of(each.policy.backend))
    }
    return PollPlan(configuration, needs, look_ups, calculations, for_each, in_turn, slow, backends)


class Plans:
    """Holds the plan of the configuration in force."""

    def __init__(self, configuration: Configuration) -> None:
        self._plan = plan_of(configuration)

    def current(self) -> PollPlan:
        """Return the plan."""
        return self._plan

    def replace(self, configuration: Configuration) -> None:
        """Replace the plan."""
        self._plan = plan_of(configuration)
