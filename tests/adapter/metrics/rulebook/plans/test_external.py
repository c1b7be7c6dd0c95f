"""The forms in which an external metric is queried once for all requests, and the text that is then sent."""

from __future__ import annotations

import pytest

from adapter.foundation.objects.selectors import EVERYTHING, parse_selector
from adapter.foundation.promql.tree_parser import parse_query
from adapter.metrics.rulebook.model import PlanKind
from adapter.metrics.rulebook.plans import plan_of, planned_query
from adapter.metrics.rulebook.plans.external import foldable, with_keys
from adapter.metrics.rulebook.plans.widening import NotProvenError
from adapter.metrics.rulebook.requests import Asked, Fold
from adapter.metrics.rulebook.templates.matchers import RenderError
from tests.support.plan_trials import external_metric

_F = "x{<<.LabelMatchers>>}"
_WIDE = 'x{namespace!=""}'
_QUEUE = frozenset({"queue"})


@pytest.mark.parametrize(
    ("template", "text", "fold"),
    [
        (_F, _WIDE, None),
        (f"sum by (namespace, queue, code) ({_F})", f"sum by (namespace, queue, code) ({_WIDE})", None),
        (f"avg without (pod) ({_F})", f"avg without (pod) ({_WIDE})", None),
        (f"sum({_F})", f"sum by (namespace, queue) ({_WIDE})", Fold("sum", ())),
        (f"sum({_F}) by ()", f"sum by (namespace, queue) ({_WIDE})", Fold("sum", ())),
        (f"sum({_F}) by (<<.GroupBy>>)", f"sum by (namespace, queue) ({_WIDE})", Fold("sum", ())),
        (f"SUM By (code) ({_F})", f"sum by (code, namespace, queue) ({_WIDE})", Fold("sum", ("code",))),
        (
            f"count by (queue, code) ({_F})",
            f"count by (code, namespace, queue) ({_WIDE})",
            Fold("count", ("code", "queue")),
        ),
        (f"( (min(  {_F} )))", f"min by (namespace, queue) (  {_WIDE} )", Fold("min", ())),
        (f"max(rate({_F}[2m]) > 1)", 'max by (namespace, queue) (rate(x{namespace!=""}[2m]) > 1)', Fold("max", ())),
        (f"sum({_F}) or vector(0)", f"sum by (namespace, queue) ({_WIDE})", Fold("sum", (), 0.0)),
        (
            f"(max by () ({_F})) or on () (vector((-1.5)))",
            f"max by (namespace, queue) ({_WIDE})",
            Fold("max", (), -1.5),
        ),
        (f"min({_F}) or vector(-(2))", f"min by (namespace, queue) ({_WIDE})", Fold("min", (), -2.0)),
        (
            f"# a ( in a comment\nsum( # another\n{_F} * on () group_left sum(y{{a=\"( or )\",b='\\'('}}) # (\n) # end",
            f"sum by (namespace, queue) ( # another\n{_WIDE} * on () group_left sum(y{{a=\"( or )\",b='\\'('}}) # (\n)",
            Fold("sum", ()),
        ),
        (
            f"sum(sum by (namespace, queue) ({_F}) / on (namespace, queue) {_F})",
            f"sum by (namespace, queue) (sum by (namespace, queue) ({_WIDE}) / on (namespace, queue) {_WIDE})",
            Fold("sum", ()),
        ),
    ],
)
def test_one_query_for_every_selector_and_namespace(template: str, text: str, fold: Fold | None) -> None:
    metric = external_metric(template)
    assert plan_of(metric, _QUEUE).kind is PlanKind.WIDE
    planned = planned_query(metric, Asked("shop", (), parse_selector("queue=a")), PlanKind.WIDE)
    assert (planned.text, planned.fold, planned.namespace_label) == (text, fold, "namespace")


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        (f"avg({_F})", "`avg by ()` drops `namespace`, `queue`"),
        (f"sum({_F}) * 2", "`sum by ()` drops `namespace`, `queue`"),
        (f"sum({_F}) / sum({_F})", "`sum by ()` drops"),
        (f"sum without (queue) ({_F})", "`sum without (queue)` drops `queue`"),
        (f"sum(sum by (namespace) ({_F}))", "`sum by (namespace)` drops `queue`"),
        (f"sum(topk(5, {_F}))", "`topk` selects among the series of all requests"),
        (f"sum by (code) ({_F}) or vector(0)", "`sum by (code)` drops `namespace`, `queue`"),
        (f"sum by (namespace, queue) ({_F}) or vector(0)", "`or vector(…)` adds a row without labels"),
        (f"{_F} or vector(0)", "`or vector(…)` adds a row without labels, unless it follows an outermost sum"),
        (f"sum({_F} or vector(0))", "`or vector(…)` adds a row without labels"),
        (f"(sum({_F}) or vector(0)) or vector(1)", "`sum by ()` drops"),
        (f"sum({_F}) or vector(time())", "`sum by ()` drops"),
        (f"sum({_F}) or vector(NaN)", "`sum by ()` drops"),
        (f"sum({_F}) or y", "`sum by ()` drops"),
        (f"{_F} or y", "`or` adds series that the request does not restrict"),
        (f"vector(0) or {_F}", "`or` adds series"),
        (f"absent({_F})", "`absent` returns a series"),
        (f"scalar({_F})", "`scalar` is a number only for exactly one series"),
        ("sum(x)", "does not use `.LabelMatchers`"),
        (f"y + on () group_left () {_F}", "`+` does not match by"),
        (f"sum({_F}", "the query cannot be analysed"),
    ],
)
def test_a_wide_plan_is_refused_with_the_reason(template: str, reason: str) -> None:
    plan = plan_of(external_metric(template), _QUEUE)
    assert plan.kind is PlanKind.EXACT
    assert reason in plan.reasons[PlanKind.WIDE]


