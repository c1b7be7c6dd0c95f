"""Scores are compared with scalar oracles, written from the plugins' descriptions, for random nodes and arguments."""

from __future__ import annotations

import math
from random import Random
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.objects.pod_requests import ContainerResources, PodResources
from adapter.nodes.model.columns import PendingPod
from adapter.nodes.model.nodes_snapshot import NodesSnapshot
from adapter.nodes.model.scheduling_settings import (
    LoadVariationRiskBalancingArgs,
    LowRiskOverCommitmentArgs,
    PolicyArgs,
    PolicyName,
    PolicySettings,
    SelectorSpreadArgs,
    TargetLoadPackingArgs,
)
from adapter.nodes.scores.table import score_nodes
from tests.adapter.nodes.scores.builder import CPU, MEMORY, Node, bound_pod, columns, listed, rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from adapter.nodes.model.loads import LoadResource

CASES = 100
NAN = float("nan")
Containers = list[tuple[int | None, int | None]]
"""CPU requests and limits in milli."""


def some_ratio(random: Random) -> float:
    return random.choice([NAN, 0.0, 1.0, random.random(), random.random() ** 4, 1.5 * random.random()])


def some_node(random: Random, name: str) -> Node:
    capacity = {"cpu": random.choice([0, 4000, random.randint(1, 256_000)]), "memory": random.randint(0, 2**40)}
    allocatable = {
        name: int(amount * random.choice([0.0, 0.9, 1.0, random.random()])) for name, amount in capacity.items()
    }
    requested = {"cpu": random.randint(0, 64_000), "memory": random.randint(0, 2**38)}
    mean = {CPU: some_ratio(random), MEMORY: some_ratio(random)}
    std = {resource: random.choice([0.0, random.random(), 0.3 * random.random()]) for resource in mean}
    return Node(
        name,
        capacity=capacity,
        allocatable=allocatable,
        requested=requested,
        limits={name: amount + random.choice([0, random.randint(0, amount + 1)]) for name, amount in requested.items()},
        mean=mean,
        std={resource: NAN if math.isnan(mean[resource]) else std[resource] for resource in mean},
        recent_cpu_prediction=random.choice([0.0, float(random.randint(0, 64_000))]),
        zone=random.randint(-1, 2),
    )


def nearest(score: float | None) -> set[float | None]:
    """Return what the score may be rounded to: both neighbours if it lies between two integers."""
    if score is None:
        return {None}
    return {float(math.floor(score + 0.5 + change)) for change in (-1e-4, 1e-4)}


def scores(name: PolicyName, args: PolicyArgs, pod: PendingPod, snapshot: NodesSnapshot) -> list[float | None]:
    return listed(score_nodes(PolicySettings(name, 1, args), pod, snapshot, rows(len(snapshot.columns.names))))


def snapshot_of(nodes: Sequence[Node], counts: Sequence[int] = ()) -> NodesSnapshot:
    pods = [
        bound_pod(node.name, {"app": "web"}, "")
        for node, count in zip(nodes, counts, strict=False)
        for _ in range(count)
    ]
    pods += [
        bound_pod(nodes[0].name, {"app": "other"}, ""),
        bound_pod(nodes[0].name, {"app": "web"}, "", is_terminating=True),
    ]
    return NodesSnapshot(columns=columns(*nodes), loads=None, basis="metrics", pods_by_namespace={"": pods})


def packing(node: Node, containers: Containers, args: TargetLoadPackingArgs) -> float | None:
    if math.isnan(node.mean[CPU]):
        return None
    target = args.target_utilization_percent
    added = node.recent_cpu_prediction
    for request, limit in containers:
        if limit is not None:
            added += limit
        elif request is not None:
            added += math.floor(request * args.default_requests_multiplier + 0.5)
        else:
            added += args.default_requests_cpu_milli
    capacity = node.capacity["cpu"]
    percent = 100 * (node.mean[CPU] * capacity + added) / capacity if capacity else 0.0
    if percent <= target:
        return (100 - target) * percent / target + target
    return target * (100 - percent) / (100 - target) if percent <= 100 else 0.0


def balancing(node: Node, requests: Mapping[str, int], args: LoadVariationRiskBalancingArgs) -> float | None:
    margin, sensitivity = args.safe_variance_margin, args.safe_variance_sensitivity
    found = []
    for resource in (CPU, MEMORY):
        capacity = (node.allocatable or {})[resource]
        if math.isnan(node.mean[resource]):
            continue
        if capacity <= 0:
            found.append(0.0)
            continue
        used = min(node.mean[resource], 1.0) * capacity
        mean = min((used + requests[resource]) / capacity, 1.0)
        deviation = min(node.std[resource], 1.0)
        deviation = deviation ** (1 / sensitivity) if sensitivity else float(deviation == 1.0)
        found.append((1 - (mean + min(margin * deviation, 1.0)) / 2) * 100)
    return min(found, default=None)


