"""Determines from an error of OpenSSL whether the other side of a connection does not speak TLS."""

from __future__ import annotations

from typing import Final

_WITHOUT_TLS: Final = ("wrong version number", "record layer failure", "packet length too long")
"""How the versions of OpenSSL describe that the first bytes of an answer are not those of TLS."""


def speaks_no_tls(message: str) -> bool:
    """Return whether an error's message says this. Not its `reason`, which a Python older than OpenSSL lacks."""
    return any(words in message for words in _WITHOUT_TLS)
