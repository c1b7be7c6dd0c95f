"""The proof table, row by row, on metrics of pods and of nodes.

`F` stands for `http_requests_total{<<.LabelMatchers>>}`, which the request restricts, `G` for another such series, `C`
for `kube_pod_container_resource_limits`, which the request does not restrict, and `K` for `<<.GroupBy>>`.
"""

from __future__ import annotations

import re

import pytest

from adapter.foundation.promql.tree import SelectorNode, TreeMatcher
from adapter.foundation.promql.tree_parser import parse_query
from adapter.metrics.rulebook.model import PlanKind
from adapter.metrics.rulebook.plans import plan_of
from adapter.metrics.rulebook.plans.proof import prove_filterable
from adapter.metrics.rulebook.plans.widening import NotProvenError, Widening
from tests.support.plan_trials import custom_metric

_SHORT = {
    "F": "http_requests_total{<<.LabelMatchers>>}",
    "G": "http_errors_total{<<.LabelMatchers>>}",
    "C": "kube_pod_container_resource_limits",
    "K": "<<.GroupBy>>",
}


def spelled(short: str) -> str:
    return re.sub(r"\b[FGCK]\b", lambda letter: _SHORT[letter[0]], short)


@pytest.mark.parametrize(
    "short",
    [
        "F",
        'http_requests_total{code="200",<<.LabelMatchers>>,container!=""}',
        '{__name__=~"requests_.*",<<.LabelMatchers>>}',
        "http_requests_total{<<.LabelMatchers>>} @ end() offset 5m",
        "((F))",
        "-F",
        "rate(F[2m] offset 1m)",
        "max_over_time(sum by (K) (F)[10m:1m])",
        "max_over_time((F > 1)[10m:] @ start())",
        "abs(ceil(sqrt(F)))",
        "clamp(F, 0, scalar(sum(C)))",
        "timestamp(F)",
        "hour(F)",
        "sort_desc(F)",
        "holt_winters(F[5m], 0.5, 0.5)",
        "double_exponential_smoothing(F[5m], 0.5, 0.5)",
        "mad_over_time(F[5m])",
        "quantile_over_time(scalar(sum(C)), F[5m])",
        "predict_linear(F[5m], 60 * 5)",
        "histogram_quantile(0.9, sum by (le, K) (rate(F[5m])))",
        "histogram_quantile(scalar(sum(C)), F)",
        "histogram_fraction(0, 0.2, F)",
        "histogram_avg(F)",
        'label_replace(F, "short", "$1", "pod", "(.*)-.*")',
        'label_replace(F, "space", "$1", "namespace", "(.*)")',
        'label_replace(F, ("short"), "$1", "pod", "(.*)")',
        'label_join(sum by (K) (F), "both", "/", "pod", "code")',
        "sum by (K) (F)",
        "sum(F) by (K, code)",
        "sum by (namespace, K) (F)",
        "sum by (namespace, pod) (F)",
        "sum without (code) (F)",
        "sum without () (F)",
        "quantile by (K) (0.9, F)",
        "quantile by (K) (scalar(sum(C)), F)",
        "stdvar by (K) (stddev by (K, code) (F))",
        "F / 60",
        "time() - F",
        "pi() * F",
        "F > bool scalar(sum(C))",
        "F > (1 + 2)",
        "F / G",
        "F / (F + G)",
        "F / ignoring (code) G",
        "F / on (namespace, pod) G",
        "sum by (K) (F) / on (K) sum by (K) (G)",
        "sum by (K) (F) / sum by (K) (G)",
        "sum by (namespace, pod) (F) / G",
        "F / on (K) group_left sum by (K) (G)",
        "(F / on (K) group_left sum by (K) (G)) * G",
        "sum by (K) (F) / on (K) group_right () G",
        "F * ignoring (code) group_left (owner) G",
        "F and on (K) G",
        "F unless G",
        "F or G",
        "sum by (K) (F) or sum by (K) (G)",
        "F or on (namespace, pod) G",
        "F * C",
        "F * on (namespace, pod) C",
        "C * on (namespace, pod) F",
        "F * on (container) group_left () C",
        "F * on (container) group_left (owner) sum by (container, owner) (C)",
        "C * on (container) group_right (owner) F",
        "C * on (container) group_left (namespace, pod) F",
        "F * on (container) group_right (pod, namespace) C",
        "C * on (namespace, pod) group_left (owner) F",
        "F and C",
        "F and on (container) C",
        "F unless on () C",
        "F unless ignoring (namespace) C",
        "sum by (K) (F) and on (pod) C",
        "F or vector(0)",
        "F or (vector(scalar(sum(C))))",
        "F or on () vector(0)",
        "sum by (K) (F or vector(0)) / 2",
        "F * on () group_left () vector(2)",
        "F * on () group_left () absent(C)",
        "F > on () group_left () topk(1, C)",
    ],
)
def test_queries_have_a_proven_wide_plan(short: str) -> None:
    plan = plan_of(custom_metric(spelled(short)))
    assert plan.reasons == {}
    assert plan.kind is PlanKind.WIDE
    assert plan.proven == frozenset(PlanKind)


