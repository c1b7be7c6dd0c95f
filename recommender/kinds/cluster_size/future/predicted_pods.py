"""All future pods of one decision: predicted ones, which do not exist yet, and the reserve on top of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapter.foundation.reports.counts import agreeing, count_of
from recommender.kinds.cluster_size.future.headroom import headroom_at, headroom_pods, placeable
from recommender.kinds.cluster_size.future.prediction_limits import ForecastBounds, bounds_of
from recommender.kinds.cluster_size.future.workload_pods import copies, future_pod, pods_by_workload, workload_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from adapter.foundation.cluster.values.state import ClusterPod, ClusterState
    from adapter.foundation.cluster.values.workloads import WorkloadFacts
    from recommender.decisions.record import TargetReference
    from recommender.kinds.cluster_size.future.predictions import PredictedReplicas
    from recommender.kinds.cluster_size.model.answer import SizeStep
    from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings
    from recommender.kinds.cluster_size.model.size_situation import ClusterSituation


@dataclass(frozen=True, slots=True)
class FuturePods:
    """Pods that do not exist yet, and what the user should know about them."""

    pods: tuple[ClusterPod, ...] = ()
    notes: tuple[str, ...] = ()
    steps: tuple[SizeStep, ...] = ()
    """The steps that reduced predictions."""


def forecast_pods(
    predictions: Iterable[PredictedReplicas],
    workloads: Iterable[WorkloadFacts],
    pods: Sequence[ClusterPod],
    bounds: ForecastBounds,
) -> FuturePods:
    """Return the pods by which predicted replicas exceed those that exist, pending ones included.

    These pods count as far as the bounds allow, and use the bounds up; targets of one namespace are served in the order
    of their names. A note names each prediction that cannot be followed. A prediction of fewer replicas removes
    nothing. If several recommendations predict one target, the largest prediction counts.
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
    for key, prediction in sorted(keys.items(), key=lambda item: item[0]):
        workload = known.get(key)
        notes.extend(_unusable(prediction, workload))
        existing = present[key]
        further = None if workload is None else future_pod(workload, existing)
        if workload is not None and further is not None:
            missing = bounds.replicas(prediction, len(existing)) - len(existing)
            count = bounds.count_admitted(prediction, further, len(existing), missing)
            made.extend(copies(further, workload, count, "forecast"))
    return FuturePods(tuple(made), tuple(notes), tuple(bounds.steps))


def _unusable(prediction: PredictedReplicas, workload: WorkloadFacts | None) -> Iterator[str]:
    about = f"what {prediction.recommendation} predicts for {prediction.target} is left out"
    if workload is None:
        yield f"{about}: there is no such workload, or pods of its kind are not known"
    elif workload.template is None:
        yield f"{about}: {workload.problem or 'it has no template'}"


def future_pods(
    settings: ClusterSizeSettings,
    predictions: Iterable[PredictedReplicas],
    situation: ClusterSituation,
    cluster: ClusterState,
) -> FuturePods:
    """Return the pods that do not exist yet, with notes and with the steps that reduced forecasts.

    The reserve is a share of the requests of present and predicted pods, without those that fit nowhere.
    """
    pods = situation.pods
    bounds = bounds_of(cluster, pods) if settings.forecasts else ForecastBounds()
    predicted = forecast_pods(predictions, situation.workloads, pods, bounds)
    wanted = headroom_at(settings.headroom_ratio, settings.schedules, situation.now)
    templates = (group.template.node for group in situation.groups.groups if group.template)
    held = placeable((*pods, *predicted.pods), (*situation.nodes, *templates)) if wanted.ratio else ()
    reserve = headroom_pods(wanted.ratio, held)
    notes = [*predicted.notes, *bounds.problems]
    if number := len(predicted.pods):
        notes.append(f"{count_of(number, 'predicted pod')} {agreeing(number, 'counts', 'count')} as pending")
    if reserve:
        that = agreeing(len(reserve), "that reserves capacity counts", "that reserve capacity count")
        notes.append(f"{count_of(len(reserve), 'pod')} {that} as pending: {wanted.detail}")
    return FuturePods((*predicted.pods, *reserve), tuple(notes), predicted.steps)
