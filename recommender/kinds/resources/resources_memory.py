"""The memory of a recommendation of sizes for one target."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from recommender.decisions.memory import Count, KindMemory

if TYPE_CHECKING:
    from collections.abc import Mapping


class ResourcesMemory(KindMemory, frozen=True, tag="resources"):
    """The requests that were recommended last. What was used is in the folder `state`."""

    sizes: dict[str, dict[str, Count]] = msgspec.field(default_factory=dict)
    """By container and resource, in milli of cores and in bytes."""

    @property
    def facts(self) -> object:
        """Return which requests there are: how large they are changes a little all the time."""
        return {name: tuple(sorted(amounts)) for name, amounts in self.sizes.items()}

    @property
    def amounts(self) -> Mapping[str, float]:
        """Return the requests."""
        return {
            f"{name}/{resource}": float(amount)
            for name, amounts in self.sizes.items()
            for resource, amount in amounts.items()
        }


def remembered(own: KindMemory | None) -> ResourcesMemory:
    """Return the memory; an empty one where another kind or none has left it."""
    return own if isinstance(own, ResourcesMemory) else ResourcesMemory()
