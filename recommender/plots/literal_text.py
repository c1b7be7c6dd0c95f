"""Draws texts as they are: a name may have dollar signs, which matplotlib would take for the marks of a formula."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from matplotlib import rc_context

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def literal_text() -> Iterator[None]:
    """Draw texts literally, and not as formulas, in figures that are made in the block or in the decorated function.

    matplotlib settings are those of the process, so only one thread may draw.
    """
    with rc_context({"text.parse_math": False}):
        yield
