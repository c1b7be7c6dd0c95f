"""The Prometheus of the entry that a command processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
    from recommender.configuration.recommender_configuration import Configuration


def chosen_prometheus(configuration: Configuration | None, subject: object) -> PrometheusSettings | None:
    """Return the backend of the entry that has these settings, or else the default one; None if there is neither."""
    if configuration is None:
        return None
    chosen = next((each.policy.backend for each in configuration.recommendations if each.subject is subject), "")
    return configuration.prometheus_of(chosen)
