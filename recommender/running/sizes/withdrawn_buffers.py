"""CapacityBuffers that a changed configuration no longer sizes: their size from before the first write is restored.

Nothing is withdrawn when this process ends, since the next process continues to size the buffers. Buffers that a
killed process did not withdraw are found in the cluster (`former_buffers`).
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from recommender.decisions.policy_settings import Output
from recommender.kinds.cluster_size.model.size_settings import BufferSettings, cluster_size_settings
from recommender.outputs.scale_results import ScaleResult

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recommender.configuration.recommender_configuration import Configuration
    from recommender.outputs.write_attempt import ScaleOutcome

_DONE: Final = frozenset({ScaleResult.OK, ScaleResult.UNCHANGED})


class Withdrawals:
    """The buffers that should get their former size back. For any number of threads.

    Every process follows the configuration, even one that does not lead, since it may become the leader before all
    buffers are withdrawn.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sized: dict[str, BufferSettings] = {}
        self._due: dict[BufferSettings, str] = {}
        self._refused: frozenset[str] = frozenset()
        """The names of entries with an error, which may size their buffers again once they are corrected. A name that
        cannot be read is empty."""

    def follow(self, configuration: Configuration) -> None:
        """Note which buffers the configuration sizes; those that only the previous one sized are to be withdrawn."""
        sized = buffers_of(configuration)
        with self._lock:
            self._due.update({buffer: name for name, buffer in self._sized.items()})
            for buffer in sized.values():
                self._due.pop(buffer, None)
            self._sized = sized
            self._refused = frozenset(each.name for each in configuration.refused)

    def add(self, sized: Mapping[BufferSettings, str]) -> None:
        """Add buffers that were found to have a written size, unless the configuration sizes them."""
        with self._lock:
            for buffer, name in sized.items():
                if buffer not in self._sized.values():
                    self._due.setdefault(buffer, name)

    def due(self) -> dict[str, tuple[BufferSettings, ...]]:
        """Return the buffers to be withdrawn, by the name of the recommendation that sized them.

        The buffers of an entry with an error wait until the error is corrected or the entry is removed.
        """
        with self._lock:
            found: dict[str, tuple[BufferSettings, ...]] = {}
            for buffer, name in self._due.items():
                if not self._refused & {name, ""}:
                    found[name] = (*found.get(name, ()), buffer)
            return found

    def note(self, outcome: ScaleOutcome) -> None:
        """Note the result of an attempt: a buffer that has its former size again is no longer due."""
        write = outcome.write
        if write.withdraws and outcome.result in _DONE:
            with self._lock:
                self._due.pop(BufferSettings(write.target.namespace, write.target.name), None)


def buffers_of(configuration: Configuration) -> dict[str, BufferSettings]:
    """Return the buffer of each recommendation that sizes one, by the name of the recommendation."""
    named = configuration.names_with(Output.CAPACITY_BUFFER)
    return {
        name: settings.buffer
        for name, settings in cluster_size_settings(configuration.recommendations).items()
        if settings.buffer is not None and name in named
    }
