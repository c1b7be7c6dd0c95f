"""A preferred group whose machines are unavailable: the next one is used at once, and the preferred one again later."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from recommender.kinds.cluster_size.model.memory import ClusterSizeMemory, RequestedNodes
from tests.recommender.kinds.cluster_size.builders import pod
from tests.recommender.kinds.cluster_size.options import group
from tests.recommender.kinds.cluster_size.scale_up.harnesses import NOW, decided, situation

if TYPE_CHECKING:
    from recommender.kinds.cluster_size.model.answer import ScaleUp

PROVISION_SECONDS = 180.0
PRIORITIES = {10: ("^spot$",), 5: (".*",)}
UNDELIVERED = ClusterSizeMemory(requested={"spot": RequestedNodes(1, NOW)})


def asked(after: float, memory: ClusterSizeMemory, *, spot: int) -> ScaleUp:
    """Return the decision for one pending pod; `spot` is the number of nodes requested of the group spot."""
    its = situation(
        [group("spot", size=spot, price=0.1), group("on-demand", price=0.4)],
        pods=[pod("p", "3")],
        memory=memory,
        writes_sizes=True,
        priorities=PRIORITIES,
    )
    return decided(
        replace(its, now=NOW + after), expanders=("priority", "price"), max_node_provision_seconds=PROVISION_SECONDS
    )


def test_the_preferred_group_is_chosen_first_and_awaited_for_the_provision_time() -> None:
    assert asked(0, ClusterSizeMemory(), spot=0).increases == {"spot": 1}
    assert asked(PROVISION_SECONDS, UNDELIVERED, spot=1).increases == {}


def test_a_missing_machine_is_subtracted_and_requested_elsewhere_in_one_decision() -> None:
    assert asked(PROVISION_SECONDS + 1, UNDELIVERED, spot=1).increases == {"spot": -1, "on-demand": 1}


def test_the_preferred_group_is_retried_after_a_back_off_that_grows_with_each_failure() -> None:
    memory, at, waits = UNDELIVERED, PROVISION_SECONDS + 1, []
    for _ in range(5):
        failed = asked(at, memory, spot=1)
        assert failed.memory is not None
        until = failed.memory.back_offs["spot"].until - NOW
        waits.append(until - at)
        assert asked(until - 1, failed.memory, spot=0).increases == {"on-demand": 1}
        assert asked(until, failed.memory, spot=0).increases == {"spot": 1}
        memory = ClusterSizeMemory(
            requested={"spot": RequestedNodes(1, NOW + until)}, back_offs=failed.memory.back_offs
        )
        at = until + PROVISION_SECONDS + 1
    assert waits == [300, 600, 1200, 1800, 1800]
