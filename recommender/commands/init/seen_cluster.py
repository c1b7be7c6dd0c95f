"""The facts about a cluster that `init` reads first: nodes, workloads, and start-up times of pods."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from adapter.foundation.exporters.pod_names import LikelyWorkload, workload_of
from adapter.foundation.objects.names import ObjectName
from recommender.decisions.texts.times import parse_rfc3339

_SCALED = frozenset({"Deployment", "StatefulSet"})


@dataclass(frozen=True, slots=True)
class SeenCluster:
    """Facts about a cluster, from its API server, from files or from kube-state-metrics."""

    replicas: Mapping[LikelyWorkload, int] = field(default_factory=dict)
    """The size of each Deployment and StatefulSet; empty if none is known."""
    node_labels: tuple[Mapping[str, str], ...] = ()
    """The labels of each node."""
    startup_seconds: Mapping[LikelyWorkload, tuple[float, ...]] = field(default_factory=dict)
    """By workload, the seconds from the creation of each of its pods until the pod last became ready."""


def seen_in(documents: Iterable[Mapping[str, Any]]) -> SeenCluster:
    """Return the facts in objects of kube-apiserver; a malformed part of an object counts as absent."""
    replicas: dict[LikelyWorkload, int] = {}
    labels: list[Mapping[str, str]] = []
    startups: defaultdict[LikelyWorkload, list[float]] = defaultdict(list)
    for document in documents:
        kind, metadata = document.get("kind"), _mapping(document, "metadata")
        namespace, name = str(metadata.get("namespace", "default")), str(metadata.get("name", ""))
        if kind == "Node":
            labels.append({str(key): str(value) for key, value in _mapping(metadata, "labels").items()})
        elif kind in _SCALED:
            # Without the field, the API server assumes one.
            size = _mapping(document, "spec").get("replicas", 1)
            if isinstance(size, int):
                replicas[LikelyWorkload(namespace, str(kind), name)] = size
        elif kind == "Pod":
            workload, seconds = workload_of(ObjectName(namespace, name)), _startup_seconds(document)
            if workload is not None and seconds is not None:
                startups[workload].append(seconds)
    return SeenCluster(replicas, tuple(labels), {workload: tuple(each) for workload, each in startups.items()})


def _startup_seconds(pod: Mapping[str, Any]) -> float | None:
    """Return the seconds from a pod's creation until it became ready; None if it is not ready or lacks a time."""
    conditions = _mapping(pod, "status").get("conditions")
    for condition in conditions if isinstance(conditions, list) else ():
        if not isinstance(condition, dict) or (condition.get("type"), condition.get("status")) != ("Ready", "True"):
            continue
        try:
            created = parse_rfc3339(str(_mapping(pod, "metadata").get("creationTimestamp", "")))
            return parse_rfc3339(str(condition.get("lastTransitionTime", ""))) - created
        except ValueError:
            return None
    return None


def _mapping(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = document.get(key)
    return found if isinstance(found, dict) else {}
