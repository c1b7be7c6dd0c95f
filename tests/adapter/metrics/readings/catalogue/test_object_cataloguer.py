"""The metrics of MetricRule objects belong to their namespace, and never hide those of others."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from itertools import count, pairwise
from typing import TYPE_CHECKING, Any

import pytest

from adapter.foundation.objects.regex import Pattern
from adapter.foundation.objects.selectors import EVERYTHING
from adapter.foundation.sources.prometheus.errors import QueryRefusedError
from adapter.foundation.time.pace import UNPACED, Pace
from adapter.metrics.readings.answers import BySelector
from adapter.metrics.readings.errors import FirstAnswerPendingError
from adapter.metrics.readings.explain.explanation import Question
from adapter.metrics.readings.readings_settings import ReadingSettings
from adapter.metrics.rulebook.model import Api
from adapter.metrics.rulebook.naming import SeriesFilter
from tests.adapter.metrics.readings.catalogue.object_harness import MATCHED, Served, matching
from tests.support.readings import ScriptedPrometheus, Threads, make_harness, reply
from tests.support.rule_objects import QUEUE, RATE, rule_object, spec_with

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from adapter.foundation.sources.prometheus.errors import PrometheusError
    from adapter.metrics.rulebook.objects.rule_object import RuleObject


def test_a_metric_is_served_only_to_its_own_namespace() -> None:
    served = Served()
    served.put(rule_object(QUEUE, "shop/queue"))
    assert (served.names("shop"), served.names("bank"), served.names("*")) == (["jobs_waiting"], [], [])
    assert served.harness.readings.catalogue.find_external("jobs_waiting") is None
    assert served.reasons() == {"shop/queue": "Served"}


def test_a_query_is_restricted_to_the_namespace() -> None:
    served = Served()
    served.put(rule_object(QUEUE, "shop/queue"))
    metric = served.harness.readings.catalogue_of("shop").find_external("jobs_waiting")
    assert metric is not None
    answer = served.harness.readings.external(metric, "shop", EVERYTHING)
    assert [row.value for row in answer.rows] == [5.0]
    assert served.prometheus.asked == ['sum(jobs_waiting{namespace="shop",namespace="shop"})']


def test_a_custom_metric_describes_the_objects_of_its_namespace() -> None:
    served = Served(series=lambda _: [{"__name__": "hits_total", "namespace": "shop", "pod": "web-0"}])
    served.put(rule_object(RATE))
    # What describes namespaces or nodes is not an object's to serve without a namespace.
    metric = served.harness.readings.catalogue_of("shop").find_custom("pods", True, "hit_rate")  # noqa: FBT003
    assert metric is not None
    assert served.verdicts()["shop/web"].metrics == ("pods/hit_rate",)
    served.prometheus.answer = lambda _: reply(({"pod": "web-0"}, "2"))
    answer = served.harness.readings.objects(metric, "shop", BySelector(EVERYTHING), EVERYTHING)
    assert [value[:2] for value in answer.values] == [("web-0", 2.0)]


def test_a_rule_file_keeps_its_metric_name() -> None:
    served = Served()
    served.put(rule_object(spec_with(QUEUE, name={"as": "queue_depth"}), "shop/queue"))
    verdict = served.verdicts()["shop/queue"]
    assert (verdict.reason, verdict.metrics) == ("NameTaken", ())
    found = served.harness.readings.catalogue.find_external("queue_depth")
    assert found is not None
    assert found.rule.confinement is None


def test_an_object_gets_its_name_when_the_files_no_longer_use_it() -> None:
    served = Served()
    served.put(rule_object(spec_with(QUEUE, name={"as": "queue_depth"}), "shop/queue"))
    served.harness.readings.replace_rulebook(
        make_harness(ScriptedPrometheus(), rules="rules: []").readings._cataloguer.rulebook
    )
    assert served.reasons() == {"shop/queue": "Served"}


def test_of_two_objects_with_one_name_the_older_one_serves_it() -> None:
    served = Served()
    old = rule_object(QUEUE, "shop/z", "2026-01-01T00:00:00Z")
    new = rule_object(spec_with(QUEUE, metricsQuery="max(<<.Series>>)"), "shop/a", "2026-01-02T00:00:00Z")
    served.put(new, old)
    assert served.reasons() == {"shop/z": "Served", "shop/a": "NameTaken"}
    assert "MetricRule shop/z" in served.verdicts()["shop/a"].message
    metric = served.harness.readings.catalogue_of("shop").find_external("jobs_waiting")
    assert metric is not None
    assert metric.rule.id == "MetricRule shop/z"


def test_the_same_name_may_be_used_in_two_namespaces() -> None:
    served = Served()
    served.put(rule_object(QUEUE, "shop/queue"), rule_object(QUEUE, "bank/queue"))
    assert served.reasons() == {"shop/queue": "Served", "bank/queue": "Served"}


def test_a_deleted_object_stops_serving_at_once() -> None:
    served = Served()
    served.put(rule_object(QUEUE, "shop/queue"))
    served.harness.readings.replace_rule_objects(())
    assert served.names("shop") == []
    assert served.harness.readings.rule_objects() == {}


def test_an_invalid_object_does_not_affect_others() -> None:
    served = Served()
    served.put(rule_object({"api": "external"}, "shop/bad"), rule_object(QUEUE, "shop/good"))
    assert served.reasons() == {"shop/bad": "InvalidRule", "shop/good": "Served"}


def test_metrics_named_by_series_are_served_after_a_look_up() -> None:
    served = Served()
    served.put(rule_object(MATCHED, "shop/jobs"))
    assert served.names("shop") == ["jobs_running", "jobs_waiting"]
    assert served.verdicts()["shop/jobs"].series == 2
    assert served.prometheus.looked_up[-1] == '{namespace="shop",__name__=~"^jobs_.+"}'


def test_unchanged_rules_are_not_looked_up_again_when_another_changes() -> None:
    served = Served()
    served.put(rule_object(QUEUE, "shop/one"))
    before = len(served.prometheus.looked_up)
    served.put(rule_object(QUEUE, "shop/one"), rule_object(spec_with(QUEUE, name={"as": "b"}), "shop/two"))
    assert len(served.prometheus.looked_up) == before + 1


def test_a_failed_look_up_keeps_served_metrics_and_is_reported_only_for_new_objects() -> None:
    failing = False

    def series(selector: str) -> Collection[Mapping[str, str]] | PrometheusError:
        return QueryRefusedError(selector, "execution", "too heavy") if failing else matching(selector)

    served = Served(series=series)
    served.put(rule_object(MATCHED, "shop/jobs"))
    failing = True
    served.harness.pass_time(61.0)
    assert served.reasons() == {"shop/jobs": "Served"}
    served.put(rule_object(MATCHED, "shop/jobs"), rule_object(MATCHED, "bank/jobs"))
    assert served.reasons() == {"shop/jobs": "Served", "bank/jobs": "LookUpFailed"}
    assert served.harness.readings.complete_catalogue_of("bank").external == ()


@pytest.mark.parametrize(
    ("settings", "spec", "reason"),
    [
        (ReadingSettings(max_rule_objects_per_namespace=1), QUEUE, "TooManyRules"),
        (ReadingSettings(max_series_of_rule_objects_per_namespace=3), MATCHED, "TooManySeries"),
    ],
)
def test_beyond_a_quota_the_oldest_objects_are_served(settings: ReadingSettings, spec: Any, reason: str) -> None:  # noqa: ANN401
    served = Served(settings)
    second = {**spec, "rule": {**spec["rule"], "name": {"matches": "^jobs_(.+)$", "as": "second_$1"}}}
    old = rule_object(spec, "shop/old", "2026-01-01T00:00:00Z")
    new = rule_object(second, "shop/new", "2026-01-02T00:00:00Z")
    served.put(new, old, rule_object(QUEUE, "bank/queue"))
    assert served.reasons() == {"shop/old": "Served", "shop/new": reason, "bank/queue": "Served"}


def test_an_object_has_a_limited_number_of_metrics() -> None:
    def many(selector: str) -> list[dict[str, str]]:
        return [{"__name__": f"jobs_{number}", "namespace": "shop"} for number in range(101) if "jobs_" in selector]

    served = Served(series=many)
    served.put(rule_object(MATCHED, "shop/jobs"))
    assert served.reasons() == {"shop/jobs": "TooManyMetrics"}
    assert served.names("shop") == []


def test_names_whose_series_vanished_do_not_take_the_place_of_those_that_replace_them() -> None:
    names = [f"jobs_old_{number}" for number in range(60)]
    served = Served(
        series=lambda selector: [{"__name__": name, "namespace": "shop"} for name in names if "jobs_" in selector]
    )
    served.put(rule_object(MATCHED, "shop/jobs"))
    names[:] = [*(f"jobs_new_{number}" for number in range(60)), "jobs_old_1"]
    served.harness.pass_time(61.0)
    assert served.reasons() == {"shop/jobs": "Served"}
    after = served.names("shop")
    assert set(names) <= set(after)
    assert len(after) == len(set(after)) == 100, "the rest stays for a while as far as there is room"
    names[:] = [f"jobs_new_{number}" for number in range(59)]
    served.harness.pass_time(61.0)
    assert {*names, "jobs_new_59", "jobs_old_1"} <= set(served.names("shop")), "the last to vanish are kept first"
    names[:] = [f"jobs_new_{number}" for number in range(101)]
    served.harness.pass_time(61.0)
    assert served.reasons() == {"shop/jobs": "TooManyMetrics"}
    assert "it would serve 101 metrics" in served.verdicts()["shop/jobs"].message


def test_look_ups_of_one_namespace_do_not_delay_others() -> None:
    """Twenty objects of one namespace and one of another share two look-ups: the single one is among the first."""
    served = Served(ReadingSettings(max_concurrent_object_look_ups=2), threads=Threads(held=True))
    crowd = [rule_object(MATCHED, f"shop/jobs-{number}") for number in range(20)]
    served.harness.readings.replace_rule_objects([*crowd, rule_object(MATCHED, "bank/jobs")])
    served.threads.run()
    served.prometheus.looked_up.clear()
    served.harness.readings.run_due()
    served.threads.run()
    assert len([each for each in served.prometheus.looked_up if '"bank"' in each]) == 1
    assert len([each for each in served.prometheus.looked_up if '"shop"' in each]) == 1


def test_slow_look_ups_of_constantly_changing_objects_have_pauses_between_them() -> None:
    served, started = Served(rules=""), list[float]()

    def slow(selector: str) -> list[Mapping[str, str]]:
        started.append(served.harness.clock.now)
        served.harness.clock.forward(5.0)
        return matching(selector)

    served.prometheus.series_answer = slow
    for number in range(60):
        served.put(*([rule_object(spec_with(QUEUE, seriesQuery=f"jobs_{number}"), "shop/jobs")] if number % 3 else []))
    pauses = [later - before - 5.0 for before, later in pairwise(started)]
    assert len(pauses) > 1
    assert min(pauses) >= 20.0


def test_requests_wait_for_objects_that_have_not_been_read() -> None:
    served = Served(ReadingSettings(first_answer_wait_seconds=0.01))
    served.harness.readings.expect_rule_objects()
    for _ in range(2):
        with pytest.raises(FirstAnswerPendingError):
            served.harness.readings.complete_catalogue_of("shop")
        served.harness.readings.replace_rule_objects((), are_all=False)
    served.put(rule_object(QUEUE, "shop/queue"))
    assert served.harness.readings.complete_catalogue_of("shop").find_external("jobs_waiting") is not None


def test_a_reload_of_the_files_keeps_the_readings_of_objects() -> None:
    served = Served()
    served.put(rule_object(QUEUE, "shop/queue"))
    metric = served.harness.readings.catalogue_of("shop").find_external("jobs_waiting")
    assert metric is not None
    served.harness.readings.external(metric, "shop", EVERYTHING)
    asked = len(served.prometheus.asked)
    served.harness.readings.replace_rulebook(served.harness.readings._cataloguer.rulebook)
    served.harness.readings.external(metric, "shop", EVERYTHING)
    assert len(served.prometheus.asked) == asked


def test_own_metrics_share_one_rule_label_for_all_objects() -> None:
    served = Served()
    served.put(*(rule_object(QUEUE, f"team-{number}/queue") for number in range(5)), rule_object({}, "bad/queue"))
    for number in range(5):
        metric = served.harness.readings.catalogue_of(f"team-{number}").find_external("jobs_waiting")
        assert metric is not None
        served.harness.readings.external(metric, f"team-{number}", EVERYTHING)
    harness = served.harness
    assert harness.counter("tidewatch_adapter_rule_plan", rule="MetricRule", plan="namespace") == 5.0
    states = {state: harness.counter("tidewatch_adapter_metric_rules", state=state) for state in ("ready", "refused")}
    assert states == {"ready": 5.0, "refused": 1.0}
    rules = {
        sample.labels["rule"]
        for family in harness.registry.collect()
        for sample in family.samples
        if "rule" in sample.labels
    }
    assert rules == {"MetricRule", "externalRules[0]"}


def test_an_explanation_names_the_object() -> None:
    served = Served()
    served.put(rule_object(QUEUE, "shop/queue"), rule_object({"api": "external"}, "shop/bad"))
    found = served.harness.readings.explain(Question("jobs_waiting", namespace="shop", api=Api.EXTERNAL))
    assert (found.verdict, found.rule) == ("value", "MetricRule shop/queue")
    assert "MetricRule shop/queue provides jobs_waiting" in " ".join(step.detail for step in found.steps)
    elsewhere = served.harness.readings.explain(Question("jobs_waiting", namespace="bank", api=Api.EXTERNAL))
    assert (elsewhere.verdict, elsewhere.rule) == ("no-value", None)
    assert "MetricRule" not in " ".join(step.detail for step in elsewhere.steps)


def test_an_explanation_gives_the_reason_for_a_refused_object() -> None:
    served = Served()
    served.put(rule_object(spec_with(QUEUE, metricsQuery=None), "shop/queue"))
    found = served.harness.readings.explain(Question("jobs_waiting", namespace="shop", api=Api.EXTERNAL))
    assert any("MetricRule shop/queue is refused: `metricsQuery` is missing" in step.detail for step in found.steps)


def test_an_object_corrected_during_its_look_up_does_not_inherit_the_failure() -> None:
    corrected = rule_object(QUEUE, "shop/queue")
    former = rule_object(spec_with(QUEUE, seriesQuery="jobs_broken_total"), "shop/queue")

    def refused_or_found(selector: str) -> list[Mapping[str, str]]:
        if "jobs_broken_total" not in selector:
            return matching(selector)
        served.harness.readings.replace_rule_objects([corrected])
        raise QueryRefusedError(selector, "execution", "too many series")

    served = Served(series=refused_or_found)
    served.put(former)

    assert [each.failure for each in served.harness.readings.rule_objects()["shop"].look_ups] == [None]
    assert served.verdicts()["shop/queue"].metrics == ("jobs_waiting",)


def test_a_distrusted_plan_is_no_longer_counted_once_its_object_changes() -> None:
    served = Served()
    readings, distrusted = served.harness.readings, "tidewatch_adapter_rule_plan_distrusted"
    other = rule_object(QUEUE, "bank/queue")
    corrected = spec_with(QUEUE, metricsQuery="max(<<.Series>>{<<.LabelMatchers>>})")
    for change in ((rule_object(corrected, "shop/queue"), other), (other,)):
        served.put(rule_object(QUEUE, "shop/queue"), other)
        for namespace in ("shop", "bank"):
            metric = readings.catalogue_of(namespace).find_external("jobs_waiting")
            assert metric is not None
            readings.external(metric, namespace, EVERYTHING)
            (group,) = [each for each in readings._scheduler.state.groups() if each.metric is metric]
            readings._scheduler.distrust(group, "the answers differ")
        served.put(rule_object(QUEUE, "shop/queue"), other)
        assert served.harness.counter(distrusted, rule="MetricRule") == 2, "no object has changed"
        served.put(*change)
        assert served.harness.counter(distrusted, rule="MetricRule") == 1


def test_a_changed_object_does_not_restore_trust_in_the_plan_of_a_rule_file() -> None:
    served = Served()
    served.put(rule_object(QUEUE, "shop/queue"))
    readings = served.harness.readings
    readings.external(served.harness.external("queue_depth"), "shop", EVERYTHING)
    (group,) = readings._scheduler.state.groups()
    readings._scheduler.distrust(group, "the answers differ")
    served.put(rule_object(spec_with(QUEUE, metricsQuery="max(<<.Series>>{<<.LabelMatchers>>})"), "shop/queue"))
    assert served.harness.counter("tidewatch_adapter_rule_plan_distrusted", rule="externalRules[0]") == 1


@dataclass
class SlowPattern:
    """A compiled pattern that matches no name, and calls a function for each."""

    match: Callable[[], object]
    groups: int = 0
    programsize: int = 0

    def search(self, _text: str) -> None:
        self.match()

    def fullmatch(self, _text: str) -> None:
        self.match()


def with_filter(found: RuleObject, match: Callable[[], object]) -> RuleObject:
    """Return the object with a filter that lets all names pass, after a call for each."""
    assert found.rule is not None
    own = SeriesFilter(Pattern("slow", 0, (), SlowPattern(match)), wanted=False)
    return replace(found, rule=replace(found.rule, series_filters=(own,)))


def test_patterns_that_take_long_end_at_the_deadline_of_the_look_up() -> None:
    many = [{"__name__": f"jobs_{number}", "namespace": "shop"} for number in range(100)]
    served = Served(
        series=lambda selector: many if "jobs_" in selector else (),
        # Each name is a slice of its own.
        pace=Pace(0.0, sleep=lambda _seconds: None, clock=count().__next__),
    )
    clock = served.harness.clock
    began = clock.now
    served.put(with_filter(rule_object(MATCHED), lambda: clock.forward(0.6)))
    assert clock.now - began < 10
    assert served.reasons() == {"shop/web": "LookUpFailed"}
    assert len(served.names("shop")) == 9
    (look_up,) = served.harness.readings.rule_objects()["shop"].look_ups
    assert look_up.failure == (
        "its patterns took more than 5 s: simplify those of `seriesFilters` and `name.matches`, or narrow the query"
    )


def test_patterns_that_take_long_hold_up_no_other_work() -> None:
    is_free: list[bool] = []

    def look() -> None:
        taken = threading.Event()
        threading.Thread(target=lambda: take_a_slice(taken)).start()
        is_free.append(taken.wait(5))

    def take_a_slice(taken: threading.Event) -> None:
        with UNPACED.slice():
            taken.set()

    served = Served()
    served.put(with_filter(rule_object(MATCHED), look))
    served.harness.pass_time(70)
    # Two series in each of two look-ups.
    assert is_free == [True] * 4


def test_a_series_with_a_very_long_name_is_left_out() -> None:
    long = {"__name__": "jobs_" + 10_000 * "x", "namespace": "shop"}
    served = Served(series=lambda selector: [*matching(selector), long])
    served.put(rule_object(spec_with(MATCHED, name={"matches": "^(.{1,20})", "as": "${1}"})))
    assert sorted(served.names("shop")) == ["jobs_running", "jobs_waiting"]
    assert "or only in part" in served.verdicts()["shop/web"].message
