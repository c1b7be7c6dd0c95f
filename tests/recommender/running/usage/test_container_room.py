"""Usage is kept for a limited number of containers, which the namespaces share in turn."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from recommender.kinds.resources.usage import CollectedCpu, ContainerRows
from recommender.kinds.resources.workloads import ClusterFacts, SizedWorkload, WorkloadContainer
from recommender.running.usage import target_usage
from recommender.running.usage.target_usage import KnownUsage, UsagePart

if TYPE_CHECKING:
    import pytest

END = 86_400.0 * 20_000 + 3600.0


def containers(*places: str) -> tuple[WorkloadContainer, ...]:
    """Return a container for each `NAMESPACE/NAME`."""
    return tuple(
        WorkloadContainer(SizedWorkload(namespace, "Deployment", name), "main")
        for namespace, _, name in (place.partition("/") for place in places)
    )


def part(*places: str, last: float = -math.inf) -> UsagePart:
    """Return a part with these containers, whose last samples are of the time `last`."""
    cpu = CollectedCpu.empty(ContainerRows(containers(*places), {}), 1, END)
    cpu.last[:] = last
    return UsagePart(END - 3600.0, END, cpu, {}, frozenset(), frozenset(), ClusterFacts())


def test_a_namespace_with_many_new_containers_leaves_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target_usage, "MOST_CONTAINERS", 3)
    usage = KnownUsage.empty(2)
    usage.add(part("aaa/known"))
    usage.add(part("aaa/known", *(f"aaa/x{number}" for number in range(5)), "shop/web"))

    assert set(usage.cpu.rows.names) >= {*containers("aaa/known", "shop/web")}
    assert (len(usage.cpu.rows.names), usage.left_out) == (3, 4)


def test_ended_containers_make_room_for_running_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target_usage, "MOST_CONTAINERS", 3)
    usage = KnownUsage.empty(2)
    usage.add(part("aaa/x0", "aaa/x1", "shop/web"))
    usage.add(part("shop/web", "shop/api", "shop/queue"))

    assert set(usage.cpu.rows.names) == {*containers("shop/web", "shop/api", "shop/queue")}
    assert usage.left_out == 0


def test_the_newest_ended_containers_of_each_namespace_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target_usage, "MOST_CONTAINERS", 4)
    usage = KnownUsage.empty(2)
    usage.add(part("shop/nightly", last=END - 3000.0))
    usage.add(part("aaa/x0", last=END - 2000.0))
    usage.add(part("aaa/x1", "aaa/x2", last=END - 1000.0))
    usage.add(part("aaa/x3", "shop/web", last=END))

    assert set(usage.cpu.rows.names) == {*containers("aaa/x3", "shop/web", "shop/nightly", "aaa/x1")}
