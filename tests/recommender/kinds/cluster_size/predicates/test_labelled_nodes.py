"""Nodes are found by the labels that a pod names, and all others refuse it."""

from __future__ import annotations

from typing import Final

import pytest

from adapter.foundation.cluster.values.constraints import NodeSelectorTerm, PodScheduling
from adapter.foundation.objects.requirements import Operator, Requirement
from recommender.kinds.cluster_size.predicates.labelled_nodes import LabelledNodes
from recommender.kinds.cluster_size.predicates.node_affinity import is_selected
from recommender.kinds.cluster_size.predicates.snapshot import Snapshot
from tests.recommender.kinds.cluster_size.builders import node

LABELS: Final[tuple[dict[str, str], ...]] = (
    {"pool": "a"},
    {"pool": "b"},
    {"pool": "a", "disk": "ssd"},
    {},
    {"disk": "ssd"},
)
IN_A: Final = Requirement("pool", Operator.IN, ("a",))
IN_B: Final = Requirement("pool", Operator.IN, ("b",))
SSD: Final = Requirement("disk", Operator.IN, ("hdd", "ssd"))
NOT_B: Final = Requirement("pool", Operator.NOT_IN, ("b",))
ALL: Final = [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("selector", "terms", "places"),
    [
        ((), None, ALL),
        ((), [], ALL),
        ((("pool", "a"),), None, [0, 2]),
        ((("pool", "c"),), None, []),
        ((("pool", "a"),), [[SSD]], [0, 2]),
        ((), [[IN_A]], [0, 2]),
        ((), [[SSD, IN_A]], [2, 4]),
        ((), [[NOT_B, IN_A]], [0, 2]),
        ((), [[IN_B], [IN_A]], [0, 1, 2]),
        ((), [[IN_A], [SSD]], [0, 2, 4]),
        ((), [[IN_A], [NOT_B]], ALL),
        ((), [[IN_A], []], ALL),
        ((), [[Requirement("pool", Operator.EXISTS)]], ALL),
    ],
)
def test_nodes_without_a_label_that_the_pod_names_are_left_out_and_all_of_them_refuse_it(
    selector: tuple[tuple[str, str], ...], terms: list[list[Requirement]] | None, places: list[int]
) -> None:
    node_terms = None if terms is None else tuple(NodeSelectorTerm(labels=tuple(term)) for term in terms)
    scheduling = PodScheduling(node_selector=selector, node_terms=node_terms)
    snapshot = Snapshot([node(f"n{number}", labels=labels) for number, labels in enumerate(LABELS)], [])
    infos = tuple(snapshot.nodes.values())
    assert list(LabelledNodes(infos).selected(scheduling)) == places
    assert [
        place for place, info in enumerate(infos) if is_selected(info.node, scheduling) and place not in places
    ] == []
