"""The flag for the format in which a command prints its report."""

from __future__ import annotations

from typing import Final

from adapter.foundation.service.flags.table import Flag, one_of

FOR_PEOPLE: Final = ("text", "table")
"""Two names of one format."""


def output_flag(*more: str) -> Flag:
    """Return the flag; its values are the names of the text for people, `json`, and `more`."""
    formats = one_of(*FOR_PEOPLE, "json", *more)
    return Flag("output", formats, "Format of the report; table is another name for text.", short="o", default="text")
