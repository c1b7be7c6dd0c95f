"""Records of recommendations that have no value because of an error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from recommender.decisions.inputs import Inputs
from recommender.decisions.record import Record, Status
from recommender.decisions.target_outcomes import outcomes_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recommender.decisions.policy_settings import RecommendationPolicy


class RefusedEntry(Protocol):
    """An entry of the configuration that cannot be used."""

    @property
    def name(self) -> str:
        """The name of the entry; empty if it cannot be read."""
        ...

    @property
    def type(self) -> str:
        """The kind of recommendation; empty if it cannot be read."""
        ...

    @property
    def problems(self) -> Sequence[object]:
        """The problems, each with its place and what to do."""
        ...


def failed_record(policy: RecommendationPolicy, now: float, message: str, inputs: Inputs | None = None) -> Record:
    """Return the record of a decision that failed; `inputs` show the current sizes of the targets."""
    targets = outcomes_of(policy, None, inputs or Inputs(), now)
    return Record(policy.name, policy.type, now, Status.ERROR, message, targets=targets, each=policy.each)


def refused_record(refused: RefusedEntry, now: float) -> Record:
    """Return the record of a refused entry of the configuration."""
    message = "; ".join(str(problem) for problem in refused.problems)
    return Record(refused.name, refused.type, now, Status.ERROR, message)
