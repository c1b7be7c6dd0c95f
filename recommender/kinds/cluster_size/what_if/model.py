"""The assumptions of a what-if question, and their result."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.cluster.values.state import ClusterPod, ClusterState
    from adapter.foundation.cluster.values.workloads import WorkloadFacts

_ASSUMPTION: Final = re.compile(r"(?:(?P<kind>[A-Za-z]+)/)?(?P<namespace>[^/:]+)/(?P<name>[^/:]+):(?P<replicas>[0-9]+)")
MOST_REPLICAS: Final = 1_000_000


class WhatIfError(ValueError):
    """A question cannot be answered for this cluster; the message says why and what to write."""


@dataclass(frozen=True, slots=True)
class Assumption:
    """A workload with another number of pods."""

    namespace: str
    name: str
    replicas: int
    kind: str = ""
    """The kind of the workload; empty for a workload of any kind."""

    def __str__(self) -> str:
        """Return the assumption as it is written: `shop/web:40`."""
        return f"{f'{self.kind}/' if self.kind else ''}{self.namespace}/{self.name}:{self.replicas}"


@dataclass(frozen=True, slots=True)
class WhatIf:
    """All questions of one command."""

    assumptions: tuple[Assumption, ...] = ()
    without_nodes: tuple[str, ...] = ()
    pods: tuple[ClusterPod, ...] = ()
    """The pods of `--add-pods`, whether or not they are bound."""
    workloads: tuple[WorkloadFacts, ...] = ()
    """Workloads of `--add-pods`: each with all of its pods."""

    @property
    def asks(self) -> bool:
        """Whether there is any question."""
        return bool(self.assumptions or self.without_nodes or self.pods or self.workloads)


@dataclass(frozen=True, slots=True)
class Assumed:
    """The cluster under the assumptions."""

    cluster: ClusterState
    pods: tuple[ClusterPod, ...] = ()
    """The pods that do not exist."""
    displaced: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """The removed node on which each of these pods ran, by namespace and name of the pod."""
    with_removed_nodes: ClusterState | None = None
    """The cluster as it is before nodes are removed; None if none is."""
    notes: tuple[str, ...] = ()
    """The assumptions, one sentence each."""


def parse_assumption(text: str) -> Assumption:
    """Return what `NAMESPACE/NAME:REPLICAS` or `KIND/NAMESPACE/NAME:REPLICAS` means. Raises WhatIfError."""
    found = _ASSUMPTION.fullmatch(text)
    if found is None:
        raise WhatIfError(f"{text!r} is not NAMESPACE/NAME:REPLICAS: write it as shop/web:40")
    replicas = int(found["replicas"][:9])
    if len(found["replicas"]) > len(str(MOST_REPLICAS)) or replicas > MOST_REPLICAS:
        raise WhatIfError(f"{text!r} has too many pods: write up to {MOST_REPLICAS}")
    return Assumption(found["namespace"], found["name"], replicas, found["kind"] or "")
