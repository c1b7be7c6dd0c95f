"""The usage of a small cluster, and a keeper of it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from adapter.foundation.cluster.values.state import Observed, Unknown
from recommender.decisions.record import TargetReference
from recommender.kinds.resources.resources_settings import FromUsage, ResourcesSettings, WorkloadsOfKind
from recommender.kinds.resources.size_record import WorkloadUsage
from recommender.running.usage.usage_files import UsageFiles
from recommender.running.usage.usage_keeping import UsageKeeper
from recommender.running.usage.usage_needs import UsageNeed
from tests.recommender.commands.sized_pods import DAY, END, MIB, Exposition, SizedPod

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
    from recommender.kinds.resources.size_record import SizeRecord

WEB = TargetReference("apps/v1", "Deployment", "shop", "web")
API = TargetReference("apps/v1", "Deployment", "shop", "api")
OTHER = TargetReference("apps/v1", "Deployment", "lab", "web")
HISTORY = FromUsage(history_seconds=3.0 * DAY)
EACH = UsageNeed("sizes", ResourcesSettings(HISTORY, WorkloadsOfKind(namespaces=("shop",))), (), "here")
NOW = END + 60.0
WEB_SERIES = {"namespace": "shop", "pod": "web-1-0", "container": "app"}
MEMORY = "container_memory_working_set_bytes"


def season(age: int) -> float:
    return 0.2 + 0.1 * math.sin(2 * math.pi * age / DAY)


def flat(value: float) -> Callable[[int], float]:
    return lambda _age: value


def usage_history() -> str:
    found = Exposition()
    requests = {"cpu": 1.0, "memory": 512.0 * MIB}
    for number in range(4):
        # One pod of many is killed: a percentile alone would hide it.
        killed = 3600 if number == 0 else None
        pod = SizedPod(
            "shop", f"web-1-{number}", ("ReplicaSet", "web-1"), season, flat(300.0 * MIB),
            requests=requests, killed_at=killed,
        )  # fmt: skip
        found.add_pod(pod)
    found.add_replica_set("shop", "web-1", "web")
    found.add_pod(SizedPod("shop", "api-1-a", ("ReplicaSet", "api-1"), flat(0.3), flat(100.0 * MIB), seconds=2 * DAY))
    found.add_replica_set("shop", "api-1", "api")
    found.add_pod(SizedPod("lab", "web-1-0", ("ReplicaSet", "web-1"), flat(5.0), flat(9e9)))
    found.add_replica_set("lab", "web-1", "web")
    return found.text()


def keeper(client: PrometheusClient | None, folder: Path, now: float = NOW) -> UsageKeeper:
    return UsageKeeper(lambda _need: client, UsageFiles(folder), lambda: now)


def sizes(kept: UsageKeeper, need: UsageNeed = EACH) -> dict[TargetReference, SizeRecord]:
    found = kept.inputs()[need.name]
    assert not isinstance(found, Unknown), found.reason
    return {
        target: usage.value.sizes[0]
        for target, usage in found.items()
        if isinstance(usage, Observed) and isinstance(usage.value, WorkloadUsage)
    }
