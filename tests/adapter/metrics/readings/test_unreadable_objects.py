"""A list with unreadable objects of its kind says in a warning that some objects may be missing."""

from __future__ import annotations

import pytest

from adapter.foundation.objects.selectors import EVERYTHING, parse_selector
from adapter.metrics.readings.answers import ByName, BySelector, NamedBySelector
from adapter.metrics.readings.explain.explanation import Question
from adapter.metrics.rulebook.model import Api
from adapter.metrics.rulebook.parsing.resource_rules import PODS
from tests.support.readings import Harness, MadeUpObjects, ScriptedPrometheus, make_harness, reply

LABELS = "{overrides: {namespace: {resource: namespace}, pod: {resource: pod}, node: {resource: node}}}"
RULES = f"""
rules:
- seriesQuery: depth
  resources: {LABELS}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{{<<.LabelMatchers>>}})'
resourceRules:
  cpu:
    containerQuery: 'sum by (<<.GroupBy>>) (cpu{{<<.LabelMatchers>>}})'
    nodeQuery: 'sum by (<<.GroupBy>>) (node_cpu{{<<.LabelMatchers>>}})'
    resources: {LABELS}
    containerLabel: container
"""
SAMPLE = {"namespace": "shop", "pod": "web-0", "container": "app"}, "1"
OBJECTS = MadeUpObjects({"shop": ["web-0"], "other": []}, unreadable_by_namespace={"shop": 2, "other": 1})
WEB = BySelector(parse_selector("app=web"))


@pytest.fixture
def harness() -> Harness:
    prometheus = ScriptedPrometheus(answer=lambda _query: reply(SAMPLE))
    found = make_harness(prometheus, objects=OBJECTS, rules=RULES)
    found.readings.run_due()
    return found


def notice(count: int) -> str:
    return f"{count} of the pods cannot be read, so objects that match may be missing here: the adapter's log says why"


@pytest.mark.parametrize(("which", "warnings"), [(WEB, (notice(2),)), (ByName("web-0"), ())], ids=["a list", "one"])
def test_a_list_of_a_metric_counts_unreadable_objects_of_its_namespace(
    harness: Harness, which: ByName | BySelector, warnings: tuple[str, ...]
) -> None:
    answer = harness.readings.objects(harness.pods("depth"), "shop", which, EVERYTHING)

    assert (answer.values, answer.warnings) == ((("web-0", 1.0),), warnings)


@pytest.mark.parametrize(
    ("namespace", "which", "warnings"),
    [
        ("shop", WEB, (notice(2),)),
        (None, WEB, (notice(3),)),
        ("shop", ByName("web-0"), ()),
        # The client may be allowed to see this name only, and no other namespace.
        (None, NamedBySelector("web-0", EVERYTHING), ()),
    ],
    ids=["a list", "a list of all namespaces", "one", "one name in all namespaces"],
)
def test_a_list_of_usage_counts_unreadable_objects_of_its_namespaces(
    harness: Harness, namespace: str | None, which: ByName | BySelector | NamedBySelector, warnings: tuple[str, ...]
) -> None:
    answer = harness.readings.usage(PODS, namespace, which)

    assert ([item.name for item in answer.items], answer.warnings) == (["web-0"], warnings)


def test_an_explanation_counts_unreadable_objects_too(harness: Harness) -> None:
    found = harness.readings.explain(Question("depth", Api.CUSTOM, PODS, "shop"))

    assert notice(2) in [step.detail for step in found.steps]
