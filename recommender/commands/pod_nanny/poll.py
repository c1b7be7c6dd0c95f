"""One poll of addon-resizer: the size of the cluster, the wanted sizes, and a patch if they differ enough."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Final

from adapter.foundation.sources.kubernetes.errors import FencedError, KubernetesError
from recommender.commands.vertical.cluster_sizes import (
    ConfirmedCounts,
    number_in_metrics,
    number_of_containers,
    number_of_nodes,
)
from recommender.commands.vertical.polls import PollError
from recommender.kinds.proportional.nanny.estimators import exponential_size, linear_sizes, offset_sizes
from recommender.kinds.proportional.nanny.thresholds import CurrentSizes, SizeChange, beyond_offsets, beyond_threshold

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from adapter.foundation.sources.kubernetes.client import KubernetesClient
    from recommender.commands.pod_nanny.followed_parameters import FollowedParameters
    from recommender.commands.pod_nanny.resized_container import WardClient
    from recommender.commands.pod_nanny.settings import NannySettings, ResizeRule
    from recommender.kinds.proportional.nanny.estimators import GrowingResource

_log = logging.getLogger(__name__)

_COUNT_ERROR: Final = "error_getting_count"
_READ_ERROR: Final = "error_getting_resources"
_WRITE_ERROR: Final = "error_updating_deployment"
WITHIN_LIMITS: Final = "resources_within_limits"
"""An outcome of a poll. Outcomes that addon-resizer also reports have the same names."""


class NannyPoll:
    """Polls for one container. Not thread-safe."""

    def __init__(
        self,
        settings: NannySettings,
        parameters: FollowedParameters,
        client: KubernetesClient,
        ward: WardClient,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._parameters = parameters
        self._client = client
        self._ward = ward
        self._clock = clock
        self._counts = ConfirmedCounts(_COUNT_ERROR, clock)
        self._changed = clock()
        self._announced = ""

    def poll(self) -> str:
        """Decide on the sizes and write them if they change; return the outcome. Raises PollError."""
        if not self._ward.leads():
            # Another process may have changed the sizes a moment ago, so delays count from when this one leads.
            self._changed = self._clock()
        resources = self._parameters.current()
        size = self._cluster_size()
        try:
            current = self._ward.current_sizes()
        except KubernetesError as error:
            raise PollError(_READ_ERROR, str(error)) from error
        change = change_for(self._settings.rule, size, resources, current)
        if change is None:
            self._announced = ""
            return WITHIN_LIMITS
        if self._settings.rule.delays.forbid(change.direction, self._clock() - self._changed):
            self._announce(f"{change.reason}: this waits for --scale-{change.direction}-delay")
            return "scale_up_down_delay"
        return self._write_sizes(change, size)

    def _cluster_size(self) -> int:
        try:
            size = _count(self._client, self._settings)
        except KubernetesError as error:
            raise PollError(_COUNT_ERROR, str(error)) from error
        self._counts.check(size)
        if not size and self._settings.rule.offsets_percent is not None:
            raise PollError(_COUNT_ERROR, "there are no nodes: as in addon-resizer 2.x, the sizes stay")
        return size

    def _write_sizes(self, change: SizeChange, size: int) -> str:
        if self._settings.dry_run:
            self._announce(f"{change.reason} for a size of {size}; nothing is written")
            return "dry_run"
        try:
            has_changed = self._ward.resize(change.sizes)
        except FencedError:
            self._announce("another process leads")
            return "not_leading"
        except KubernetesError as error:
            raise PollError(_WRITE_ERROR, str(error)) from error
        if not has_changed:
            self._announce(f"{change.reason}: the Deployment has this size, and its pod does not have it yet")
            return WITHIN_LIMITS
        self._changed = self._clock()
        self._announce(f"{change.reason}, for a size of {size}")
        return "updated_resources"

    def _announce(self, message: str) -> None:
        """Log a message, unless it equals the last one."""
        if message != self._announced:
            _log.info("%s: %s", self._settings.ward.deployment, message)
        self._announced = message


def change_for(
    rule: ResizeRule, size: int, resources: Sequence[GrowingResource], current: CurrentSizes
) -> SizeChange | None:
    """Return the change of sizes that a rule requires at this size of the cluster; None if the sizes may stay."""
    if rule.offsets_percent is None:
        if rule.smallest_exponential is not None:
            size = exponential_size(size, rule.smallest_exponential)
        return beyond_threshold(current, linear_sizes(size, resources), rule.threshold_percent)
    accepted, recommended = (offset_sizes(size, percent, resources) for percent in rule.offsets_percent)
    return beyond_offsets(current, accepted, recommended)


def _count(client: KubernetesClient, settings: NannySettings) -> int:
    if settings.use_metrics:
        return number_in_metrics(client, "pods" if settings.counts_containers else "nodes")
    return number_of_containers(client) if settings.counts_containers else number_of_nodes(client)
