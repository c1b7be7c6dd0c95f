"""The memory of a proportional recommendation."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from recommender.decisions.memory import Count, KindMemory, Time


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

    partial_since: Time | None = None
    """Since when the query may lack series, in Unix seconds; None if it lacks none. This is never stored: after a
    restart, it is looked up again."""
    is_first_process: bool = False
    """Whether this process decided the first size, and its query may have lacked series ever since; never stored."""

    def repaired(self, now: float) -> ProportionalMemory:
        """Return the memory without a time after `now`."""
        since = self.partial_since
        return self if since is None or since <= now else replace(self, partial_since=now)

    def prolonged(self, seconds: float) -> ProportionalMemory:
        """Return the memory with a wait for missing series that ends later by this time."""
        since = self.partial_since
        return self if since is None else replace(self, partial_since=since + seconds)

    @property
    def stored(self) -> ProportionalMemory:
        """Return the memory without what is known about the series of the query."""
        is_same = self.partial_since is None and not self.is_first_process
        return self if is_same else replace(self, partial_since=None, is_first_process=False)

    @property
    def shared(self) -> KindMemory | None:
        """Return a memory with only the parameters; None if there are none."""
        return None if self.parameters is None else ProportionalMemory(self.parameters)


def restore_memory(own: KindMemory | None) -> ProportionalMemory:
    """Return the memory; an empty one if it belongs to another kind or there is none."""
    return own if isinstance(own, ProportionalMemory) else ProportionalMemory()
