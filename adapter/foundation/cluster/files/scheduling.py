"""The facts of scheduling in files.

Files rarely hold every kind. A kind without an object in the files counts as absent, and the state says so. Nodes, pods
and whole objects are different: nothing can be decided without them, so missing ones count as unknown.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.scheduling.assemble import with_scheduling
from adapter.foundation.cluster.scheduling.kinds import DAEMON_SET, SCHEDULING_KINDS, WORKLOADS, SchedulingValue
from adapter.foundation.cluster.values.state import LeftOut, Observed, Unknown
from adapter.foundation.sources.manifest_forms import GroupKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from adapter.foundation.cluster.files.contents import Contents
    from adapter.foundation.cluster.files.scheduling_contents import Place
    from adapter.foundation.cluster.values.state import ClusterNeeds, ClusterState, JsonObject, ObjectKind

_DECISIVE: Final = {
    "workloads": tuple(kind for kind in WORKLOADS if kind != DAEMON_SET),
    "DaemonSets": (DAEMON_SET,),
    "PodDisruptionBudgets": ("PodDisruptionBudget",),
    "volumes": ("PersistentVolumeClaim", "PersistentVolume", "StorageClass", "CSINode"),
}
"""The facts that an answer depends on, with the kinds that a file should contain for them."""
_NAMESPACE: Final = "Namespace"
_READ_ALL: Final = "kubectl get no,po,deploy,rs,sts,ds,rc,jobs,pdb,ns,pvc,pv,sc,csinodes,pc -A -o json"


def scheduling_in(state: ClusterState, contents: Contents, time: float, where: Path) -> ClusterState:
    """Return the state with the facts of scheduling; `where` names the files."""
    values = contents.scheduling.values
    found: dict[str, Observed[tuple[SchedulingValue, ...]] | Unknown] = {
        kind.name: Observed(
            tuple(value for value in values.get(kind.name, {}).values() if not isinstance(value, str)), time
        )
        for kind in SCHEDULING_KINDS
    }
    if not values.get(_NAMESPACE):
        # Unlike the others, a cluster always has some.
        found[_NAMESPACE] = Unknown(
            f"{where} contains no namespaces: add the output of `kubectl get namespaces -o json`"
        )
    problems = (*state.placement_problems, *_absent(values, where))
    return with_scheduling(replace(state, placement_problems=problems), found, _left_out(contents))


def objects_in(
    contents: Contents, needs: ClusterNeeds, time: float, where: Path
) -> Mapping[ObjectKind, Observed[tuple[JsonObject, ...]] | Unknown]:
    """Return the whole objects of each kind that is needed."""
    return {kind: _objects(contents, kind, time, where) for kind in needs.objects}


def _objects(
    contents: Contents, kind: ObjectKind, time: float, where: Path
) -> Observed[tuple[JsonObject, ...]] | Unknown:
    found = contents.scheduling.objects.get(GroupKind(kind.group, kind.kind))
    if not found:
        resource = f"{kind.resource}.{kind.group}" if kind.group else kind.resource
        command = f"kubectl get {resource} -A -o json"
        reason = f"{where} contains no {kind.kind}: add the output of `{command}`"
        # Files of a cluster without an optional kind are the usual case.
        return Unknown(reason, is_refused=True, is_absent=kind.is_optional)
    places = (place for place in sorted(found) if kind.namespace in {"", place[0]} and kind.name in {"", place[1]})
    objects = (found[place] for place in places)
    return Observed(tuple(one for one in objects if not isinstance(one, str)), time)


def _left_out(contents: Contents) -> Iterator[LeftOut]:
    scheduling = contents.scheduling
    yield from scheduling.left_out
    yield from _refused_values("Node", {("", name): node for name, node in contents.nodes.items()})
    yield from _refused_values("Pod", contents.pods)
    for kind, values in scheduling.values.items():
        yield from _refused_values(kind, values)
    for group, objects in scheduling.objects.items():
        yield from _refused_values(group.kind, objects)


def _refused_values(kind: str, values: Mapping[Place, object]) -> Iterator[LeftOut]:
    return (LeftOut(kind, *place, value) for place, value in values.items() if isinstance(value, str))


def _absent(values: Mapping[str, object], where: Path) -> Iterator[str]:
    """Yield a sentence that names the kinds that the files lack but an answer may depend on, and how to get them.

    A cluster always has Namespaces and PriorityClasses, and rarely objects of every kind of workload.
    """
    absent = [what for what, kinds in _DECISIVE.items() if not any(values.get(kind) for kind in kinds)]
    if absent:
        *others, last = absent
        listed = f"{', '.join(others)} or {last}" if others else last
        yield (
            f"{where} holds no {listed}, so the answer is that of a cluster without them; "
            f"`{_READ_ALL}` reads all kinds that matter"
        )
