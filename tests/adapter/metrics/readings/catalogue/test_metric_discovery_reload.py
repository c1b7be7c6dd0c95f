"""A reload of the rules removes no metric too early, and reports when it is complete."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.foundation.sources.prometheus.errors import PrometheusUnreachableError
from adapter.metrics.readings.readings_settings import ReadingSettings
from tests.adapter.metrics.readings.catalogue.discovery_harness import PATTERN_RULES, Series, names, series
from tests.support.readings import ScriptedPrometheus, make_harness, rulebook_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from adapter.foundation.sources.prometheus.errors import PrometheusError


def test_a_reload_removes_no_metric_meanwhile() -> None:
    prometheus = ScriptedPrometheus(series_answer=Series(app=series("app_rps"), job=series("job_depth")))
    harness = make_harness(prometheus, rules=PATTERN_RULES)
    harness.pass_time(1)
    before = harness.readings.catalogue.find_custom("pods", namespaced=True, name="depth")
    prometheus.looked_up.clear()
    harness.readings.replace_rulebook(
        rulebook_of(
            PATTERN_RULES.replace("^app_(.*)$", "^app_(.*)$|^x_(.*)$").replace(
                '{matches: "^app', '{as: "$1", matches: "^app'
            )
        )
    )

    assert names(harness) == ["depth", "rps", "spelled_out"]
    assert len(prometheus.looked_up) == 1
    assert harness.readings.catalogue.find_custom("pods", namespaced=True, name="depth") == before


def test_metrics_found_during_a_reload_are_kept() -> None:
    found = Series(app=series("app_rps"), job=series("job_depth"))
    prometheus = ScriptedPrometheus(series_answer=found)
    harness = make_harness(prometheus, rules=PATTERN_RULES)
    harness.pass_time(1)

    def meanwhile(selector: str) -> Collection[Mapping[str, str]] | PrometheusError:
        # The reload looks up first, for the rule that changed.
        prometheus.series_answer = found
        found.by_prefix["job"] = series("job_depth", "job_age")
        harness.pass_time(61)
        assert names(harness) == ["age", "depth", "rps", "spelled_out"]
        return found(selector)

    prometheus.series_answer = meanwhile
    harness.readings.replace_rulebook(rulebook_of(PATTERN_RULES.replace("^app_(.*)$", "^app_(.*)$|^x_$")))

    assert names(harness) == ["age", "depth", "rps", "spelled_out"]


def test_a_reload_is_complete_once_all_new_rules_are_looked_up() -> None:
    prometheus = ScriptedPrometheus(series_answer=Series(app=series("app_rps"), job=series("job_depth")))
    harness = make_harness(
        prometheus,
        rules=PATTERN_RULES,
        settings=ReadingSettings(reload_discovery_seconds=0, relist_interval_seconds=60),
    )
    harness.pass_time(1)
    assert harness.readings.has_looked_up_all()

    harness.readings.replace_rulebook(rulebook_of(PATTERN_RULES.replace("^job_.*", "^job_depth.*")))
    assert not harness.readings.has_looked_up_all()
    harness.pass_time(1)
    assert harness.readings.has_looked_up_all()
    assert names(harness) == ["depth", "rps", "spelled_out"]


def test_a_rule_that_was_away_is_asked_for_again_as_soon_as_a_new_one() -> None:
    failing = Series(app=PrometheusUnreachableError("", "down"), job=PrometheusUnreachableError("", "down"))
    prometheus = ScriptedPrometheus(series_answer=failing)
    harness = make_harness(
        prometheus, rules=PATTERN_RULES, settings=ReadingSettings(reload_discovery_seconds=0), started=None
    )
    harness.pass_time(30)
    harness.readings.replace_rulebook(rulebook_of(PATTERN_RULES.replace("^app_.*", "^app_rps.*")))
    harness.pass_time(1)
    harness.readings.replace_rulebook(rulebook_of(PATTERN_RULES))

    prometheus.looked_up.clear()
    harness.pass_time(2)
    asked = [selector for selector in prometheus.looked_up if "^app_.*" in selector]
    assert len(asked) == 2
