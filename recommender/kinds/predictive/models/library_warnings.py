"""Warnings of a library that belong in the answer instead of the log."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def quietly() -> Iterator[list[warnings.WarningMessage]]:
    """Collect the warnings of the block; only for child processes, since this changes the whole process's filters."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught
