"""Metrics are discovered from the series of Prometheus, and each rule is looked up by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import pytest

from adapter.foundation.sources.prometheus.errors import PrometheusTimeoutError, PrometheusUnreachableError
from adapter.metrics.readings.catalogue import cataloguer as cataloguing
from adapter.metrics.readings.catalogue.catalogue import Catalogue
from adapter.metrics.readings.readings_settings import ReadingSettings
from tests.adapter.metrics.readings.catalogue.discovery_harness import PATTERN_RULES, Series, names, series
from tests.support.readings import FakeClock, ScriptedPrometheus, Threads, make_harness

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from adapter.metrics.rulebook.model import Metric


def test_a_metric_that_a_rule_spells_out_is_served_before_its_series_exist() -> None:
    harness = make_harness(ScriptedPrometheus(), rules=PATTERN_RULES)

    assert names(harness) == ["spelled_out"]


def test_metrics_appear_with_their_series() -> None:
    found = Series(app=series("app_rps"))
    harness = make_harness(ScriptedPrometheus(series_answer=found), rules=PATTERN_RULES)
    before = harness.readings.catalogue.generation
    harness.pass_time(1)
    assert names(harness) == ["rps", "spelled_out"]
    assert harness.readings.catalogue.generation > before

    found.by_prefix["app"] = series("app_rps", "app_errors")
    harness.pass_time(61)
    assert names(harness) == ["errors", "rps", "spelled_out"]


def test_an_unchanged_catalogue_is_kept() -> None:
    harness = make_harness(ScriptedPrometheus(series_answer=Series(app=series("app_rps"))), rules=PATTERN_RULES)
    harness.pass_time(1)
    catalogue = harness.readings.catalogue
    harness.pass_time(200)

    assert harness.readings.catalogue is catalogue


def test_each_series_query_is_sent_once_per_relist_interval() -> None:
    prometheus = ScriptedPrometheus(series_answer=Series(app=series("app_rps")))
    harness = make_harness(
        prometheus,
        rules=PATTERN_RULES + PATTERN_RULES.replace("rules:", ""),
        settings=ReadingSettings(relist_interval_seconds=30),
    )
    harness.pass_time(91)

    assert len(set(prometheus.looked_up)) == 3
    assert len(prometheus.looked_up) == 12


def test_a_rule_whose_look_up_fails_keeps_its_metrics_and_does_not_affect_others() -> None:
    found = Series(app=series("app_rps"), job=series("job_depth"))
    harness = make_harness(ScriptedPrometheus(series_answer=found), rules=PATTERN_RULES)
    harness.pass_time(1)
    found.by_prefix["app"] = PrometheusTimeoutError("q", "too slow")
    found.by_prefix["job"] = series("job_depth", "job_age")
    harness.pass_time(2000)

    assert names(harness) == ["age", "depth", "rps", "spelled_out"]
    assert harness.counter("tidewatch_adapter_rules", state="failing") == 1
    assert harness.counter("tidewatch_adapter_rules", state="ok") == 2


@pytest.mark.parametrize(
    ("error", "shown"),
    [(ZeroDivisionError("by nothing"), ": ZeroDivisionError: by nothing"), (KeyError(), ": KeyError")],
)
def test_an_internal_error_in_one_look_up_does_not_affect_others(
    error: Exception, shown: str, caplog: pytest.LogCaptureFixture
) -> None:
    def found(selector: str) -> Collection[Mapping[str, str]]:
        if "app" in selector:
            raise error
        return series("job_depth") if "job" in selector else ()

    harness = make_harness(ScriptedPrometheus(series_answer=found), rules=PATTERN_RULES)
    harness.pass_time(30)

    assert names(harness) == ["depth", "spelled_out"]
    (line,) = [text for text in caplog.messages if "it keeps the metrics that it has" in text]
    assert line.endswith(shown)
    assert "adapter's log" not in caplog.text


def test_the_pause_between_look_ups_is_at_least_as_long_as_one_takes() -> None:
    clock = FakeClock()

    def slow(_selector: str) -> Collection[Mapping[str, str]]:
        clock.forward(50)
        return ()

    prometheus = ScriptedPrometheus(series_answer=slow)
    rules = PATTERN_RULES.partition("- seriesQuery: '{__name__=~\"^job")[0]
    harness = make_harness(prometheus, rules=rules, clock=clock, settings=ReadingSettings(relist_interval_seconds=60))
    began = clock.now
    while clock.now < began + 1000:
        harness.pass_time(0.25)

    assert len(prometheus.looked_up) == pytest.approx(10, abs=1)


@pytest.mark.parametrize("broken", ["Catalogue", "_look_up_keys", "retry_after"])
def test_rules_are_looked_up_again_whatever_fails_after_a_look_up(monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    def fail(*_arguments: object) -> NoReturn:
        raise MemoryError

    answers = Series(app=series("app_rps"), job=PrometheusUnreachableError("job", "refused"))
    prometheus = ScriptedPrometheus(series_answer=answers)
    harness = make_harness(prometheus, rules=PATTERN_RULES)
    with monkeypatch.context() as patched:
        patched.setattr(cataloguing, broken, fail)
        with pytest.raises(MemoryError):
            harness.pass_time(1)
    before = set(prometheus.looked_up)
    prometheus.looked_up.clear()
    harness.pass_time(61)

    assert before <= set(prometheus.looked_up)
    assert names(harness) == ["rps", "spelled_out"]


def test_failed_look_ups_are_retried_soon() -> None:
    prometheus = ScriptedPrometheus(series_answer=lambda selector: PrometheusUnreachableError(selector, "refused"))
    harness = make_harness(prometheus, rules=PATTERN_RULES)
    harness.pass_time(60)
    tries = len(prometheus.looked_up) / 3
    prometheus.series_answer = Series(app=series("app_rps"))
    harness.pass_time(5.25)

    assert tries == pytest.approx(14, abs=2)
    assert names(harness) == ["rps", "spelled_out"]


def test_the_last_rule_in_the_files_wins_a_name() -> None:
    both = Series(app=series("app_same"), job=series("job_same"))
    harness = make_harness(ScriptedPrometheus(series_answer=both), rules=PATTERN_RULES)
    harness.pass_time(1)

    assert harness.pods("same").series == "job_same"


def test_a_rule_without_series_does_not_take_the_name_from_one_with_series() -> None:
    found = Series(app=series("app_spelled_out"))
    harness = make_harness(ScriptedPrometheus(series_answer=found), rules=PATTERN_RULES)
    harness.pass_time(1)

    assert harness.pods("spelled_out").series == "app_spelled_out"


def test_the_last_success_of_each_rule_is_exposed() -> None:
    found = Series(app=series("app_rps"), job=PrometheusTimeoutError("q", "slow"))
    harness = make_harness(ScriptedPrometheus(series_answer=found), rules=PATTERN_RULES)
    harness.pass_time(1)
    name = "tidewatch_adapter_rule_last_success_timestamp_seconds"

    assert harness.counter(name, rule="rules[0]") == pytest.approx(harness.clock.clock.wall(), abs=2)
    assert harness.registry.get_sample_value(name, {"rule": "rules[1]"}) is None


def test_few_look_ups_run_at_once() -> None:
    threads = Threads(held=True)
    prometheus = ScriptedPrometheus()
    rules = "".join(
        f"""
