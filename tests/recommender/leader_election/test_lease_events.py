"""The metrics of elections."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from recommender.leader_election.lease_events import LeaseMetrics


def test_the_leader_metric_has_the_same_name_in_all_programs() -> None:
    registry = CollectorRegistry()
    metrics = LeaseMetrics(registry, "tidewatch_recommender")
    metrics.show(lambda: True)
    metrics.lost()
    assert registry.get_sample_value("tidewatch_leader") == 1
    changes = registry.get_sample_value("tidewatch_recommender_lease_changes_total", {"change": "lost"})
    assert changes == 1


def test_whoever_waits_is_woken_when_the_leadership_begins_or_ends_but_not_by_renewals() -> None:
    woken: list[str] = []
    metrics = LeaseMetrics(CollectorRegistry(), "tidewatch_recommender", lambda: woken.append("woken"))
    metrics.on_change(lambda: woken.append("told"))
    metrics.renewed(1.0)
    metrics.failed("TimeoutError")
    assert woken == []
    metrics.acquired()
    metrics.lost()
    assert woken == ["told", "woken"] * 2
