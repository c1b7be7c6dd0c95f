"""Separate lookup threads for each backend, so that a hanging backend cannot occupy the threads of another."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from recommender.running.inputs.input_gathering import LookUpThreads


class BackendThreads:
    """Makes the threads of a backend when they are first requested. Not thread-safe."""

    def __init__(self, make: Callable[[], LookUpThreads], known: Callable[[], Container[str]]) -> None:
        """`known` returns the backends of the configuration in force; new ones reuse the threads of removed ones."""
        self._make = make
        self._known = known
        self._made: dict[str, LookUpThreads] = {"": make()}

    def of(self, backend: str) -> LookUpThreads:
        """Return the threads of a backend; the default one has the empty name."""
        found = self._made.get(backend)
        if found is None:
            known = self._known()
            spare = next((name for name in self._made if name and name not in known), None)
            found = self._made[backend] = self._make() if spare is None else self._made.pop(spare)
        return found
