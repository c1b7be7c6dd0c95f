"""Sources of the configuration in force: a file that is followed, or a command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from recommender.configuration.recommender_configuration import Configuration


class ConfigurationSource(Protocol):
    """The configuration in force (`ConfigurationReloader`)."""

    @property
    def current(self) -> Configuration:
        """The configuration in force."""
        ...

    def on_change(self, on_change: Callable[[Configuration], None]) -> None:
        """Call this function with every further configuration."""
        ...

    def check(self) -> None:
        """Check whether it has changed; the body of a periodic task."""
        ...
