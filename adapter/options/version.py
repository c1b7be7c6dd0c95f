"""The version of this program."""

from __future__ import annotations

from importlib.metadata import version


def program_version() -> str:
    """Return the version of the installed distribution."""
    return version("tidewatch")
