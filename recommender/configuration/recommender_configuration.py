"""The immutable values of the recommender's configuration, after the file has been read and checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from adapter.foundation.sources.prometheus.backends.data_sources import source_of
from recommender.configuration.objects.object_settings import RecommendationObjectSettings
from recommender.decisions.policy_settings import Output, Owners
from recommender.decisions.record import Record, Status

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.documents.tree import DocumentProblem
    from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
    from recommender.kinds.kind import Recommendation


@dataclass(frozen=True, slots=True)
class RefusedRecommendation:
    """An entry with an error. Its last good version stays in use while the process runs."""

    name: str
    """The name of the entry; empty if it cannot be read."""
    problems: tuple[DocumentProblem, ...]
    type: str = ""
    """The key of its kind, such as `proportional`; empty if the kind cannot be read."""
    line: int = 0
    """The line of the file in which the entry begins."""

    def record(self, now: float) -> Record:
        """Return the record that shows the problems, decided at `now` in Unix seconds."""
        return Record(self.name, self.type, now, Status.ERROR, "; ".join(map(str, self.problems)))


@dataclass(frozen=True, slots=True)
class LeaderElection:
    """Whether one of several processes leads, and by which Lease."""

    enabled: bool = True
    namespace: str = ""
    """The namespace of the Lease; empty means the namespace of the pod."""
    name: str = "tidewatch-recommender"


@dataclass(frozen=True, slots=True)
class Listen:
    """Addresses from the file; flags take precedence. None means the default."""

    page: str | None = None
    metrics: str | None = None
    allowed_hosts: tuple[str, ...] = ()
    """Host names under which the page may be requested, in addition to loopback names and its own address."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """A whole configuration file."""

    poll_interval_seconds: float = 10.0
    stale_after_seconds: float = 60.0
    prometheus: PrometheusSettings | None = None
    """The default backend, which entries without `backend` query."""
    state: Path = Path("./state")
    leader_election: LeaderElection = field(default_factory=LeaderElection)
    owners: Owners = field(default_factory=Owners)
    listen: Listen = field(default_factory=Listen)
    recommendations: tuple[Recommendation, ...] = ()
    refused: tuple[RefusedRecommendation, ...] = ()
    conflicts: tuple[DocumentProblem, ...] = ()
    """Problems of targets that several recommendations scale. None of these scales the target; other outputs remain."""
    record_seconds: float | None = None
    """How long to keep the record of nodes and pods in `state/recording`; None if nothing is recorded."""
    objects: RecommendationObjectSettings = field(default_factory=RecommendationObjectSettings)
    object_names: frozenset[str] | None = None
    """Names (`NAMESPACE/NAME`) of all objects of the kind Recommendation; None while they are not known."""
    backends: Mapping[str, PrometheusSettings] = field(default_factory=dict)
    """Backends by name if `prometheus` is a list; the first is the default. Empty if it is a mapping."""

    def backend_of(self, name: str) -> str:
        """Return the name of the backend that an entry with `backend: name` queries; empty for the default backend.

        The file may no longer define this backend, since the last good version of a refused entry keeps its `backend`.
        """
        return "" if name == next(iter(self.backends), "") else name

    def prometheus_of(self, backend: str) -> PrometheusSettings | None:
        """Return the settings of a backend, or None if it does not exist; an empty name means the default backend."""
        return self.backends.get(backend) if self.backend_of(backend) else self.prometheus

    def source_of(self, backend: str) -> str:
        """Return what identifies the data of a backend; empty if the backend does not exist."""
        return source_of(self.prometheus_of(backend))

    def names_with(self, output: Output) -> frozenset[str]:
        """Return the names of the recommendations that have this output."""
        return frozenset(each.policy.name for each in self.recommendations if output in each.policy.outputs)

    @property
    def problems(self) -> tuple[DocumentProblem, ...]:
        """All problems of the refused entries, followed by the conflicts."""
        return (*(problem for each in self.refused for problem in each.problems), *self.conflicts)