@pytest.mark.parametrize(
    ("short", "reason"),
    [
        ("C", "does not use `.LabelMatchers`"),
        ("sum by (pod) (C)", "does not use `.LabelMatchers`"),
        ("topk(1, F)", "`topk` selects among the series of all requests"),
        ("bottomk by (K) (1, F)", "`bottomk` selects among the series of all requests"),
        ("limitk(1, F)", "`limitk` selects"),
        ("limit_ratio(0.5, F)", "`limit_ratio` selects"),
        ('count_values by (K) ("value", F)', "`count_values` counts the values of all requests"),
        ("absent(F)", "`absent` returns a series when its argument has none"),
        ("absent_over_time(F[5m])", "`absent_over_time` returns a series"),
        ("F * scalar(F)", "`scalar` is a number only for exactly one series"),
        ("vector(scalar(F))", "`scalar` is a number only for exactly one series"),
        ("clamp_max(F, scalar(F))", "`scalar` is a number only"),
        ("info(F)", "`info` adds labels from other series"),
        ('histogram_quantiles(F, "q", 0.5, 0.9)', "`histogram_quantiles` is not known to work series by series"),
        ("sum(F)", "`sum by ()` drops `namespace`, `pod`"),
        ("sum by (namespace) (F)", "`sum by (namespace)` drops `pod`"),
        ("max without (pod) (F)", "`max without (pod)` drops `pod`"),
        ("max without (K) (F)", "`max without (namespace, pod)` drops `namespace`, `pod`"),
        ("quantile by (K) (scalar(F), F)", "the parameter of `quantile` depends on the request"),
        ('label_replace(F, "pod", "$1", "code", "(.*)")', "`label_replace` writes the label `pod`"),
        ('label_join(F, "pod", "-", "code")', "`label_join` writes the label `pod`"),
        ("F / on (container) G", "`/` matches series of different `namespace`, `pod`: on (container)"),
        ("F / ignoring (pod) G", "`/` matches series of different `pod`: ignoring (pod)"),
        ("F + fill (0) G", "`fill` of `+` makes values for series without a partner"),
        ("F + fill (0) C", "`fill` of `+` makes values"),
        ("F or C", "`or` adds series that the request does not restrict"),
        ("F or rate(C[5m])", "`or` adds series that the request does not restrict"),
        ("C or F", "`or` adds series that the request does not restrict"),
        ("vector(0) or F", "`or` adds series that the request does not restrict"),
        ("F or vector(0) * 2", "`or` adds series that the request does not restrict"),
        ("C and F", "the left side of `and` has series that the request does not restrict"),
        ("C unless F", "the left side of `unless` has series"),
        ("F * on (container) C", "`*` does not match by `namespace`, `pod`: on (container)"),
        ("F * ignoring (pod) C", "`*` does not match by `pod`: ignoring (pod)"),
        ("C * on (container) group_left () F", "`*` does not match by `namespace`, `pod`: on (container)"),
        ("F * on (container) group_left (pod) C", "`group_left` overwrites `pod`"),
        ("F * on (container) group_left (namespace, pod) C", "`group_left` overwrites `namespace`, `pod`"),
        ('http_requests_total{pod=~".*",namespace!=""} / 2', "does not use `.LabelMatchers`"),
        ("http_requests_total{<<.LabelMatchers>>} offset", "the query cannot be analysed"),
        ("not_yet_known(F)", "the query cannot be analysed: unknown function"),
        (
            'http_requests_total{job="<<.Series>>",<<.LabelMatchers>>,<<.LabelMatchers>>}',
            "a selector uses the request in another way",
        ),
        (
            'http_requests_total{namespace="<<index .LabelValuesByName "namespace">>",<<.LabelMatchers>>}',
            "the template computes",
        ),
        ('<<if eq .Series "x">>F<<else>>F<<end>>', "the template computes"),
        ('http_requests_total{<<.LabelMatchers>> or job="a"}', "an `or` between matchers depends on the request"),
        ("'<<.LabelMatchers>>'", "a literal depends on the request"),
    ],
)
def test_all_wider_plans_are_refused_with_the_reason(short: str, reason: str) -> None:
    plan = plan_of(custom_metric(spelled(short)))
    assert plan.kind is PlanKind.EXACT
    assert plan.reasons.keys() == {PlanKind.WIDE, PlanKind.NAMESPACE}
    assert reason in plan.reasons[PlanKind.WIDE]


