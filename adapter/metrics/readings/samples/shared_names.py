"""One string for each object's name, however many metrics and refreshes contain it.

Every answer has its names as new strings. Five metrics of 50,000 pods, with the old and the new reading of each side by
side, would hold half a million of them. `sys.intern` is not suitable: some versions of Python never free its strings,
and pods come and go.
"""

from __future__ import annotations

from collections.abc import Callable

_ROTATION_SECONDS = 300.0


class SharedNames:
    """Returns the string that was first seen for a name. Names not seen for two rotations are forgotten.

    Threads may share it: the worst that a race does is a second string for one name.
    """

    def __init__(self, monotonic: Callable[[], float], rotation_seconds: float = _ROTATION_SECONDS) -> None:
        self._monotonic = monotonic
        self._rotation_seconds = rotation_seconds
        self._rotated_at = monotonic()
        self._recent: dict[str, str] = {}
        self._older: dict[str, str] = {}

    def share(self, name: str) -> str:
        """Return the string to keep for this name."""
        known = self._recent.get(name)
        if known is None:
            known = self._older.get(name, name)
            self._recent[known] = known
        return known

    def rotate(self) -> None:
        """Begin a new generation if the current one is old enough; to be called now and then."""
        now = self._monotonic()
        if now - self._rotated_at >= self._rotation_seconds:
            self._older, self._recent, self._rotated_at = self._recent, {}, now
