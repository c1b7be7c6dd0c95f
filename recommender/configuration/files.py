"""Reads the configuration from a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.documents.tree import DocumentProblem
from recommender.configuration.reading import ConfigurationError, read_configuration

if TYPE_CHECKING:
    from pathlib import Path

    from recommender.configuration.model import Configuration

LARGEST_BYTES = 4 << 20


def read_configuration_file(path: Path) -> Configuration:
    """Return the configuration that a file states. Raises ConfigurationError."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_BYTES + 1)
        if len(content) > LARGEST_BYTES:
            raise _unreadable(path, f"the file has more than {LARGEST_BYTES >> 20} MiB", "name the configuration file")
        return read_configuration(content.decode("utf-8"), str(path))
    except OSError as error:
        raise _unreadable(path, f"the file cannot be read: {error.strerror}", "check the path") from error
    except UnicodeDecodeError as error:
        raise _unreadable(path, "the file is not UTF-8", "save it as UTF-8") from error


def _unreadable(path: Path, message: str, fix: str) -> ConfigurationError:
    return ConfigurationError([DocumentProblem(str(path), 1, 1, message, fix)])
