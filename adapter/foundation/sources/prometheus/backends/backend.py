"""A named Prometheus among several: who it is, and how it is asked."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from adapter.foundation.sources.prometheus.backends.data_sources import source_of

if TYPE_CHECKING:
    from adapter.foundation.promql.narrowing import Matchers
    from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings


@dataclass(frozen=True, slots=True)
class Backend:
    """A named Prometheus. Two are equal if they have one name and show the same data, whatever the credentials are."""

    name: str
    source: str
    """Digest of what decides whose data it shows."""
    settings: PrometheusSettings = field(compare=False, repr=False)

    @classmethod
    def of(cls, name: str, settings: PrometheusSettings) -> Backend:
        """Return the backend of this name that is asked with these settings."""
        return cls(name, source_of(settings), settings)

    def with_matchers(self, matchers: Matchers | None) -> PrometheusSettings:
        """Return its settings, with these matchers if the backend has none of its own."""
        settings = self.settings
        return settings if settings.matchers is not None else replace(settings, matchers=matchers)


def called(backend: Backend | None) -> str:
    """Return how messages call a Prometheus: by its name, if it has one."""
    return "Prometheus" if backend is None else f"Prometheus {backend.name}"


def attributed(backend: Backend | None, message: str) -> str:
    """Return a message about a Prometheus with its name, if it has one."""
    return message if backend is None else f"backend {backend.name}: {message}"
