"""The machines hold every pod and never cost less than the lower bound; more shapes never cost more."""

from __future__ import annotations

from collections import Counter
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
from adapter.foundation.documents.tree import DocumentError
from adapter.foundation.objects.selectors import parse_selector
from benchmarks.made_past import START, PastPlan, made_past
from recommender.kinds.cluster_size.model.size_settings import ScaleDownSettings
from recommender.kinds.cluster_size.predicates.filters import PodFilter
from recommender.kinds.cluster_size.predicates.snapshot import Snapshot
from recommender.kinds.cluster_size.scale_down.disruptions import RemainingDisruptions
from recommender.kinds.cluster_size.scale_down.drainability import DrainRules
from recommender.recording.recording import RecordedPod
from recommender.replay.cluster.situations import CONTROLLERS
from recommender.shapes import consolidation
from recommender.shapes.catalogue import MOST_SHAPES, candidate, read_catalogue
from recommender.shapes.choice import MachineChoice, NoChoice, chosen, with_pods_that_fit
from recommender.shapes.consolidation import Consolidation, consolidations
from recommender.shapes.document import shapes_message
from recommender.shapes.packing import demand_of, packed
from recommender.shapes.peaks import History, Peak, history_of_now, history_of_recording
from recommender.shapes.report import ShapeCount, ShapeReport, best_offers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from adapter.foundation.cluster.values.pods import ClusterPod
    from adapter.foundation.cluster.values.state import ClusterNode
    from recommender.kinds.cluster_size.model.groups import NodeGroup

HEAD = "apiVersion: tidewatch.io/v1alpha1\nkind: MachineShapeCatalogue\nshapes:\n"
CATALOGUE = HEAD + (
    "- {name: small, price: 0.2, template: {cpu: 4, memory: 8Gi, pods: 12}, reserved: {cpu: 200m, memory: 512Mi}}\n"
    "- {name: large, price: 0.7, template: {cpu: 16, memory: 64Gi}}\n"
    "- {name: tainted, price: 0.1, template: {cpu: 64, memory: 64Gi, taints: ['a=b:NoSchedule']}}\n"
    "- {name: disks, price: 0.9, template: {cpu: 8, memory: 32Gi, labels: {disk: nvme}}}\n"
)
KIND = made_past(PastPlan(days=0.01, nodes=1)).pod_kinds[0]


def pod(number: int, cpu: int, memory: int, selector: Mapping[str, str] | None = None) -> ClusterPod:
    """Return a pod that requests CPU in milli and memory in MiB."""
    requests = {"cpu": cpu, "memory": memory << 20}
    scheduling = replace(NO_CONSTRAINTS, node_selector=tuple(sorted((selector or {}).items())))
    facts = KIND.facts
    assert facts is not None
    return replace(
        KIND,
        name=f"p{number}",
        resources=replace(KIND.resources, requests=requests, non_zero_requests=requests),
        facts=replace(facts, scheduling=scheduling),
    )


def daemon() -> ClusterPod:
    """Return the pod of a DaemonSet that runs on every node."""
    owner = KIND.controller
    assert owner is not None
    return replace(pod(0, 300, 256), name="logs-daemon", controller=replace(owner, kind="DaemonSet", name="logs"))


def groups_of(text: str = CATALOGUE, daemons: tuple[ClusterPod, ...] = ()) -> list[NodeGroup]:
    return [candidate(shape, daemons) for shape in read_catalogue(text, "shapes.yaml").shapes]


def history(*peaks: tuple[ClusterPod, ...]) -> History:
    every = tuple(one for peak in peaks for one in peak)
    return History("made", tuple(Peak(START, (), peak) for peak in peaks), every, ())


PODS = st.lists(
    st.tuples(st.integers(50, 4000), st.integers(16, 16_000), st.sampled_from([None, {"disk": "nvme"}])),
    min_size=1,
    max_size=40,
)


@given(first=PODS, second=PODS, most=st.integers(1, 3))
@settings(max_examples=25, deadline=None)
def test_every_pod_of_every_peak_has_a_machine_that_takes_it(
    first: list[tuple[int, int, dict[str, str] | None]], second: list[tuple[int, int, dict[str, str] | None]], most: int
) -> None:
    groups = groups_of(daemons=(daemon(),))
    peaks = [tuple(pod(number, *one) for number, one in enumerate(each)) for each in (first, second)]
    found = chosen(history(*peaks), groups, most)
    if isinstance(found, NoChoice):
        assert most == 1
        return
    assert 0 < len(found.counts) <= most
    assert found.bound <= found.cost + 1e-9
    prices = {group.name: group.price or 0.0 for group in groups}
    assert found.cost == pytest.approx(sum(prices[name] * count for name, count in found.counts.items()))
    for pods, places in zip(peaks, found.nodes_of_peaks, strict=True):
        _put_again(pods, places, found, groups)


