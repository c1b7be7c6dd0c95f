"""Answers that are cut or empty take no metric away while it may still be there."""

from __future__ import annotations

import pytest

from adapter.foundation.sources.prometheus.answers.answer_elements import AnswerLimits
from adapter.foundation.sources.prometheus.errors import PrometheusUnreachableError
from adapter.metrics.readings.readings_settings import ReadingSettings
from tests.adapter.metrics.readings.catalogue.discovery_harness import PATTERN_RULES, Series, names, series
from tests.support.readings import ScriptedPrometheus, make_harness


def test_a_metric_whose_series_vanished_stays_for_a_grace_period() -> None:
    found = Series(app=series("app_rps"))
    harness = make_harness(
        ScriptedPrometheus(series_answer=found), rules=PATTERN_RULES, settings=ReadingSettings(metric_grace_seconds=300)
    )
    harness.pass_time(1)
    found.by_prefix["app"] = ()
    harness.pass_time(300)
    assert names(harness) == ["rps", "spelled_out"]
    harness.pass_time(180)
    assert names(harness) == ["spelled_out"]


def test_a_metric_that_comes_back_has_a_new_grace_period() -> None:
    found = Series(app=series("app_rps"))
    harness = make_harness(
        ScriptedPrometheus(series_answer=found), rules=PATTERN_RULES, settings=ReadingSettings(metric_grace_seconds=300)
    )
    for answer in (series("app_rps"), (), series("app_rps"), ()):
        found.by_prefix["app"] = answer
        harness.pass_time(240)

    assert names(harness) == ["rps", "spelled_out"]


def test_a_cut_answer_removes_no_metric() -> None:
    prometheus = ScriptedPrometheus(series_answer=Series(app=series("app_rps", "app_errors")))
    harness = make_harness(prometheus, rules=PATTERN_RULES, settings=ReadingSettings(metric_grace_seconds=60))
    harness.pass_time(1)
    prometheus.series_answer = Series(app=series("app_new"))
    prometheus.series_warnings = ("results truncated due to limit",)
    harness.pass_time(600)

    assert names(harness) == ["errors", "new", "rps", "spelled_out"]


def test_a_cut_answer_is_logged_as_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    prometheus = ScriptedPrometheus(series_answer=Series(app=series("app_rps")))
    prometheus.series_warnings = ("results truncated due to limit",)
    harness = make_harness(prometheus, rules=PATTERN_RULES)
    harness.pass_time(300)

    assert names(harness) == ["rps", "spelled_out"]
    assert harness.counter("tidewatch_adapter_rules", state="failing") == 3
    name = "tidewatch_adapter_rule_last_success_timestamp_seconds"
    assert harness.registry.get_sample_value(name, {"rule": "rules[0]"}) is None
    (message,) = [line for line in caplog.messages if line.startswith("rules[0] (rules.yaml:3) fails (look-up): ")]
    assert "results truncated due to limit" in message

    prometheus.series_warnings = ()
    harness.pass_time(65)
    assert harness.counter("tidewatch_adapter_rules", state="ok") == 3
    assert "rules[0] (rules.yaml:3) works again" in caplog.messages


def test_a_cut_answer_does_not_change_the_namespace_label_of_a_metric() -> None:
    rules = """
rules:
- seriesQuery: '{__name__=~"^app_.*"}'
  resources:
    overrides:
      exported_namespace: {resource: namespace}
      namespace: {resource: namespace}
      pod: {resource: pod}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})'
"""
    scraped = {"__name__": "app_rps", "namespace": "monitoring", "pod": "web-0"}
    found = Series(app=[scraped, {**scraped, "exported_namespace": "shop"}])
    prometheus = ScriptedPrometheus(series_answer=found)
    harness = make_harness(prometheus, rules=rules)
    harness.pass_time(1)
    assert harness.pods("app_rps").namespace_label == "exported_namespace"

    found.by_prefix["app"], prometheus.series_warnings = [scraped], ("results truncated due to limit",)
    harness.pass_time(61)
    assert harness.pods("app_rps").namespace_label == "exported_namespace"

    prometheus.series_warnings = ()
    harness.pass_time(61)
    assert harness.pods("app_rps").namespace_label == "namespace"


def test_labels_known_from_cut_answers_alone_are_corrected_by_the_next_answer() -> None:
    prometheus = ScriptedPrometheus(series_answer=Series(app=[{"__name__": "app_rps", "namespace": "shop"}]))
    prometheus.series_warnings = ("results truncated due to limit",)
    harness = make_harness(prometheus, rules=PATTERN_RULES)
    harness.pass_time(1)
    assert names(harness) == ["spelled_out"]

    prometheus.series_answer = Series(app=series("app_rps"))
    harness.pass_time(61)
    assert names(harness) == ["rps", "spelled_out"]


