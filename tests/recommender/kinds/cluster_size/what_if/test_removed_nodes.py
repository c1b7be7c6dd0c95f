from __future__ import annotations

import pytest

from recommender.kinds.cluster_size.model.groups import NodeGroup, NodeGroups
from recommender.kinds.cluster_size.what_if.apply import without_nodes

NODES = ("n1", "n2", "n3")


@pytest.mark.parametrize(
    ("target_size", "deleting", "removed", "expected"),
    [
        pytest.param(3, (), {"n3"}, 2, id="a node that the size counts"),
        pytest.param(5, (), {"n3"}, 4, id="others are on their way"),
        pytest.param(2, ("n3",), {"n3"}, 2, id="a node that leaves, which the size counts no more"),
        pytest.param(2, ("n3",), {"n1"}, 1, id="another node than the one that leaves"),
        pytest.param(2, ("n3",), {"n1", "n3"}, 1, id="both"),
        pytest.param(3, ("n3",), {"n3"}, 2, id="a node that is deleted by hand, which the size still counts"),
        pytest.param(3, (), {"other"}, 3, id="a node of another group"),
        pytest.param(3, (), set(NODES), 0, id="all nodes"),
    ],
)
def test_a_size_no_longer_counts_removed_nodes_that_it_counted(
    target_size: int, deleting: tuple[str, ...], removed: set[str], expected: int
) -> None:
    group = NodeGroup("a", 0, 10, target_size, NODES, deleting=deleting, joined=len(NODES) - len(deleting))
    groups = NodeGroups((group,), dict.fromkeys(NODES, "a"))
    found = without_nodes(groups, removed)
    (smaller,) = found.groups

    assert smaller.target_size == expected
    assert smaller.nodes == tuple(node for node in NODES if node not in removed)
    assert smaller.deleting == tuple(node for node in deleting if node not in removed)
    assert smaller.joined == len(smaller.nodes) - len(smaller.deleting)
    assert found.group_of == dict.fromkeys(smaller.nodes, "a")
