"""Shows which credentials of a process could not be renewed, because their new files cannot be used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.registry import Collector

from adapter.foundation.files.credential_files import refused_credentials

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.metrics_core import Metric


class CredentialCollector(Collector):
    """Exposes `tidewatch_credentials_refused{credentials}`, read at each scrape."""

    def collect(self) -> Iterator[Metric]:
        """Yield the metric family."""
        refused = GaugeMetricFamily(
            "tidewatch_credentials_refused",
            "1 while the newest version of credentials cannot be used, and the last good one is in use; 0 otherwise.",
            labels=("credentials",),
        )
        for credentials, is_refused in refused_credentials().items():
            refused.add_metric((credentials,), float(is_refused))
        yield refused
