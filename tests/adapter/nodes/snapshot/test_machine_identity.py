"""Nodes whose name returns: the same machine keeps its past, and another machine inherits nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from adapter.foundation.cluster.values.placed_pods import pods_by_place
from adapter.nodes.model.day import SLOT_SECONDS, SLOTS
from adapter.nodes.model.loads import AVG, WINDOW_NAMES
from adapter.nodes.model.samples import MachineRecord
from adapter.nodes.queries.past_queries import PastAnswer
from adapter.nodes.queries.refresh_results import RefreshResult
from adapter.nodes.snapshot.cluster_facts import NodeFacts
from adapter.nodes.snapshot.machine_identity import REMEMBERED_SECONDS, Machines
from adapter.nodes.windows.grid import align_to_step
from tests.adapter.nodes.placement.objects import a_node, a_pod, resources
from tests.adapter.nodes.snapshot.scripted_keeper import CPU, Script, averages, steady
from tests.support.sample_grids import END, STEP, grid_of

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import ClusterNode
    from adapter.nodes.snapshot.snapshot_keeper import SnapshotKeeper

NODE = replace(a_node("a"), uid="1", system_uuid="EC2A", provider_id="aws:///i-1")
OTHER = replace(a_node("b"), uid="2")
AGAIN = replace(NODE, uid="3")
ANOTHER = replace(NODE, uid="4", system_uuid="EC2B")


class DayScript(Script):
    """Prometheus has a day of `a` at 30% and of `b` at 40%, which it returns once."""

    def __init__(self) -> None:
        super().__init__()
        self.facts = NodeFacts((NODE, OTHER), pods=pods_by_place([]))
        self.has_day = True

    def fill_day(self, *_of: object) -> PastAnswer:
        if not self.has_day:
            return PastAnswer()
        self.has_day = False
        rows = np.repeat([[0.3], [0.4]], SLOTS, axis=1)
        grid = grid_of(rows, nodes=("a", "b"), end=align_to_step(self.now, SLOT_SECONDS), step=SLOT_SECONDS)
        return PastAnswer((grid,), 1)


def day_of_a(script: DayScript, *refreshes: tuple[object, ...]) -> float:
    """Return the average of the last day of `a` after refreshes with these nodes, 30 seconds apart."""
    keeper = script.keeper()
    for number, nodes in enumerate(((NODE, OTHER), *refreshes)):
        script.now = END + number * 2 * STEP
        script.facts = NodeFacts(nodes, pods=pods_by_place([]))  # type: ignore[arg-type]
        script.result = RefreshResult(steady(0.2, 0.4, end=END + number * 2 * STEP))
        keeper.refresh()
    loads = keeper.published.snapshot.loads
    assert loads is not None
    return float(loads.resources[CPU].stats[WINDOW_NAMES.index("1d"), AVG, loads.index["a"]])


@pytest.mark.parametrize("away", [(), ((OTHER,), (OTHER,))])
def test_a_machine_that_registers_again_keeps_its_day(away: tuple[tuple[object, ...], ...]) -> None:
    assert day_of_a(DayScript(), *away, (AGAIN, OTHER)) == pytest.approx(0.3, abs=0.01)


@pytest.mark.parametrize("away", [(), ((OTHER,), (OTHER,))])
def test_another_machine_under_the_same_name_inherits_nothing(away: tuple[tuple[object, ...], ...]) -> None:
    assert np.isnan(day_of_a(DayScript(), *away, (ANOTHER, OTHER)))


def test_a_new_machine_is_not_estimated_from_the_usage_of_the_former_one() -> None:
    """`a` used three times its requests. The new machine is never measured, so it is taken to be like the others."""
    script = Script()
    pods = pods_by_place([a_pod("one", "a", resources("1")), a_pod("two", "b", resources("1"))])
    script.facts = NodeFacts((NODE, OTHER), pods=pods)
    script.result = RefreshResult(steady(0.75, 0.25))
    keeper = script.keeper()
    keeper.refresh()
    script.facts = NodeFacts((ANOTHER, OTHER), pods=pods)
    found = []
    for later in (30, 330, 360):
        script.now = END + later
        script.result = RefreshResult(steady(0.25, end=END + later, nodes=("b",)))
        keeper.refresh()
        found.append(averages(keeper)["a"])
    assert found == pytest.approx([np.nan, 0.25, 0.25], nan_ok=True)


def test_past_samples_of_a_former_machine_are_not_used() -> None:
    script = DayScript()
    script.has_day = False
    keeper = script.keeper()
    keeper.refresh()
    script.has_day, script.facts = True, NodeFacts((ANOTHER, OTHER), pods=pods_by_place([]))
    keeper.refresh()
    keeper.refresh()
    loads = keeper.published.snapshot.loads
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
def test_a_machine_is_identified_by_the_best_evidence_of_both_nodes(
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


def test_machines_are_remembered_while_nodes_are_unknown() -> None:
    unknown = Machines().after((NODE,), 0.0).after(None, 30.0)
    assert unknown.names is None
    assert unknown.after((ANOTHER,), 60.0).replaced == {"a"}


def test_a_clock_that_was_ahead_does_not_hide_later_samples() -> None:
    machines = Machines().after((NODE,), 0.0).after((ANOTHER,), 1e9).after((ANOTHER,), 60.0)
    assert machines.by_name["a"].measured_since == 60.0


def after_restart(record: MachineRecord | None, present: ClusterNode) -> tuple[SnapshotKeeper, Script]:
    """Return a keeper that starts with a state file, and finds this node under the name `a`."""
    script = Script()
    machines = {} if record is None else {"a": record}
    script.file = replace(steady(0.9, 0.4, from_file=True), machines=machines)
    script.facts = NodeFacts(None)
    keeper = script.keeper()
    keeper.read_file()
    script.now, script.facts = END + 2.0 * STEP, NodeFacts((present, OTHER), pods=pods_by_place([]))
    script.result = RefreshResult(steady(0.9, 0.4, end=END + 2 * STEP))
    keeper.refresh()
    return keeper, script


RECORD = MachineRecord("EC2A", "aws:///i-1", "1")


def test_a_machine_replaced_while_no_process_ran_passes_no_samples_to_the_new_one() -> None:
    keeper, _ = after_restart(RECORD, ANOTHER)
    assert np.isnan(averages(keeper)["a"])
    assert averages(keeper)["b"] == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("record", "present"),
    [(RECORD, NODE), (RECORD, AGAIN), (None, ANOTHER), (MachineRecord(), ANOTHER)],
    ids=["the same", "registered again", "a file of a former version", "nothing known"],
)
def test_a_machine_that_may_be_the_same_keeps_the_samples_of_the_state_file(
    record: MachineRecord | None, present: ClusterNode
) -> None:
    keeper, _ = after_restart(record, present)
    assert averages(keeper)["a"] == pytest.approx(0.9)


def test_the_state_file_records_which_machines_were_measured_and_since_when() -> None:
    _, script = after_restart(RECORD, ANOTHER)
    assert script.offered[-1].machines == {
        "a": MachineRecord("EC2B", "aws:///i-1", "4", END + 2.0 * STEP),
        "b": MachineRecord(uid="2"),
    }


@pytest.mark.parametrize(
    ("present", "since"),
    [
        (replace(ANOTHER, created=END + 10.0), END + 10.0),
        # The former machine was measured until then, whatever the object states.
        (replace(ANOTHER, created=END - 900.0), float(END)),
        (replace(ANOTHER, created=END + 1e6), END + 60.0),
        (replace(ANOTHER, created=None), END + 60.0),
        # The machine was replaced under its Node object, so that is older.
        (replace(ANOTHER, created=END + 10.0, uid="1"), END + 60.0),
    ],
)
def test_a_new_machine_gets_samples_from_the_creation_of_its_node_on(present: ClusterNode, since: float) -> None:
    found = Machines.of_file(replace(steady(0.9, 0.4), machines={"a": RECORD})).after((present,), END + 60.0)
    assert found.by_name["a"].measured_since == since


def test_samples_of_a_former_machine_are_not_used_after_a_restart() -> None:
    record = replace(RECORD, measured_since=END + float(STEP))
    keeper, script = after_restart(record, NODE)
    assert np.isnan(averages(keeper)["a"])
    assert script.offered[-1].machines["a"] == record
