"""A node is replaced by cheaper machines only if these hold its pods."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.foundation.cluster.values.constraints import (
    HOSTNAME_LABEL,
    NO_CONSTRAINTS,
    HostPort,
    PodTerm,
    SpreadConstraint,
    Toleration,
)
from adapter.foundation.objects.selectors import parse_selector
from benchmarks.made_past import START
from recommender.kinds.cluster_size.known_cluster import CONTROLLERS
from recommender.kinds.cluster_size.model.size_settings import ScaleDownSettings
from recommender.kinds.cluster_size.scale_down.disruptions import RemainingDisruptions
from recommender.kinds.cluster_size.scale_down.drainability import DrainRules
from recommender.shapes import consolidation
from recommender.shapes.choice import MachineChoice, cheapest_machines
from recommender.shapes.consolidation import Consolidation, consolidations
from recommender.shapes.packing import demand_of, pack
from recommender.shapes.peaks import Peak
from tests.recommender.shapes.machine_offers import HEAD, daemon, groups_of, history, pod

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapter.foundation.cluster.values.pods import ClusterPod
    from recommender.kinds.cluster_size.model.groups import NodeGroup


def test_nodes_are_not_replaced_by_a_machine_of_the_same_cost() -> None:
    (group,) = groups_of(HEAD + "- {name: one, price: 0.3, template: {cpu: 8, memory: 16Gi}}\n")
    assert group.template is not None
    nodes = tuple(replace(group.template.node, name=f"n{number}") for number in range(2))
    pods = tuple(replace(pod(number, 500, 512), node=f"n{number}", phase="Running") for number in range(2))
    rules = DrainRules(ScaleDownSettings(), (), RemainingDisruptions(()), START, CONTROLLERS)
    (dearer,) = consolidations(Peak(START, nodes, pods), {"n0": 0.1, "n1": 0.25}, [group], rules)
    assert set(dearer.nodes) == {"n0", "n1"}
    assert consolidations(Peak(START, nodes, pods), {"n0": 0.1, "n1": 0.2}, [group], rules) == ()


@pytest.mark.parametrize(
    ("prices", "expected"),
    [
        pytest.param({"small": 0.3, "large": 0.7}, ("small", 2), id="two small ones cost less"),
        pytest.param({"small": 0.3, "large": 0.5}, ("large", 1), id="one large one costs less"),
        pytest.param({"small": 0.3, "large": 0.6}, ("large", 1), id="both cost the same, so the fewest machines"),
        pytest.param({"small": 0.5, "large": 1.0}, None, id="nothing saves anything"),
    ],
)
def test_a_node_is_replaced_by_the_cheapest_machines_that_hold_its_pods(
    prices: dict[str, float], expected: tuple[str, int] | None
) -> None:
    catalogue = [
        f"- {{name: {name}, price: {prices[name]}, template: {{cpu: {cores}, memory: 16Gi}}}}\n"
        for name, cores in (("small", 2), ("large", 4))
    ]
    groups = groups_of(HEAD + "".join(catalogue))
    assert groups[0].template is not None
    node = replace(groups[0].template.node, name="n0")
    pods = tuple(replace(pod(number, 1500, 512), node="n0", phase="Running") for number in range(2))
    rules = DrainRules(ScaleDownSettings(), (), RemainingDisruptions(()), START, CONTROLLERS)
    found = consolidations(Peak(START, (node,), pods), {"n0": 1.0}, groups, rules)
    assert [(one.shape, one.count) for one in found] == ([] if expected is None else [expected])


APP = parse_selector("app=web")
SCHEDULING = (
    NO_CONSTRAINTS,
    NO_CONSTRAINTS,
    replace(NO_CONSTRAINTS, node_selector=(("disk", "nvme"),)),
    replace(NO_CONSTRAINTS, tolerations=(Toleration(operator="Exists"),)),
    replace(NO_CONSTRAINTS, host_ports=(HostPort("TCP", "0.0.0.0", 80),)),
    *(
        replace(NO_CONSTRAINTS, anti_affinity=(PodTerm(key, APP, frozenset({"shop"})),))
        for key in (HOSTNAME_LABEL, "zone")
    ),
    replace(NO_CONSTRAINTS, affinity=(PodTerm(HOSTNAME_LABEL, APP, frozenset({"shop"})),)),
    replace(NO_CONSTRAINTS, spread=(SpreadConstraint("zone", 1, APP),)),
)
OFFERS = HEAD + "".join(
    f"- {{name: {name}, price: {price}, template: {{cpu: {cores}, memory: {memory}Gi, pods: {pods}, "
    f"labels: {{{labels}}}, taints: [{taint}]}}}}\n"
    for name, price, cores, memory, pods, labels, taint in (
        ("tiny", 0.05, 1, 2, 4, "zone: a", ""),
        ("small", 0.1, 2, 4, 8, "zone: a", ""),
        ("lean", 0.09, 2, 2, 4, "zone: b", ""),
        ("tainted", 0.08, 4, 8, 110, "zone: b", "'a=b:NoSchedule'"),
        ("disks", 0.15, 2, 8, 12, "disk: nvme", ""),
        ("same", 0.2, 4, 8, 16, "zone: a", ""),
        ("equal", 0.2, 4, 8, 16, "zone: b", ""),
        ("large", 0.4, 8, 32, 110, "disk: nvme", ""),
    )
)


@st.composite
def clusters(draw: st.DrawFn) -> tuple[Peak, dict[str, float]]:
    """Return nodes with pods, and their prices."""
    groups = groups_of(OFFERS)
    nodes, prices = [], {}
    pods: list[ClusterPod] = []
    for at in range(draw(st.integers(1, 5))):
        group, name = draw(st.sampled_from(groups)), f"n{at}"
        assert group.template is not None
        nodes.append(replace(group.template.node, name=name))
        prices[name] = draw(st.sampled_from([group.price or 0.0, 0.1, 0.3, 1.0]))
        for _ in range(draw(st.integers(0, 6))):
            made = pod(len(pods), draw(st.sampled_from([0, 100, 500, 1500])), draw(st.sampled_from([0, 256, 1500])))
            assert made.facts is not None
            facts = replace(made.facts, scheduling=draw(st.sampled_from(SCHEDULING)))
            labels = draw(st.sampled_from([{"app": "web"}, {}]))
            pods.append(replace(made, node=name, phase="Running", facts=facts, labels=labels))
    return Peak(START, tuple(nodes), tuple(pods)), prices


@given(cluster=clusters(), has_daemon=st.booleans())
@settings(max_examples=150, deadline=None)
def test_machines_skipped_by_the_consolidation_do_not_change_the_result(
    cluster: tuple[Peak, dict[str, float]], *, has_daemon: bool
) -> None:
    """Judging every machine for every node gives the same answer."""
    peak, prices = cluster
    groups = groups_of(OFFERS, (daemon(),) if has_daemon else ())
    rules = DrainRules(ScaleDownSettings(), (), RemainingDisruptions(()), START, CONTROLLERS)
    found = consolidations(peak, prices, groups, rules)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(consolidation, "_replacements", partial(_of_all, groups))
        assert found == consolidations(peak, prices, groups, rules)


def _of_all(groups: list[NodeGroup], nodes: Any, _machines: object, most: int) -> Iterator[Consolidation]:  # noqa: ANN401 - private
    paid = sum(node.price for node in nodes)
    pods = [pod for node in nodes for pod in node.pods]
    cheaper = sorted((group for group in groups if (group.price or 0.0) < paid), key=lambda group: group.price or 0.0)
    best, least = "", (paid * (1 - 1e-9), 0)
    demand = demand_of(pods, cheaper)
    for option, group in enumerate(cheaper if pods else ()):
        if not all(option in one.rooms for one in demand.rooms):
            continue
        held = pack(demand, (group,), [1.0] * len(demand.pods), {})
        count = most + 1 if held is None else held.counts[group.name]
        if count <= most and (count * (group.price or 0.0), count) < least:
            best, least = group.name, (count * (group.price or 0.0), count)
    if best:
        yield Consolidation(tuple(node.name for node in nodes), best, least[1], len(pods), paid - least[0])


def test_a_tiny_price_is_handled_like_any_other() -> None:
    groups = [replace(group, price=5e-324 if group.name == "small" else group.price) for group in groups_of()]
    found = cheapest_machines(history(tuple(pod(number, 700, 1500) for number in range(9))), groups, 2)
    assert isinstance(found, MachineChoice)
    assert found.counts.keys() == {"small"}
