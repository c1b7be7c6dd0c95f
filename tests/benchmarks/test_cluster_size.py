from __future__ import annotations

import io
import json

from benchmarks.cluster_objects import ClusterPlan, write_cluster
from benchmarks.cluster_size import cluster_rows
from benchmarks.packing_gaps import gap_rows

PLAN = ClusterPlan(nodes=60, pods=1800, pending=60)


def written(plan: ClusterPlan) -> str:
    stream = io.StringIO()
    write_cluster(plan, stream)
    return stream.getvalue()


def test_cluster_has_what_the_plan_states_and_is_the_same_again() -> None:
    text = written(PLAN)
    pods = [item for item in json.loads(text)["items"] if item["kind"] == "Pod"]
    assert len([pod for pod in pods if "nodeName" in pod["spec"]]) == PLAN.pods
    assert len([pod for pod in pods if "nodeName" not in pod["spec"]]) == PLAN.pending
    assert text == written(PLAN)


def test_padding_enlarges_the_file_by_the_requested_size() -> None:
    padded = ClusterPlan(nodes=30, pods=300, pending=0, padding_bytes=3000)
    more = len(written(padded)) - len(written(ClusterPlan(nodes=30, pods=300, pending=0)))
    assert 0.9 * 900_000 < more < 1.2 * 900_000


def test_cluster_is_read_and_decided_on_without_an_error() -> None:
    rows = cluster_rows(PLAN)
    assert [row["case"] for row in rows] == [
        "read the cluster from a JSON file",
        "recommendation without scale-down",
        "recommendation with scale-down",
    ]
    assert all(row["errors"] == 0 for row in rows)


def test_estimates_are_compared_with_the_optimum() -> None:
    rows = gap_rows(5)
    assert all(row["errors"] == 0 and row["unproved"] == 0 for row in rows)
