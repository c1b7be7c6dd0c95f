"""The recommender's configuration as immutable values, after it has been read and checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from recommender.decisions.settings import Owners

if TYPE_CHECKING:
    from adapter.documents.tree import DocumentProblem
    from adapter.sources.prometheus.settings import PrometheusSettings
    from recommender.cluster_size.model.settings import ClusterSizeSettings
    from recommender.decisions.settings import RecommendationPolicy
    from recommender.predictive.settings import PredictiveSettings
    from recommender.proportional.parameters import ProportionalSettings


Subject: TypeAlias = "ProportionalSettings | PredictiveSettings | ClusterSizeSettings"
"""What a recommendation calculates. Each kind of recommendation adds its settings here."""


@dataclass(frozen=True, slots=True)
class Recommendation:
    """One entry of `recommendations`."""

    policy: RecommendationPolicy
    subject: Subject
    line: int = 0
    """Where it begins in the file."""


@dataclass(frozen=True, slots=True)
class RefusedRecommendation:
    """An entry with an error. Its last good version stays in use while the process runs."""

    name: str
    """Empty if even the name cannot be read."""
    problems: tuple[DocumentProblem, ...]
    type: str = ""
    """The key of its kind, such as `proportional`; empty if that cannot be read."""
    line: int = 0
    """Where it begins in the file."""


@dataclass(frozen=True, slots=True)
class LeaderElection:
    """Whether and by which Lease one of several processes leads."""

    enabled: bool = True
    namespace: str = ""
    """Empty: the namespace of the pod."""
    name: str = "tidewatch-recommender"


@dataclass(frozen=True, slots=True)
class Listen:
    """Addresses from the file; flags win. None: the default."""

    page: str | None = None
    metrics: str | None = None


@dataclass(frozen=True, slots=True)
class Configuration:
    """A whole configuration file."""

    poll_interval_seconds: float = 10.0
    stale_after_seconds: float = 60.0
    prometheus: PrometheusSettings | None = None
    state: Path = Path("./state")
    leader_election: LeaderElection = field(default_factory=LeaderElection)
    owners: Owners = field(default_factory=Owners)
    listen: Listen = field(default_factory=Listen)
    recommendations: tuple[Recommendation, ...] = ()
    refused: tuple[RefusedRecommendation, ...] = ()
