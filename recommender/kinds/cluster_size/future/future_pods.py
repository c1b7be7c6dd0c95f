"""All future pods of one decision: predicted ones, and the reserve on top of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recommender.kinds.cluster_size.future.headroom import headroom_at, headroom_pods, placeable
from recommender.kinds.cluster_size.future.predicted_pods import FuturePods, forecast_pods
from recommender.kinds.cluster_size.future.prediction_limits import ForecastBounds, bounds_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapter.foundation.cluster.values.state import ClusterState
    from recommender.kinds.cluster_size.future.predictions import PredictedReplicas
    from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings
    from recommender.kinds.cluster_size.model.size_situation import ClusterSituation


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
    if predicted.pods:
        notes.append(f"{len(predicted.pods)} predicted pods count as pending")
    if reserve:
        notes.append(f"{len(reserve)} pods that reserve capacity count as pending: {wanted.detail}")
    return FuturePods((*predicted.pods, *reserve), tuple(notes), predicted.steps)
