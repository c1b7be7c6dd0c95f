"""Records as the JSON document that `recommend -o json` prints and `/api/v1/recommendations` serves.

Keys are documented in docs/recommender.md. They are never absent; a key without a value is null.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from recommender.decisions.texts.record_texts import plain
from recommender.decisions.texts.times import rfc3339
from recommender.kinds.table import kind_named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recommender.decisions.record import Record, TargetOutcome

API_VERSION: Final = "tidewatch.io/v1alpha1"
KIND: Final = "RecommendationList"


def recommendation_list(records: Sequence[Record], time: float) -> dict[str, object]:
    """Return the document of records that were decided at `time`, in Unix seconds."""
    return {"apiVersion": API_VERSION, "kind": KIND, "time": rfc3339(time), "items": [_item(each) for each in records]}


def _item(record: Record) -> dict[str, object]:
    kind = kind_named(record.type)
    return {
        "name": record.name,
        "type": record.type or None,
        "status": record.status.value,
        "message": record.message,
        "time": rfc3339(record.time),
        "replicas": record.replicas,
        "resources": None,
        "inputs": {name: plain(value) for name, value in record.inputs.items()},
        "steps": [{"step": step.step, "value": plain(step.value), "detail": step.detail} for step in record.steps],
        "binding": record.binding,
        "targets": [_target(outcome) for outcome in record.targets],
        **(kind.document(record) if kind is not None else {}),
    }


def _target(outcome: TargetOutcome) -> dict[str, object]:
    return {
        "apiVersion": outcome.target.api_version,
        "kind": outcome.target.kind,
        "namespace": outcome.target.namespace,
        "name": outcome.target.name,
        "current_replicas": outcome.current_replicas,
        "recommended_replicas": outcome.recommended_replicas,
        "action": outcome.action.value,
        "owner": outcome.owner,
        "message": outcome.message or None,
    }
