"""Which loads a configuration asks for."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recommender.decisions.settings import Output
from recommender.predictive.settings import PredictiveSettings

if TYPE_CHECKING:
    from adapter.sources.prometheus.settings import PrometheusSettings
    from recommender.configuration.model import Configuration, Recommendation


@dataclass(frozen=True, slots=True)
class LoadNeed:
    """The load of one predictive recommendation."""

    name: str
    """The name of the recommendation."""
    settings: PredictiveSettings
    poll_interval_seconds: float
    is_published: bool = True
    """Whether an HPA acts on the value, which takes its sync period more."""
    source: str = ""
    """Which Prometheus is asked, and as which tenant: the past of another one is that of another load."""

    @property
    def query(self) -> str:
        """The PromQL expression."""
        return self.settings.load or ""

    @property
    def learned_for(self) -> object:
        """What models learn from; with another one, what has been learned is of no use."""
        settings = self.settings
        return (
            self.source,
            settings.load,
            settings.for_each,
            settings.history_seconds,
            settings.model,
            settings.horizon_seconds,
            settings.quantile,
            settings.headroom_ratio,
            settings.max_growth,
        )


def load_needs_of(configuration: Configuration) -> frozenset[LoadNeed]:
    """Return the loads that a configuration asks for."""
    source = "" if configuration.prometheus is None else source_of(configuration.prometheus)
    found = (_need_of(each, configuration.poll_interval_seconds, source) for each in configuration.recommendations)
    return frozenset(need for need in found if need is not None)


def source_of(prometheus: PrometheusSettings) -> str:
    """Return a digest of what decides whose data is seen: address, parameters, headers and who asks.

    A password is no part of it, nor an Authorization header: with a new one, the data is the same.
    """
    endpoint, credentials = prometheus.endpoint, prometheus.basic_credentials
    headers = sorted((key.lower(), value) for key, value in prometheus.headers if key.lower() != "authorization")
    user = "" if credentials is None else credentials[0]
    parts = (endpoint.shown, endpoint.parameters, headers, user, str(prometheus.token_file or ""))
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def _need_of(recommendation: Recommendation, poll_interval_seconds: float, source: str) -> LoadNeed | None:
    subject: object = recommendation.subject
    if not isinstance(subject, PredictiveSettings) or not subject.load:
        return None
    policy = recommendation.policy
    return LoadNeed(policy.name, subject, poll_interval_seconds, Output.METRIC in policy.outputs, source)
