"""Keeps the scheduling configuration in force, and replaces it as a whole when its file changes.

A changed file that has an error changes nothing: the last good one stays in force.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from adapter.foundation.files.file_contents import FileContent, FilesError, read_each, sole_content
from adapter.foundation.service.runtime.followed_configuration import FollowedConfiguration, ReloadMetrics
from adapter.foundation.service.runtime.logs import fields
from adapter.nodes.configuration.reading import SchedulingFileError, read_scheduling
from adapter.nodes.model.scheduling_settings import SchedulingSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from prometheus_client import CollectorRegistry

    from adapter.foundation.files.kept_contents import KeptContents

_log = logging.getLogger(__name__)


class SchedulingReloader:
    """Follows one file; without a file, the defaults are in force. `check` is for one thread, `current` for any."""

    def __init__(
        self, path: Path | None, registry: CollectorRegistry, metrics_prefix: str, kept: KeptContents | None = None
    ) -> None:
        """Read the file; raises FilesError or SchedulingFileError, since there is no last good version at the start.

        If an earlier worker has ended, the last good version is what it `kept`.
        """
        metrics = ReloadMetrics(registry, metrics_prefix, ("success", "failure"))
        self._on_change: Callable[[SchedulingSettings], None] = lambda _: None
        self._followed: FollowedConfiguration[SchedulingSettings] | None = None
        if path is not None:
            self._followed = FollowedConfiguration(
                [path],
                partial(_read, path),
                self._apply_change,
                unusable=(FilesError, SchedulingFileError),
                metrics=metrics,
                kept=kept,
            )
        self._current = SchedulingSettings() if self._followed is None else self._followed.value
        metrics.state(is_whole=True)

    def current(self) -> SchedulingSettings:
        """Return the configuration in force."""
        return self._current

    def on_change(self, on_change: Callable[[SchedulingSettings], None]) -> None:
        """Call this function with every further configuration."""
        self._on_change = on_change

    def check(self) -> None:
        """Check whether the file has changed, and load it if so. A periodic task calls this function."""
        if self._followed is not None:
            self._followed.check()

    def _apply_change(self, read: SchedulingSettings) -> bool:
        self._current = read
        self._on_change(read)
        _log.info("the changed scheduling configuration is in force", extra=fields(policies=len(read.policies)))
        return True


def read_scheduling_file(path: Path) -> SchedulingSettings:
    """Return the settings that a file contains. Raises FilesError or SchedulingFileError."""
    return _read(path, read_each([path]))


def _read(path: Path, contents: Sequence[FileContent]) -> SchedulingSettings:
    content = sole_content(path, contents)
    return read_scheduling(content.text, str(content.path))
