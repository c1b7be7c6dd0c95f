"""The results of a whole replay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recommender.recording.recording import RecordingGap
    from recommender.replay.policy_outcome import PolicyOutcome
    from recommender.replay.reports.forecast_worth import ForecastWorth
    from recommender.replay.reports.verdict import ReplayVerdict


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """The results of a replay."""

    source: str
    start: float
    end: float
    recorded: PolicyOutcome
    """The recorded past. Its evictions are 0, since they cannot be distinguished from other ends of pods."""
    policies: tuple[PolicyOutcome, ...]
    """The policies, the configured one first."""
    verdict: ReplayVerdict
    worth: ForecastWorth | None
    """What the forecast is worth; None if no forecast can be judged."""
    notes: tuple[str, ...]
    gaps: tuple[RecordingGap, ...] = ()
    """The times about which nothing is known."""
