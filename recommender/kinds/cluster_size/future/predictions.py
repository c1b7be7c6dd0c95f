"""The predictions of predictive recommendations, as cluster sizes use them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recommender.decisions.inputs import Inputs
    from recommender.decisions.record import TargetReference
    from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings


@dataclass(frozen=True, slots=True)
class PredictedReplicas:
    """The prediction of a predictive recommendation for one target."""

    recommendation: str
    target: TargetReference
    replicas: int | None
    """The predicted replicas; None if there is no prediction now."""
    reason: str = ""
    """Why there is no prediction."""
    max_growth: float | None = None
    """The `maxGrowth` of the recommendation; None if it states none."""


def predictions_of(
    settings: ClusterSizeSettings, inputs: Inputs, growths: Mapping[str, float | None]
) -> tuple[PredictedReplicas, ...]:
    """Return the predictions of the forecasts that a cluster size follows, for each of their targets."""
    found: list[PredictedReplicas] = []
    for forecast in settings.forecasts:
        for record in inputs.decided.get(forecast.recommendation, ()):
            for outcome in record.targets:
                replicas = outcome.recommended_replicas
                reason = "" if replicas is not None else record.message
                growth = growths.get(record.name)
                found.append(PredictedReplicas(record.name, outcome.target, replicas, reason, growth))
    return tuple(found)
