"""The kinds of the cluster, by the names that rules and paths use for them.

The built-in kinds are known even before the first answer, so that rules can be resolved at once. If the server of a
group does not answer, its kinds remain known.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapter.foundation.objects.resources import BUILT_IN, Resource, UnknownResourceError, find_resource
from adapter.foundation.sources.kubernetes.errors import KubernetesError
from adapter.foundation.sources.kubernetes.groups import GroupVersion, discover
from adapter.foundation.time.pace import UNPACED, Pace

if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Event

    from adapter.foundation.sources.kubernetes.client import KubernetesClient

logger = logging.getLogger(__name__)

_PATIENCE_SECONDS = 5.0
"""How long the look-up of an unknown name waits for another thread that is asking the server."""


@dataclass(frozen=True, slots=True)
class _Known:
    resources: tuple[Resource, ...]
    failing: tuple[str, ...]
    """Group versions whose server does not answer, as `group/version`."""


def _merge_kinds(found: list[GroupVersion], before: tuple[Resource, ...]) -> _Known:
    """Return the kinds that were found, and the former kinds of group versions that do not answer."""
    resources: dict[tuple[str, str], Resource] = {}
    for version in found:
        held = version.resources
        if held is None:
            held = tuple(one for one in before if (one.group, one.version) == (version.group, version.version))
        for resource in held:
            # The first version with a resource is the preferred one.
            resources.setdefault((resource.group, resource.plural), resource)
    failing = (f"{version.group}/{version.version}" for version in found if version.resources is None)
    return _Known(tuple(resources.values()), tuple(failing))


class KindDiscovery:
    """The kinds of the cluster, which are refreshed regularly, and whenever an unknown kind is looked up."""

    def __init__(
        self,
        client: KubernetesClient,
        *,
        pace: Pace = UNPACED,
        clock: Callable[[], float] = time.monotonic,
        refresh_seconds: float = 300.0,
        retry_seconds: float = 30.0,
    ) -> None:
        """`retry_seconds` is also the shortest time between two refreshes that unknown names cause."""
        self._client = client
        self._pace = pace
        self._clock = clock
        self._refresh_seconds = refresh_seconds
        self._retry_seconds = retry_seconds
        self._known = _Known(BUILT_IN, ())
        self._resolved: dict[tuple[str, str], Resource] = {}
        self._tried_at: float | None = None
        self._lock = threading.Lock()

    @property
    def failing_versions(self) -> tuple[str, ...]:
        """Group versions whose server does not answer, as `group/version`."""
        return self._known.failing

    def resource(self, group: str, name: str) -> Resource:
        """Return the resource of this name, as a `ResolveResource` does. Raises UnknownResourceError.

        Since an unknown kind may be new, the server is asked about it, unless it was asked a moment ago.
        """
        known = self._known
        try:
            return self._resolve(group, name)
        except UnknownResourceError:
            if not self._refresh_if_due(known):
                raise
        return self._resolve(group, name)

    def preferred_version(self, resource: Resource, *, ask: bool = False) -> Resource:
        """Return a resource in the version that the server prefers; the same one if the server does not have the kind.

        With `ask`, the server is asked first, unless it was asked a moment ago. Never raises.
        """
        if ask:
            self._refresh_if_due(self._known)
        same = (one for one in self._known.resources if (one.group, one.plural) == (resource.group, resource.plural))
        return next(same, resource)

    def refresh(self) -> None:
        """Ask the server for its kinds. If that raises KubernetesError, the known kinds stay."""
        with self._lock:
            self._refresh()

    def run(self, stop: Event) -> None:
        """Refresh until `stop` is set."""
        while not stop.is_set():
            delay = self._refresh_seconds
            try:
                self.refresh()
            except KubernetesError as error:
                delay = self._retry_seconds
                logger.warning("API discovery failed; the known kinds stay in use: %s", error)
            stop.wait(random.uniform(0.8, 1.2) * delay)  # noqa: S311 - spreads replicas, hides nothing

    def _resolve(self, group: str, name: str) -> Resource:
        resolved = self._resolved
        asked = (group, name.lower())
        found = resolved.get(asked)
        if found is None:
            found = resolved[asked] = find_resource(self._known.resources, group, name)
        return found

    def _refresh_if_due(self, known: _Known) -> bool:
        """Ask the server if it was not asked recently; return whether there may be other kinds than the known ones."""
        if not self._lock.acquire(timeout=_PATIENCE_SECONDS):
            return False
        try:
            if self._known is not known:
                # Another thread has asked since the look-up.
                return True
            if self._tried_at is not None and self._clock() - self._tried_at < self._retry_seconds:
                return False
            self._refresh()
        except KubernetesError as error:
            logger.warning(
                "API discovery for an unknown resource or version failed; the known kinds stay in use: %s", error
            )
            return False
        finally:
            self._lock.release()
        return True

    def _refresh(self) -> None:
        self._tried_at = self._clock()
        known = _merge_kinds(discover(self._client, self._pace), self._known.resources)
        if known.failing != self._known.failing:
            logger.warning("APIs whose server does not answer: %s", ", ".join(known.failing) or "none any more")
        self._known = known
        self._resolved = {}
