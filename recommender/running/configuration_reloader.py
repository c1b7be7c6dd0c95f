"""The configuration in force: read, followed, and replaced as a whole when its file changes.

A file that cannot be used at all changes nothing. An entry with an error is refused alone, and its last good version
stays in use.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from prometheus_client import Counter, Gauge

from adapter.service.runtime.logs import fields
from adapter.timing.file_contents import FilesError
from adapter.timing.followed_files import FollowedFiles, by_content
from recommender.configuration.merging import with_last_good
from recommender.configuration.model import Configuration
from recommender.configuration.reading import ConfigurationFileError, read_configuration

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from prometheus_client import CollectorRegistry

    from adapter.timing.file_contents import FileContent

_log = logging.getLogger(__name__)

LOOKS_UNTIL_SETTLED = 2
"""Looks, a second apart, that must see the same: an editor may empty a file before it writes it."""
RESULTS = ("success", "partial", "failure")


class ConfigurationReloader:
    """Follows one file. `check` is for one thread, `current` for any."""

    def __init__(self, path: Path, registry: CollectorRegistry, metrics_prefix: str) -> None:
        """Read the file; raises FilesError or ConfigurationFileError: at the start there is no last good version."""
        self._well = Gauge(
            f"{metrics_prefix}_config_last_reload_successful",
            "Whether all that the configuration file says now is in force; 0 while any of it is refused.",
            registry=registry,
        )
        self._reloads = Counter(
            f"{metrics_prefix}_config_reloads",
            "Changes of the file, by result: success, partial (an entry is refused), failure (nothing is new).",
            ["result"],
            registry=registry,
        )
        for result in RESULTS:
            self._reloads.labels(result)
        self._on_change: Callable[[Configuration], None] = lambda _: None
        self._in_force = Configuration()
        self._files = FollowedFiles(
            by_content([path]),
            _read,
            unusable=(FilesError, ConfigurationFileError),
            settled_after=LOOKS_UNTIL_SETTLED,
            on_success=self._changed,
            on_failure=self._refused,
        )
        self._take_in(self._files.value)

    @property
    def current(self) -> Configuration:
        """The configuration in force."""
        return self._in_force

    def on_change(self, on_change: Callable[[Configuration], None]) -> None:
        """Call this function with every further configuration."""
        self._on_change = on_change

    def check(self) -> None:
        """Look whether the file has changed; the body of a periodic task."""
        self._files.check()

    def _changed(self, read: Configuration) -> None:
        self._reloads.labels("partial" if read.refused else "success").inc()
        self._take_in(read)
        _log.info(
            "the changed configuration is in force",
            extra=fields(recommendations=len(self._in_force.recommendations), refused=len(read.refused)),
        )
        self._on_change(self._in_force)

    def _take_in(self, read: Configuration) -> None:
        self._in_force = with_last_good(read, self._in_force)
        self._well.set(0 if read.refused else 1)
        for refused in read.refused:
            for problem in refused.problems:
                _log.error("%s", problem, extra=fields(recommendation=refused.name))

    def _refused(self, error: Exception) -> None:
        self._reloads.labels("failure").inc()
        self._well.set(0)
        _log.error("%s", error, extra=fields(consequence="the configuration before this change stays in force"))


def _read(contents: Sequence[FileContent]) -> Configuration:
    (content,) = contents
    return read_configuration(content.text, str(content.path))
