"""The facts of scheduling as running watches know them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

from adapter.foundation.cluster.scheduling.assemble import with_scheduling
from adapter.foundation.cluster.scheduling.kinds import SCHEDULING_KINDS, SchedulingKind, SchedulingValue
from adapter.foundation.cluster.stores.value_stores import ValueStore
from adapter.foundation.cluster.values.state import ClusterState, LeftOut, Observed, Unknown
from adapter.foundation.cluster.watch.facts import StoreWatch, left_out, values_in
from adapter.foundation.sources.kubernetes.lists.list_watch import METADATA_ONLY, WHOLE_OBJECTS, ListWatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from adapter.foundation.cluster.forms.scheduling_objects import KindForm

SchedulingStore: TypeAlias = "ValueStore[KindForm, SchedulingValue]"
Refused: TypeAlias = "Mapping[tuple[str, str], str]"
"""Why objects cannot be used, by namespace and name."""

SCHEDULING_WATCHES: Final = {
    ListWatch(kind.resource, METADATA_ONLY if kind.name == "Namespace" else WHOLE_OBJECTS): kind
    for kind in SCHEDULING_KINDS
}


def scheduling_store(kind: SchedulingKind, changed: Callable[[], None]) -> SchedulingStore:
    """Return a store of the objects of a kind, in no particular order."""
    return ValueStore(kind.convert, lambda _: "", changed)


def with_watched(
    state: ClusterState, watches: Mapping[ListWatch, StoreWatch[SchedulingStore]], refused: Mapping[str, Refused]
) -> ClusterState:
    """Return the state with the facts of scheduling; `refused` has unusable nodes, pods and whole objects by kind."""
    found = {}
    named = dict(refused)
    problems: list[str] = []
    for which, kind in SCHEDULING_WATCHES.items():
        watch = watches[which]
        found[kind.name] = _observed_values(kind, watch)
        named[kind.name] = watch.store.refused
        problems += left_out(watch.running)
    placed = replace(state, placement_problems=(*state.placement_problems, *problems))
    return with_scheduling(placed, found, _left_out(named))


def _observed_values(
    kind: SchedulingKind, watch: StoreWatch[SchedulingStore]
) -> Observed[tuple[SchedulingValue, ...]] | Unknown:
    """Return the values of a kind. A budget that cannot be decoded may protect any pod, so its kind becomes unknown."""
    undecoded = left_out(watch.running)
    if undecoded and kind.name == "PodDisruptionBudget":
        return Unknown(undecoded[0])
    return values_in(watch)


def _left_out(refused: Mapping[str, Refused]) -> Iterator[LeftOut]:
    for kind, problems in refused.items():
        for (namespace, name), reason in problems.items():
            yield LeftOut(kind, namespace, name, reason)
