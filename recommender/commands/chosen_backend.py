"""The Prometheus that a command reads the past from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.foundation.service.flags.parsing import UsageError
from adapter.foundation.sources.prometheus.errors import SettingsError
from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings

if TYPE_CHECKING:
    from adapter.foundation.service.flags.table import FlagValues
    from recommender.configuration.recommender_configuration import Configuration


def chosen_prometheus(
    values: FlagValues, configuration: Configuration | None, subject: object, lacking: str
) -> PrometheusSettings:
    """Return the connection to the URL of the flag, or else to the backend of the entry that has these settings.

    Configured credentials are used only for the configured address, and matchers for all. Raises UsageError with the
    text `lacking` if there is neither.
    """
    known, url = None, values.text("prometheus-url")
    if configuration is not None:
        chosen = next((each.policy.backend for each in configuration.recommendations if each.subject is subject), "")
        known = configuration.prometheus_of(chosen)
    if known is not None and url in {"", known.url}:
        return known
    if not url:
        raise UsageError(lacking)
    try:
        return PrometheusSettings(url, matchers=None if known is None else known.matchers)
    except SettingsError as error:
        raise UsageError(f"--prometheus-url: {error}") from error
