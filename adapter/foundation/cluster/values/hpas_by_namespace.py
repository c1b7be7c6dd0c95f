"""The HPAs of each namespace, selected from those of all namespaces if all namespaces are watched together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from adapter.foundation.cluster.values.state import Autoscaler, Observed, Unknown
from adapter.foundation.objects.grouping import group_values

Autoscalers: TypeAlias = "Observed[tuple[Autoscaler, ...]] | Unknown"

EVERYWHERE = ""
"""The key for facts of all namespaces together."""


class AutoscalersByNamespace(Mapping[str, "Autoscalers"]):
    """Known facts by namespace. If `found` covers all namespaces, single namespaces are selected from these facts."""

    def __init__(self, found: Mapping[str, Autoscalers]) -> None:
        self._found = found
        self._grouped: Mapping[str, tuple[Autoscaler, ...]] | None = None

    def __getitem__(self, namespace: str) -> Autoscalers:
        """Return the facts of a namespace; raises KeyError if nothing is watched there."""
        if namespace in self._found:
            return self._found[namespace]
        everywhere = self._found[EVERYWHERE]
        if isinstance(everywhere, Unknown):
            return everywhere
        if self._grouped is None:
            found = group_values((one.namespace, one) for one in everywhere.value)
            self._grouped = {each: tuple(autoscalers) for each, autoscalers in found.items()}
        return Observed(self._grouped.get(namespace, ()), everywhere.time, everywhere.began_empty)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the keys of the watches."""
        return iter(self._found)

    def __len__(self) -> int:
        """Return the number of watches."""
        return len(self._found)


def owners_by_namespace(watched: str, found: Autoscalers, unusable: Mapping[str, str]) -> dict[str, Autoscalers]:
    """Return the HPAs of a namespace, or of all; those of a namespace with an HPA that cannot be used are unknown.

    Such an HPA may own any target of its namespace, but none of another one. `unusable` contains the reasons by
    namespace, under `EVERYWHERE` for an HPA whose namespace cannot be read.
    """
    if isinstance(found, Unknown):
        return {watched: found}
    if EVERYWHERE in unusable:
        return {watched: Unknown(unusable[EVERYWHERE])}
    return {watched: found, **{namespace: Unknown(reason) for namespace, reason in unusable.items()}}
