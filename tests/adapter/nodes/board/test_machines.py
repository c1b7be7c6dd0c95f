"""Nodes whose name returns: the same machine keeps its past, and another machine inherits nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from adapter.foundation.cluster.values.placed_pods import placed
from adapter.nodes.board.cluster_facts import NodeFacts
from adapter.nodes.board.machines import REMEMBERED_SECONDS, Machines
from adapter.nodes.model.day import SLOT_SECONDS, SLOTS
from adapter.nodes.model.loads import AVG, WINDOW_NAMES
from adapter.nodes.queries.past_queries import PastAnswer
from adapter.nodes.queries.refresh_results import RefreshResult
from adapter.nodes.windows.grid import aligned
from tests.adapter.nodes.board.scripted_keeper import CPU, Script, averages, steady
from tests.adapter.nodes.placement.objects import a_node
from tests.support.sample_grids import END, STEP, grid_of

NODE = replace(a_node("a"), uid="1", system_uuid="EC2A", provider_id="aws:///i-1")
OTHER = replace(a_node("b"), uid="2")
AGAIN = replace(NODE, uid="3")
ANOTHER = replace(NODE, uid="4", system_uuid="EC2B")


class DayScript(Script):
    """Prometheus has a day of `a` at 30% and of `b` at 40%, which it returns once."""

    def __init__(self) -> None:
        super().__init__()
        self.facts = NodeFacts((NODE, OTHER), pods=placed([]))
        self.has_day = True

    def fill_day(self, *_of: object) -> PastAnswer:
        if not self.has_day:
            return PastAnswer()
        self.has_day = False
        rows = np.repeat([[0.3], [0.4]], SLOTS, axis=1)
        grid = grid_of(rows, nodes=("a", "b"), end=aligned(self.now, SLOT_SECONDS), step=SLOT_SECONDS)
        return PastAnswer((grid,), 1)


def day_of_a(script: DayScript, *refreshes: tuple[object, ...]) -> float:
    """Return the average of the last day of `a` after refreshes with these nodes, 30 seconds apart."""
    keeper = script.keeper()
    for number, nodes in enumerate(((NODE, OTHER), *refreshes)):
        script.now = END + number * 2 * STEP
        script.facts = NodeFacts(nodes, pods=placed([]))  # type: ignore[arg-type]
        script.result = RefreshResult(steady(0.2, 0.4, end=END + number * 2 * STEP))
        keeper.refresh()
    loads = keeper.published.board.loads
    assert loads is not None
    return float(loads.resources[CPU].stats[WINDOW_NAMES.index("1d"), AVG, loads.index["a"]])


@pytest.mark.parametrize("away", [(), ((OTHER,), (OTHER,))])
def test_a_machine_that_registers_again_keeps_its_day(away: tuple[tuple[object, ...], ...]) -> None:
    assert day_of_a(DayScript(), *away, (AGAIN, OTHER)) == pytest.approx(0.3, abs=0.01)


@pytest.mark.parametrize("away", [(), ((OTHER,), (OTHER,))])
def test_another_machine_under_the_same_name_inherits_nothing(away: tuple[tuple[object, ...], ...]) -> None:
    assert np.isnan(day_of_a(DayScript(), *away, (ANOTHER, OTHER)))


def test_the_past_that_is_read_later_is_that_of_the_present_machine_alone() -> None:
    script = DayScript()
    script.has_day = False
    keeper = script.keeper()
    keeper.refresh()
    script.has_day, script.facts = True, NodeFacts((ANOTHER, OTHER), pods=placed([]))
    keeper.refresh()
    keeper.refresh()
    loads = keeper.published.board.loads
    assert loads is not None
    days = loads.resources[CPU].stats[WINDOW_NAMES.index("1d"), AVG]
    assert np.isnan(days).tolist() == [True, False]
    assert np.isnan(averages(keeper)["a"])


@pytest.mark.parametrize(
    ("former", "present", "replaced"),
    [
        ({"uid": "1"}, {"uid": "1"}, False),
        ({"uid": "1"}, {"uid": "2"}, True),
        ({"uid": "1"}, {}, False),
        ({"uid": "1", "provider_id": "p"}, {"uid": "2", "provider_id": "p"}, False),
        ({"uid": "1", "provider_id": "p"}, {"uid": "2", "provider_id": "q"}, True),
        # The cloud's controller sets the provider ID after the node has registered.
        ({"uid": "1"}, {"uid": "1", "provider_id": "p"}, False),
        # On Google Cloud, the provider ID is made of the name.
        (
            {"uid": "1", "system_uuid": "a", "provider_id": "p"},
            {"uid": "1", "system_uuid": "b", "provider_id": "p"},
            True,
        ),
        ({"uid": "1", "system_uuid": "a"}, {"uid": "2", "system_uuid": "A"}, False),
    ],
)
def test_a_machine_is_known_by_the_best_evidence_of_both_nodes(
    former: dict[str, str], present: dict[str, str], *, replaced: bool
) -> None:
    machines = Machines().after((replace(a_node("a"), **former),), 0.0)  # type: ignore[arg-type]
    after = machines.after((replace(a_node("a"), **present),), 30.0)  # type: ignore[arg-type]
    assert (after.replaced == {"a"}) is replaced
    assert after.by_name["a"].measured_since == (30.0 if replaced else -np.inf)


def test_a_machine_that_stays_away_is_forgotten() -> None:
    machines = Machines().after((NODE, OTHER), 0.0).after((OTHER,), 30.0)
    assert machines.after((OTHER,), 29.0 + REMEMBERED_SECONDS).names == ("a", "b")
    assert machines.after((OTHER,), 30.0 + REMEMBERED_SECONDS).names == ("b",)


def test_while_nodes_are_not_known_the_machines_stay_known() -> None:
    unknown = Machines().after((NODE,), 0.0).after(None, 30.0)
    assert unknown.names is None
    assert unknown.after((ANOTHER,), 60.0).replaced == {"a"}


def test_a_clock_that_was_ahead_hides_no_later_samples() -> None:
    machines = Machines().after((NODE,), 0.0).after((ANOTHER,), 1e9).after((ANOTHER,), 60.0)
    assert machines.by_name["a"].measured_since == 60.0
