"""The memory that a decision depends on besides configuration and inputs; the next leader continues from it.

A memory is stored as the document that its types describe (`running/memory/memory_document.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Final, Self

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recommender.decisions.record import TargetReference

LATEST_TIME: Final = 253_402_300_799.0
"""The end of the year 9999, the last year that RFC 3339 can state."""
Time = Annotated[float, msgspec.Meta(ge=0, le=LATEST_TIME)]
"""Seconds since the Unix epoch."""
Count = Annotated[int, msgspec.Meta(ge=0)]
Amount = Annotated[float, msgspec.Meta(ge=0)]


class KindMemory(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, rename="camel"):
    """The memory of one kind of recommendation. The stored document has the same fields, in camelCase.

    The `tag` of a subclass is the key of its kind, and is stored as the field `type` of the document.
    """

    def repaired(self, now: float) -> Self:  # noqa: ARG002 - of use where times are remembered
        """Return the memory without values that no decision can have produced, such as times after `now`."""
        return self

    def prolonged(self, seconds: float) -> Self:  # noqa: ARG002 - of use where times are remembered
        """Return the memory with cool-downs, back-offs and holds that end later by this time (`Memory.prolonged`)."""
        return self

    @property
    def shared(self) -> KindMemory | None:
        """Return the part that is the same for all targets of a recommendation; None if each has its own."""
        return None

    @property
    def stored(self) -> KindMemory:
        """Return the part that is stored, and so outlives the process."""
        return self

    @property
    def target_uid(self) -> str:
        """Return the UID of the object that the memory is about; empty if it does not matter or is not known.

        It is stored beside the memory, where versions that do not know it ignore it: they refuse unknown fields of the
        memory itself.
        """
        return ""

    def about_target(self, uid: str) -> Self:  # noqa: ARG002 - of use where the UID matters
        """Return the memory with the UID of the object that it is about."""
        return self

    @property
    def facts(self) -> object:
        """Return the facts that the next leader must know exactly: any change of them is worth a write."""
        return self.stored

    @property
    def amounts(self) -> Mapping[str, float]:
        """Return, by name, numbers that change with every decision: only a large change of one is worth a write."""
        return {}

    @property
    def held_until(self) -> float | None:
        """Return when a hold ends, in Unix seconds; None without a hold.

        The memory is stored at once when a hold begins or ends.
        """
        return None


@dataclass(frozen=True, slots=True)
class LastValue:
    """The last value that passed all constraints."""

    replicas: int | None
    """The size; None for a kind whose value is not a single size: the memory of that kind contains the value."""
    decided: float
    """When the value was decided, in Unix seconds."""
    confirmed: float
    """When fresh inputs last led to the value, in Unix seconds."""


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of one recommendation."""

    last: LastValue | None = None
    changes: tuple[float, ...] = ()
    """Times of the changes of the value in the last hour, in Unix seconds, ascending."""
    own: KindMemory | None = None
    """The memory of the recommendation's kind."""
    known: Mapping[str, int] = field(default_factory=dict)
    """The last known number of objects of each counted kind (`doubted_first_lists`); kinds without any are left out."""
    by_target: Mapping[TargetReference, Memory] = field(default_factory=dict)
    """With `forEach` or several targets, the memory of each target, which contains no further targets."""

    def prolonged(self, seconds: float) -> Memory:
        """Return the memory after the wall clock was set forward by this time: all brakes last as long as before.

        The time of the last value stays, since facts get older if in doubt: the machine may have slept.
        """
        return replace(
            self,
            changes=tuple(time + seconds for time in self.changes),
            own=None if self.own is None else self.own.prolonged(seconds),
            by_target={target: memory.prolonged(seconds) for target, memory in self.by_target.items()},
        )
