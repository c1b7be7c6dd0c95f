"""The Prometheus of the entry that a command is about."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
    from recommender.configuration.recommender_configuration import Configuration


def chosen_prometheus(configuration: Configuration | None, subject: object) -> PrometheusSettings | None:
    """Return what the entry with these settings asks, the default backend where there is none; None: nothing to ask."""
    if configuration is None:
        return None
    chosen = next((each.policy.backend for each in configuration.recommendations if each.subject is subject), "")
    return configuration.prometheus_of(chosen)
