"""Writes at the end of a process: no new write begins, and the Lease is kept until those under way end.

A Lease that is released while a write is under way lets the next leader decide before that write takes effect.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from adapter.foundation.sources.kubernetes.errors import FencedError, UnknownOutcomeError
from recommender.outputs.write_attempt import LONGEST_EFFECT_RATIO

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adapter.foundation.sources.kubernetes.writing import Fence, GetsAndWrites, Reply


class Writes:
    """A `GetsAndWrites` that tracks replacements that are under way. For any number of threads."""

    def __init__(self, objects: GetsAndWrites, clock: Callable[[], float] = time.monotonic) -> None:
        self._objects = objects
        self._clock = clock
        self._changed = threading.Condition()
        self._is_closed = False
        self._under_way = 0
        self._effective_until = 0.0
        """When the last write with an unknown outcome can no longer have an effect."""

    def get(self, path: str, *, seconds: float) -> Reply:
        """Return the object."""
        return self._objects.get(path, seconds=seconds)

    def create(self, collection: str, document: Mapping[str, Any], *, seconds: float) -> dict[str, Any]:
        """Create an object. `close` does not wait for this, since a creation cannot undo a write of the next leader."""
        return self._objects.create(collection, document, seconds=seconds)

    def replace(self, path: str, document: Mapping[str, Any], fence: Fence) -> dict[str, Any]:
        """Replace the version of the object that the document names; raises FencedError after `close`."""
        with self._changed:
            if self._is_closed:
                raise FencedError(f"PUT {path}: not sent: this process is about to end")
            self._under_way += 1
        started = self._clock()
        effective_until = started
        try:
            return self._objects.replace(path, document, fence)
        except UnknownOutcomeError:
            effective_until = started + LONGEST_EFFECT_RATIO * fence.seconds
            raise
        finally:
            with self._changed:
                self._under_way -= 1
                self._effective_until = max(self._effective_until, effective_until)
                self._changed.notify_all()

    def close(self, seconds: float) -> bool:
        """Refuse new replacements; wait up to `seconds` for those under way, and return whether all have ended."""
        until = self._clock() + seconds
        with self._changed:
            self._is_closed = True
            while (left := until - self._clock()) > 0 and (wait := self._unsettled_seconds()) > 0:
                self._changed.wait(min(left, wait))
            return self._unsettled_seconds() <= 0

    def _unsettled_seconds(self) -> float:
        """Return for how long a write may still have an effect, as far as that is known."""
        return float("inf") if self._under_way else self._effective_until - self._clock()
