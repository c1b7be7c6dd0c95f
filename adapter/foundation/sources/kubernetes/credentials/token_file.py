"""A token in a file that the kubelet or another program rotates, as the projected token of a service account."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from adapter.foundation.sources.kubernetes.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable

TOKEN_SECONDS: Final = 60.0
"""How long a token that was read from a file is used."""


class TokenFile:
    """A token in a file, which is read again each minute, since it is rotated. Thread-safe."""

    def __init__(self, path: str, scheme: str, clock: Callable[[], float] = time.monotonic) -> None:
        """Read it. Raises ConfigurationError."""
        self._path = path
        self._scheme = scheme
        self._clock = clock
        self._read: tuple[float, str] = (-TOKEN_SECONDS, "")
        self()

    def __call__(self) -> str:
        """Return the value of the header. Raises ConfigurationError."""
        read_at, value = self._read
        now = self._clock()
        if value and now - read_at < TOKEN_SECONDS:
            return value
        try:
            token = Path(self._path).read_text().strip()
        except (OSError, UnicodeError) as error:
            raise ConfigurationError(f"the credentials cannot be read ({type(error).__name__})") from None
        if not token:
            raise ConfigurationError("the credentials cannot be read (the token file is empty)")
        self._read = (now, f"{self._scheme} {token}")
        return self._read[1]
