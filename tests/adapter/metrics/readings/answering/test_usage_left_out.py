"""Pods, nodes and resources whose usage is not known are left out with a reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adapter.foundation.documents.load import load_documents
from adapter.foundation.objects.selectors import EVERYTHING, parse_selector
from adapter.metrics.readings.answers import ByName, BySelector, NamedBySelector
from adapter.metrics.readings.errors import NoSampleError, SourceUnreachableError
from adapter.metrics.rulebook.parsing.parse import parse_rulebook
from adapter.metrics.rulebook.parsing.resource_rules import NODES, PODS
from tests.adapter.metrics.readings.answering.usage_harness import (
    ALL,
    DOWN,
    SHOP,
    answering,
    harness_of,
    rule,
    sample,
    used,
)
from tests.support.readings import MadeUpObjects, Reply, ScriptedPrometheus, reply

if TYPE_CHECKING:
    from adapter.foundation.sources.prometheus.errors import PrometheusError


@pytest.mark.parametrize(
    ("namespace", "name", "why"),
    [
        ("shop", "gone-0", "there is no pod of this name"),
        ("shop", "odd-0", "'odd-0/app' has no value of cpu: its value is NaN (not a number)"),
        ("shop", "db-0", "it has no value of cpu: Prometheus has no sample for it"),
        ("shop", "done-0", "it has no value of memory: Prometheus has no sample for it"),
        ("shop", "new-0", "'new-0/proxy' has no value of cpu: Prometheus has no sample for it"),
        ("shop", "neg-0", "'neg-0/proxy' has no value of memory: its value is negative"),
    ],
)
def test_a_pod_without_a_value_is_an_error_with_the_reason(namespace: str, name: str, why: str) -> None:
    harness = harness_of(ScriptedPrometheus(answering()))
    with pytest.raises(NoSampleError) as missing:
        harness.readings.usage(PODS, namespace, ByName(name))
    assert missing.value.message == why


@pytest.mark.parametrize("resource", ["cpu", "memory"])
def test_a_pod_with_too_many_containers_is_left_out(resource: str) -> None:
    crowd = reply(*(sample("shop", "web-0", f"c-{number}", "1") for number in range(1500)))
    harness = harness_of(ScriptedPrometheus(answering(**{f"{resource}_used": crowd})))
    assert "shop/web-0" not in used(harness.readings.usage(PODS, "shop", ALL))
    with pytest.raises(NoSampleError, match=f"^'web-0' has no value of {resource}: more than 1000 values"):
        harness.readings.usage(PODS, "shop", ByName("web-0"))


@pytest.mark.parametrize("failing", ["cpu", "memory"])
def test_pods_are_listed_with_one_resource_while_the_other_is_unavailable(failing: str) -> None:
    available = {"cpu": "memory", "memory": "cpu"}[failing]
    answer = harness_of(ScriptedPrometheus(answering(**{f"{failing}_used": DOWN}))).readings.usage(PODS, "shop", ALL)
    listed = [set(container) for item in answer.items for container in item.used.values()]
    assert listed
    assert all(resources == {available} for resources in listed)
    assert len(answer.items) > len(SHOP)


@pytest.mark.parametrize(("nothing", "other"), [("cpu", "memory"), ("memory", "cpu")])
def test_a_rule_without_any_value_is_named_in_the_warning_of_an_empty_list(nothing: str, other: str) -> None:
    replies = {f"{nothing}_used": Reply(), f"node_{nothing}_used": Reply()}
    harness = harness_of(ScriptedPrometheus(answering(**replies)))
    for kind, namespace in ((PODS, "shop"), (PODS, None), (NODES, None)):
        answer = harness.readings.usage(kind, namespace, ALL)
        warning = f"{kind.plural}/{nothing} has no value for any requested {kind.singular}, so none is listed"
        assert (answer.items, answer.warnings) == ((), (warning,)), other
    assert harness.readings.usage(PODS, "shop", BySelector(parse_selector("app=nobody"))).warnings == ()


def test_a_container_with_several_values_is_left_out_with_the_reason() -> None:
    twice = reply(
        ({"namespace": "shop", "pod": "db-0", "container": "db", "id": "1"}, "1"),
        ({"namespace": "shop", "pod": "db-0", "container": "db", "id": "2"}, "2"),
    )
    harness = harness_of(ScriptedPrometheus(answering(cpu_used=twice, memory_used=Reply())))
    assert harness.readings.usage(PODS, "shop", ALL).items == ()
    with pytest.raises(NoSampleError, match="several samples claim to be its value; they differ in id"):
        harness.readings.usage(PODS, "shop", ByName("db-0"))


def test_a_query_without_the_container_label_gives_an_unnamed_container_and_a_warning() -> None:
    bare = reply(({"namespace": "shop", "pod": "db-0"}, "1"))
    harness = harness_of(ScriptedPrometheus(answering(cpu_used=bare, memory_used=bare)))
    answer = harness.readings.usage(PODS, "shop", ALL)
    assert [(item.name, item.used) for item in answer.items] == [("db-0", {"": {"cpu": 1.0, "memory": 1.0}})]
    for resource, warning in zip(("cpu", "memory"), answer.warnings, strict=True):
        assert warning.startswith(f"pods/{resource}: no sample has the label 'container', which names its")
    (item,) = harness.readings.usage(PODS, "shop", ByName("db-0")).items
    assert item.used == {"": {"cpu": 1.0, "memory": 1.0}}


def test_a_pod_whose_containers_only_one_resource_names_is_left_out() -> None:
    bare = reply(({"namespace": "shop", "pod": "db-0"}, "1"))
    named = reply(({"namespace": "shop", "pod": "db-0", "container": "db"}, "1"))
    harness = harness_of(ScriptedPrometheus(answering(cpu_used=bare, memory_used=named)))
    assert harness.readings.usage(PODS, "shop", ALL).items == ()


def test_an_unavailable_resource_does_not_affect_the_other() -> None:
    harness = harness_of(ScriptedPrometheus(answering(cpu_used=DOWN)))
    answer = harness.readings.usage(PODS, "other", ALL)
    assert used(answer) == {"other/web-0": {"app": {"memory": 300}}}
    (warning,) = answer.warnings
    assert warning.startswith("in other: pods/cpu is missing: ")
    (warning,) = harness.readings.usage(PODS, None, ALL).warnings
    assert warning.startswith("in other and 1 more: pods/cpu is missing: ")


def test_two_unavailable_resources_are_an_error() -> None:
    harness = harness_of(ScriptedPrometheus(lambda _query: DOWN))
    for namespace in ("shop", None):
        with pytest.raises(SourceUnreachableError):
            harness.readings.usage(PODS, namespace, ALL)


def test_dropped_values_are_counted_by_reason() -> None:
    harness = harness_of(ScriptedPrometheus(answering()))
    harness.readings.usage(PODS, "shop", ALL)
    counted = {
        reason: harness.counter("tidewatch_adapter_dropped_samples_total", reason=reason)
        for reason in ("nan", "inf", "negative", "unknown_object")
    }
    assert counted == {"nan": 1, "inf": 1, "negative": 1, "unknown_object": 2}


def test_a_refused_rule_is_named_in_a_warning() -> None:
    broken = rule("cpu").replace("containerLabel", "containerLable")
    text = f"resourceRules:{broken}{rule('memory')}"
    rulebook = parse_rulebook([load_documents(text, "rules.yaml")], MadeUpObjects().resource)
    harness = harness_of(ScriptedPrometheus(answering()))
    harness.readings.replace_rulebook(rulebook)
    answer = harness.readings.usage(PODS, "other", ALL)
    assert used(answer) == {"other/web-0": {"app": {"memory": 300}}}
    assert answer.warnings == ("resourceRules.cpu (rules.yaml:2) is refused, so that resource is missing",)


def test_nodes_named_by_address_in_prometheus_are_reported_in_a_warning() -> None:
    by_address = reply(({"node": "10.0.0.1:9100"}, "4"))
    harness = harness_of(ScriptedPrometheus(answering(node_cpu_used=by_address, node_memory_used=Reply())))
    answer = harness.readings.usage(NODES, None, ALL)
    assert answer.items == ()
    assert answer.warnings == (
        "nodes/cpu has no value for any requested node: the label 'node' holds names such as '10.0.0.1:9100'",
    )


def test_nodes_whose_cpu_is_named_by_address_are_left_out_with_a_warning_for_cpu_alone() -> None:
    by_address = reply(({"node": "10.0.0.1:9100"}, "4"))
    answer = harness_of(ScriptedPrometheus(answering(node_cpu_used=by_address))).readings.usage(NODES, None, ALL)
    assert answer.items == ()
    assert [warning.partition(" ")[0] for warning in answer.warnings] == ["nodes/cpu"]


def test_warnings_of_a_request_for_one_name_reveal_no_other_object_or_namespace() -> None:
    """A list that a field selector restricts to one name is allowed to callers that may list only that name."""
    by_address = reply(({"node": "10.0.0.1:9100"}, "4"))
    nodes = harness_of(ScriptedPrometheus(answering(node_cpu_used=by_address, node_memory_used=Reply())))
    answer = nodes.readings.usage(NODES, None, NamedBySelector("n-1", EVERYTHING))
    assert (answer.items, answer.warnings) == ((), ())
    pods = harness_of(ScriptedPrometheus(answering(cpu_used=DOWN)))
    (warning,) = pods.readings.usage(PODS, None, NamedBySelector("db-0", EVERYTHING)).warnings
    assert warning.startswith("in shop: pods/cpu is missing: ")
    (warning,) = pods.readings.usage(PODS, None, NamedBySelector("web-0", EVERYTHING)).warnings
    assert warning.startswith("in other and 1 more: "), "both have a pod of this name"
    for namespace in ("empty", None):
        assert pods.readings.usage(PODS, namespace, NamedBySelector("gone-0", EVERYTHING)).warnings == ()


def test_one_name_in_all_namespaces_can_be_selected_with_labels() -> None:
    harness = harness_of(ScriptedPrometheus(answering()))
    for selector, expected in ((EVERYTHING, ["other/web-0", "shop/web-0"]), (parse_selector("app=db"), [])):
        assert list(used(harness.readings.usage(PODS, None, NamedBySelector("web-0", selector)))) == expected
    assert list(used(harness.readings.usage(NODES, None, NamedBySelector("n-1", EVERYTHING)))) == ["None/n-1"]


def test_a_pod_whose_cpu_cannot_be_queried_is_an_outage_and_not_missing() -> None:
    harness = harness_of(ScriptedPrometheus(answering(cpu_used=DOWN, memory_used=Reply())))
    with pytest.raises(SourceUnreachableError):
        harness.readings.usage(PODS, "shop", ByName("web-0"))


def _of_web(*samples: tuple[str, str]) -> Reply:
    return reply(*(sample("shop", "web-0", container, value) for container, value in samples))


def _answering(answers: dict[str, Reply]) -> ScriptedPrometheus:
    """Return a Prometheus whose answers change with the dictionary."""

    def answer(query: str) -> Reply | PrometheusError | Exception:
        return answering(**answers)(query)

    return ScriptedPrometheus(answer)


def test_an_ended_container_is_left_out_while_its_cpu_lingers() -> None:
    answers = {
        "cpu_used": _of_web(("app", "1"), ("init", "0.25")),
        "memory_used": _of_web(("app", "100"), ("init", "7")),
    }
    harness = harness_of(_answering(answers))
    both = {"app": {"cpu": 1, "memory": 100}, "init": {"cpu": 0.25, "memory": 7}}
    assert used(harness.readings.usage(PODS, "shop", ALL)) == {"shop/web-0": both}
    answers["memory_used"] = _of_web(("app", "100"))
    for _ in range(4):
        harness.pass_time(30)
        assert used(harness.readings.usage(PODS, "shop", ALL)) == {"shop/web-0": {"app": {"cpu": 1, "memory": 100}}}
    # What still uses CPU when the range of the query is over has not ended: its memory is not known, and it is not 0.
    for _ in range(4):
        harness.pass_time(30)
        answer = used(harness.readings.usage(PODS, "shop", ALL))
    assert answer == {"shop/web-0": {"app": {"cpu": 1, "memory": 100}, "init": {"cpu": 0.25}}}
    answers["memory_used"] = _of_web(("app", "100"), ("init", "7"))
    harness.pass_time(30)
    assert used(harness.readings.usage(PODS, "shop", ALL)) == {"shop/web-0": both}


def test_a_container_that_never_had_memory_has_not_ended() -> None:
    harness = harness_of(ScriptedPrometheus(answering()))
    for _ in range(5):
        answer = used(harness.readings.usage(PODS, "shop", ALL))
        assert answer["shop/web-1"] == {"app": {"cpu": 2, "memory": 200}, "init": {"cpu": 0.25}}
        harness.pass_time(30)


def test_a_pod_whose_containers_all_lost_their_memory_is_left_out() -> None:
    answers = {"cpu_used": _of_web(("app", "1"), ("init", "1")), "memory_used": _of_web(("app", "100"), ("init", "7"))}
    harness = harness_of(_answering(answers))
    assert harness.readings.usage(PODS, "shop", ALL).items
    answers["memory_used"] = reply(sample("shop", "web-1", "app", "1"))
    harness.pass_time(30)
    assert not harness.readings.usage(PODS, "shop", ALL).items