@pytest.mark.parametrize(
    ("short", "reason"),
    [
        ("sum by (pod) (F)", "`sum by (pod)` drops `namespace`"),
        ("sum without (namespace) (F)", "`sum without (namespace)` drops `namespace`"),
        ("F / on (pod) G", "`/` matches series of different `namespace`: on (pod)"),
        ("F or on (pod) G", "`or` matches series of different `namespace`: on (pod)"),
        ('label_replace(F, "namespace", "x", "code", ".*")', "`label_replace` writes the label `namespace`"),
        ('label_replace(sum by (K) (F), "space", "$1", "namespace", "(.*)")', "`label_replace` reads `namespace`"),
        ('label_join(sum by (K) (F), "both", "/", "pod", "namespace")', "`label_join` reads `namespace`"),
        ('label_join(sum by (K) (F), "both", "/", "namespace", "pod")', "`label_join` reads `namespace`"),
        ('label_replace(F, "x", "$1", "K", "(.*)")', "a literal depends on the request"),
        ("sum by (K) (F) / G", "one side of `/` has lost `namespace` in the exact query"),
        ("sum by (namespace, pod) (sum by (K) (F)) / G", "one side of `/` has lost `namespace` in the exact query"),
        ("sum by (K) (F) or G", "one side of `or` has lost `namespace` in the exact query"),
        ("sum by (K) (F) or on (K) G", "one side of `or` has lost `namespace`"),
        ("(F * on (K) G) / on (namespace, pod) F", "one side of `/` has lost `namespace`"),
        (
            "sum by (K) (F) * on (namespace, pod) C",
            "`*` compares `namespace`, which the exact query no longer has there",
        ),
        ("sum by (K) (F) * ignoring (code) C", "`*` compares `namespace`, which the exact query no longer has there"),
        ("sum by (K) (F) and C", "`and` compares `namespace`, which the exact query no longer has there"),
        ("F * on (K) C", "`*` matches series that the request does not restrict, by labels that `.GroupBy` changes"),
        (
            "F and on (K) C",
            "`and` matches series that the request does not restrict, by labels that `.GroupBy` changes",
        ),
        ("F * on (container) group_left (K) sum by (K, container) (G)", "label lists of `*` differ"),
        ("F / ignoring (K) G", "label lists of `/` differ"),
        ("F * on (pod) sum by (K) (C)", "`sum` groups series that the request does not restrict"),
        ("C * on (container) group_left (pod) F", "`group_left` overwrites `pod`"),
    ],
)
def test_the_wide_plan_is_refused_with_the_reason(short: str, reason: str) -> None:
    plan = plan_of(custom_metric(spelled(short)))
    assert reason in plan.reasons[PlanKind.WIDE]


@pytest.mark.parametrize(
    "short",
    [
        "sum by (pod) (F)",
        "sum without (namespace) (F)",
        "F / on (pod) G",
        'label_replace(F, "namespace", "x", "code", ".*")',
        "sum by (K) (F) / G",
        "sum by (K) (F) or G",
        "(F * on (pod) G) or on (pod) G",
        "sum by (K) (F) * on (pod) sum by (K) (C)",
        "F * on (K) C",
        "C * on (container) group_left (K) F",
    ],
)
def test_queries_that_need_the_namespace_label_are_still_proven_for_one_namespace(short: str) -> None:
    plan = plan_of(custom_metric(spelled(short)))
    assert plan.kind is PlanKind.NAMESPACE
    assert plan.reason == plan.reasons[PlanKind.WIDE]


