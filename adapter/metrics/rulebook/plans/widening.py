"""Determines how the two forms of a query that a proof compares may differ."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapter.foundation.promql.tree import TreeMatcher


class NotProvenError(Exception):
    """It is not proven that the wider answer contains the exact one. The message says why."""


@dataclass(frozen=True, slots=True)
class Widening:
    """How the wider form of a query differs from the exact one."""

    keys: frozenset[str]
    """Labels by whose values the wider answer is filtered."""
    exact: tuple[TreeMatcher, ...]
    """Matchers that `.LabelMatchers` contains only in the exact form."""
    wider: tuple[TreeMatcher, ...]
    """Matchers that `.LabelMatchers` contains only in the wider form."""
    gained: str | None = None
    """Label that `.GroupBy` contains only in the wider form: the namespace label of a wide plan."""
    bare_rows_count: bool = False
    """Whether a row without the key labels matters to a requester; for external metrics, it always does."""


class ProofVerdict(Enum):
    """Properties that are proven of the results of two corresponding nodes."""

    CONSTANT = "constant"
    """Both nodes are the same and do not depend on the request."""
    FILTERABLE = "filterable"
    """The exact result is the wider one, filtered by the keys, and has the gained label."""
    FILTERABLE_WITHOUT_GAINED = "filterable, but the exact form has lost the gained label"
    """The same as FILTERABLE, except that only the wider result has the gained label."""

    @property
    def has_gained(self) -> bool:
        """Whether the exact result still has the gained label."""
        return self is not ProofVerdict.FILTERABLE_WITHOUT_GAINED


def filterable(*, has_gained: bool) -> ProofVerdict:
    """Return the verdict of a filterable node."""
    return ProofVerdict.FILTERABLE if has_gained else ProofVerdict.FILTERABLE_WITHOUT_GAINED


def quote_labels(labels: Iterable[str]) -> str:
    """Return the labels for a message: `a`, `b`."""
    return ", ".join(f"`{label}`" for label in sorted(labels))
