"""Configuration files that a running process follows: the last good version stays in force until the next good one.

How a file is read, and whether only a part of it may be refused, is up to the owner.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge

from adapter.foundation.files.followed_files import FollowedFiles, Look, by_content, first_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from adapter.foundation.files.file_contents import FileContent
    from adapter.foundation.files.kept_contents import KeptContents

T = TypeVar("T")

_log = logging.getLogger(__name__)

LOOKS_UNTIL_SETTLED: Final = 2
"""Number of checks, a second apart, that must find the same files: an editor may empty a file before it writes it."""
RESULTS: Final = ("success", "partial", "failure")


class ReloadMetrics:
    """Exposes `PREFIX_config_last_reload_successful` and `PREFIX_config_reloads_total{result}`."""

    def __init__(self, registry: CollectorRegistry, prefix: str, results: Sequence[str] = RESULTS) -> None:
        """Register both metrics; `results` are the possible results of a change of this configuration."""
        self._well = Gauge(
            f"{prefix}_config_last_reload_successful",
            "1 while the whole configuration is in force; 0 while any of it is refused.",
            registry=registry,
        )
        self._reloads = Counter(
            f"{prefix}_config_reloads",
            "Changes of the configuration by result: success (all of it is in force); partial (a part is refused; rule "
            "files alone); failure (nothing took effect).",
            ["result"],
            registry=registry,
        )
        for result in results:
            self._reloads.labels(result)

    def state(self, *, is_whole: bool) -> None:
        """Record whether everything in the configuration is in force now."""
        self._well.set(is_whole)

    def count(self, result: str) -> None:
        """Count a change."""
        self._reloads.labels(result).inc()


class FollowedConfiguration(Generic[T]):
    """Follows the files. `check` is for one thread."""

    def __init__(
        self,
        paths: Sequence[Path],
        load: Callable[[Sequence[FileContent]], T],
        changed: Callable[[T], bool],
        *,
        unusable: tuple[type[Exception], ...],
        metrics: ReloadMetrics,
        consequence: str = "the configuration before this change stays in force",
        kept: KeptContents | None = None,
    ) -> None:
        """Load once. Raises what `load` raises, since there is no last good version at the start.

        `kept` holds the contents that a former worker had in force; they replace files that cannot be used now. If
        that worker had loaded several versions since the last one without problems, these are first put in force one
        by one, so that the owner knows the last good version of each part that the newest version gets wrong. Thus
        the configuration in force survives the end of a worker.

        `changed` receives each later version, puts it in force, and returns whether all of it is in force. If it
        raises, the next check tries again. `unusable` lists the errors of `load` that leave the last good version in
        force; the log then states the `consequence`.
        """
        self._change = changed
        self._metrics = metrics
        self.is_refused = False
        """Whether the files as they are now are refused as a whole."""
        self._consequence = consequence
        self._load = load
        self._unusable = unusable
        self._kept = kept
        self._put_former_in_force()
        self._files = self._follow_or_restore(by_content(paths))

    @property
    def value(self) -> T:
        """The version that was last loaded without an error."""
        return self._files.value

    def check(self) -> None:
        """Check whether the files have changed; a periodic task calls this."""
        self._files.check()

    def _put_former_in_force(self) -> None:
        if self._kept is None or len(former := self._kept.versions()) < 2:
            return
        _log.info("what was in force before the worker ended is put in force again: %d versions", len(former))
        # A version that ends this worker too must not be there for the next worker.
        self._kept.forget()
        for contents in former:
            with suppress(*self._unusable):
                self._change(self._load_and_keep(contents))

    def _follow_or_restore(self, look: Look[tuple[FileContent, ...]]) -> FollowedFiles[tuple[FileContent, ...], T]:
        try:
            return self._follow(look)
        except self._unusable as error:
            former = () if self._kept is None else self._kept.versions()
            if not former:
                raise
            for line in str(error).split("\n"):
                _log.error("%s; what was in force before the worker ended is in force again", line)
            return self._follow(first_of(former[-1], look))

    def _follow(self, look: Look[tuple[FileContent, ...]]) -> FollowedFiles[tuple[FileContent, ...], T]:
        return FollowedFiles(
            look,
            self._load_and_keep,
            unusable=self._unusable,
            settled_after=LOOKS_UNTIL_SETTLED,
            on_success=self._apply,
            on_failure=self._report_refusal,
        )

    def _load_and_keep(self, contents: tuple[FileContent, ...]) -> T:
        loaded = self._load(contents)
        if self._kept is not None:
            self._kept.keep(contents)
        return loaded

    def _apply(self, loaded: T) -> None:
        self.is_refused = is_whole = False
        try:
            is_whole = self._change(loaded)
        finally:
            self._metrics.state(is_whole=is_whole)
        self._metrics.count("success" if is_whole else "partial")
        if is_whole and self._kept is not None:
            self._kept.forget_earlier()

    def _report_refusal(self, error: Exception) -> None:
        self.is_refused = True
        self._metrics.state(is_whole=False)
        self._metrics.count("failure")
        for line in str(error).split("\n"):
            _log.error("%s; %s", line, self._consequence)