@pytest.mark.parametrize(
    ("short", "reason"),
    [
        ("F", None),
        ("sum by (K) (F)", None),
        ("sum by (K, mode) (F) / on (K) group_left sum by (K) (G)", None),
        ("F * on (node) C", None),
        ("sum by (mode) (F)", "`sum by (mode)` drops `node`"),
        ("topk by (node) (1, F)", "`topk` selects among the series of all requests"),
    ],
)
def test_cluster_scoped_objects_have_the_wide_plan_or_none(short: str, reason: str | None) -> None:
    plan = plan_of(custom_metric(spelled(short), nodes=True))
    assert plan.kind is (PlanKind.EXACT if reason else PlanKind.WIDE)
    assert plan.reasons.get(PlanKind.WIDE) == reason
    assert plan.reasons[PlanKind.NAMESPACE] == (reason or "no namespace restricts the query")
    assert plan.reason == (reason or "proven")


def test_the_selector_of_a_request_may_appear_in_both_forms() -> None:
    metric = custom_metric(spelled("sum by (K) (F)"))
    assert plan_of(metric, frozenset({"code", "namespace", "pod"})).kind is PlanKind.WIDE


def refusal(exact: str, wider: str, widening: Widening) -> str:
    """Return why the wider query is not proven; empty if it is."""
    try:
        prove_filterable(parse_query(exact), parse_query(wider), widening)
    except NotProvenError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("exact", "wider"),
    [
        ('x{pod="a"} + 1', 'x{pod!=""} + 2'),
        ('x{pod="a"} + 1', 'x{pod!=""} - 1'),
        ('x{pod="a"} > 1', 'x{pod!=""} > bool 1'),
        ('abs(x{pod="a"})', 'ceil(x{pod!=""})'),
        ('round(x{pod="a"})', 'round(x{pod!=""}, 5)'),
        ('sum by (pod) (x{pod="a"})', 'max by (pod) (x{pod!=""})'),
        ('sum by (pod) (x{pod="a"})', 'sum by (pod, code) (x{pod!=""})'),
        ('sum by (pod) (x{pod="a"})', 'sum without (code) (x{pod!=""})'),
        ('sum without (job) (x{pod="a"})', 'sum without (code) (x{pod!=""})'),
        ('x{pod="a"}', 'y{pod!=""}'),
        ('x{pod="a",job="j"}', 'x{pod!=""}'),
        ('x{pod="a"} offset 1m', 'x{pod!=""} offset 2m'),
        ('x{pod="a"}', '(x{pod!=""})'),
        ('x{pod="a"}', '-x{pod!=""}'),
        ('x{pod="a"} / on (pod) x{pod="a"}', 'x{pod!=""} / on (pod, code) x{pod!=""}'),
        ('x{pod="a"} / on (pod) x{pod="a"}', 'x{pod!=""} / on (pod) group_left () x{pod!=""}'),
        ('x{pod="a"} + x{pod="a"}', 'x{pod!=""} + fill (0) x{pod!=""}'),
        ('x{pod="a"} * on (code) group_left () y', 'x{pod!=""} * on (job) group_left () y'),
        ('x{pod="a"} * y', 'x{pod!=""} * z'),
        ('x{pod="b"}', 'x{pod!=""}'),
        ('label_replace(x{pod="a"}, "b", "", "", "")', 'label_replace(x{pod!=""}, "c", "", "", "")'),
        ('x{pod="a"}', "1 + 1"),
    ],
)
def test_forms_that_differ_in_more_than_the_matchers_are_refused(exact: str, wider: str) -> None:
    widening = Widening(frozenset({"pod"}), (TreeMatcher("pod", "=", "a"),), (TreeMatcher("pod", "!=", ""),))
    assert refusal(exact, wider, widening)
    assert bool(refusal(exact, exact.replace('pod="a"', 'pod!=""'), widening)) is ('pod="b"' in exact)


def test_matchers_beside_an_or_are_refused() -> None:
    one, all_of_them = TreeMatcher("pod", "=", "a"), TreeMatcher("pod", "!=", "")
    alternatives = ((TreeMatcher("job", "=", "j"),),)
    widening = Widening(frozenset({"pod"}), (one,), (all_of_them,))
    with pytest.raises(NotProvenError, match="a selector uses the request in another way"):
        prove_filterable(
            SelectorNode((one,), alternatives, ""), SelectorNode((all_of_them,), alternatives, ""), widening
        )


def test_series_cannot_be_distinguished_by_their_name() -> None:
    widening = Widening(
        frozenset({"__name__"}), (TreeMatcher("__name__", "=", "x"),), (TreeMatcher("__name__", "!=", ""),)
    )
    assert "name" in refusal('{__name__="x"}', '{__name__!=""}', widening)
