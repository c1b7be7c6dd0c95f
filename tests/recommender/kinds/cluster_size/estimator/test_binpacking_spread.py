from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from adapter.foundation.cluster.values.constraints import HOSTNAME_LABEL
from tests.recommender.kinds.cluster_size.estimator.clusters import TEMPLATE, ZONE, estimated

if TYPE_CHECKING:
    from collections.abc import Mapping

SMALL = {"cpu_milli": 20, "mem_bytes": 100}
OVER_HOSTS = {"topology_key": HOSTNAME_LABEL}
THREE_DOMAINS = SMALL | OVER_HOSTS | {"count": 12, "max_skew": 1, "min_domains": 3}


@pytest.mark.parametrize(
    ("group", "nodes", "pods"),
    [
        ({"count": 8, "cpu_milli": 200, "mem_bytes": 200, "max_skew": 2} | OVER_HOSTS, 4, 8),
        (SMALL | {"count": 8, "max_skew": 2, "topology_key": ZONE}, 1, 2),
        (THREE_DOMAINS, 3, 12),
    ],
    ids=["hosts", "zones", "hosts-with-the-old-node"],
)
def test_the_estimate_spreads_pods_as_the_peer_does(group: Mapping[str, Any], nodes: int, pods: int) -> None:
    found = estimated(TEMPLATE, [group])
    assert (found.node_count, len(found.pods)) == (nodes, pods)


def test_pods_placed_on_an_existing_node_are_listed_and_the_node_is_counted() -> None:
    found = estimated(TEMPLATE, [THREE_DOMAINS])
    assert [len(each.pods) for each in found.new_nodes] == [4, 4]
    assert [place for _, place in found.placed_on_existing] == ["oldnode"] * 4
