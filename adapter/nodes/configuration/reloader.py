"""The scheduling configuration in force: read, followed, and replaced as a whole when its file changes.

A changed file that has an error changes nothing: the last good one stays in force.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from prometheus_client import Counter, Gauge

from adapter.nodes.configuration.reading import SchedulingFileError, read_scheduling
from adapter.nodes.model.settings import SchedulingSettings
from adapter.service.runtime.logs import fields
from adapter.timing.file_contents import FilesError, read_each
from adapter.timing.followed_files import FollowedFiles, by_content

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from prometheus_client import CollectorRegistry

    from adapter.timing.file_contents import FileContent

_log = logging.getLogger(__name__)

LOOKS_UNTIL_SETTLED: Final = 2
"""Looks, a second apart, that must see the same: an editor may empty a file before it writes it."""
RESULTS: Final = ("success", "failure")


class SchedulingReloader:
    """Follows one file. `check` is for one thread, `current` for any. Without a file, the defaults are in force."""

    def __init__(self, path: Path | None, registry: CollectorRegistry, metrics_prefix: str) -> None:
        """Read the file; raises FilesError or SchedulingFileError: at the start there is no last good version."""
        self._well = Gauge(
            f"{metrics_prefix}_config_last_reload_successful",
            "1 while what the scheduling configuration says now is in force; 0 while it is refused.",
            registry=registry,
        )
        self._reloads = Counter(
            f"{metrics_prefix}_config_reloads",
            "Changes of the scheduling configuration, by result: success, failure (nothing is new).",
            ["result"],
            registry=registry,
        )
        for result in RESULTS:
            self._reloads.labels(result)
        self._on_change: Callable[[SchedulingSettings], None] = lambda _: None
        self._files: FollowedFiles[Sequence[FileContent], SchedulingSettings] | None = None
        if path is not None:
            self._files = FollowedFiles(
                by_content([path]),
                _read,
                unusable=(FilesError, SchedulingFileError),
                settled_after=LOOKS_UNTIL_SETTLED,
                on_success=self._changed,
                on_failure=self._refused,
            )
        self._current = SchedulingSettings() if self._files is None else self._files.value
        self._well.set(1)

    def current(self) -> SchedulingSettings:
        """Return the configuration in force."""
        return self._current

    def on_change(self, on_change: Callable[[SchedulingSettings], None]) -> None:
        """Call this function with every further configuration."""
        self._on_change = on_change

    def check(self) -> None:
        """Look whether the file has changed; the body of a periodic task."""
        if self._files is not None:
            self._files.check()

    def _changed(self, read: SchedulingSettings) -> None:
        self._current = read
        self._on_change(read)
        self._reloads.labels("success").inc()
        self._well.set(1)
        _log.info("the changed scheduling configuration is in force", extra=fields(policies=len(read.policies)))

    def _refused(self, error: Exception) -> None:
        self._reloads.labels("failure").inc()
        self._well.set(0)
        _log.error("%s", error, extra=fields(consequence="the configuration before this change stays in force"))


def read_scheduling_file(path: Path) -> SchedulingSettings:
    """Return what a file states. Raises FilesError or SchedulingFileError."""
    return _read(read_each([path]))


def _read(contents: Sequence[FileContent]) -> SchedulingSettings:
    (content,) = contents
    if content.unread is not None:
        raise content.unread
    return read_scheduling(content.text, str(content.path))
