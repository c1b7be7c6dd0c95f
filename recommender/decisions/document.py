"""Records as the JSON document that `recommend -o json` prints and `/api/v1/recommendations` serves.

Keys are documented in docs/recommender.md. They are never absent; where there is no value, it is null.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from recommender.decisions.printed.size_document import size_keys
from recommender.decisions.texts import plain
from recommender.decisions.times import rfc3339

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recommender.decisions.record import Prediction, Record, TargetOutcome

API_VERSION: Final = "tidewatch.io/v1alpha1"
KIND: Final = "RecommendationList"


def recommendation_list(records: Sequence[Record], time: float) -> dict[str, object]:
    """Return the document of records that were decided at `time`, in seconds since the Unix epoch."""
    return {"apiVersion": API_VERSION, "kind": KIND, "time": rfc3339(time), "items": [_item(each) for each in records]}


def _item(record: Record) -> dict[str, object]:
    return {
        "name": record.name,
        "type": record.type or None,
        "status": record.status.value,
        "message": record.message,
        "time": rfc3339(record.time),
        "replicas": record.replicas,
        "resources": record.resources,
        "inputs": {name: plain(value) for name, value in record.inputs.items()},
        "steps": [{"step": step.step, "value": plain(step.value), "detail": step.detail} for step in record.steps],
        "binding": record.binding,
        "targets": [_target(outcome) for outcome in record.targets],
        **(_prediction(record.prediction) if record.type == "predictive" else {}),
        **(size_keys(record.size) if record.type == "clusterSize" else {}),
    }


def _prediction(prediction: Prediction | None) -> dict[str, object]:
    if prediction is None:
        return dict.fromkeys(("load", "model", "model_reason", "shortage_versus_headroom", "last_day"))
    load = prediction.load
    return {
        "load": {
            "now": plain(load.now),
            "predicted": None if load.predicted is None else plain(load.predicted),
            "at": None if load.at is None else rfc3339(load.at),
            "quantiles": {quantile: plain(value) for quantile, value in load.quantiles.items()},
        },
        "model": prediction.model,
        "model_reason": prediction.model_reason,
        "shortage_versus_headroom": dict(prediction.shortage_versus_headroom),
        "last_day": prediction.last_day or None,
    }


def _target(outcome: TargetOutcome) -> dict[str, object]:
    return {
        "apiVersion": outcome.target.api_version,
        "kind": outcome.target.kind,
        "namespace": outcome.target.namespace,
        "name": outcome.target.name,
        "current_replicas": outcome.current_replicas,
        "action": outcome.action.value,
        "owner": outcome.owner,
        "message": outcome.message or None,
    }
