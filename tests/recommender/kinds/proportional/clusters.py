"""Small clusters and inputs for the tests of this folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.state import ClusterNode, ClusterState, CountQuery, Observed, Taint, Unknown
from adapter.foundation.objects.quantities import Quantity
from recommender.decisions.inputs import ConfigMapData, Inputs
from recommender.decisions.memory import Memory
from recommender.kinds.proportional.calculate import calculate_proportional

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recommender.decisions.calculation import Calculation
    from recommender.kinds.proportional.parameters import ProportionalSettings

NOW: Final = 1_000_000.0
CONFIG_MAP: Final = ("kube-system", "dns-autoscaler")


def node(
    name: str = "n",
    *,
    cpu_milli: int = 1000,
    labels: Mapping[str, str] | None = None,
    taints: tuple[str, ...] = (),
    unschedulable: bool = False,
    ready: bool = True,
    created: float | None = NOW - 3600,
    capacity_milli: int | None = None,
) -> ClusterNode:
    return ClusterNode(
        name=name,
        labels=labels or {},
        taints=tuple(Taint(key, "", "NoSchedule") for key in taints),
        unschedulable=unschedulable,
        conditions={"Ready": "True" if ready else "False"},
        created=created,
        capacity={"cpu": _cpu(cpu_milli if capacity_milli is None else capacity_milli)},
        allocatable={"cpu": _cpu(cpu_milli)},
    )


def _cpu(milli: int) -> Quantity:
    return Quantity(milli * 10**6)


def nodes_of(
    schedulable: int, cores: int, total: int | None = None, total_cores: int | None = None
) -> list[ClusterNode]:
    """Return nodes with these counts; the first node of each group has all of its cores."""
    others = (schedulable if total is None else total) - schedulable
    other_cores = (cores if total_cores is None else total_cores) - cores
    first = [node(cpu_milli=cores * 1000), *([node(cpu_milli=0)] * (schedulable - 1))] if schedulable else []
    rest = [
        node(cpu_milli=other_cores * 1000, unschedulable=True),
        *([node(cpu_milli=0, unschedulable=True)] * (others - 1)),
    ]
    return [*first, *rest] if others else first


def inputs_of(
    nodes: list[ClusterNode] | Unknown | None = None,
    *,
    counts: Mapping[CountQuery, int] | None = None,
    queries: Mapping[str, Observed[float] | Unknown] | None = None,
    config_map: ConfigMapData | Unknown | None = None,
    time: float = NOW,
) -> Inputs:
    observed = nodes if isinstance(nodes, Unknown) else Observed(tuple(nodes or ()), time)
    return Inputs(
        cluster=ClusterState(
            nodes=observed, counts={query: Observed(count, time) for query, count in (counts or {}).items()}
        ),
        queries=queries or {},
        config_maps={CONFIG_MAP: config_map if isinstance(config_map, Unknown) else Observed(config_map, time)},
    )


def calculated(
    settings: ProportionalSettings,
    inputs: Inputs,
    memory: Memory | None = None,
    *,
    now: float = NOW,
) -> Calculation:
    return calculate_proportional(settings)(inputs, memory or Memory(), now)


def step_texts(calculation: Calculation) -> list[str]:
    return [f"{step.step} {step.value:g}: {step.detail}" for step in calculation.steps]
