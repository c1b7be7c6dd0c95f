"""The metrics of watches."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from adapter.foundation.sources.kubernetes.kubernetes_telemetry import WatchMetrics


def test_all_metrics_of_a_watch_begin_with_the_prefix_of_the_program() -> None:
    registry = CollectorRegistry()
    metrics = WatchMetrics(registry, "tidewatch_recommender")
    metrics.set_synced("pods", synced=True)
    metrics.set_last_contact("pods", 1000.0)
    metrics.count_failure("pods", "ServerError")
    metrics.set_unreadable("pods", 3)
    names = {metric.name for metric in registry.collect()}
    assert names == {
        "tidewatch_recommender_watch_synced",
        "tidewatch_recommender_watch_last_heard_timestamp_seconds",
        "tidewatch_recommender_watch_failures",
        "tidewatch_recommender_watch_unreadable_objects",
    }
    assert registry.get_sample_value("tidewatch_recommender_watch_unreadable_objects", {"resource": "pods"}) == 3


def test_two_programs_in_one_registry_do_not_share_a_metric_of_their_watches() -> None:
    registry = CollectorRegistry()
    for prefix in ("tidewatch_adapter", "tidewatch_recommender"):
        WatchMetrics(registry, prefix).set_unreadable("pods", 1)
    assert registry.get_sample_value("tidewatch_adapter_watch_unreadable_objects", {"resource": "pods"}) == 1
