"""The record of a recommendation that has no value because of an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recommender.decisions.inputs import Inputs
from recommender.decisions.record import Record, Status
from recommender.decisions.target_outcomes import outcomes_of

if TYPE_CHECKING:
    from recommender.decisions.policy_settings import RecommendationPolicy


def failed_record(policy: RecommendationPolicy, now: float, message: str, inputs: Inputs | None = None) -> Record:
    """Return the record of a decision that failed; `inputs` show the current sizes of the targets."""
    targets = outcomes_of(policy, None, inputs or Inputs(), now)
    return Record(policy.name, policy.type, now, Status.ERROR, message, targets=targets, each=policy.each)
