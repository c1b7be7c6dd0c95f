"""From predicted replicas to pods that do not exist yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from recommender.cluster_size.future.copies import copies, pods_by_workload, workload_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from adapter.cluster.scheduling.workloads import WorkloadFacts
    from adapter.cluster.state import ClusterPod
    from recommender.decisions.record import TargetReference


@dataclass(frozen=True, slots=True)
class PredictedReplicas:
    """What a predictive recommendation states for one target."""

    recommendation: str
    target: TargetReference
    replicas: int | None
    """None: it states nothing now."""
    reason: str = ""
    """Why it states nothing."""


@dataclass(frozen=True, slots=True)
class FuturePods:
    """Pods that do not exist yet, and what the user should know about them."""

    pods: tuple[ClusterPod, ...] = ()
    notes: tuple[str, ...] = ()


def forecast_pods(
    predictions: Iterable[PredictedReplicas], workloads: Iterable[WorkloadFacts], pods: Sequence[ClusterPod]
) -> FuturePods:
    """Return the pods by which predicted replicas exceed those that exist, pending ones included.

    A prediction that cannot be followed is named. Nothing is taken away for a prediction of fewer replicas. If several
    recommendations predict one target, the largest holds.
    """
    known = {workload_key(one): one for one in workloads}
    largest: dict[TargetReference, PredictedReplicas] = {}
    notes: list[str] = []
    for prediction in predictions:
        if prediction.replicas is None:
            reason = f": {prediction.reason}" if prediction.reason else ""
            notes.append(f"{prediction.recommendation} predicts nothing for {prediction.target} now{reason}")
            continue
        former = largest.get(prediction.target)
        if former is None or (former.replicas or 0) < prediction.replicas:
            largest[prediction.target] = prediction
    made: list[ClusterPod] = []
    keys = {(target.kind, target.namespace, target.name): prediction for target, prediction in largest.items()}
    present = pods_by_workload(pods, keys)
    for key, prediction in keys.items():
        workload = known.get(key)
        notes.extend(_unusable(prediction, workload))
        if workload is not None:
            existing = present[key]
            missing = (prediction.replicas or 0) - len(existing)
            made.extend(copies(workload, max(0, missing), "forecast", existing))
    return FuturePods(tuple(made), tuple(notes))


def _unusable(prediction: PredictedReplicas, workload: WorkloadFacts | None) -> Iterator[str]:
    about = f"what {prediction.recommendation} predicts for {prediction.target} is left out"
    if workload is None:
        yield f"{about}: there is no such workload, or its kind is none whose pods are known"
    elif workload.template is None:
        yield f"{about}: {workload.problem or 'it has no template'}"
