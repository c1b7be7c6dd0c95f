"""Paths that may begin with `~`."""

from __future__ import annotations

from pathlib import Path


def home_path(path: str) -> Path:
    """Return the path with `~` replaced by the home directory; the path itself if the user has no home directory.

    A user of a container who is in no `passwd` file, as on OpenShift, has none without the variable HOME. kubectl then
    does not find such a file either.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)
