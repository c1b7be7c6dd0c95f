"""Metrics of loads are created and removed with their recommendations."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from recommender.running.loads.load_telemetry import Coverage, LoadTelemetry


def recommendations(registry: CollectorRegistry) -> dict[str, int]:
    """Return the number of metrics of each recommendation."""
    found: dict[str, int] = {}
    for family in registry.collect():
        for sample in family.samples:
            if not sample.name.endswith("_created"):
                name = sample.labels["recommendation"]
                found[name] = found.get(name, 0) + 1
    return found


def test_removing_a_recommendation_removes_only_its_own_series() -> None:
    registry = CollectorRegistry()
    telemetry = LoadTelemetry(registry)
    for name in ("chat", "feed"):
        telemetry.set_coverage(name, Coverage(samples=3, targets=1, seconds=30.0, lacking_seconds=0.0))
        telemetry.set_series_left_out(name, 1)
        telemetry.count_download(name, "ok")
        telemetry.count_download(name, "timeout")
        telemetry.count_trial(name, "seasonal", "ok")
        telemetry.count_bounded_forecast(name, "trend")
    assert recommendations(registry) == {"chat": 9, "feed": 9}
    telemetry.forget("chat")
    telemetry.forget("never seen")
    assert recommendations(registry) == {"feed": 9}


def test_work_that_ends_after_its_recommendation_was_removed_leaves_no_series() -> None:
    registry = CollectorRegistry()
    telemetry = LoadTelemetry(registry)
    telemetry.keep({"chat", "feed"})
    telemetry.count_download("chat", "ok")
    telemetry.count_download("feed", "ok")
    telemetry.keep({"feed"})
    # A download takes up to a minute, and a trial of a model several.
    telemetry.set_coverage("chat", Coverage(samples=3, targets=1, seconds=30.0, lacking_seconds=0.0))
    telemetry.set_series_left_out("chat", 1)
    telemetry.count_download("chat", "timeout")
    telemetry.count_trial("chat", "seasonal", "ok")
    telemetry.count_bounded_forecast("chat", "trend")
    assert recommendations(registry) == {"feed": 1}
    telemetry.keep({"chat", "feed"})
    telemetry.count_download("chat", "ok")
    assert recommendations(registry) == {"chat": 1, "feed": 1}
