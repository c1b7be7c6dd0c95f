"""The rule that provides a metric while there is a retained rule, which is served in its last good version."""

from __future__ import annotations

import pytest

from adapter.foundation.documents.load import load_documents
from adapter.foundation.objects.resources import BUILT_IN, find_resource
from adapter.foundation.objects.selectors import EVERYTHING
from adapter.metrics.readings.answers import BySelector
from adapter.metrics.rulebook.parsing.parse import parse_rulebook
from adapter.metrics.rulebook.reload.last_good import retained_in
from tests.support.readings import MadeUpObjects, ScriptedPrometheus, make_harness, reply, rulebook_of

LABELS = "{overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}"
SERIES = [{"__name__": f"{name}_total", "namespace": "shop", "pod": "web-0"} for name in ("own", "other")]


def rule(series: str, query: str = "sum") -> str:
    return f"""
- seriesQuery: '{series}{{namespace!="",pod!=""}}'
  resources: {LABELS}
  name: {{as: rps}}
  metricsQuery: '{query} by (<<.GroupBy>>) (<<.Series>>{{<<.LabelMatchers>>}})'
"""


OWN, OTHER, YET_TO_COME = rule("own_total"), rule("other_total"), rule("yet_to_come_total")
OTHERWISE = rule("other_total", "max")
BROKEN = OWN.replace("metricsQuery", "metricQuery")


@pytest.mark.parametrize(
    ("before", "now", "series"),
    [
        ((OWN,), (BROKEN,), "own_total"),
        ((OTHER, OWN), (OTHER, BROKEN), "own_total"),
        ((OWN, OTHER), (BROKEN, OTHER), "other_total"),
        ((OWN,), (OTHER, BROKEN), "other_total"),
        ((OWN,), (BROKEN, OTHER), "other_total"),
        ((OTHER, OWN), (OTHERWISE, BROKEN), "other_total"),
        ((OWN,), (YET_TO_COME, BROKEN), "own_total"),
        ((YET_TO_COME, OWN), (YET_TO_COME, BROKEN), "own_total"),
    ],
    ids=[
        "no other rule",
        "the last in the file, as before",
        "another that is later, as before",
        "one that is new",
        "one that is new and later",
        "one that changed with it",
        "no new one without series",
        "no other without series",
    ],
)
def test_a_new_rule_takes_the_name_and_other_rules_do_not(
    before: tuple[str, ...], now: tuple[str, ...], series: str
) -> None:
    former = "rules:" + "".join(before)
    prometheus = ScriptedPrometheus(
        series_answer=lambda selector: [one for one in SERIES if selector.startswith(one["__name__"])]
    )
    harness = make_harness(prometheus, rules=former)
    harness.pass_time(1)
    parsed = parse_rulebook([load_documents("rules:" + "".join(now), "rules.yaml")], MadeUpObjects().resource)
    harness.readings.replace_rulebook(retained_in(parsed, rulebook_of(former)).rulebook)
    harness.pass_time(1)

    assert harness.pods("rps").series == series
    assert len(harness.readings.catalogue.custom) == 2
    assert harness.counter("tidewatch_adapter_rules", state="retained") == 1
    assert harness.counter("tidewatch_adapter_rules", state="refused") == 1
    assert harness.counter("tidewatch_adapter_rules", state="ok") == len(now) - 1


RESOURCES = """
resourceRules:
  cpu:
    containerQuery: sum by (<<.GroupBy>>) (cpu_used{<<.LabelMatchers>>})
    resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
    containerLabel: container
"""


def test_usage_is_served_by_the_last_good_rule_with_a_warning() -> None:
    sample = ({"namespace": "shop", "pod": "web-0", "container": "app"}, "2")
    prometheus = ScriptedPrometheus(answer=lambda _query: reply(sample))
    harness = make_harness(prometheus, rules=RESOURCES)
    pods, all_pods = find_resource(BUILT_IN, "", "pods"), BySelector(EVERYTHING)
    before = harness.readings.usage(pods, "shop", all_pods)
    assert (len(before.items), before.warnings) == (1, ())
    broken = RESOURCES.replace("<<.LabelMatchers>>", "<<.LabelMatcher>>")
    parsed = parse_rulebook([load_documents(broken, "rules.yaml")], MadeUpObjects().resource)
    harness.readings.replace_rulebook(retained_in(parsed, rulebook_of(RESOURCES)).rulebook)
    after = harness.readings.usage(pods, "shop", all_pods)
    assert (after.items, len(prometheus.asked)) == (before.items, 1)
    (warning,) = after.warnings
    assert "resourceRules.cpu, rules.yaml:" in warning
    assert "its last good version is used" in warning
    assert harness.counter("tidewatch_adapter_rules", state="retained") == 1
    assert harness.counter("tidewatch_adapter_rules", state="ok") == 0
