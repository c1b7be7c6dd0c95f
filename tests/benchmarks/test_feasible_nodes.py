from __future__ import annotations

import pytest

from benchmarks.feasible_nodes import names_in_a_request


# Derived from `numFeasibleNodesToFind` of kubernetes/kubernetes, `pkg/scheduler/schedule_one.go`.
@pytest.mark.parametrize(
    ("nodes", "percentage", "names"),
    [
        (50, 0, 50),
        (99, 0, 99),
        (100, 0, 100),
        (500, 0, 230),
        (1000, 0, 420),
        (2000, 0, 680),
        (3000, 0, 780),
        (3125, 0, 781),
        (5000, 0, 500),
        (5999, 0, 299),
        (6000, 0, 300),
        (10000, 0, 500),
        (5000, 100, 5000),
        (1000, 5, 100),
    ],
)
def test_a_request_has_as_many_names_as_kube_scheduler_looks_for(nodes: int, percentage: int, names: int) -> None:
    assert names_in_a_request(nodes, percentage) == names
