"""Refuses files that cannot be written before the work begins, which may take minutes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.files.file_contents import is_folder
from adapter.foundation.service.flags.parsing import UsageError

if TYPE_CHECKING:
    from adapter.foundation.service.flags.table import FlagValues

_PICTURES: Final = (".png", ".svg")


def check_output_file(values: FlagValues, name: str) -> None:
    """Raise UsageError if the flag names a file that cannot be written."""
    path = values.path(name)
    if path is not None and (is_folder(path) or not is_folder(path.parent)):
        raise UsageError(
            f"--{name}: {path} cannot be written: name a file in a folder that exists and that you may use"
        )


def check_picture(values: FlagValues) -> None:
    """Raise UsageError if `--plot` names a file that cannot be written, or whose ending is not that of a picture.

    The library would add an ending to a name that has none.
    """
    path = values.path("plot")
    if path is not None and path.suffix.lower() not in _PICTURES:
        raise UsageError(f"--plot: {path} cannot be written: its name must end with {' or '.join(_PICTURES)}")
    check_output_file(values, "plot")
