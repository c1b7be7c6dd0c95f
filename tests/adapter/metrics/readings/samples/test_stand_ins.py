"""A value stands in for no data only where Prometheus has none, whatever it answers and however widely it was asked."""

from __future__ import annotations

import json
import math
import re
from functools import cache
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from adapter.foundation.objects.selectors import EVERYTHING, parse_selector
from adapter.metrics.readings.answers import ByName, BySelector
from adapter.metrics.readings.errors import ReadingError
from adapter.metrics.readings.readings_settings import ReadingSettings
from adapter.metrics.readings.samples.no_data_and_sample_age import STANDS_IN
from tests.support.readings import MadeUpObjects, Reply, ScriptedPrometheus, make_harness

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.objects.selectors import Selector
    from tests.support.readings import Harness

STAND_IN = 987654.0
SPACES = ("shop", "bank")
PODS = ("web-0", "web-1")
OBJECTS = MadeUpObjects({name: list(PODS) for name in SPACES})

_RULE = """
- seriesQuery: '{name}{{namespace!=""}}'
  resources: {{overrides: {{namespace: {{resource: namespace}}{pod}}}}}
  metricsQuery: {query}
  onNoData: 987654
  foreignNamespaces: {foreign}
"""
SHARED = "<<.Series>>{<<.LabelMatchers>>}"
EXACT = "topk(9, <<.Series>>{<<.LabelMatchers>>})"
RENAMED = 'label_replace(<<.Series>>{<<.LabelMatchers>>}, "pod", "$1", "name", "(.*)")'
"""A query that gives series with other names than those of the selected ones."""
QUERIES = {"shared": SHARED, "exact": EXACT, "renamed": RENAMED, "fixed": "rows"}


def _rules(foreign: str) -> str:
    def of(api: str, pod: str) -> str:
        made = (
            _RULE.format(name=name, query=json.dumps(text), pod=pod, foreign=foreign) for name, text in QUERIES.items()
        )
        return f"{api}:{''.join(made)}"

    return "\n".join((of("rules", ", pod: {resource: pod}"), of("externalRules", "")))


labels = st.fixed_dictionaries(
    {},
    optional={
        "namespace": st.sampled_from((*SPACES, "lab")),
        "pod": st.sampled_from((*PODS, "db-0")),
        "queue": st.sampled_from("ab"),
    },
)
values = st.sampled_from(["0", "1", "-2.5", "NaN", "+Inf", "-Inf"])
samples = st.lists(st.tuples(labels, values), max_size=4).map(tuple)
replies = st.builds(
    Reply, samples, late=st.one_of(st.just(()), samples), histograms=st.lists(labels, max_size=2).map(tuple)
)
asked = st.sampled_from((None, BySelector(parse_selector("app=web")), *map(ByName, PODS)))
selectors = st.sampled_from((EVERYTHING, parse_selector("queue=a")))


@cache
def _harness(foreign: str, limit: int) -> tuple[Harness, ScriptedPrometheus]:
    prometheus = ScriptedPrometheus()
    harness = make_harness(
        prometheus, rules=_rules(foreign), objects=OBJECTS, settings=ReadingSettings(namespace_plan_limit=limit)
    )
    return harness, prometheus


def _sent(found: Reply, query: str) -> Reply:
    """Return the rows that a Prometheus selects by the query's matchers; all of them if the query has none."""

    def fits(labels: Mapping[str, str]) -> bool:
        return all(_matches(labels.get(label, ""), sign, value) for label, sign, value in wanted)

    wanted = re.findall(r'(\w+)(=~|!=|=)"([^"]*)"', query)
    if "label_replace" in query:
        wanted = [one for one in wanted if one[0] != "pod"]
    return Reply(
        tuple(pair for pair in found.samples if fits(pair[0])),
        late=tuple(pair for pair in found.late if fits(pair[0])),
        histograms=tuple(one for one in found.histograms if fits(one)),
    )


def _matches(value: str, sign: str, wanted: str) -> bool:
    if sign == "=~":
        return re.fullmatch(wanted, value) is not None
    return (value == wanted) is (sign == "=")


def _has_data(found: Reply, query: str, names: tuple[str, ...] | None, namespace: str, selector: Selector) -> bool:
    """Return whether the exact query's answer has more than NaN for the request."""
    exact = [f'namespace="{namespace}"', *(f'{one.key}="{one.values[0]}"' for one in selector.requirements)]
    if names is not None and query != "renamed":
        exact.append(f'pod=~"{"|".join(names)}"')
    answer = found if query == "fixed" else _sent(found, ",".join(exact))
    return bool(answer.late or answer.histograms or any(not math.isnan(float(value)) for _, value in answer.samples))


@pytest.mark.parametrize(("foreign", "limit"), [("error", 0), ("allow", 4)], ids=["asked widely", "by namespace"])
@settings(max_examples=75, deadline=None)
@example(Reply((({"namespace": "lab", "pod": "web-0"}, "7"),)), "fixed", ByName("web-0"), "shop", EVERYTHING)
@example(Reply((({"namespace": "lab", "pod": "db-0"}, "7"),)), "fixed", BySelector(EVERYTHING), "shop", EVERYTHING)
@example(Reply((({"namespace": "shop", "pod": "db-0"}, "7"),)), "fixed", ByName("web-0"), "shop", EVERYTHING)
@example(Reply((({"namespace": "shop", "pod": "db-0"}, "7"),)), "renamed", BySelector(EVERYTHING), "shop", EVERYTHING)
@example(Reply((({"namespace": "shop"}, "7"),)), "fixed", BySelector(EVERYTHING), "shop", EVERYTHING)
@example(Reply((), late=(({"namespace": "shop"}, "7"),)), "shared", None, "shop", EVERYTHING)
@given(replies, st.sampled_from(sorted(QUERIES)), asked, st.sampled_from(SPACES), selectors)
def test_a_value_stands_in_only_if_the_answer_is_empty_for_the_request(
    foreign: str,
    limit: int,
    found: Reply,
    query: str,
    which: ByName | BySelector | None,
    namespace: str,
    selector: Selector,
) -> None:
    harness, prometheus = _harness(foreign, limit)
    prometheus.answer = lambda text: _sent(found, text)
    harness.pass_time(700, step=700)
    harness.pass_time(5, step=5)
    names = PODS if isinstance(which, BySelector) else None if which is None else (which.name,)
    try:
        if which is None:
            given = harness.readings.external(harness.external(query), namespace, selector)
            served = [row.value for row in given.rows]
        else:
            answer = harness.readings.objects(harness.pods(query), namespace, which, selector)
            served, given = [value for _, value in answer.values], answer  # type: ignore[assignment]
    except ReadingError:
        return
    stood_in = STAND_IN in served
    assert stood_in == (STANDS_IN in given.warnings)
    assert not (stood_in and _has_data(found, query, names, namespace, selector))
    assert all(math.isfinite(value) for value in served)
