"""Determines which loads a configuration needs."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recommender.decisions.policy_settings import Output
from recommender.kinds.predictive.predictive_settings import predictive_settings

if TYPE_CHECKING:
    from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
    from recommender.configuration.recommender_configuration import Configuration
    from recommender.kinds.predictive.predictive_settings import PredictiveSettings


@dataclass(frozen=True, slots=True)
class LoadNeed:
    """The load of one predictive recommendation."""

    name: str
    """The name of the recommendation."""
    settings: PredictiveSettings
    poll_interval_seconds: float
    is_published: bool = True
    """Whether an HPA acts on the value, which takes its sync period more."""
    namespace: str = ""
    """The namespace of its object; empty for an entry of the file."""
    source: str = ""
    """Which Prometheus is asked, and as which tenant: the past of another one is that of another load."""

    @property
    def query(self) -> str:
        """The PromQL expression."""
        return self.settings.load or ""

    @property
    def learned_for(self) -> object:
        """The load that models learn from; models that were learned from another one are dropped."""
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
    """Return the loads that a configuration asks for."""
    source = "" if configuration.prometheus is None else source_of(configuration.prometheus)
    namespaces = {each.policy.name: each.policy.namespace for each in configuration.recommendations}
    published = {each.policy.name for each in configuration.recommendations if Output.METRIC in each.policy.outputs}
    return frozenset(
        LoadNeed(name, settings, configuration.poll_interval_seconds, name in published, namespaces[name], source)
        for name, settings in predictive_settings(configuration.recommendations).items()
        if settings.load
    )


def source_of(prometheus: PrometheusSettings) -> str:
    """Return a digest of what decides whose data is seen: address, parameters, headers, matchers and who asks.

    A password is not part of it, nor is an Authorization header: with a new one, the data is the same.
    """
    endpoint, credentials = prometheus.endpoint, prometheus.basic_credentials
    headers = sorted((key.lower(), value) for key, value in prometheus.headers if key.lower() != "authorization")
    user = "" if credentials is None else credentials[0]
    parts = (
        endpoint.shown,
        endpoint.parameters,
        headers,
        user,
        str(prometheus.token_file or ""),
        *_narrowing(prometheus),
    )
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def _narrowing(prometheus: PrometheusSettings) -> tuple[str, ...]:
    """Return the matchers; nothing without any, so that histories of versions without matchers are kept."""
    return () if prometheus.matchers is None else (str(prometheus.matchers),)
