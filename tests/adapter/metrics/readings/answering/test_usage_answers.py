"""The usage of pods and nodes comes from memory: one query for all clients, and never a value that was not measured."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.documents.load import load_documents
from adapter.foundation.objects.selectors import EVERYTHING, parse_selector
from adapter.foundation.sources.prometheus.errors import QueryRefusedError
from adapter.metrics.readings.answers import ByName, BySelector
from adapter.metrics.readings.errors import (
    AnswerTooOldError,
    FirstAnswerPendingError,
    NoSampleError,
    ObjectsNotKnownError,
    ReadingError,
)
from adapter.metrics.readings.readings_settings import ReadingSettings
from adapter.metrics.rulebook.parsing.parse import parse_rulebook
from adapter.metrics.rulebook.parsing.resource_rules import NODES, PODS
from tests.adapter.metrics.readings.answering.usage_harness import (
    ALL,
    CPU,
    DOWN,
    NAMESPACES,
    RULES,
    SHOP,
    answering,
    harness_of,
    rule,
    sample,
    used,
)
from tests.support.readings import (
    START,
    MadeUpObjects,
    Reply,
    ScriptedPrometheus,
    Threads,
    make_harness,
    reply,
    rulebook_of,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from adapter.foundation.objects.resources import Resource
    from adapter.foundation.objects.selectors import Selector
    from adapter.foundation.sources.prometheus.errors import PrometheusError


WEB = BySelector(parse_selector("app=web"))
NOW = START - START % 1
EXACT = f"resourceRules:{rule('cpu', 'topk(9, sum by (<<.GroupBy>>) (cpu_used{<<.LabelMatchers>>}))')}"
OTHER = {"other/web-0": {"app": {"cpu": 3, "memory": 300}}}


def test_usage_has_the_measured_resources_of_each_container_and_no_others() -> None:
    answer = harness_of(ScriptedPrometheus(answering())).readings.usage(PODS, "shop", ALL)
    assert used(answer) == SHOP
    assert [item.name for item in answer.items] == ["web-0", "web-1"]
    assert list(answer.items[0].used) == ["app", "proxy"]
    assert (answer.evaluated_at, answer.window_seconds, answer.warnings) == (NOW, 120, ())
    assert {item.evaluated_at for item in answer.items} == {NOW}
    assert answer.items[0].labels == {"app": "web"}


@pytest.mark.parametrize(
    "pause",
    [
        pytest.param(0.0, id="evenly"),
        pytest.param(9.0, id="all within six seconds, as after a start of the controller"),
    ],
)
def test_a_namespace_with_many_autoscalers_costs_eight_queries_a_minute_for_each_resource(pause: float) -> None:
    pods = [f"app{number}-0" for number in range(20)]
    answers = {name: reply(*(sample("shop", pod, "app", "1") for pod in pods)) for name in ("cpu_used", "memory_used")}
    prometheus = ScriptedPrometheus(answering(**answers))
    harness = make_harness(prometheus, rules=RULES, objects=MadeUpObjects({"shop": pods}))
    between = (15.0 - pause) / len(pods)

    def a_minute() -> int:
        before = len(prometheus.asked)
        for _ in range(4):
            for pod in pods:
                assert harness.readings.usage(PODS, "shop", ByName(pod)).items
                harness.pass_time(between, step=between)
            harness.pass_time(pause)
        return len(prometheus.asked) - before

    a_minute()
    assert a_minute() == pytest.approx(2 * 8, abs=2)
    assert a_minute() == pytest.approx(2 * 8, abs=2)


def test_usage_is_refreshed_twice_in_the_interval_of_the_most_frequent_request() -> None:
    prometheus = ScriptedPrometheus(answering())
    harness = harness_of(prometheus)
    before = 0
    for second in range(120):
        if second % 4 == 0:
            harness.readings.usage(PODS, "shop", ByName("web-0"))
        if second % 15 == 1:
            harness.readings.usage(PODS, "shop", ByName("web-1"))
        before = len(prometheus.asked) if second == 60 else before
        harness.pass_time(1)

    assert len(prometheus.asked) - before == pytest.approx(2 * 30, abs=3)


def test_pods_of_all_namespaces_are_sorted_by_namespace_and_name() -> None:
    answer = harness_of(ScriptedPrometheus(answering())).readings.usage(PODS, None, ALL)
    assert list(used(answer)) == ["other/web-0", "shop/web-0", "shop/web-1"]
    assert used(answer) == SHOP | OTHER


def test_pods_are_selected_by_labels() -> None:
    harness = harness_of(ScriptedPrometheus(answering()))
    assert list(used(harness.readings.usage(PODS, "shop", WEB))) == ["shop/web-0", "shop/web-1"]
    assert list(used(harness.readings.usage(PODS, None, WEB))) == ["other/web-0", "shop/web-0", "shop/web-1"]
    none_selected = harness.readings.usage(PODS, "shop", BySelector(parse_selector("app=nobody")))
    assert (none_selected.items, none_selected.evaluated_at, none_selected.warnings) == ((), None, ())


def test_nodes_with_a_sample_are_served() -> None:
    harness = harness_of(ScriptedPrometheus(answering()))
    answer = harness.readings.usage(NODES, None, ALL)
    assert used(answer) == {"None/n-1": {"": {"cpu": 4, "memory": 1000}}}
    assert harness.readings.usage(NODES, None, ByName("n-1")).items == answer.items
    with pytest.raises(NoSampleError, match=r"^it has no value of cpu: Prometheus has no sample for it"):
        harness.readings.usage(NODES, None, ByName("n-2"))


def test_requests_of_all_namespaces_share_one_query_per_resource() -> None:
    prometheus = ScriptedPrometheus(answering())
    harness = harness_of(prometheus)
    for namespace in ("shop", "other", None):
        for which in (ALL, WEB, BySelector(parse_selector("app in (db)"))):
            harness.readings.usage(PODS, namespace, which)
    harness.readings.usage(PODS, "shop", ByName("web-0"))
    harness.readings.usage(NODES, None, ALL)
    harness.readings.usage(NODES, None, ByName("n-1"))
    assert sorted(prometheus.asked) == [
        'sum by (namespace,pod,container) (cpu_used{namespace!="",pod!=""})',
        'sum by (namespace,pod,container) (memory_used{namespace!="",pod!=""})',
        'sum by (node) (node_cpu_used{node!=""})',
        'sum by (node) (node_memory_used{node!=""})',
    ]


def test_a_custom_metric_of_the_same_name_and_query_is_separate() -> None:
    custom = (
        'rules:\n- seriesQuery: \'cpu_used{namespace!="",pod!=""}\'\n  name: {as: cpu}\n'
        "  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}\n"
        "  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})'\n"
    )
    by_pod = reply(({"namespace": "shop", "pod": "web-0"}, "-5"))
    prometheus = ScriptedPrometheus(lambda query: by_pod if "by (pod)" in query else answering()(query))
    harness = harness_of(prometheus, RULES + custom)
    for _ in range(2):
        assert harness.readings.objects(harness.pods("cpu"), "shop", ALL, EVERYTHING).values == (("web-0", -5.0),)
        assert used(harness.readings.usage(PODS, "shop", ALL)) == SHOP


def test_a_query_that_cannot_be_shared_is_sent_once_per_namespace() -> None:
    def exact(query: str) -> Reply:
        namespace = "shop" if 'namespace="shop"' in query else "other"
        return Reply(tuple(one for one in CPU.samples if one[0]["namespace"] == namespace))

    prometheus = ScriptedPrometheus(exact)
    harness = harness_of(prometheus, EXACT)
    all_pods = harness.readings.usage(PODS, None, ALL)
    assert used(all_pods) == {
        "other/web-0": {"app": {"cpu": 3}},
        "shop/done-0": {"app": {"cpu": 0.125}},
        "shop/neg-0": {"app": {"cpu": 1}, "proxy": {"cpu": 1}},
        "shop/new-0": {"app": {"cpu": 1}},
        "shop/web-0": {"app": {"cpu": 1}, "proxy": {"cpu": 0.5}},
        "shop/web-1": {"app": {"cpu": 2}, "init": {"cpu": 0.25}},
    }
    assert sorted(prometheus.asked) == [
        'topk(9, sum by (pod,container) (cpu_used{namespace="other",pod="web-0"}))',
        'topk(9, sum by (pod,container) (cpu_used{namespace="shop",pod=~"db-0|done-0|neg-0|new-0|odd-0|web-0|web-1"}))',
    ]
    assert list(used(harness.readings.usage(PODS, "shop", WEB))) == ["shop/web-0", "shop/web-1"]
    assert len(prometheus.asked) == 2


def test_a_refused_wide_query_is_replaced_by_one_per_namespace() -> None:
    refused = QueryRefusedError("q", "execution", "too many samples")

    def narrow(query: str) -> Reply | PrometheusError:
        if 'namespace!=""' in query:
            return refused
        namespace = "shop" if 'namespace="shop"' in query else "other"
        found = answering()(query)
        assert isinstance(found, Reply)
        return replace(found, samples=tuple(one for one in found.samples if one[0].get("namespace") == namespace))

    harness = harness_of(ScriptedPrometheus(narrow))
    assert used(harness.readings.usage(PODS, "shop", ALL)) == SHOP
    assert used(harness.readings.usage(PODS, None, ALL)) == SHOP | OTHER


def test_answers_are_served_until_they_are_too_old() -> None:
    prometheus = ScriptedPrometheus(answering())
    harness = harness_of(prometheus, settings=ReadingSettings(max_answer_age_seconds=30.0))
    harness.readings.usage(PODS, "shop", ALL)
    prometheus.answer = lambda _query: DOWN
    harness.pass_time(20)
    late = harness.readings.usage(PODS, "shop", ALL)
    assert used(late) == SHOP
    assert late.evaluated_at == NOW
    harness.pass_time(20)
    with pytest.raises(AnswerTooOldError):
        harness.readings.usage(PODS, "shop", ALL)


def test_the_timestamp_is_that_of_the_older_resource() -> None:
    prometheus = ScriptedPrometheus(answering())
    harness = harness_of(prometheus)
    harness.readings.usage(PODS, "shop", ALL)
    prometheus.answer = answering(cpu_used=DOWN)
    harness.pass_time(20)
    answer = harness.readings.usage(PODS, "shop", ALL)
    assert answer.evaluated_at == NOW
    assert used(answer) == SHOP


def test_pods_that_are_not_listed_yet_are_an_error() -> None:
    objects = MadeUpObjects(NAMESPACES, not_synced=True)
    harness = make_harness(ScriptedPrometheus(answering()), rules=RULES, objects=objects)
    for which in (ALL, ByName("web-0")):
        with pytest.raises(ObjectsNotKnownError):
            harness.readings.usage(PODS, "shop", which)


def test_both_queries_run_at_the_same_time() -> None:
    threads = Threads(held=True)
    prometheus = ScriptedPrometheus(answering())
    settings = ReadingSettings(first_answer_wait_seconds=0.0)
    harness = make_harness(
        prometheus, rules=RULES, objects=MadeUpObjects(NAMESPACES), settings=settings, submit=threads
    )
    with pytest.raises(ReadingError, match="did not answer within 0 s"):
        harness.readings.usage(PODS, "shop", ALL)
    threads.run()
    assert len(prometheus.asked) == 2
    assert used(harness.readings.usage(PODS, "shop", ALL)) == SHOP


def test_usage_is_an_error_until_the_first_answers_of_both_resources_arrive() -> None:
    threads = Threads(held=True)
    settings = ReadingSettings(first_answer_wait_seconds=0.0)
    objects = MadeUpObjects(NAMESPACES)
    harness = make_harness(
        ScriptedPrometheus(answering()), rules=RULES, objects=objects, settings=settings, submit=threads
    )
    with pytest.raises(FirstAnswerPendingError):
        harness.readings.usage(PODS, "shop", ALL)
    threads.waiting.popleft()()
    for which in (ALL, ByName("web-0")):
        with pytest.raises(FirstAnswerPendingError):
            harness.readings.usage(PODS, "shop", which)
    threads.run()
    assert used(harness.readings.usage(PODS, "shop", ALL)) == SHOP


def test_a_reload_keeps_readings_of_unchanged_rules_and_applies_the_new_window() -> None:
    prometheus = ScriptedPrometheus(answering())
    harness = harness_of(prometheus)
    harness.readings.usage(PODS, "shop", ALL)
    before = harness.readings.catalogue
    moved = f"# moved\nresourceRules:{rule('memory')}  window: 7m\n"
    harness.readings.replace_rulebook(rulebook_of(moved))
    answer = harness.readings.usage(PODS, "shop", ALL)
    assert answer.window_seconds == 420
    assert used(answer)["shop/web-0"] == {"app": {"memory": 100}, "proxy": {"memory": 10}}
    assert len(prometheus.asked) == 2
    assert harness.readings.catalogue.generation > before.generation
    harness.readings.replace_rulebook(rulebook_of("rules: []\n"))
    assert harness.readings.catalogue.resource.rules == ()
    assert harness.readings.usage(PODS, "shop", ALL).items == ()
    harness.pass_time(30)
    assert len(prometheus.asked) == 2


def test_a_container_that_a_reloaded_memory_rule_leaves_out_has_not_ended() -> None:
    apps = reply(sample("shop", "web-0", "app", "100"))
    harness = harness_of(ScriptedPrometheus(answering(of_apps=apps)))
    assert used(harness.readings.usage(PODS, "shop", ByName("web-0"))) == {"shop/web-0": SHOP["shop/web-0"]}
    changed = rule("memory", "sum by (<<.GroupBy>>) (of_apps{<<.LabelMatchers>>})")
    harness.readings.replace_rulebook(rulebook_of(f"resourceRules:{rule('cpu')}{changed}  window: 2m\n"))
    for _ in range(20):
        (item,) = harness.readings.usage(PODS, "shop", ByName("web-0")).items
        assert item.used == {"app": {"cpu": 1, "memory": 100}, "proxy": {"cpu": 0.5}}
        harness.pass_time(15)


def test_plans_are_checked_against_the_exact_query_of_one_namespace() -> None:
    def differing(query: str) -> Reply | PrometheusError | Exception:
        if 'namespace="' in query and "cpu_used" in query:
            namespace = query.partition('namespace="')[2].partition('"')[0]
            return reply(sample(namespace, "web-0", "app", "77"))
        return answering()(query)

    harness = make_harness(
        ScriptedPrometheus(differing), rules=RULES, objects=MadeUpObjects(NAMESPACES), cross_checks=True
    )
    harness.readings.usage(PODS, "other", ALL)
    for _ in range(5):
        harness.pass_time(61, step=0.5)
        harness.readings.usage(PODS, "other", ALL)
    checked = harness.counter("tidewatch_adapter_plan_cross_checks_total", rule="resourceRules.cpu", result="different")
    assert checked == 3
    assert used(harness.readings.usage(PODS, "other", ALL)) == {"other/web-0": {"app": {"cpu": 77, "memory": 300}}}


CONTAINER_NAMES = st.sampled_from(["app", "proxy", "db"])
VALUES = st.sampled_from(["0", "0.25", "-1", "NaN", "+Inf", "1e3"])
ROWS = st.lists(
    st.tuples(st.sampled_from(NAMESPACES["shop"]), CONTAINER_NAMES, VALUES),
    max_size=8,
    unique_by=lambda row: row[:2],
)


@given(cpu=ROWS, memory=ROWS)
def test_an_answer_holds_exactly_what_was_measured(
    cpu: list[tuple[str, str, str]], memory: list[tuple[str, str, str]]
) -> None:
    replies = {
        f"{name}_used": Reply(tuple(sample("shop", *row) for row in rows))
        for name, rows in (("cpu", cpu), ("memory", memory))
    }
    answer = harness_of(ScriptedPrometheus(answering(**replies))).readings.usage(PODS, "shop", ALL)
    served_values = {
        (item.name, container, resource, value)
        for item in answer.items
        for container, values in item.used.items()
        for resource, value in values.items()
    }
    good = {"0": 0.0, "0.25": 0.25, "1e3": 1000.0}
    with_cpu = {row[:2] for row in cpu}
    with_memory = {row[0] for row in memory}
    left_out = {row[0] for row in (*cpu, *memory) if row[2] not in good or row[:2] not in with_cpu}
    served = {pod for pod, _ in with_cpu} & with_memory - left_out
    assert {item.name for item in answer.items} == served
    assert served_values == {
        (pod, container, resource, good[value])
        for resource, rows in (("cpu", cpu), ("memory", memory))
        for pod, container, value in rows
        if pod in served
    }
    assert {(item.name, container) for item in answer.items for container in item.used} == {
        row[:2] for row in (*cpu, *memory) if row[0] in served
    }


class NotingObjects(MadeUpObjects):
    """Objects that record which kinds were requested; each of them is watched from then on."""

    def __init__(self) -> None:
        super().__init__(NAMESPACES, not_synced=True)
        self.kinds: list[Resource] = []

    def names(self, resource: Resource, namespace: str | None, selector: Selector) -> Collection[str]:
        self.kinds.append(resource)
        return super().names(resource, namespace, selector)


def test_nodes_are_watched_once_a_rule_serves_them_and_not_before() -> None:
    objects = NotingObjects()
    harness = make_harness(ScriptedPrometheus(answering()), rules="rules: []\n", objects=objects)
    pods_alone = RULES.replace("nodeQuery", "# nodeQuery")
    harness.readings.replace_rulebook(parse_rulebook([load_documents(pods_alone, "rules.yaml")], objects.resource))
    assert objects.kinds == []
    harness.readings.replace_rulebook(rulebook_of(RULES))
    assert objects.kinds == [NODES]
