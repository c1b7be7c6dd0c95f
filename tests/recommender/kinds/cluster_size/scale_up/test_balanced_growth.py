"""Which groups share new nodes, and how many, in a whole decision."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from recommender.kinds.cluster_size.model.size_settings import SizeLimits
from tests.recommender.kinds.cluster_size.options import group, template
from tests.recommender.kinds.cluster_size.scale_up.harnesses import decided, situation
from tests.recommender.kinds.cluster_size.scale_up.pools import pods

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recommender.kinds.cluster_size.model.groups import NodeGroup


def increases(*groups: NodeGroup, nodes: int = 2, **changes: object) -> Mapping[str, int]:
    """Return by how many nodes each group grows for pods that fill some; the group `chosen` is preferred."""
    return decided(
        situation(groups, pods=pods(4 * nodes)),
        balance_similar_node_groups=True,
        expanders=("priority",),
        priorities={1: ("^chosen$",)},
        **changes,
    ).increases


@pytest.mark.parametrize(("gib", "found"), [(None, {"larger": 2}), (32, {"larger": 1})])
def test_groups_that_share_nodes_stay_within_a_limit(gib: int | None, found: dict[str, int]) -> None:
    # Two nodes of the chosen group would be within the limit; it allows only one of these.
    larger = group("larger", node_template=template("4", "16500Mi"))
    limits = SizeLimits(max_memory_bytes=None if gib is None else gib << 30)
    assert increases(group("chosen", size=2), larger, limits=limits) == found


def test_an_all_or_nothing_group_shares_no_nodes_with_others() -> None:
    whole = group("whole", max_size=5, zero_or_max=True)
    assert increases(group("chosen", size=2), whole) == {"chosen": 2}
    assert increases(group("chosen", max_size=5, zero_or_max=True), group("other")) == {"chosen": 5}


@pytest.mark.parametrize(("ignored", "found"), [((), {"chosen": 2}), (("pool",), {"chosen": 1, "other": 1})])
def test_groups_share_nodes_if_they_differ_only_in_labels_that_are_ignored(
    ignored: tuple[str, ...], found: dict[str, int]
) -> None:
    groups = [group(name, node_template=template(labels={"pool": name})) for name in ("chosen", "other")]
    assert increases(*groups, balancing_ignore_labels=ignored) == found


def test_similar_groups_grow_together_beyond_the_maximum_of_one_in_a_single_round() -> None:
    groups = [group(name, max_size=1) for name in ("chosen", "other")]
    assert increases(*groups, rounds=1) == {"chosen": 1, "other": 1}
