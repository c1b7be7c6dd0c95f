"""The machines hold every pod and never cost less than the lower bound; more shapes never cost more."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.foundation.cluster.values.constraints import HOSTNAME_LABEL, NO_CONSTRAINTS, SpreadConstraint
from adapter.foundation.documents.tree import DocumentError
from adapter.foundation.objects.selectors import parse_selector
from benchmarks.made_past import START, PastPlan, made_past
from recommender.kinds.cluster_size.predicates.filters import PodFilter
from recommender.kinds.cluster_size.predicates.snapshot import Snapshot
from recommender.recording.recording import RecordedPod
from recommender.shapes.catalogue import MOST_SHAPES, read_catalogue
from recommender.shapes.choice import MachineChoice, NoChoice, cheapest_machines, with_pods_that_fit
from recommender.shapes.document import shapes_message
from recommender.shapes.peaks import history_of_now, history_of_recording
from recommender.shapes.report import ShapeCount, ShapeReport, best_offers
from tests.recommender.shapes.machine_offers import HEAD, KIND, PODS, daemon, groups_of, history, pod

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.cluster.values.pods import ClusterPod
    from adapter.foundation.cluster.values.state import ClusterNode
    from recommender.kinds.cluster_size.model.groups import NodeGroup


@given(first=PODS, second=PODS, most=st.integers(1, 3))
@settings(max_examples=25, deadline=None)
def test_every_pod_of_every_peak_has_a_machine_that_takes_it(
    first: list[tuple[int, int, dict[str, str] | None]], second: list[tuple[int, int, dict[str, str] | None]], most: int
) -> None:
    groups = groups_of(daemons=(daemon(),))
    peaks = [tuple(pod(number, *one) for number, one in enumerate(each)) for each in (first, second)]
    found = cheapest_machines(history(*peaks), groups, most)
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
    found = cheapest_machines(history(tuple(pods)), groups, 2)
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
    costs = [
        one.cost for most in (1, 2, 3) if isinstance(one := cheapest_machines(packed, groups_of(), most), MachineChoice)
    ]
    assert costs == sorted(costs, reverse=True)


def test_pod_that_fits_on_no_machine_is_named_with_the_reason() -> None:
    needs_gpu = pod(1, 100, 100, {"gpu": "yes"})
    found = cheapest_machines(history((pod(0, 100, 100), needs_gpu)), groups_of(), 3)
    assert isinstance(found, NoChoice)
    (unplaceable,) = found.unplaceable
    assert unplaceable.startswith("shop/web-0: ")
    assert "didn't match Pod's node affinity/selector" in unplaceable


def test_cheaper_machines_that_do_not_fit_a_pod_of_another_hour_are_not_chosen() -> None:
    rare = pod(1, 100, 100, {"disk": "nvme"})
    packed = history(tuple(pod(number, 1000, 1000) for number in range(20)))
    found = cheapest_machines(replace(packed, kinds=(*packed.kinds, rare)), groups_of(), 1)
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
    found = cheapest_machines(now, groups_of(), 1)
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
    found = cheapest_machines(kept, groups_of(), 1)
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
    assert isinstance(cheapest_machines(kept, groups_of(), 3), NoChoice)


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
    found, same = cheapest_machines(packed, usual, 2), cheapest_machines(packed, scaled, 2)
    assert isinstance(found, MachineChoice)
    assert isinstance(same, MachineChoice)
    assert same.bound == pytest.approx(found.bound * unit, rel=1e-5)


def test_other_machines_are_not_mentioned_without_a_lower_bound() -> None:
    known, unknown = (MachineChoice({"one": 2}, 0.6, bound, ()) for bound in (0.6, 0.0))
    messages = [
        shapes_message(ShapeReport("made", (), 2, (ShapeCount("one", 2, 0.6),), each, 2, 0.9, (), ()))
        for each in (known, unknown)
    ]
    less = "2 of one hold every peak for 0.60 an hour, 33.3% less than the current nodes"
    assert messages == [f"{less}; no machines of the catalogue could for less.", f"{less}."]
