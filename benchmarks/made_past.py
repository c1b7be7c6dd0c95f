"""A generated past of a cluster, from a seed: workloads that follow the day, jobs, and two sizes of nodes."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from random import Random
from typing import Final

from adapter.foundation.cluster.values.constraints import HOSTNAME_LABEL, NO_CONSTRAINTS
from adapter.foundation.cluster.values.pods import ClusterPod, ControllerReference, SchedulingFacts
from adapter.foundation.cluster.values.state import ClusterNode
from adapter.foundation.objects.pod_requests import PodResources
from adapter.foundation.objects.quantities import parse_quantity
from recommender.recording.recording import RecordedNode, RecordedPod, Recording

START: Final = 1_790_812_800.0
"""The beginning of the past: 2026-10-01T00:00:00Z."""
DAY_SECONDS: Final = 86_400.0
_STEP_SECONDS: Final = 300.0
_POOLS: Final = {"small": ("8", "32Gi"), "large": ("16", "64Gi")}
_REQUESTS: Final = ((250, 512), (500, 1024), (1000, 4096), (1000, 2048), (2000, 4096), (4000, 8192))
_WORKLOADS: Final = 60
_FULL_RATIO: Final = 0.75
_NIGHT_RATIO: Final = 0.4
_JOB_SECONDS: Final = 1800.0
_JOB_KINDS: Final = 6
_SYSTEM_POD: Final = (100, 128)


@dataclass(frozen=True, slots=True)
class PastPlan:
    """The past to generate."""

    days: float = 30.0
    nodes: int = 500
    """The approximate number of nodes at the daily peak."""
    seed: int = 0


def made_past(plan: PastPlan) -> Recording:
    """Return the past; equal plans yield equal pasts."""
    random = Random(plan.seed)
    cores = sum(int(_POOLS[_pool(number)][0]) for number in range(plan.nodes)) * _FULL_RATIO
    shares = [random.paretovariate(1.5) for _ in range(_WORKLOADS)]
    total = sum(share * _REQUESTS[number % len(_REQUESTS)][0] / 1000 for number, share in enumerate(shares))
    peaks = [share * cores / total for share in shares]
    kinds = [pod_kind(f"web-{number}", _REQUESTS[number % len(_REQUESTS)]) for number in range(_WORKLOADS)]
    kinds += [pod_kind(f"job-{number}", _REQUESTS[number % len(_REQUESTS)], "Job") for number in range(_JOB_KINDS)]
    end = START + plan.days * DAY_SECONDS
    nodes = [_node(number) for number in range(plan.nodes)]
    room = [float(node.allocatable["cpu"].nanos) / 10**6 - _SYSTEM_POD[0] for node in nodes]
    pods: list[RecordedPod] = []
    alive: list[deque[tuple[float, str]]] = [deque() for _ in range(_WORKLOADS)]
    step = 0
    while (now := START + step * _STEP_SECONDS) < end:
        for number in range(_WORKLOADS):
            is_due = step == 0 or (step + number) % 3 == 0
            wanted = round(peaks[number] * _level(now, number) * random.gauss(1, 0.03)) if is_due else None
            _scale(alive[number], pods, number, wanted, (now + random.uniform(0, 60) if step else now - 60, room))
        for number in range(_JOB_KINDS if step % 4 == 0 else 0):
            begin = now + random.uniform(0, 200)
            for _ in range(random.randrange(0, max(2, plan.nodes // 25))):
                until = begin + random.expovariate(1 / _JOB_SECONDS)
                node = f"node-{random.randrange(plan.nodes)}"
                pods.append(RecordedPod(_WORKLOADS + number, begin, begin, until if until < end else None, node))
        step += 1
    for number, living in enumerate(alive):
        pods += [RecordedPod(number, since, since, None, node) for since, node in living]
    system = len(kinds)
    kinds.append(pod_kind("logs", _SYSTEM_POD, "DaemonSet"))
    pods += [RecordedPod(system, START - 60, START - 60, None, node.name) for node in nodes]
    return Recording(
        f"a made past of {plan.days:g} days (seed {plan.seed})",
        START,
        end,
        tuple(RecordedNode(node, START - 3600, None) for node in nodes),
        tuple(sorted(pods, key=lambda pod: pod.created)),
        tuple(kinds),
    )


def _scale(
    living: deque[tuple[float, str]],
    pods: list[RecordedPod],
    number: int,
    wanted: int | None,
    at: tuple[float, list[float]],
) -> None:
    """Add or end pods of a workload until there are as many as wanted; the newest pods end first."""
    now, room = at
    while wanted is not None and len(living) > wanted:
        since, node = living.pop()
        room[int(node.removeprefix("node-"))] += _REQUESTS[number % len(_REQUESTS)][0]
        pods.append(RecordedPod(number, since, since, now, node))
    while wanted is not None and len(living) < wanted:
        living.append((now, _first_node(room, number)))


def _first_node(room: list[float], number: int) -> str:
    """Return the node with the most room, and take the room for a pod from it."""
    place = max(range(len(room)), key=room.__getitem__)
    room[place] -= _REQUESTS[number % len(_REQUESTS)][0]
    return f"node-{place}"


def _level(now: float, number: int) -> float:
    """Return the share of the peak at a time: workloads peak at different times of the day, and weekends are quiet."""
    days = (now - START) / DAY_SECONDS
    day = 0.5 - 0.5 * math.cos(2 * math.pi * (days - (number % 5) / 40))
    weekend = 0.75 if int(days) % 7 in {2, 3} else 1.0
    return (_NIGHT_RATIO + (1 - _NIGHT_RATIO) * day) * weekend


def _pool(number: int) -> str:
    return "small" if number % 3 else "large"


def _node(number: int) -> ClusterNode:
    cpu, memory = _POOLS[_pool(number)]
    offered = {"cpu": parse_quantity(cpu), "memory": parse_quantity(memory), "pods": parse_quantity("110")}
    name = f"node-{number}"
    labels = {HOSTNAME_LABEL: name, "pool": _pool(number)}
    return ClusterNode(
        name,
        labels,
        (),
        unschedulable=False,
        conditions={"Ready": "True"},
        created=START - 3600,
        capacity=offered,
        allocatable=offered,
    )


def pod_kind(name: str, amounts: tuple[int, int], kind: str = "ReplicaSet") -> ClusterPod:
    requests = {"cpu": amounts[0], "memory": amounts[1] << 20}
    namespace = "kube-system" if kind == "DaemonSet" else "shop"
    return ClusterPod(
        namespace=namespace,
        name="",
        uid="",
        node="",
        labels={},
        controller=ControllerReference("batch/v1" if kind == "Job" else "apps/v1", kind, name, f"uid-{name}"),
        phase="Running",
        is_terminating=False,
        bound_at=None,
        ended_at=None,
        priority=0,
        resources=PodResources(requests=requests, non_zero_requests=requests),
        facts=SchedulingFacts(NO_CONSTRAINTS, {}, 0.0, None, 30.0, "Always"),
    )
