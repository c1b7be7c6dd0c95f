"""Workloads with more or fewer pods than they have."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.state import Observed, Unknown
from adapter.foundation.documents.tree import nearest
from recommender.kinds.cluster_size.future.workload_pods import copies, pods_by_workload, workload_key
from recommender.kinds.cluster_size.what_if.model import Assumed, WhatIfError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from adapter.foundation.cluster.values.state import ClusterPod, ClusterState
    from adapter.foundation.cluster.values.workloads import WorkloadFacts
    from recommender.kinds.cluster_size.what_if.model import Assumption

_DAEMON_SET: Final = "DaemonSet"
_PURPOSE: Final = "assumed"


def with_assumption(cluster: ClusterState, assumption: Assumption) -> Assumed:
    """Return the cluster in which the workload has this number of pods: new ones are made from its template.

    If there are fewer, pending pods are removed first, then the newest. Raises WhatIfError.
    """
    workload = assumed_workload(cluster, assumption)
    known = cluster.pods
    if isinstance(known, Unknown):
        raise WhatIfError(f"--assume {assumption}: pods are not known: {known.reason}")
    key = workload_key(workload)
    own = [pod for pod in pods_by_workload(known.value, (key,))[key] if not pod.is_terminating]
    cluster = _with_replicas(cluster, workload, assumption.replicas)
    missing = assumption.replicas - len(own)
    if missing == 0:
        return Assumed(cluster, notes=(f"{_workload_name(workload)} has {assumption.replicas} pods, as it has now",))
    note = f"{_workload_name(workload)} has {assumption.replicas} pods instead of {len(own)}"
    if missing > 0:
        return Assumed(cluster, new_pods(workload, missing, _PURPOSE, own), notes=(note,))
    gone = {id(pod) for pod in _going(own, -missing)}
    left = tuple(pod for pod in known.value if id(pod) not in gone)
    return Assumed(replace(cluster, pods=Observed(left, known.time)), notes=(note,))


def new_pods(
    workload: WorkloadFacts, count: int, purpose: str, existing: Iterable[ClusterPod] = ()
) -> tuple[ClusterPod, ...]:
    """Return this number of further pods of a workload, made from its template.

    Raises WhatIfError without a template.
    """
    if workload.template is None:
        raise WhatIfError(f"{_workload_name(workload)} has no template that can be used: {workload.problem}")
    return copies(workload, count, purpose, existing)


def assumed_workload(cluster: ClusterState, assumption: Assumption) -> WorkloadFacts:
    """Return the workload that an assumption is about. Raises WhatIfError."""
    if isinstance(cluster.workloads, Unknown):
        raise WhatIfError(f"--assume {assumption}: workloads are not known: {cluster.workloads.reason}")
    workloads = cluster.workloads.value
    named = [each for each in workloads if (each.namespace, each.name) == (assumption.namespace, assumption.name)]
    found = [each for each in named if assumption.kind.lower() in {"", each.kind.lower()}]
    if not found:
        raise WhatIfError(f"--assume {assumption}: {_not_found(assumption, workloads, named)}")
    if len(found) > 1:
        names = " and ".join(map(_workload_name, found))
        example = f"{found[0].kind}/{assumption.namespace}/{assumption.name}:{assumption.replicas}"
        raise WhatIfError(f"--assume {assumption}: there are {names}: write which one, such as {example}")
    if found[0].kind == _DAEMON_SET:
        raise WhatIfError(
            f"--assume {assumption}: a DaemonSet has one pod per node, so another number cannot be assumed"
        )
    return found[0]


def _not_found(assumption: Assumption, workloads: Iterable[WorkloadFacts], named: Sequence[WorkloadFacts]) -> str:
    text = f"{assumption.namespace}/{assumption.name}"
    if named:
        others = " and ".join(f"{each.kind}/{text}" for each in named)
        return f"there is no {assumption.kind} {text}: did you mean {others}?"
    meant = _meant(assumption, workloads)
    fix = f"did you mean {meant}?" if meant else "write a Deployment, StatefulSet or Job of this cluster"
    return f"there is no workload {text}: {fix}"


def _meant(assumption: Assumption, workloads: Iterable[WorkloadFacts]) -> str | None:
    """Return the `NAMESPACE/NAME` of a workload with a similar name, in any namespace; None if there is none."""
    names = {each.name for each in workloads}
    name = assumption.name if assumption.name in names else nearest(assumption.name, names)
    places = {f"{each.namespace}/{each.name}" for each in workloads if each.name == name}
    return next(iter(places)) if len(places) == 1 else nearest(f"{assumption.namespace}/{name}", places)


def _workload_name(workload: WorkloadFacts) -> str:
    return f"{workload.kind} {workload.namespace}/{workload.name}"


def _with_replicas(cluster: ClusterState, workload: WorkloadFacts, replicas: int) -> ClusterState:
    assert isinstance(cluster.workloads, Observed), "the workload was found among them"
    workloads = tuple(
        replace(each, replicas=replicas) if each is workload else each for each in cluster.workloads.value
    )
    return replace(cluster, workloads=Observed(workloads, cluster.workloads.time))


def _going(own: list[ClusterPod], count: int) -> list[ClusterPod]:
    """Return the pods to remove: pending ones first, then the newest of those whose times are known."""

    def order(pod: ClusterPod) -> tuple[bool, float, str]:
        created = pod.facts.created if pod.facts is not None else None
        return bool(pod.node), -(created if created is not None else pod.bound_at or 0.0), pod.name

    return sorted(own, key=order)[:count]
