"""The memory of a proportional recommendation."""

from __future__ import annotations

import msgspec

from recommender.decisions.memory import KindMemory


class LastParameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Parameters of a ConfigMap that could be read, kept for the time in which it cannot."""

    mode: str
    text: str
    resource_version: str


class ProportionalMemory(KindMemory, frozen=True, tag="proportional"):
    """The last good parameters, and what hysteresis holds."""

    parameters: LastParameters | None = None
    rungs: dict[str, int] = msgspec.field(default_factory=dict)
    """By driver, the value that hysteresis holds."""

    @property
    def shared(self) -> KindMemory | None:
        """Return the parameters."""
        return None if self.parameters is None else ProportionalMemory(self.parameters)


def remembered(own: KindMemory | None) -> ProportionalMemory:
    """Return the memory; an empty one where another kind or none has left it."""
    return own if isinstance(own, ProportionalMemory) else ProportionalMemory()