def beta(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function by Lentz's method."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - beta(1 - x, b, a)
    fraction, c, d = 1.0, 1.0, 0.0
    for term in range(2000):
        m = term // 2
        if term == 0:
            numerator = 1.0
        elif term % 2:
            numerator = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            numerator = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1 / (1 + numerator * d or 1e-300)
        c = 1 + numerator / c or 1e-300
        fraction *= c * d
        if abs(1 - c * d) < 1e-12:
            break
    front = a * math.log(x) + b * math.log1p(-x) - math.lgamma(a) - math.lgamma(b) + math.lgamma(a + b)
    return math.exp(front) / a * (fraction - 1)


def load_within(node: Node, resource: LoadResource, window: int) -> float:
    """Return the probability that the load is within the requests."""
    capacity = (node.allocatable or {})[resource]
    mean, deviation = min(node.mean[resource], 1.0), min(node.std[resource], 1.0) * math.sqrt(window)
    requested, limit = min(node.requested[resource], capacity) / capacity, node.limits[resource] / capacity
    deviation = min(deviation, math.sqrt(0.99 * mean * (1 - mean)))
    if limit == 0 or mean == 0:
        return 1.0
    if deviation == 0:
        return float(mean <= requested)
    size = mean * (1 - mean) / deviation**2 - 1
    found = beta(requested, mean * size, (1 - mean) * size)
    at_limit = beta(limit, mean * size, (1 - mean) * size) if requested <= limit < 1 else 1.0
    return min(found / at_limit, 1.0) if at_limit else found


def overcommitment(
    node: Node, requests: Mapping[str, int], limits: Mapping[str, int], args: LowRiskOverCommitmentArgs
) -> float | None:
    if not any((*requests.values(), *limits.values())):
        return 0.0
    if all(map(math.isnan, node.mean.values())):
        return None
    risks = []
    for resource in (CPU, MEMORY):
        capacity = (node.allocatable or {})[resource]
        weight = args.risk_limit_weights[resource]
        requested = min(node.requested[resource] + requests[resource], capacity)
        limit = node.limits[resource] + max(limits[resource], requests[resource])
        by_limits = (limit - capacity) / (limit - requested) if limit > capacity else 0.0
        has_load = capacity > 0 and not math.isnan(node.mean[resource])
        by_load = 1 - load_within(node, resource, args.smoothing_window_size) if has_load else 0.0
        risks.append(weight * by_limits + (1 - weight) * by_load)
    return (1 - max(risks)) * 100


def spreading(counts: Sequence[int], zones: Sequence[int]) -> list[float | None]:
    def least(own: int, most: int) -> float:
        return 100.0 * ((most - own) / most) if most else 100.0

    in_zone = {zone: sum(count for count, other in zip(counts, zones, strict=True) if other == zone) for zone in zones}
    most_in_zone = max((count for zone, count in in_zone.items() if zone >= 0), default=0)
    found: list[float | None] = []
    for count, zone in zip(counts, zones, strict=True):
        score = least(count, max(counts))
        if zone >= 0:
            score = score * (1.0 - 2.0 / 3.0) + 2.0 / 3.0 * least(in_zone[zone], most_in_zone)
        found.append(float(int(score)))
    return found


@pytest.mark.parametrize("seed", range(4))
def test_scores_equal_those_of_the_oracles(seed: int) -> None:
    random = Random(seed)
    for _ in range(CASES):
        nodes = [some_node(random, f"n{number}") for number in range(random.randint(1, 8))]
        requests = {"cpu": random.choice([0, random.randint(0, 8000)]), "memory": random.choice([0, 2**34])}
        limits = {"cpu": random.choice([0, random.randint(0, 9000)]), "memory": random.choice([0, 2**35])}
        containers: Containers = [
            (random.choice([None, 0, 400, 1333]), random.choice([None, None, 700])) for _ in range(random.randint(0, 3))
        ]
        pod = PendingPod(
            resources=PodResources(requests, limits, requests, tuple(ContainerResources(*one) for one in containers)),
            owner_selector="app=web",
        )
        counts = [random.choice([0, 0, 1, 5]) for _ in nodes]
        snapshot = snapshot_of(nodes, counts)
        tlp = TargetLoadPackingArgs(random.choice([40, 1, 99, 62.5]), 1000, random.choice([1.5, 1.1]))
        lvrb = LoadVariationRiskBalancingArgs(random.choice([1, 0, 3]), random.choice([1, 0, 2, 0.5]))
        weights = {"cpu": random.choice([0.5, 0.0, 1.0]), "memory": random.random()}
        lroc = LowRiskOverCommitmentArgs(random.choice([5, 1]), weights)
        expected: dict[tuple[PolicyName, PolicyArgs], list[float | None]] = {
            (PolicyName.TARGET_LOAD_PACKING, tlp): [packing(node, containers, tlp) for node in nodes],
            (PolicyName.LOAD_VARIATION_RISK_BALANCING, lvrb): [balancing(node, requests, lvrb) for node in nodes],
        }
        for (name, args), wanted in expected.items():
            found = scores(name, args, pod, snapshot)
            assert all(score in nearest(one) for score, one in zip(found, wanted, strict=True)), (name, args, nodes)
        risky = scores(PolicyName.LOW_RISK_OVERCOMMITMENT, lroc, pod, snapshot)
        wanted = [overcommitment(node, requests, limits, lroc) for node in nodes]
        assert all(score in nearest(one) for score, one in zip(risky, wanted, strict=True)), (lroc, nodes)
        spread = scores(PolicyName.SELECTOR_SPREAD, SelectorSpreadArgs(), pod, snapshot)
        assert spread == spreading(counts, [node.zone for node in nodes])
