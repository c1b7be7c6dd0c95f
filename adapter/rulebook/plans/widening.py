"""What a proof is about: two forms of one query, and how they may differ."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapter.rulebook.plans.tree import TreeMatcher


class NotProvenError(Exception):
    """The wider form is not proven to hold the exact answer; the message says why, for people."""


@dataclass(frozen=True, slots=True)
class Widening:
    """How the wider form of a query differs from the exact one."""

    keys: frozenset[str]
    """The labels by whose values the wider answer is filtered."""
    exact: tuple[TreeMatcher, ...]
    """What `.LabelMatchers` holds in the exact form, as far as the wider form has it not."""
    wider: tuple[TreeMatcher, ...]
    """What `.LabelMatchers` holds in the wider form, as far as the exact form has it not."""
    gained: str | None = None
    """The label that `.GroupBy` holds in the wider form alone: the namespace label of a wide plan."""
    bare_rows_count: bool = False
    """Whether a row without the key labels makes a difference to somebody: always so for external metrics."""


class ProofVerdict(Enum):
    """What is known of the result of two corresponding nodes."""

    CONSTANT = "constant"
    """Both forms are the same, and nothing of the request is below."""
    FILTERABLE = "filterable"
    """The exact result is the wider one, filtered by the keys; and it has the gained label too."""
    FILTERABLE_WITHOUT_GAINED = "filterable, but the exact form has lost the gained label"
    """As FILTERABLE, but for the gained label, which the wider result has and the exact one has not."""

    @property
    def has_gained(self) -> bool:
        """Return whether the exact form still has the gained label on its result."""
        return self is not ProofVerdict.FILTERABLE_WITHOUT_GAINED


def filterable(*, has_gained: bool) -> ProofVerdict:
    """Return the verdict of a filterable node."""
    return ProofVerdict.FILTERABLE if has_gained else ProofVerdict.FILTERABLE_WITHOUT_GAINED


def quoted(labels: Iterable[str]) -> str:
    """Return the labels for a message: `a`, `b`."""
    return ", ".join(f"`{label}`" for label in sorted(labels))
