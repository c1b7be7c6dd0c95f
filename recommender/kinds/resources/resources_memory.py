"""The memory of a recommendation of requests for one target."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from recommender.decisions.memory import Count, KindMemory


class ResourcesMemory(KindMemory, frozen=True, tag="resources"):
    """The last recommended requests. Usage is stored in the folder `state`."""

    sizes: dict[str, dict[str, Count]] = msgspec.field(default_factory=dict)
    """Sizes by container and resource, in millicores and in bytes."""

    @property
    def facts(self) -> object:
        """Return which requests exist, without amounts, because these change a little all the time."""
        return {name: tuple(sorted(amounts)) for name, amounts in self.sizes.items()}

    @property
    def amounts(self) -> Mapping[str, float]:
        """Return the requests by `CONTAINER/RESOURCE`, in millicores and in bytes."""
        return {
            f"{name}/{resource}": float(amount)
            for name, amounts in self.sizes.items()
            for resource, amount in amounts.items()
        }


def restore_memory(own: KindMemory | None) -> ResourcesMemory:
    """Return the memory; an empty one if it belongs to another kind or there is none."""
    return own if isinstance(own, ResourcesMemory) else ResourcesMemory()