def _put_again(
    pods: tuple[ClusterPod, ...], places: Mapping[tuple[str, str], str], found: MachineChoice, groups: list[NodeGroup]
) -> None:
    """Put each pod on its node, and assert that the scheduler's filters do not refuse it."""
    templates = {group.name: group.template for group in groups}
    nodes: list[ClusterNode] = []
    daemons: list[ClusterPod] = []
    for name, count in found.counts.items():
        template = templates[name]
        assert template is not None
        nodes += [replace(template.node, name=f"{name}-{number}") for number in range(count)]
        daemons += [
            replace(one, name=f"d-{name}-{at}", node=f"{name}-{at}") for at in range(count) for one in template.pods
        ]
    snapshot = Snapshot(nodes, daemons)
    for one in pods:
        node = places[one.namespace, one.name]
        assert PodFilter(snapshot, snapshot.shape(one)).fits(snapshot.nodes[node])
        snapshot.place(one, node)


SPREAD = HEAD + (
    "- {name: a, price: 0.7, template: {cpu: 4, memory: 64Gi, labels: {zone: a}}}\n"
    "- {name: b, price: 0.9, template: {cpu: 4, memory: 64Gi, labels: {zone: b}}}\n"
)


@pytest.mark.parametrize(
    ("key", "spread", "others", "expected"),
    [
        # The machine of zone b that the other pods need would be full, and zone a would have all of the spread pods.
        ("zone", 8, 4, {"a": 1, "b": 2}),
        # The first machine would have four of the spread pods, and the others none.
        (HOSTNAME_LABEL, 4, 8, {"b": 3}),
    ],
)
def test_pods_are_spread_over_all_machines(key: str, spread: int, others: int, expected: dict[str, int]) -> None:
    groups = groups_of(SPREAD)
    evenly = replace(NO_CONSTRAINTS, spread=(SpreadConstraint(key, 1, parse_selector("app=web")),))
    pods = [pod(number, 1000, 512, {"zone": "b"}) for number in range(others)]
    for number in range(others, others + spread):
        one = pod(number, 1000, 512)
        assert one.facts is not None
        pods.append(replace(one, labels={"app": "web"}, facts=replace(one.facts, scheduling=evenly)))
    found = chosen(history(tuple(pods)), groups, 2)
    assert isinstance(found, MachineChoice)
    assert found.counts == expected
    domains = Counter({f"{name}-{number}": 0 for name, count in found.counts.items() for number in range(count)})
    (places,) = found.nodes_of_peaks
    domains.update(places[one.namespace, one.name] for one in pods[others:])
    if key == "zone":
        domains = Counter({zone: sum(domains[each] for each in domains if each[0] == zone) for zone in "ab"})
    assert max(domains.values()) - min(domains.values()) <= 1


@given(pods=PODS)
@settings(max_examples=15, deadline=None)
def test_more_shapes_never_cost_more(pods: list[tuple[int, int, dict[str, str] | None]]) -> None:
    packed = history(tuple(pod(number, *one) for number, one in enumerate(pods)))
    costs = [one.cost for most in (1, 2, 3) if isinstance(one := chosen(packed, groups_of(), most), MachineChoice)]
    assert costs == sorted(costs, reverse=True)


def test_pod_that_fits_on_no_machine_is_named_with_the_reason() -> None:
    needs_gpu = pod(1, 100, 100, {"gpu": "yes"})
    found = chosen(history((pod(0, 100, 100), needs_gpu)), groups_of(), 3)
    assert isinstance(found, NoChoice)
    (homeless,) = found.homeless
    assert homeless.startswith("shop/web-0: ")
    assert "didn't match Pod's node affinity/selector" in homeless


def test_cheaper_machines_that_do_not_fit_a_pod_of_another_hour_are_not_chosen() -> None:
    rare = pod(1, 100, 100, {"disk": "nvme"})
    packed = history(tuple(pod(number, 1000, 1000) for number in range(20)))
    found = chosen(replace(packed, kinds=(*packed.kinds, rare)), groups_of(), 1)
    assert isinstance(found, MachineChoice)
    assert set(found.counts) == {"disks"}


