"""Shows the current configuration in the recommender's own metrics, with counters of its entries only."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from recommender.decisions.policy_settings import Output

if TYPE_CHECKING:
    from collections.abc import Callable

    from recommender.configuration.recommender_configuration import Configuration
    from recommender.outputs.output_telemetry import RecommenderTelemetry


class ConfiguredCounters:
    """The metrics that follow the configuration. Thread-safe."""

    def __init__(self, current: Callable[[], Configuration], telemetry: RecommenderTelemetry) -> None:
        """Begin to follow the configuration in force, which `current` returns."""
        self._current = current
        self._telemetry = telemetry
        self._lock = threading.Lock()

    def show(self) -> None:
        """Export the poll interval, and drop the counters of entries that are no longer configured.

        Those of scale calls start at 0, so that a rate shows the first call.
        """
        # One after the other, so that the last one has the current configuration.
        with self._lock:
            configuration = self._current()
            self._telemetry.set_poll_interval(configuration.poll_interval_seconds)
            policies = [recommendation.policy for recommendation in configuration.recommendations]
            for policy in policies:
                if {Output.SCALE, Output.RESIZE} & policy.outputs and not policy.namespace:
                    self._telemetry.add_scale_output(policy.name)
            self._telemetry.keep([policy.name for policy in policies], configuration.object_names)
