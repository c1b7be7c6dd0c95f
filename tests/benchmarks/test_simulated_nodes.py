"""The nodes of `node_policies`: its values follow from the seed and from where pods are placed."""

from __future__ import annotations

import numpy as np
import pytest

from adapter.nodes.model.day import SLOT_SECONDS, SLOTS
from adapter.nodes.model.loads import LoadResource
from adapter.nodes.model.week import FORECAST_VERDICTS
from benchmarks.simulated_nodes import CORES_MILLI, HISTORY, NODES, OVER, BatchPod, minutes_over, simulated_nodes

SLOT = HISTORY + 100


def test_the_same_seed_makes_the_same_days_and_another_one_others() -> None:
    one, same, other = simulated_nodes(1, 20), simulated_nodes(1, 20), simulated_nodes(2, 20)
    np.testing.assert_array_equal(one.load, same.load)
    assert one.arrivals == same.arrivals
    assert one.arrivals != other.arrivals
    assert {pod.starts // SLOTS for pod in one.arrivals} == {HISTORY // SLOTS}


def test_the_snapshot_knows_what_was_measured_and_nothing_of_the_future() -> None:
    nodes = simulated_nodes(1, 20)
    nodes.load[:, SLOT:] = 0.99
    for slot in range(HISTORY, SLOT + 1):
        nodes.advance(slot)
    columns = nodes.snapshot(SLOT).columns
    expected = nodes.load[:, SLOT - 3 : SLOT].mean(axis=1)
    assert columns.mean_ratio[LoadResource.CPU] == pytest.approx(expected)
    assert columns.forecast is not None
    predicted = columns.forecast.verdicts == FORECAST_VERDICTS.index("predicted")
    # Every third node is steady but for the batch pods.
    assert predicted[0::3].any()
    assert not predicted.all()


def test_pods_add_to_the_load_while_they_run_and_minutes_over_the_limit_are_counted() -> None:
    nodes = simulated_nodes(1, 1)
    nodes.load[:] = 0.5
    before = minutes_over(nodes)
    nodes.place(BatchPod("large", SLOT, SLOT + 12, 4000, 0.4 * CORES_MILLI), NODES[3])
    assert (before, minutes_over(nodes)) == (0, 12 * SLOT_SECONDS // 60)
    assert (nodes.load[3] > OVER).sum() == 12
    assert [pod.name for pod in nodes.ended(SLOT + 12)] == ["large"]
    assert nodes.snapshot(SLOT + 1).columns.requested["cpu"][3] == 4000
