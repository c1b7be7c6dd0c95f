"""The configuration of sizes from the command line, and from a file that may change at any time."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from adapter.foundation.files.file_contents import FilesError, read_each, sole_content
from adapter.foundation.service.runtime.logs import StateLog
from recommender.commands.vertical.polls import PollError
from recommender.kinds.proportional.cpva_config import (
    ScaleConfig,
    ScaleConfigError,
    override_defaults,
    parse_scale_config,
)

if TYPE_CHECKING:
    from pathlib import Path


_log = logging.getLogger(__name__)


class FollowedConfig:
    """Keeps the last good configuration. Not thread-safe."""

    def __init__(self, defaults: ScaleConfig, file: Path | None) -> None:
        self._defaults = defaults
        self._file = file
        self._config = override_defaults(defaults, {}) if file is None else None
        self._text: str | None = None
        self._states = StateLog(_log)

    def current(self) -> ScaleConfig:
        """Check the file, and return its configuration, or the last good one if the file cannot be used.

        Raises PollError if there has never been a good one: the defaults are not used without the file.
        """
        if self._file is not None:
            try:
                self._look(self._file)
                self._states.recovered("file", "the configuration can be used again", file=self._file)
            except (FilesError, ScaleConfigError) as error:
                if self._config is None:
                    raise PollError("error_reading_config", str(error)) from error
                self._states.failed("file", f"the former configuration stays in use: {error}")
        assert self._config is not None
        return self._config

    def _look(self, file: Path) -> None:
        """Read the file if it has changed. Raises FilesError and ScaleConfigError."""
        content = sole_content(file, read_each((file,)))
        if content.text == self._text:
            return
        try:
            self._config = override_defaults(self._defaults, parse_scale_config(content.text))
        except ScaleConfigError as error:
            raise ScaleConfigError(f"{file}: {error}") from error
        self._text = content.text
        _log.info("the configuration is in force: %s", file)
