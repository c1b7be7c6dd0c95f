"""A named Prometheus among several: its identity, and the settings with which it is queried."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from adapter.foundation.sources.prometheus.backends.data_sources import source_of

if TYPE_CHECKING:
    from adapter.foundation.promql.narrowing import Matchers
    from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings


@dataclass(frozen=True, slots=True)
class Backend:
    """A named Prometheus. Two are equal if they share the name and show the same data, whatever their credentials."""

    name: str
    source: str
    """Digest of the settings that decide whose data it shows."""
    settings: PrometheusSettings = field(compare=False, repr=False)

    @classmethod
    def of(cls, name: str, settings: PrometheusSettings) -> Backend:
        """Return the backend with this name, which is queried with these settings."""
        return cls(name, source_of(settings), settings)

    def with_matchers(self, matchers: Matchers | None) -> PrometheusSettings:
        """Return the backend's settings, with these matchers if it has none of its own."""
        settings = self.settings
        return settings if settings.matchers is not None else replace(settings, matchers=matchers)


def backend_text(backend: Backend | None) -> str:
    """Return how messages refer to a Prometheus: by the backend's name if it has one."""
    return "Prometheus" if backend is None else f"Prometheus {backend.name}"


def with_backend_name(backend: Backend | None, message: str) -> str:
    """Return a message about a Prometheus, prefixed with the backend's name if it has one."""
    return message if backend is None else f"backend {backend.name}: {message}"