def test_each_resource_has_its_own_peak() -> None:
    past = made_past(PastPlan(days=0.05, nodes=2))
    cores, memory = (replace(KIND, resources=pod(0, *requests).resources) for requests in ((4000, 1), (1, 4000)))
    moments = (
        RecordedPod(0, START + 60, START + 60, START + 120, "node-0"),
        RecordedPod(1, START + 180, START + 180, START + 240, "node-0"),
    )
    found = history_of_recording(replace(past, pods=moments, pod_kinds=(cores, memory)), {"node-0": "small"})
    assert [peak.time for peak in found.peaks] == [START + 60, START + 180]
    assert [len(peak.pods) for peak in found.peaks] == [1, 1]


def test_pods_outside_all_groups_need_no_machine() -> None:
    past = made_past(PastPlan(days=0.05, nodes=2))
    assert not any(peak.pods for peak in history_of_recording(past, {}).peaks)


def test_pods_with_volumes_are_packed_like_others_with_a_note() -> None:
    database = pod(0, 1000, 1024)
    assert database.facts is not None
    scheduling = replace(database.facts.scheduling, claims=("data-db-0",))
    database = replace(database, node="n1", facts=replace(database.facts, scheduling=scheduling))
    now = history_of_now((), (database, replace(pod(1, 1000, 1024), node="n1")), {"n1": "a"}, START)
    found = chosen(now, groups_of(), 1)
    assert isinstance(found, MachineChoice)
    assert found.counts == {"small": 1}
    (note,) = now.notes
    assert note.startswith("The volumes of 1 pod are not looked at")


def test_nodes_with_pods_that_have_resource_claims_are_left_out_with_a_note() -> None:
    trainer = pod(0, 1000, 1024)
    assert trainer.facts is not None
    scheduling = replace(trainer.facts.scheduling, resource_claims=("gpu",))
    trainer = replace(trainer, node="n1", facts=replace(trainer.facts, scheduling=scheduling))
    others = tuple(replace(pod(number, 1000, 1024), node=f"n{number}") for number in (1, 2))
    (group, *_) = groups_of()
    assert group.template is not None
    nodes = tuple(replace(group.template.node, name=name) for name in ("n1", "n2"))
    now = history_of_now(nodes, (trainer, *others), {"n1": "a", "n2": "a"}, START)
    (peak,) = now.peaks
    assert [node.name for node in peak.nodes] == ["n2"]
    assert peak.pods == now.kinds == others[1:]
    (note,) = now.notes
    assert note.startswith("Left out, with all pods on them: 1 node ")


@pytest.mark.parametrize("count", [1, 2])
def test_pending_pods_that_fit_nowhere_do_not_hide_the_machines_for_all_others(count: int) -> None:
    stuck = tuple(pod(number, 100, 100, {"gpu": "yes"}) for number in range(1, count + 1))
    waiting = pod(9, 1000, 1024, {"disk": "nvme"})
    now = history_of_now((), (replace(pod(0, 1000, 1024), node="n1"), *stuck, waiting), {"n1": "a"}, START)
    kept = with_pods_that_fit(now, groups_of(), groups_of())
    found = chosen(kept, groups_of(), 1)
    assert isinstance(found, MachineChoice)
    assert found.counts == {"disks": 1}
    (note,) = kept.notes
    assert note.startswith(f"{count} pending pod")
    assert "shop/web-0: " in note
    assert "node affinity/selector" in note


def test_a_pending_pod_counts_if_an_equal_pod_has_a_node() -> None:
    pods = tuple(pod(number, 100, 100, {"gpu": "yes"}) for number in range(2))
    now = history_of_now((), (replace(pods[0], node="n1"), pods[1]), {"n1": "a"}, START)
    kept = with_pods_that_fit(now, groups_of(), groups_of())
    assert len(kept.peaks[0].pods) == 2
    assert isinstance(chosen(kept, groups_of(), 3), NoChoice)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{name: a, price: 0, template: {cpu: 4, memory: 1Gi}}", "price"),
        ("{name: a, price: 1, template: {cpu: 4}}", "`template.memory` is missing"),
        ("{name: a, price: 1, template: {cpu: 4, memory: 1Gi}, reserved: {memory: 2Gi}}", "so no pod fits"),
        ("{name: a, price: 1, templat: {cpu: 4, memory: 1Gi}}", "did you mean"),
        ("&one {name: a, price: 1, template: {cpu: 4, memory: 1Gi}}\n- *one", "'a'"),
    ],
)
def test_invalid_catalogue_is_refused(entry: str, message: str) -> None:
    with pytest.raises(DocumentError) as refused:
        read_catalogue(f"{HEAD}- {entry}\n", "shapes.yaml")
    assert any(message in str(problem) for problem in refused.value.problems)


