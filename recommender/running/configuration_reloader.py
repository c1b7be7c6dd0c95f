"""The configuration in force: read, followed, and replaced as a whole when its file changes.

A file that cannot be used at all changes nothing. If an entry has an error, only this entry is refused, and its last
good version stays in use.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Protocol

from adapter.foundation.files.file_contents import FileContent, FilesError, sole_content
from adapter.foundation.service.runtime.followed_configuration import FollowedConfiguration, ReloadMetrics
from adapter.foundation.service.runtime.logs import fields
from adapter.foundation.sources.kubernetes.credentials.access import pod_namespace
from recommender.configuration.merging import with_last_good
from recommender.configuration.own_namespace import with_own_namespace
from recommender.configuration.reading import ConfigurationFileError, read_configuration
from recommender.configuration.recommender_configuration import Configuration

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from prometheus_client import CollectorRegistry

    from adapter.foundation.files.kept_contents import KeptContents

_log = logging.getLogger(__name__)


class ConfigurationSource(Protocol):
    """Provides the configuration in force, from a file that is followed or from a command line."""

    @property
    def current(self) -> Configuration:
        """The configuration in force."""

    def on_change(self, on_change: Callable[[Configuration], None]) -> None:
        """Call this function with every further configuration."""

    def check(self) -> None:
        """Check whether the configuration has changed; the body of a periodic task."""


class ConfigurationReloader:
    """Follows one file. `check` is for one thread, `current` for any."""

    def __init__(
        self, path: Path, registry: CollectorRegistry, metrics_prefix: str, kept: KeptContents | None = None
    ) -> None:
        """Read the file; raises FilesError or ConfigurationFileError, since there is no last good version at the start.

        `kept` has the contents that a former worker had in force. They are used if the file cannot be used now.
        """
        metrics = ReloadMetrics(registry, metrics_prefix)
        self._on_change: Callable[[Configuration], None] = lambda _: None
        self._in_force = Configuration()
        self._followed = FollowedConfiguration(
            [path],
            partial(_read, path),
            self._apply_change,
            unusable=(FilesError, ConfigurationFileError),
            metrics=metrics,
            kept=kept,
        )
        metrics.state(is_whole=self._take_in(self._followed.value))

    @property
    def current(self) -> Configuration:
        """The configuration in force."""
        return self._in_force

    def on_change(self, on_change: Callable[[Configuration], None]) -> None:
        """Call this function with every further configuration."""
        self._on_change = on_change

    def check(self) -> None:
        """Check whether the file has changed; the body of a periodic task."""
        self._followed.check()

    def _apply_change(self, read: Configuration) -> bool:
        is_whole = self._take_in(read)
        _log.info(
            "the changed configuration is in force",
            extra=fields(recommendations=len(self._in_force.recommendations), refused=len(read.refused)),
        )
        self._on_change(self._in_force)
        return is_whole

    def _take_in(self, read: Configuration) -> bool:
        """Put the usable parts in force; return whether all parts were usable."""
        self._in_force = with_last_good(read, self._in_force)
        for refused in read.refused:
            for problem in refused.problems:
                _log.error("%s", problem, extra=fields(recommendation=refused.name))
        for conflict in read.conflicts:
            _log.error("%s", conflict)
        return not read.problems


def _read(path: Path, contents: Sequence[FileContent]) -> Configuration:
    content = sole_content(path, contents)
    return with_own_namespace(read_configuration(content.text, str(content.path)), pod_namespace())
