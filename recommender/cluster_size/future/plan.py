"""All pods of the future of one decision: what is predicted, and the reserve on top of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recommender.cluster_size.future.forecasts import FuturePods, forecast_pods
from recommender.cluster_size.future.headroom import headroom_at, headroom_pods

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from adapter.cluster.scheduling.workloads import WorkloadFacts
    from adapter.cluster.state import ClusterPod
    from recommender.cluster_size.future.forecasts import PredictedReplicas
    from recommender.cluster_size.model.settings import ClusterSizeSettings


def future_pods(
    settings: ClusterSizeSettings,
    predictions: Iterable[PredictedReplicas],
    workloads: Iterable[WorkloadFacts],
    pods: Sequence[ClusterPod],
    now: float,
) -> FuturePods:
    """Return the pods that do not exist yet, with notes. `now` is in seconds since the Unix epoch.

    The reserve is a share of what the pods of now and the predicted ones request.
    """
    predicted = forecast_pods(predictions, workloads, pods)
    wanted = headroom_at(settings.headroom_ratio, settings.schedules, now)
    reserve = headroom_pods(wanted.ratio, (*pods, *predicted.pods))
    notes = list(predicted.notes)
    if predicted.pods:
        notes.append(f"{len(predicted.pods)} pods that are predicted count as pending")
    if reserve:
        notes.append(f"{len(reserve)} pods that stand for a reserve count as pending: {wanted.detail}")
    return FuturePods((*predicted.pods, *reserve), tuple(notes))