def test_a_plan_depends_on_the_selected_labels() -> None:
    metric = external_metric("sum without (queue) (x{<<.LabelMatchers>>})")
    assert plan_of(metric).kind is PlanKind.WIDE
    assert plan_of(metric, frozenset({"code"})).kind is PlanKind.WIDE
    assert plan_of(metric, _QUEUE).kind is PlanKind.EXACT


@pytest.mark.parametrize("function", ["histogram_quantile(0.9, ", "histogram_fraction(0, 1, "])
def test_histogram_buckets_cannot_be_selected_by_le(function: str) -> None:
    metric = external_metric(f"{function}x{{<<.LabelMatchers>>}})")
    assert plan_of(metric, _QUEUE).kind is PlanKind.WIDE
    assert "cannot be distinguished by `le`" in plan_of(metric, frozenset({"le"})).reason


def test_without_a_selector_the_namespace_query_is_the_exact_one() -> None:
    metric = external_metric("topk(3, x{<<.LabelMatchers>>})")
    plan = plan_of(metric)
    assert plan.kind is PlanKind.NAMESPACE
    asked = Asked("shop", (), EVERYTHING)
    assert planned_query(metric, asked, PlanKind.NAMESPACE).text == planned_query(metric, asked, PlanKind.EXACT).text


def test_a_namespace_query_leaves_only_the_selector_to_be_filtered() -> None:
    metric = external_metric("sum(topk by (namespace) (3, x{<<.LabelMatchers>>})) or vector(0)")
    assert plan_of(metric).kind is PlanKind.NAMESPACE
    metric = external_metric("sum(sum by (queue) (x{<<.LabelMatchers>>})) or vector(0)")
    assert plan_of(metric, _QUEUE).kind is PlanKind.NAMESPACE
    planned = planned_query(metric, Asked("shop", (), parse_selector("queue=a")), PlanKind.NAMESPACE)
    assert planned.text == 'sum by (queue) (sum by (queue) (x{namespace="shop"}))'
    assert planned.fold == Fold("sum", (), 0.0)
    assert planned.namespace_label is None


def test_without_namespaces_only_the_selector_is_left_out() -> None:
    metric = external_metric("sum(x{<<.LabelMatchers>>})", namespaced=False)
    assert plan_of(metric, _QUEUE).kind is PlanKind.WIDE
    planned = planned_query(metric, Asked(None, (), parse_selector("queue=a")), PlanKind.WIDE)
    assert (planned.text, planned.namespace_label) == ("sum by (queue) (x{})", None)
    assert plan_of(metric, _QUEUE).reasons == {PlanKind.NAMESPACE: "no namespace restricts the query"}


def test_a_query_that_no_request_restricts_has_a_wide_plan() -> None:
    metric = external_metric("topk(3, x{<<.LabelMatchers>>})", namespaced=False)
    assert plan_of(metric).kind is PlanKind.WIDE


@pytest.mark.parametrize("template", ["{<<.LabelMatchers>>}", 'x{<<.LabelMatchers>>,job="a"}'])
def test_a_query_that_needs_matchers_stays_exact(template: str) -> None:
    plan = plan_of(external_metric(template, namespaced=False), _QUEUE)
    assert plan.kind is PlanKind.EXACT
    assert "cannot be analysed" in plan.reason


def test_an_unproven_query_is_never_edited() -> None:
    asked = Asked("shop", (), parse_selector("queue=a"))
    with pytest.raises(RenderError, match="has no wide plan for the selector 'queue=a'"):
        planned_query(external_metric("sum(x{<<.LabelMatchers>>}"), asked, PlanKind.WIDE)


def test_labels_that_need_quotes_keep_them() -> None:
    query = "sum by ('a.b') (x)"
    found = foldable(parse_query(query), _QUEUE)
    assert found is not None
    assert with_keys(query, found, _QUEUE) == 'sum by ("a.b", queue) (x)'


@pytest.mark.parametrize("text", ["sum(y)", "min(x)", "sum by (a) (x)", "x", "sum", "sum by (queue", "((", ""])
def test_an_edit_that_does_not_give_the_expected_tree_is_refused(text: str) -> None:
    found = foldable(parse_query("sum(x)"), _QUEUE)
    assert found is not None
    if text in {"min(x)", "sum by (a) (x)"}:
        # Only the argument is taken from the text: the operator and the labels come from the tree.
        assert with_keys(text, found, _QUEUE) == "sum by (queue) (x)"
        return
    with pytest.raises(NotProvenError, match="not found in the text"):
        with_keys(text, found, _QUEUE)
