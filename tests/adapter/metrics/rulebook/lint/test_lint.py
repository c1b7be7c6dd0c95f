"""Lint findings about valid rules, each beside similar rules that must have none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adapter.foundation.documents.load import load_documents
from adapter.foundation.objects.resources import BUILT_IN, Resource, find_resource
from adapter.metrics.readings.readings_settings import ReadingSettings
from adapter.metrics.rulebook.lint import lint
from adapter.metrics.rulebook.lint.rule_checks import LONGEST_REFRESH_SECONDS
from adapter.metrics.rulebook.parsing.parse import parse_rulebook

if TYPE_CHECKING:
    from adapter.metrics.rulebook.findings import Finding

POD = "overrides: {namespace: {resource: namespace}, pod: {resource: pod}}"
GOOD_QUERY = "sum by (<<.GroupBy>>) (rate(<<.Series>>{<<.LabelMatchers>>}[2m]))"


def resolve(group: str, name: str) -> Resource:
    return find_resource(BUILT_IN, group, name)


def findings(*texts: str) -> list[Finding]:
    documents = [load_documents(text, f"file{number}.yaml") for number, text in enumerate(texts)]
    rulebook = parse_rulebook(documents, resolve)
    assert not rulebook.refused, [str(finding) for finding in rulebook.findings]
    return list(lint(documents, rulebook, resolve))


def rule(
    query: str = GOOD_QUERY,
    *,
    series: str = "http_requests_total",
    resources: str = POD,
    more: str = "",
) -> str:
    return f"- seriesQuery: '{series}'\n  resources: {{{resources}}}\n  metricsQuery: '{query}'\n{more}"


def codes(*rules: str, external: bool = False) -> list[str]:
    return [finding.code for finding in findings(f"{'externalRules' if external else 'rules'}:\n{''.join(rules)}")]


def test_a_good_rule_gives_no_finding() -> None:
    assert codes(rule()) == []


@pytest.mark.parametrize(
    ("query", "found"),
    [
        pytest.param("sum(rate(<<.Series>>{<<.LabelMatchers>>}[2m]))", True, id="summed over all pods"),
        pytest.param("sum by (namespace) (rate(<<.Series>>{<<.LabelMatchers>>}[2m]))", True, id="by another label"),
        pytest.param("sum without (pod) (rate(<<.Series>>{<<.LabelMatchers>>}[2m]))", True, id="without it"),
        pytest.param("vector(1)", True, id="a number"),
        pytest.param("rate(<<.Series>>{<<.LabelMatchers>>}[2m])", False, id="no aggregation"),
        pytest.param("sum without (job) (rate(<<.Series>>{<<.LabelMatchers>>}[2m]))", False, id="without others"),
        pytest.param("sum by (pod) (rate(<<.Series>>{<<.LabelMatchers>>}[2m]))", False, id="written out"),
        pytest.param(
            'sum by (pod) (label_replace(rate(<<.Series>>{<<.LabelMatchers>>}[2m]), "pod", "$1", "x", "(.*)"))',
            False,
            id="a label that is made",
        ),
        pytest.param(
            "sum by (pod) (rate(<<.Series>>{<<.LabelMatchers>>}[2m])) / on (pod) group_left () "
            "sum by (pod) (kube_pod_info{<<.LabelMatchers>>})",
            False,
            id="join on it",
        ),
        pytest.param(
            "sum by (pod) (rate(<<.Series>>{<<.LabelMatchers>>}[2m])) / ignoring (pod) "
            "sum by (pod) (kube_pod_info{<<.LabelMatchers>>})",
            True,
            id="join that ignores it",
        ),
        pytest.param("rate(<<.Series>>{<<.LabelMatchers>>}[2m]) or vector(0)", False, id="one side of or"),
    ],
)
def test_an_answer_without_the_label_of_the_object_is_found(query: str, *, found: bool) -> None:
    assert ("no-group-by" in codes(rule(query))) == found


@pytest.mark.parametrize(
    ("series", "query", "more", "found"),
    [
        ("a_total", "sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})", "", True),
        ("a_bucket", "sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})", "", True),
        ("a_total", "sum by (<<.GroupBy>>) (sum_over_time(<<.Series>>{<<.LabelMatchers>>}[1m]))", "", True),
        ("a_total", "sum by (<<.GroupBy>>) (increase(<<.Series>>{<<.LabelMatchers>>}[1m]))", "", False),
        ("a_total", "sum by (<<.GroupBy>>) (rate(<<.Series>>{<<.LabelMatchers>>}[1m:10s]))", "", False),
        ("a_total", "count by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})", "", False),
        ("a_count", "sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})", "", False),
        ("a_connections", "sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})", "", False),
        (
            '{__name__=~"a_.*"}',
            "sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})",
            "  seriesFilters: [{is: _total$}]\n",
            True,
        ),
        (
            '{__name__=~"a_.*"}',
            "sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})",
            "  seriesFilters: [{isNot: _total$}]\n",
            False,
        ),
    ],
)
def test_counters_used_without_rate_are_found(series: str, query: str, more: str, *, found: bool) -> None:
    assert ("counter-without-rate" in codes(rule(query, series=series, more=more))) == found


@pytest.mark.parametrize(
    ("series", "found"),
    [
        ('{namespace!=""}', True),
        ('{__name__!~"^container_.*",namespace!=""}', True),
        ('{__name__=~".+"}', True),
        ('{__name__=~".*",pod!=""}', True),
        ('{__name__=~"^container_.*",namespace!=""}', False),
        ('{job="api",namespace!=""}', False),
        ("http_requests_total", False),
        ('http_requests_total{namespace!=""}', False),
    ],
)
def test_series_queries_that_select_everything_are_found(series: str, *, found: bool) -> None:
    assert ("matches-everything" in codes(rule(series=series))) == found


OURS = "tidewatch_recommended_replicas"
TARGET = "overrides: {target_namespace: {resource: namespace}, target_name: {group: apps, resource: deployment}}"
MAX = "max by (<<.GroupBy>>) (<<.Series>>{%s<<.LabelMatchers>>})"


@pytest.mark.parametrize(
    ("series", "query", "found"),
    [
        pytest.param(f'{OURS}{{target_name!=""}}', MAX % "", True, id="of any exporter"),
        pytest.param(f'{OURS}{{namespace="t"}}', MAX % 'namespace="t",', False, id="of one namespace"),
        pytest.param(f'{OURS}{{job="t"}}', MAX % 'job=~"t|u",', False, id="of some jobs"),
        pytest.param(f'{OURS}{{namespace="t"}}', MAX % "", True, id="found in one, queried in all"),
        pytest.param(OURS, MAX % 'namespace="t",', True, id="queried in one, found in all"),
        pytest.param(f'{OURS}{{namespace!="evil"}}', MAX % 'namespace!="evil",', True, id="but for one namespace"),
        pytest.param(f'{OURS}{{namespace=~".+"}}', MAX % 'namespace=~".+",', True, id="of any namespace"),
        pytest.param(
            f'{OURS}{{recommendation="a"}}', MAX % 'recommendation="a",', True, id="by a label of the exporter"
        ),
        pytest.param('{__name__=~"^tidewatch_.*"}', MAX % "", True, id="by a pattern"),
        pytest.param(
            "queue", "max by (<<.GroupBy>>) (queue{<<.LabelMatchers>>} * on () tidewatch_leader)", True, id="in passing"
        ),
        pytest.param("other_replicas", MAX % "", False, id="not ours"),
    ],
)
def test_tidewatch_series_from_any_exporter_are_found(series: str, query: str, *, found: bool) -> None:
    assert ("series-of-anybody" in codes(rule(query, series=series, resources=TARGET))) == found


@pytest.mark.parametrize(("source", "found"), [('namespace!=""', True), ('namespace="t"', False)])
def test_tidewatch_series_chosen_by_a_filter_are_found(source: str, *, found: bool) -> None:
    chosen = "  seriesFilters: [{is: ^tidewatch_.*}]\n"
    text = rule(MAX % 'namespace="t",', series=f"{{{source}}}", resources=TARGET, more=chosen)
    assert ("series-of-anybody" in codes(text)) == found


def test_a_rule_that_loses_its_name_to_a_later_one_is_found() -> None:
    named = "  name: {as: rps}\n"
    found = findings(f"rules:\n{rule(more=named)}", f"rules:\n{rule(series='other_total', more=named)}")

    assert [(finding.code, finding.rule) for finding in found] == [("name-collision", "rules[0]")]
    assert "pods/rps" in found[0].message
    assert "rules[1] (file1.yaml:2)" in found[0].message


def test_rules_with_the_same_pattern_collide_too() -> None:
    assert codes(rule(series='{__name__=~"http_.*"}'), rule(series='{__name__=~"http_.*"}')) == ["name-collision"]


def test_rules_for_other_objects_do_not_collide() -> None:
    pods = rule(resources="overrides: {pod: {resource: pod}, namespace: {resource: namespace}}")
    services = rule(resources="overrides: {namespace: {resource: namespace}, service: {resource: service}}")

    assert codes(pods, services) == [], "the metric on the namespace, which both make, is a by-product"
    assert codes(rule(more="  name: {as: a}\n"), rule(more="  name: {as: b}\n")) == []


def test_a_rule_for_namespaces_alone_collides_with_one_that_also_describes_them() -> None:
    namespaces = rule(resources="overrides: {namespace: {resource: namespace}}")
    pods = rule(resources="overrides: {pod: {resource: pod}, namespace: {resource: namespace}}")

    assert codes(namespaces, pods) == ["name-collision"]


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        pytest.param("<<.Series>>{<<.LabelMatchers>>}", False, id="the series"),
        pytest.param("up{<<.LabelMatchers>>}", False, id="another name"),
        pytest.param('{__name__=~"http_.+",<<.LabelMatchers>>}', False, id="a pattern of names"),
        pytest.param("{<<.LabelMatchers>>}", True, id="none"),
        pytest.param("up{<<.LabelMatchers>>} + {<<.LabelMatchers>>}", True, id="none in one of two"),
    ],
)
def test_a_selector_without_a_metric_name_is_found(selector: str, found: bool) -> None:  # noqa: FBT001 - a table's column
    query = f"sum by (<<.GroupBy>>) ({selector})"
    made = codes(rule(query, series="http_requests"))
    assert ("no-metric-name" in made) is found


@pytest.mark.parametrize(
    ("name", "selector", "lines"),
    [
        ("http.requests", "<<.Series>>{<<.LabelMatchers>>}", [4]),
        ("my-metric", "<<.Series>>{<<.LabelMatchers>>}", [4]),
        ("http.requests", '{"<<.Series>>",<<.LabelMatchers>>} + <<.Series>>{<<.LabelMatchers>>}', [4]),
        ("http.requests", '{__name__=~"<<.Series>>",<<.LabelMatchers>>}', [4]),
        ("http.requests", '{"<<.Series>>",<<.LabelMatchers>>}', []),
        ("http.requests", '{__name__="<<.Series>>",<<.LabelMatchers>>}', []),
        ("http.requests", "up{<<.LabelMatchers>>}", []),
        ("http requests", '{"<<.Series>>",<<.LabelMatchers>>}', [2]),
        ("http:requests", "<<.Series>>{<<.LabelMatchers>>}", []),
    ],
)
def test_a_stated_name_that_the_query_cannot_contain(name: str, selector: str, lines: list[int]) -> None:
    doubtful = rule(f"sum by (<<.GroupBy>>) ({selector})", series=f'{{__name__="{name}"}}')
    found = findings(f"rules:\n{doubtful}")

    assert [one.line for one in found if one.code == "unquoted-series"] == lines


def test_a_rule_with_only_an_exact_plan_is_found_with_the_reason() -> None:
    (found,) = findings(f"rules:\n{rule('topk(3, rate(<<.Series>>{<<.LabelMatchers>>}[2m]))')}")

    assert found.code == "exact-plan"
    assert "topk" in found.message


VALUE = 'queue{}"<<index .LabelValuesByName "queue">>"'
EXCLUDED = "compares 'queue' by an operator of its own: queue!=a gets the values of a"
OF_NAMESPACE = 'namespace="<<.LabelValuesByName.namespace>>"'


@pytest.mark.parametrize(
    ("matchers", "words"),
    [
        pytest.param(
            f"{OF_NAMESPACE},{VALUE.format('=')}",
            f"{EXCLUDED}, and queue in (a,b) gets no value",
            id="equal",
        ),
        pytest.param(
            f"{OF_NAMESPACE},{VALUE.format('=~')}",
            EXCLUDED,
            id="pattern",
        ),
        pytest.param(
            f'{OF_NAMESPACE},topic="<<.LabelValuesByName.queue>>"',
            f"{EXCLUDED}, and queue in (a,b) gets no value",
            id="a label with another name",
        ),
        pytest.param(
            '<<range $k, $v := .LabelValuesByName>><<$k>>="<<$v>>",<<end>>',
            "compares labels by an operator of its own: x!=a gets the values of a, and x in (a,b) gets no value",
            id="all labels",
        ),
        pytest.param(OF_NAMESPACE, None, id="only the namespace"),
        pytest.param(f"<<.LabelMatchers>>,{VALUE.format('=')}", None, id="also as requested"),
        pytest.param('<<.LabelMatchers>>,__name__="<<.LabelValuesByName.series>>"', None, id="the name of the series"),
        pytest.param(f'{OF_NAMESPACE},_x_="<<.LabelValuesByName._x_>>"', None, id="no label of a selector"),
        pytest.param("<<.LabelMatchers>>", None, id="matchers"),
    ],
)
def test_values_behind_an_operator_of_the_template_are_found(matchers: str, words: str | None) -> None:
    resources = "overrides: {namespace: {resource: namespace}}"
    found = findings(f"externalRules:\n{rule(f'sum(q{{{matchers}}})', series='q', resources=resources)}")

    message = None if words is None else f"`metricsQuery` {words}"
    assert [each.message for each in found if each.code == "operator-ignored"] == ([message] if message else [])


@pytest.mark.parametrize(("operator", "found"), [("=", True), ("=~", False)])
def test_several_objects_compared_by_equality_are_found(operator: str, *, found: bool) -> None:
    query = f'sum by (pod) (q{{{OF_NAMESPACE},pod{operator}"<<.LabelValuesByName.pod>>"}})'
    words = "`metricsQuery` compares 'pod' by =, so a request for several objects has no value"
    given = findings(f"rules:\n{rule(query, series='q')}")

    assert [each.message for each in given if each.code == "operator-ignored"] == ([words] if found else [])


def test_external_rules_are_checked_too() -> None:
    namespace = "overrides: {namespace: {resource: namespace}}"
    assert codes(rule("sum(rate(<<.Series>>{<<.LabelMatchers>>}[2m]))", resources=namespace), external=True) == []
    assert codes(rule("sum(<<.Series>>{<<.LabelMatchers>>})", resources=namespace), external=True) == [
        "counter-without-rate"
    ]


def test_a_finding_has_its_file_line_and_column() -> None:
    (found,) = findings(f"rules:\n{rule('sum(rate(<<.Series>>{<<.LabelMatchers>>}[2m]))')}")

    assert (found.file, found.line, found.column, found.rule) == ("file0.yaml", 4, 17, "rules[0]")


def test_refused_rules_have_no_further_findings() -> None:
    documents = [load_documents("rules:\n- {seriesQuery: a, metricsQuery: b}", "rules.yaml")]
    rulebook = parse_rulebook(documents, resolve)

    assert lint(documents, rulebook, resolve) == ()


@pytest.mark.parametrize(("refresh", "found"), [("49s", []), ("50s", ["long-refresh"]), ("10h", ["long-refresh"])])
def test_a_refresh_interval_that_is_too_long_is_found(refresh: str, found: list[str]) -> None:
    assert codes(rule(more=f"  refresh: {refresh}\n")) == found


def test_the_longest_refresh_follows_from_the_default_flags() -> None:
    assert ReadingSettings().longest_refresh_seconds == LONGEST_REFRESH_SECONDS


LM = "{<<.LabelMatchers>>}"
RATIO = f"sum by (<<.GroupBy>>) (errors{LM}) / sum by (<<.GroupBy>>) (requests{LM})"


@pytest.mark.parametrize(
    ("query", "is_found"),
    [
        (f"sum by (<<.GroupBy>>) (rate(busy{LM}[2 * 1h]))", True),
        (f"sum by (<<.GroupBy>>) (rate(busy{LM}[1h] offset (2 * 1h)))", True),
        (f"sum by (<<.GroupBy>>) (rate(busy{LM}[1h] smoothed))", False),
        (f"sum by (<<.GroupBy>>) (rate(busy{LM}[1h]))", False),
    ],
)
def test_a_stand_in_that_is_never_served_is_found(query: str, *, is_found: bool) -> None:
    assert ("no-data-not-served" in codes(rule(query, series="busy", more="  onNoData: 0\n"))) is is_found
    assert "no-data-not-served" not in codes(rule(query, series="busy"))


@pytest.mark.parametrize(
    ("query", "missing"),
    [
        (f"busy{LM} * on (namespace, pod) group_left () kube_pod_info{LM}", "kube_pod_info"),
        (RATIO, "requests"),
        (f"clamp_max(({RATIO}), 1) * 100", "requests"),
        (f"busy{LM} and on (pod) ready{LM}", "ready"),
        (f"<<.Series>>{LM} / 2", None),
        (f'requests{{code="500",<<.LabelMatchers>>}} / requests{LM}', None),
        (f"busy{LM} or idle{LM}", None),
        (f"busy{LM} unless gone{LM}", None),
    ],
)
def test_a_stand_in_for_a_query_of_several_series_is_found(query: str, missing: str | None) -> None:
    text = "rules:\n" + rule(query, series="busy", more="  onNoData: 0\n")
    found = [one for one in findings(text) if one.code == "no-data-of-several"]

    assert len(found) == (missing is not None)
    assert all(f"when only {missing} is missing" in one.message and one.line == 5 for one in found)
    for key in ("onNoData: empty", "onNoData: 0\n  maxSampleAge: 1m", "refresh: 10s"):
        assert "no-data-of-several" not in codes(rule(query, series="busy", more=f"  {key}\n"))


@pytest.mark.parametrize(
    ("query", "resources", "more", "found"),
    [
        ("sum(x) by (namespace)", POD, "", True),
        ("sum(x) by (namespace)", POD, "  foreignNamespaces: allow\n", False),
        ("sum(x) by (namespace)", POD, "  foreignNamespaces: error\n", False),
        ("sum(x) by (queue)", "namespaced: false", "", False),
        ("sum(x{<<.LabelMatchers>>}) by (namespace)", POD, "", False),
    ],
)
def test_an_external_rule_that_returns_rows_of_all_namespaces_is_found(
    query: str, resources: str, more: str, *, found: bool
) -> None:
    text = rule(query, resources=resources, more=more)
    assert ("rows-of-all-namespaces" in codes(text, external=True)) is found