def test_catalogue_with_more_shapes_than_can_be_compared_is_refused() -> None:
    entries = "".join(
        f"- {{name: s{n}, price: 1, template: {{cpu: 1, memory: 1Gi}}}}\n" for n in range(MOST_SHAPES + 1)
    )
    with pytest.raises(DocumentError, match="there are 5001 shapes, and at most 5000 can be compared"):
        read_catalogue(f"{HEAD}{entries}", "shapes.yaml")


def test_shapes_that_another_replaces_at_no_higher_price_are_left_out() -> None:
    shapes = {
        "a": "price: 1, template: {cpu: 4, memory: 16Gi}",
        "dearer": "price: 1.1, template: {cpu: 4, memory: 16Gi}",
        "same": "price: 1, template: {cpu: 4, memory: 16Gi}",
        "smaller": "price: 1, template: {cpu: 2, memory: 16Gi}",
        "reserves-more": "price: 1, template: {cpu: 4, memory: 16Gi}, reserved: {cpu: 1}",
        "more-memory": "price: 2, template: {cpu: 4, memory: 16385Mi}",
        "cheaper": "price: 0.4, template: {cpu: 2, memory: 4Gi}",
        "gpu": 'price: 3, template: {cpu: 4, memory: 16Gi, "nvidia.com/gpu": 1}',
        "labelled": "price: 2, template: {cpu: 4, memory: 16Gi, labels: {disk: nvme}}",
        "tainted": 'price: 2, template: {cpu: 4, memory: 16Gi, taints: ["a=b:NoSchedule"]}',
        "endless": "price: 9, template: {cpu: 1e400, memory: 1Gi}",
        "more-endless": "price: 9, template: {cpu: 1e401, memory: 1Gi}",
    }
    groups = groups_of(HEAD + "".join(f"- {{name: {name}, {rest}}}\n" for name, rest in shapes.items()))
    kept = ["a", "more-memory", "cheaper", "gpu", "labelled", "tainted", "more-endless"]
    assert [group.name for group in best_offers(groups)] == kept


@pytest.mark.parametrize("unit", [1e-9, 1e8])
def test_the_unit_of_prices_makes_no_difference_to_the_lower_bound(unit: float) -> None:
    packed = history(tuple(pod(number, 700 + 37 * number, 1500 + 211 * number) for number in range(20)))
    usual = groups_of()
    scaled = [replace(group, price=(group.price or 0.0) * unit) for group in usual]
    found, same = chosen(packed, usual, 2), chosen(packed, scaled, 2)
    assert isinstance(found, MachineChoice)
    assert isinstance(same, MachineChoice)
    assert same.bound == pytest.approx(found.bound * unit, rel=1e-5)


def test_other_machines_are_not_mentioned_without_a_lower_bound() -> None:
    known, unknown = (MachineChoice({"one": 2}, 0.6, bound, ()) for bound in (0.6, 0.0))
    messages = [
        shapes_message(ShapeReport("made", (), 2, (ShapeCount("one", 2, 0.6),), each, 2, 0.9, (), ()))
        for each in (known, unknown)
    ]
    less = "2 of one hold every peak for 0.60 an hour, 33.3% less than the present nodes"
    assert messages == [f"{less}; no machines of the catalogue could for less.", f"{less}."]


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
        held = packed(demand, (group,), [1.0] * len(demand.pods), {})
        count = most + 1 if held is None else held.counts[group.name]
        if count <= most and (count * (group.price or 0.0), count) < least:
            best, least = group.name, (count * (group.price or 0.0), count)
    if best:
        yield Consolidation(tuple(node.name for node in nodes), best, least[1], len(pods), paid - least[0])


def test_a_tiny_price_is_handled_like_any_other() -> None:
    groups = [replace(group, price=5e-324 if group.name == "small" else group.price) for group in groups_of()]
    found = chosen(history(tuple(pod(number, 700, 1500) for number in range(9))), groups, 2)
    assert isinstance(found, MachineChoice)
    assert found.counts.keys() == {"small"}
