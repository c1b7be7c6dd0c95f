"""Determines which loads a configuration needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from recommender.decisions.policy_settings import Output
from recommender.kinds.predictive.predictive_settings import PredictiveSettings, predictive_settings

if TYPE_CHECKING:
    from recommender.configuration.recommender_configuration import Configuration


@dataclass(frozen=True, slots=True)
class LoadNeed:
    """The load of one predictive recommendation."""

    name: str
    """The name of the recommendation."""
    settings: PredictiveSettings
    poll_interval_seconds: float
    is_published: bool = True
    """Whether the value is published for an HPA, whose sync period adds to the delay."""
    namespace: str = ""
    """The namespace of the recommendation's object; empty for an entry of the file."""
    backend: str = ""
    """The Prometheus that is queried, as `Configuration.backend_of` returns it."""
    source: str = ""
    """Identifies the data of the backend and its tenant: data of another source are the history of another load."""
    stale_after_seconds: float = 60.0
    """Age after which facts about the pods are no longer used."""

    @property
    def query(self) -> str:
        """The PromQL expression."""
        return self.settings.load or ""

    @property
    def learned_for(self) -> object:
        """Everything that determines what models learn; models that were learned for other values are dropped."""
        settings = self.settings
        return (
            self.source,
            settings.load,
            settings.for_each,
            settings.history_seconds,
            settings.season_seconds,
            settings.model,
            settings.horizon_seconds,
            settings.quantile,
            settings.headroom_ratio,
            settings.max_growth,
            settings.max_over_history,
            settings.budget_ratio,
            settings.timezone,
            settings.holidays,
        )


def load_needs_of(configuration: Configuration) -> frozenset[LoadNeed]:
    """Return the loads that a configuration needs."""
    policies = {each.policy.name: each.policy for each in configuration.recommendations}

    def need(name: str, settings: PredictiveSettings) -> LoadNeed:
        policy = policies[name]
        backend = configuration.backend_of(policy.backend)
        return LoadNeed(
            name,
            settings,
            configuration.poll_interval_seconds,
            Output.METRIC in policy.outputs,
            policy.namespace,
            backend,
            configuration.source_of(backend),
            policy.stale_after_seconds,
        )

    return frozenset(
        need(name, settings)
        for name, settings in predictive_settings(configuration.recommendations).items()
        if settings.load
    )
