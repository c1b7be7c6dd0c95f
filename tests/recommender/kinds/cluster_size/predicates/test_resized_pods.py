"""The room that the simulation sees on a node follows pods whose resize in place is not done."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adapter.foundation.cluster.values.state import Observed
from recommender.kinds.cluster_size.predicates.filters import PodFilter
from recommender.kinds.cluster_size.predicates.snapshot import Snapshot
from tests.adapter.foundation.cluster.scheduling.states import state
from tests.support.cluster_objects import Json, pod_object
from tests.support.scheduling import node, pod

if TYPE_CHECKING:
    from pathlib import Path

INFEASIBLE = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}


def resized(requests: str, reported: str, *conditions: Json) -> Json:
    content = pod_object("web", node="n", requests={"cpu": requests})
    amounts = {"cpu": reported}
    content["status"]["containerStatuses"] = [
        {"name": "c", "resources": {"requests": amounts}, "allocatedResources": amounts}
    ]
    content["status"]["conditions"] += conditions
    return content


@pytest.mark.parametrize(
    ("content", "free_milli"),
    [
        (resized("1", "1"), 3000),
        (resized("1", "3"), 1000),
        (resized("3", "1"), 1000),
        (resized("30", "1", INFEASIBLE), 3000),
    ],
    ids=["done", "shrinking", "growing", "infeasible"],
)
@pytest.mark.parametrize("name", ["all.json", "all.yaml"])
def test_pods_fit_into_the_room_that_a_resize_leaves(tmp_path: Path, name: str, content: Json, free_milli: int) -> None:
    pods = state(tmp_path, content, name=name).pods
    assert isinstance(pods, Observed)
    snapshot = Snapshot([node("n")], pods.value)
    for milli, fits in ((free_milli, True), (free_milli + 1, False)):
        pending = pod("p", requests={"cpu": milli})
        assert PodFilter(snapshot, snapshot.shape(pending)).fits(snapshot.nodes["n"]) is fits
