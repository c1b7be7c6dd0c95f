"""The snapshot: its nodes, times and resources, and what damaged or missing samples do to it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from adapter.nodes.model.loads import AVG, MAX, VERDICTS, LoadResource, NodeVerdict
from adapter.nodes.model.samples import SampleSet
from adapter.nodes.windows.grid import kept_columns
from adapter.nodes.windows.load_snapshot import RefreshFacts, assemble, grid_fault, node_names
from tests.support.sample_grids import END, STEP, grid_of

if TYPE_CHECKING:
    from adapter.nodes.model.samples import SampleGrid

FACTS = RefreshFacts(now=END + 5.0, refresh_seconds=30.0)
COLUMNS = kept_columns(STEP)
CPU, MEMORY = LoadResource.CPU, LoadResource.MEMORY


def steady(*loads: float, nodes: tuple[str, ...] | None = None, resource: LoadResource = CPU) -> SampleGrid:
    return grid_of(np.repeat(np.array(loads)[:, None], COLUMNS, axis=1), nodes=nodes, resource=resource)


def sample_set(*grids: SampleGrid) -> SampleSet:
    return SampleSet({grid.resource: grid for grid in grids})


def test_each_node_object_is_in_the_snapshot_and_no_other_node() -> None:
    found = assemble(sample_set(steady(0.2, 0.4, nodes=("a", "gone"))), ("a", "new"), FACTS)
    assert (found.nodes, found.index) == (("a", "new"), {"a": 0, "new": 1})
    load = found.resources[CPU]
    assert [VERDICTS[verdict] for verdict in load.verdicts] == [NodeVerdict.FRESH, NodeVerdict.MISSING]
    assert load.stats[0, AVG, 0] == pytest.approx(0.2)
    assert np.isnan(load.stats[:, :, 1]).all()
    assert not load.is_estimated.any()


def test_without_node_objects_the_nodes_are_those_of_the_samples() -> None:
    samples = sample_set(steady(0.2, nodes=("b",)), steady(0.3, nodes=("a",), resource=MEMORY))
    assert node_names(samples) == ("a", "b")


def test_a_snapshot_has_the_times_of_its_newest_samples_and_of_its_assembly() -> None:
    found = assemble(
        sample_set(steady(0.2), replace(steady(0.2, resource=MEMORY), end=END - 30)), ("node-0000",), FACTS
    )
    assert (found.window_end, found.assembled_at, found.from_file) == (END, END + 5.0, False)


def test_without_samples_a_snapshot_has_no_resources() -> None:
    found = assemble(SampleSet({}), ("a",), FACTS)
    assert (dict(found.resources), found.nodes) == ({}, ("a",))


def test_a_resource_without_any_series_is_missing_for_each_node() -> None:
    found = assemble(sample_set(grid_of(np.empty((0, COLUMNS)), nodes=())), ("a",), FACTS)
    assert found.resources[CPU].verdicts.tolist() == [VERDICTS.index(NodeVerdict.MISSING)]


@pytest.mark.parametrize(
    "fault",
    [
        {"values": np.zeros((3, 4))},
        {"values": np.zeros(4)},
        {"newest": np.zeros(2)},
        {"step_seconds": 0},
        {"end": END + 1},
    ],
)
def test_a_damaged_resource_does_not_affect_others(fault: dict[str, object]) -> None:
    damaged = replace(steady(0.3, resource=MEMORY), **fault)  # type: ignore[arg-type]
    assert grid_fault(damaged) is not None
    found = assemble(sample_set(steady(0.2), damaged), ("node-0000",), FACTS)
    assert set(found.resources) == {CPU}
    assert found.query_failures[MEMORY].startswith("The samples of memory cannot be used: ")


def test_the_reason_of_a_failed_query_is_kept_beside_older_samples() -> None:
    facts = replace(FACTS, query_failures={CPU: "timeout"})
    found = assemble(sample_set(steady(0.2)), ("node-0000",), facts)
    assert found.query_failures == {CPU: "timeout"}
    assert found.resources[CPU].stats[0, AVG, 0] == pytest.approx(0.2)


@pytest.mark.parametrize(("ratio", "served"), [(1.01, 1.0), (1.0, 1.0), (0.004, 0.004), (0.0, 0.0)])
def test_only_ratios_slightly_above_1_are_served_as_another_number(ratio: float, served: float) -> None:
    found = assemble(sample_set(steady(ratio)), ("node-0000",), FACTS).resources[CPU]
    assert found.stats[0, [AVG, MAX], 0].tolist() == pytest.approx([served, served])


def test_a_sample_counts_until_the_next_scrape_is_due() -> None:
    """The node is scraped once a minute, and its newest sample holds for the last three steps, too."""
    values = np.full(COLUMNS, 0.2)
    values[-4:] = 0.8
    grid = grid_of(values, newest=END - 45, scrape=60)
    found = assemble(sample_set(grid), ("node-0000",), FACTS).resources[CPU]
    assert found.stats[2, AVG, 0] == pytest.approx((16 * 0.2 + 4 * 0.8) / 20)


def test_resources_may_have_different_steps() -> None:
    coarse = grid_of(np.full(17, 0.3), step=60, end=END - END % 60, resource=MEMORY)
    found = assemble(sample_set(steady(0.2), coarse), ("node-0000",), FACTS)
    assert found.resources[MEMORY].stats[:, AVG, 0].tolist() == pytest.approx([0.3, 0.3, 0.3])


def test_samples_from_the_future_are_not_counted() -> None:
    """After the clock was set back, the file has steps that are later than now."""
    values = np.concatenate([np.full(COLUMNS - 10, 0.2), np.full(10, 0.9)])
    found = assemble(sample_set(grid_of(values)), ("node-0000",), replace(FACTS, now=END - 150.0))
    assert found.window_end == END - 150
    assert found.resources[CPU].stats[2, MAX, 0] == 0.2
