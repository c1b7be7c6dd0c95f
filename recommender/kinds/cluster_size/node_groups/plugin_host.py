"""The host of a plugin: it is loaded once, asked before each decision, and given up for this time if it hangs."""

from __future__ import annotations

import logging
import threading
import time
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from recommender.kinds.cluster_size.node_groups.plugin_reading import PluginReading, read_provider
from recommender.kinds.cluster_size.node_groups.protocol import ENTRY_POINTS, ProviderNode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from adapter.foundation.cluster.values.state import ClusterNode
    from recommender.kinds.cluster_size.model.size_settings import PluginGroups
    from recommender.kinds.cluster_size.node_groups.protocol import CloudProvider

_log = logging.getLogger(__name__)

_SECONDS = 10.0
"""How long a plugin may take for one answer."""


class PluginMissingError(LookupError):
    """No installed package has the plugin, or several have; the message says what to do."""


def load_provider(settings: PluginGroups) -> CloudProvider:
    """Return the provider of a plugin. Raises PluginMissingError, and whatever the plugin raises."""
    found = [each for each in entry_points(group=ENTRY_POINTS) if each.name == settings.name]
    if len(found) != 1:
        known = ", ".join(sorted(entry_points(group=ENTRY_POINTS).names)) or "none"
        what = "no package" if not found else f"{len(found)} packages"
        raise PluginMissingError(
            f"{what} with an entry point {settings.name!r} of the group {ENTRY_POINTS} can be found: install one "
            f"in the image (installed: {known})"
        )
    factory: Callable[[Mapping[str, object]], CloudProvider] = found[0].load()
    return factory(settings.options)


class PluginHost:
    """Asks one plugin. For one thread; the plugin runs in a thread of its own."""

    def __init__(
        self,
        settings: PluginGroups,
        *,
        seconds: float = _SECONDS,
        load: Callable[[PluginGroups], CloudProvider] = load_provider,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._seconds = seconds
        self._load = load
        self._clock = clock
        self._provider: CloudProvider | None = None
        self._running: threading.Thread | None = None
        self._since = 0.0
        self._reading = PluginReading(settings.name)

    def read(self, nodes: Iterable[ClusterNode]) -> PluginReading:
        """Return what the plugin states now. One that raises or does not answer in time has no groups, and a problem.

        While a former call has not ended, no other one begins.
        """
        if self._running is not None and self._running.is_alive():
            return self._without(f"its call that began {self._clock() - self._since:.0f} s ago has not ended")
        known = tuple(ProviderNode(node.name, node.provider_id, node.labels) for node in nodes)
        self._since = self._clock()
        self._running = threading.Thread(target=self._ask, args=(known,), name="node group plugin", daemon=True)
        self._running.start()
        self._running.join(self._seconds)
        if self._running.is_alive():
            return self._without(f"it has not answered within {self._seconds:g} s")
        return self._reading

    def close(self) -> None:
        """Let the plugin release what it holds, unless a call hangs in it."""
        if self._provider is None or (self._running is not None and self._running.is_alive()):
            return
        provider, self._provider = self._provider, None
        try:
            provider.close()
        except Exception as error:  # noqa: BLE001 - code of others, while the program ends
            _log.warning("the plugin %s could not be closed: %s: %s", self._settings.name, type(error).__name__, error)

    def _ask(self, nodes: tuple[ProviderNode, ...]) -> None:
        try:
            if self._provider is None:
                self._provider = self._load(self._settings)
            self._reading = read_provider(self._settings.name, self._provider, nodes)
        except PluginMissingError as error:
            self._reading = self._without(str(error))
        except Exception as error:  # noqa: BLE001 - code of others may raise anything, and must not end the loop
            self._reading = self._without(f"{type(error).__name__}: {error}")

    def _without(self, problem: str) -> PluginReading:
        return PluginReading(self._settings.name, problem=problem)
