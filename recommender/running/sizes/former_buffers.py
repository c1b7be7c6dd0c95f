"""Finds CapacityBuffers that this recommender has sized and that its configuration no longer names.

Their annotations show that a recommender has sized them, and remain if it is killed before it restores the former size.
Buffers that another recommender has sized, or nobody, are left alone.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from adapter.foundation.objects.resources import UnknownResourceError
from adapter.foundation.service.runtime.logs import StateLog
from adapter.foundation.sources.kubernetes.errors import ForbiddenError, KubernetesError
from adapter.foundation.sources.kubernetes.lists.small_list import items_of_list
from recommender.kinds.cluster_size.model.size_settings import BufferSettings
from recommender.kinds.cluster_size.node_groups.fields import text, texts
from recommender.outputs.write_attempt import READ_SECONDS
from recommender.running.sizes.capacity_buffer_writer import FORMER_REPLICAS, SIZED_BY, recommendation_of

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping

    from adapter.foundation.objects.resources import ResolveResource
    from adapter.foundation.sources.kubernetes.writing import Fence, Lists

_log = logging.getLogger(__name__)
_STEP_SECONDS: Final = 1.0
LOOK_SECONDS: Final = 600.0
"""How long a leader waits before it looks again."""
_RETRY_SECONDS: Final = 30.0
"""How long a leader waits after a failure."""


@dataclass(slots=True, kw_only=True)
class FormerBuffers:
    """Looks for the buffers when this process begins to lead, and every ten minutes while it leads."""

    objects: Lists
    resolve: ResolveResource
    fence: Fence
    owner: str
    """The owner in the annotations of buffers that this recommender has sized."""
    found: Callable[[Mapping[BufferSettings, str]], None]
    """Called with the name of the recommendation that sized each buffer."""
    are_configured: Callable[[], bool]
    """Returns whether the configuration in force sizes any buffer; a missing right is logged only then."""
    monotonic: Callable[[], float]
    _states: StateLog = field(default_factory=lambda: StateLog(_log))
    _looks_at: float | None = None
    """When the next look is due; infinite if lists are forbidden, and None while another process leads."""

    def run(self, stop: threading.Event) -> None:
        """Look until `stop` is set."""
        while not stop.wait(_STEP_SECONDS):
            self.step()

    def step(self) -> None:
        """Look if this process leads and a look is due."""
        now = self.monotonic()
        if not self.fence.permit(self.fence.seconds):
            self._looks_at = None
            return
        if self._looks_at is not None and now < self._looks_at:
            return
        self._looks_at = now + LOOK_SECONDS
        try:
            self.found(self._sized_buffers())
        except UnknownResourceError:
            return
        except ForbiddenError as error:
            self._looks_at = math.inf
            if self.are_configured():
                what = "CapacityBuffers that an earlier configuration sized are not looked for"
                self._states.failed("list", f"{what}: {error}", level=logging.INFO)
        except KubernetesError as error:
            self._looks_at = now + _RETRY_SECONDS
            self._states.failed("list", f"CapacityBuffers cannot be listed, which is tried again: {error}")
        else:
            self._states.recovered("list", "CapacityBuffers are listed again")

    def _sized_buffers(self) -> dict[BufferSettings, str]:
        served = self.resolve("autoscaling.x-k8s.io", "CapacityBuffer")
        path = f"/apis/{served.api_version}/{served.plural}"
        found = {}
        document = self.objects.get(path, seconds=READ_SECONDS).document
        for one in items_of_list(path, document, served.kind, served.api_version):
            annotations = texts(one, "metadata", "annotations")
            name = recommendation_of(annotations.get(SIZED_BY, ""), self.owner)
            if name and FORMER_REPLICAS in annotations:
                found[BufferSettings(text(one, "metadata", "namespace"), text(one, "metadata", "name"))] = name
        return found
