"""The recommender's configuration as immutable values, after it has been read and checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from recommender.configuration.objects.object_settings import RecommendationObjectSettings
from recommender.decisions.policy_settings import Owners

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.documents.tree import DocumentProblem
    from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
    from recommender.kinds.kind import Recommendation


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
    allowed_hosts: tuple[str, ...] = ()
    """Names by which the page may be asked, besides loopback and its address."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """A whole configuration file."""

    poll_interval_seconds: float = 10.0
    stale_after_seconds: float = 60.0
    prometheus: PrometheusSettings | None = None
    """The default backend, which is asked for entries without `backend`."""
    state: Path = Path("./state")
    leader_election: LeaderElection = field(default_factory=LeaderElection)
    owners: Owners = field(default_factory=Owners)
    listen: Listen = field(default_factory=Listen)
    recommendations: tuple[Recommendation, ...] = ()
    refused: tuple[RefusedRecommendation, ...] = ()
    conflicts: tuple[DocumentProblem, ...] = ()
    """Targets that several recommendations scale: none of these does, and their other outputs remain."""
    record_seconds: float | None = None
    """How long to keep in `state/recording` which nodes and pods there were; None: nothing is recorded."""
    objects: RecommendationObjectSettings = field(default_factory=RecommendationObjectSettings)
    object_names: frozenset[str] | None = None
    """Names (`NAMESPACE/NAME`) of all objects of the kind Recommendation; None while they are not known."""
    backends: Mapping[str, PrometheusSettings] = field(default_factory=dict)
    """By name, where `prometheus` is a list; the first is the default backend. Empty if it is a mapping."""

    def backend_of(self, name: str) -> str:
        """Return which backend an entry with `backend: name` asks: its name, or empty for the default one.

        It may be one that the file does not have any more: the last good version of a refused entry keeps its name.
        """
        return "" if name == next(iter(self.backends), "") else name

    def prometheus_of(self, backend: str) -> PrometheusSettings | None:
        """Return the connection to a backend, empty for the default one; None if there is none."""
        return self.backends.get(backend) if self.backend_of(backend) else self.prometheus

    @property
    def problems(self) -> tuple[DocumentProblem, ...]:
        """All that is wrong with it."""
        return (*(problem for each in self.refused for problem in each.problems), *self.conflicts)
