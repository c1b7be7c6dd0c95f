"""The part of an object's metadata that selecting and naming need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class ObjectMeta:
    """Where an object lives, what it is called, and its labels."""

    namespace: str | None
    """None for an object that lives in no namespace."""
    name: str
    labels: Mapping[str, str]
    """Not to be changed by anybody: holders share it."""