- seriesQuery: 'slow_{number}{{namespace!="",pod!=""}}'
  resources: {{overrides: {{namespace: {{resource: namespace}}, pod: {{resource: pod}}}}}}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{{<<.LabelMatchers>>}})'
"""
        for number in range(20)
    )
    harness = make_harness(prometheus, rules=f"rules:{rules}", submit=threads)
    harness.pass_time(2)

    assert len(threads.waiting) == ReadingSettings().max_concurrent_look_ups
    while threads.waiting:
        threads.run()
    assert len(set(prometheus.looked_up)) == 20


def test_a_look_up_counts_as_done_only_once_its_metrics_are_served(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = make_harness(ScriptedPrometheus(series_answer=Series(app=series("app_rps"))), rules=PATTERN_RULES)
    seen: list[tuple[bool, set[str]]] = []

    class Watched(Catalogue):
        def __init__(self, metrics: Iterable[Metric], *more: object) -> None:
            made = list(metrics)
            succeeded = {look_up.rule.series_query for look_up in harness.readings.look_ups() if look_up.succeeded_at}
            served = {metric.rule.series_query for metric in harness.readings.catalogue.custom}
            of_rates = {query for query in succeeded if "app_" in query}
            seen.append((harness.readings.has_looked_up_all(), of_rates - served))
            super().__init__(made, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(cataloguing, "Catalogue", Watched)
    harness.pass_time(1)

    assert seen
    assert set(map(str, seen)) == {"(False, set())"}
    assert harness.readings.has_looked_up_all()
    assert names(harness) == ["rps", "spelled_out"]
