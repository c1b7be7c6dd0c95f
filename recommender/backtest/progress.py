"""One line on a terminal that shows how far along a backtest is, and how long the rest will take."""

from __future__ import annotations

import sys
import time
from typing import Final

_EACH_SECONDS: Final = 0.2
_EARLY_SECONDS: Final = 2.0
"""Before this time has passed, no remaining time is estimated."""
_WIPE: Final = "\r\x1b[K"
_BAR: Final = 24


class ProgressLine:
    """Shows progress if stderr is a terminal, and nothing otherwise."""

    def __init__(self) -> None:
        # Not stdout, which contains only the report.
        self._stream = sys.stderr
        self._is_terminal = self._stream.isatty()
        self._began = time.monotonic()
        self._shown_at = -_EACH_SECONDS
        self._is_visible = False

    def show(self, share: float, what: str) -> None:
        """Show that this share of the work, 0 to 1, is done, and what is being done."""
        now = time.monotonic() - self._began
        if not self._is_terminal or now - self._shown_at < _EACH_SECONDS:
            return
        self._shown_at = now
        filled = round(_BAR * share)
        left = f", {_minutes(now * (1 - share) / share)} left" if share > 0 and now > _EARLY_SECONDS else ""
        bar = "#" * filled + "." * (_BAR - filled)
        self._stream.write(f"{_WIPE}[{bar}] {100 * share:3.0f}% {what}{left}")
        self._stream.flush()
        self._is_visible = True

    def close(self) -> None:
        """Erase the line."""
        if self._is_visible:
            self._stream.write(_WIPE)
            self._stream.flush()
            self._is_visible = False


def _minutes(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole // 60} min {whole % 60:02d} s" if whole >= 60 else f"{whole} s"
