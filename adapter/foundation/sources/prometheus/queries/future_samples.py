"""Finds samples with timestamps in the future, which a Prometheus whose clock is ahead has written."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from adapter.foundation.sources.prometheus.queries.clocks import MOST_CLOCK_DIFFERENCE_SECONDS
from adapter.foundation.time.pace import UNPACED

if TYPE_CHECKING:
    from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings

_AHEAD_SECONDS: Final = 24 * 3600
_QUERY: Final = f"count(count_over_time(up[{_AHEAD_SECONDS - MOST_CLOCK_DIFFERENCE_SECONDS:.0f}s]))"


def targets_of_the_future(settings: PrometheusSettings, timeout_seconds: float) -> int:
    """Return how many targets have samples that are more than a minute, and at most a day, later than now.

    Few samples are read, since a store usually has none. Raises PrometheusError and SettingsError.
    """
    with PrometheusClient(settings) as client:
        answer = client.instant(_QUERY, timeout_seconds=timeout_seconds, at=time.time() + _AHEAD_SECONDS)
        return sum(int(sample.value) for batch in answer.batches(UNPACED) for sample in batch)
