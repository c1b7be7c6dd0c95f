"""The memory of a proportional recommendation."""

from __future__ import annotations

import msgspec

from recommender.decisions.memory import Count, KindMemory


class LastParameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The last readable parameters of a ConfigMap, kept for times when it cannot be read."""

    mode: str
    text: str
    resource_version: str


class ProportionalMemory(KindMemory, frozen=True, tag="proportional"):
    """The last good parameters, the values that hysteresis holds, and the sizes that were written last."""

    parameters: LastParameters | None = None
    rungs: dict[str, int] = msgspec.field(default_factory=dict)
    """The value that hysteresis holds, by driver."""
    sizes: dict[str, dict[str, dict[str, Count]]] = msgspec.field(default_factory=dict)
    """Sizes by container, section and resource, in millicores and in bytes; empty without the output `resize`."""

    @property
    def shared(self) -> KindMemory | None:
        """Return a memory with only the parameters; None if there are none."""
        return None if self.parameters is None else ProportionalMemory(self.parameters)


def restore_memory(own: KindMemory | None) -> ProportionalMemory:
    """Return the memory; an empty one if it belongs to another kind or there is none."""
    return own if isinstance(own, ProportionalMemory) else ProportionalMemory()
