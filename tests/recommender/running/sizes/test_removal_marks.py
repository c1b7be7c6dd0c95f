"""The mark of a node that is being removed."""

from __future__ import annotations

from typing import Final

import pytest

from recommender.kinds.cluster_size.health.failed_removals import FAILED_REMOVAL
from recommender.kinds.cluster_size.model.taints import TO_BE_DELETED_TAINT
from recommender.running.sizes.removal_marks import (
    RemovalMark,
    deletions_since,
    marked_node,
    reason_to_stay,
    unmarked_node,
    without_future,
)

NOW: Final = 1_767_225_600.0


@pytest.mark.parametrize(
    ("since", "deleting", "repaired"),
    [
        pytest.param(-10.0, None, (-10.0, None), id="past"),
        pytest.param(60.0, None, (60.0, None), id="the clocks differ a little"),
        pytest.param(61.0, None, (0.0, None), id="future"),
        pytest.param(-100.0, -10.0, (-100.0, -10.0), id="deletion in the past"),
        pytest.param(-100.0, 3600.0, (-100.0, 0.0), id="deletion in the future"),
        pytest.param(3600.0, 3610.0, (0.0, 0.0), id="both in the future"),
    ],
)
def test_a_time_in_the_future_becomes_the_present(
    since: float, deleting: float | None, repaired: tuple[float, float | None]
) -> None:
    mark = RemovalMark("r", "p", "g", NOW + since, deleting_since=None if deleting is None else NOW + deleting)
    found = without_future(mark, NOW)
    assert found.since - NOW == repaired[0]
    assert (None if found.deleting_since is None else found.deleting_since - NOW) == repaired[1]


def test_only_recent_deletions_of_the_same_group_count() -> None:
    mark = RemovalMark("r", "p", "g", NOW)
    others = [
        RemovalMark("r", "p", "g", NOW, deleting_since=NOW),
        RemovalMark("r", "p", "g", NOW, deleting_since=NOW - 120.0),
        RemovalMark("r", "p", "g", NOW),
        RemovalMark("r", "p", "other", NOW, deleting_since=NOW),
        RemovalMark("r", "other", "g", NOW, deleting_since=NOW),
    ]
    assert deletions_since(NOW - 120.0, mark, others) == 1


def test_a_node_that_is_being_deleted_is_not_removed() -> None:
    assert reason_to_stay({"metadata": {"name": "n"}, "spec": {}}, "") == ""
    going = {"metadata": {"name": "n", "deletionTimestamp": "2026-01-01T00:00:00Z"}, "spec": {}}
    assert reason_to_stay(going, "") == "it is being deleted already"


def test_a_new_removal_forgets_the_failure_of_the_last_one() -> None:
    """Otherwise, each decision during the removal would see it as one that has failed."""
    node = {"metadata": {"name": "n", "annotations": {FAILED_REMOVAL: "1", "own": "1"}}, "spec": {}}
    annotations = marked_node(node, RemovalMark("r", "p", "g", NOW))["metadata"]["annotations"]
    assert (FAILED_REMOVAL in annotations, annotations["own"]) == (False, "1")


def test_a_node_keeps_its_other_taints_during_a_removal_and_after_a_failed_one() -> None:
    own = [{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}, {"key": "spot", "effect": "NoExecute"}]
    node = {"metadata": {"name": "n"}, "spec": {"taints": own}}
    marked = marked_node(node, RemovalMark("r", "p", "g", NOW))
    assert marked["spec"]["taints"][:-1] == own
    assert marked["spec"]["taints"][-1]["key"] == TO_BE_DELETED_TAINT
    assert unmarked_node(marked, NOW)["spec"]["taints"] == own