def test_a_cut_answer_does_not_restart_the_grace_period() -> None:
    prometheus = ScriptedPrometheus(series_answer=Series(app=series("app_rps", "app_gone")))
    harness = make_harness(prometheus, rules=PATTERN_RULES, settings=ReadingSettings(metric_grace_seconds=300))
    harness.pass_time(1)
    prometheus.series_answer = Series(app=series("app_rps"))
    harness.pass_time(240)
    prometheus.series_warnings = ("a store did not answer",)
    harness.pass_time(600)
    assert names(harness) == ["gone", "rps", "spelled_out"]
    prometheus.series_warnings = ()
    harness.pass_time(61)
    assert names(harness) == ["rps", "spelled_out"]


def test_an_answer_beyond_the_limit_adds_metrics_and_removes_none() -> None:
    many = [{**labels, "pod": f"web-{pod}"} for labels in series("app_a", "app_b") for pod in range(2000)]
    prometheus = ScriptedPrometheus(series_answer=Series(app=many))
    harness = make_harness(prometheus, rules=PATTERN_RULES, settings=ReadingSettings(metric_grace_seconds=60))
    harness.pass_time(1)
    prometheus.limits = AnswerLimits(max_samples=1000)
    prometheus.series_answer = Series(app=[{"__name__": "app_0", "namespace": "shop", "pod": "db-0"}, *many])
    harness.pass_time(600)

    assert {"a", "b"} <= set(names(harness))
    assert harness.counter("tidewatch_adapter_rules", state="failing") == 1


@pytest.mark.parametrize("warnings", [(), ("results truncated due to limit",)], ids=["whole", "cut"])
def test_constantly_changing_names_do_not_grow_memory_or_displace_others(warnings: tuple[str, ...]) -> None:
    found = Series(app=series("app_rps", "app_errors"))
    prometheus = ScriptedPrometheus(series_answer=found)
    settings = ReadingSettings(max_kept_metrics=50, metric_grace_seconds=3600)
    harness = make_harness(prometheus, rules=PATTERN_RULES, settings=settings)
    harness.pass_time(1)
    prometheus.series_warnings = warnings
    for round_ in range(20):
        found.by_prefix["app"] = series(*(f"app_{round_}_{number}" for number in range(30)))
        harness.pass_time(61)

    listed = names(harness)
    assert {"errors", "rps", "19_0"} <= set(listed)
    # Each name is a metric of pods and one of namespaces.
    assert len(listed) == len(set(listed)) == 50 // 2 + 30 + len(["spelled_out"])
    found.by_prefix["app"] = series("app_rps")
    prometheus.series_warnings = ()
    harness.pass_time(2 * 3600, step=5.0)
    assert names(harness) == ["rps", "spelled_out"]


def test_a_tenant_with_too_many_names_does_not_displace_other_tenants() -> None:
    evil = [{"__name__": f"app_a{number}", "namespace": "evil", "pod": "evil-0"} for number in range(50_000)]
    harness = make_harness(
        ScriptedPrometheus(series_answer=Series(app=[*evil, *series("app_rps")])), rules=PATTERN_RULES
    )
    harness.pass_time(1)
    assert "rps" in names(harness)


def test_the_metric_of_a_job_that_idles_for_minutes_does_not_flap() -> None:
    found = Series(job=series("job_depth"))
    harness = make_harness(ScriptedPrometheus(series_answer=found), rules=PATTERN_RULES)
    harness.pass_time(1)
    listed = []
    for answer in ((), series("job_depth")) * 4:
        found.by_prefix["job"] = answer
        harness.pass_time(420)
        listed.append(names(harness))

    assert listed == [["depth", "spelled_out"]] * 8


def test_a_prometheus_that_restarts_empty_removes_no_metric() -> None:
    found = Series(app=series("app_rps"), job=series("job_depth"))
    prometheus = ScriptedPrometheus(series_answer=found)
    harness = make_harness(prometheus, rules=PATTERN_RULES)
    harness.pass_time(1)
    metric = harness.pods("rps")
    prometheus.series_answer = lambda selector: PrometheusUnreachableError(selector, "refused")
    harness.pass_time(120)
    prometheus.series_answer = lambda _selector: ()
    harness.pass_time(300)
    assert names(harness) == ["depth", "rps", "spelled_out"]
    prometheus.series_answer = found
    harness.pass_time(61)
    assert harness.pods("rps") is metric
