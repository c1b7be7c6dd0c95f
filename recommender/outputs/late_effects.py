"""Remembers writes that got no answer and may still take effect.

    effects = LateEffects(monotonic)
    with effects.note(target, fence):
        objects.replace(path, document, fence)

While `effects.may_come(target)` returns True, start nothing that such a write could undo.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from adapter.foundation.sources.kubernetes.errors import UnknownOutcomeError
from recommender.outputs.write_attempt import LONGEST_EFFECT_RATIO

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from adapter.foundation.sources.kubernetes.writing import Fence
    from recommender.decisions.record import TargetReference


class LateEffects:
    """Remembers until when a write to a target may still take effect. Each target has at most one write at a time."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        """`monotonic` returns the seconds of a monotonic clock."""
        self._monotonic = monotonic
        self._until: dict[TargetReference, float] = {}

    @contextmanager
    def note(self, target: TargetReference, fence: Fence) -> Iterator[None]:
        """Run a write, and remember it if its outcome is unknown; the UnknownOutcomeError is raised again."""
        started = self._monotonic()
        try:
            yield
        except UnknownOutcomeError:
            self._until[target] = started + LONGEST_EFFECT_RATIO * fence.seconds
            raise

    def may_come(self, target: TargetReference) -> bool:
        """Return whether a write to the target that got no answer may still take effect."""
        if self._monotonic() < self._until.get(target, 0.0):
            return True
        self._until.pop(target, None)
        return False
