"""One poll of cluster-proportional-vertical-autoscaler: the size of the cluster, the sizes, and a patch if they change.

As in the original program, the target is written without being read, since the rights do not include reading it. So
a change by somebody else stays until the wanted sizes change.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from adapter.foundation.reports.counts import count_of
from adapter.foundation.sources.kubernetes.errors import KubernetesError
from recommender.commands.vertical.cluster_sizes import ConfirmedCounts, nodes_and_cores
from recommender.commands.vertical.polls import PollError
from recommender.commands.vertical.sized_object import sizes_text, write_resources
from recommender.kinds.proportional.cpva_config import container_sizes

if TYPE_CHECKING:
    from adapter.foundation.sources.kubernetes.client import KubernetesClient
    from adapter.foundation.sources.kubernetes.writing import ObjectClient
    from recommender.commands.cpva.followed_config import FollowedConfig
    from recommender.commands.cpva.settings import CpvaSettings
    from recommender.kinds.proportional.sizes import ContainerResources

_log = logging.getLogger(__name__)


class CpvaPoll:
    """Polls for one target. Not thread-safe."""

    def __init__(
        self, settings: CpvaSettings, config: FollowedConfig, client: KubernetesClient, objects: ObjectClient
    ) -> None:
        self._settings = settings
        self._config = config
        self._client = client
        self._objects = objects
        self._counts = ConfirmedCounts("empty_cluster")
        self._written: ContainerResources | None = None

    def poll(self) -> str:
        """Decide on the sizes and write them if they change; return the outcome. Raises PollError."""
        try:
            size = nodes_and_cores(self._client)
        except KubernetesError as error:
            raise PollError("error_getting_cluster_size", str(error)) from error
        self._counts.check(size.nodes)
        wanted = container_sizes(size.nodes, size.cores, self._config.current())
        if wanted == self._written:
            return "unchanged"
        about = f"{count_of(size.nodes, 'node')}, {count_of(size.cores, 'core')}"
        if self._settings.dry_run:
            _log.info("%s (%s): %s; nothing is written", self._settings.target, about, sizes_text(wanted))
            outcome = "dry_run"
        else:
            try:
                write_resources(self._objects, self._settings.target, wanted)
            except KubernetesError as error:
                raise PollError("error_updating_target", str(error)) from error
            _log.info("%s (%s): %s", self._settings.target, about, sizes_text(wanted))
            outcome = "updated"
        self._written = wanted
        return outcome
