"""Metrics of workloads at zero are known before their first series, and give no error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.serving import eventually

if TYPE_CHECKING:
    from tests.support.caller import Caller


def test_a_metric_is_known_by_its_rule_before_its_first_series__enhancements_2021(caller: Caller) -> None:
    """A workload at zero has no pods and no series; an autoscaler that reads 404 gives up."""
    assert "pods/not_yet" in caller.listed()
    assert "queue_not_yet" in caller.listed("/apis/external.metrics.k8s.io", "v1beta1")
    for answer in (caller.pods("not_yet", labelSelector="app=web"), caller.external("queue_not_yet")):
        assert (answer.status, answer.items) == (200, [])


def test_missing_data_does_not_count_as_zero__keda_2382(caller: Caller) -> None:
    """A queue about which nothing is known is an empty list, and an empty queue is 0; autoscalers need both."""
    assert caller.external("queue_depth", labelSelector="queue=unknown").items == []
    (empty,) = caller.external("queue_depth", labelSelector="queue=empty").items
    assert empty["value"] == "0"


def test_a_rule_may_set_the_value_of_missing_data__keda_2382(caller: Caller) -> None:
    """The rule states `onNoData: 0`, for queues whose series vanish when they are empty."""
    # Once Prometheus has been there for as long as it looks back, which is a second here.
    eventually(lambda: caller.external("queue_or_zero").status == 200)
    (item,) = caller.external("queue_or_zero").items
    assert item["value"] == "0"
