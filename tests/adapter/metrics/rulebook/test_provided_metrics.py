"""The metrics that a rule makes from series."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.objects.selectors import EVERYTHING
from adapter.metrics.readings.catalogue.catalogue import metric_in_namespace
from adapter.metrics.readings.explain.explanation import Question
from adapter.metrics.readings.explain.sample_ages import timestamps_query
from adapter.metrics.rulebook.model import PlanKind
from adapter.metrics.rulebook.plans import plan_of, planned_query
from adapter.metrics.rulebook.plans.sample_age import times_of
from adapter.metrics.rulebook.provided_metrics import SeriesShapes, metrics_by_name, static_metrics
from adapter.metrics.rulebook.requests import Asked
from tests.support.metrics import merge_metrics, metrics_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from adapter.foundation.objects.resources import ResolveResource
    from adapter.metrics.rulebook.model import Metric, Rule, Rulebook

OVERRIDES = "{overrides: {namespace: {resource: namespace}, pod: {resource: pod}, node: {resource: node}}}"
TEMPLATE = "{template: <<.Resource>>}"


@pytest.fixture
def rule(read: Callable[..., Rulebook]) -> Callable[..., Rule]:
    """Return a function that makes a rule with the given texts under its keys."""

    def make(key: str = "rules", **changes: str) -> Rule:
        lines = {"seriesQuery": "up", "resources": OVERRIDES, "metricsQuery": "up{<<.LabelMatchers>>}"} | changes
        text = "".join(f"  {name}: {value}\n" for name, value in lines.items()).replace("  ", "- ", 1)
        (made,) = read(f"{key}:\n{text}").rules
        return made

    return make


def names(metrics: Iterable[Metric]) -> list[tuple[str, str | None, str | None]]:
    return [(metric.qualified, metric.object_label, metric.namespace_label) for metric in metrics]


def series(name: str, *labels: str) -> dict[str, str]:
    return {"__name__": name} | dict.fromkeys(labels, "x")


def test_each_label_that_names_objects_makes_a_metric(rule: Callable[..., Rule], resolve: ResolveResource) -> None:
    found = metrics_of(rule(), [series("rps", "namespace", "pod", "node", "verb")], resolve)
    assert names(found) == [
        ("namespaces/rps", "namespace", None),
        ("nodes/rps", "node", None),
        ("pods/rps", "pod", "namespace"),
    ]
    # Scope is a matter of the kind of object alone.
    assert [metric.namespaced for metric in found] == [False, False, True]
    assert {metric.series for metric in found} == {"rps"}


def test_resources_are_the_union_over_all_series_of_a_name(rule: Callable[..., Rule], resolve: ResolveResource) -> None:
    found = metrics_of(rule(), [series("rps", "pod"), series("rps", "node"), series("other")], resolve)
    assert names(found) == [("nodes/rps", "node", None), ("pods/rps", "pod", "namespace")]


def test_a_template_finds_objects_in_labels(rule: Callable[..., Rule], resolve: ResolveResource) -> None:
    labels = ("namespace", "service", "job", "container", "brand", "persistentvolume")
    found = metrics_of(rule(resources=TEMPLATE), [series("rps", *labels)], resolve)
    assert names(found) == [
        ("brands.cheese.io/rps", "brand", "namespace"),
        ("jobs.batch/rps", "job", "namespace"),
        ("namespaces/rps", "namespace", None),
        ("persistentvolumes/rps", "persistentvolume", None),
        ("services/rps", "service", "namespace"),
    ]


def test_filters_select_series_and_the_name_renames_them(rule: Callable[..., Rule], resolve: ResolveResource) -> None:
    picky = rule(seriesFilters="[{is: ^http_}, {isNot: _seconds}]", name="{matches: ^http_(.*)_total$, as: '${1}'}")
    all_series = [
        series(name, "pod")
        for name in ("http_requests_total", "http_wait_seconds_total", "http_open", "my_http_x_total", "http__total")
    ]
    found = metrics_of(picky, all_series, resolve)
    # `http__total` would get an empty name, which cannot be requested.
    assert [(metric.name, metric.series) for metric in found] == [("requests", "http_requests_total")]


def test_a_name_with_a_slash_is_skipped(rule: Callable[..., Rule], resolve: ResolveResource) -> None:
    found = metrics_of(rule(name="{matches: '.*'}"), [series("a/b", "pod"), series("a", "pod")], resolve)
    assert [metric.name for metric in found] == ["a"]


BARE = "'<<.Series>>{<<.LabelMatchers>>}'"
QUOTED = """'sum by (<<.GroupBy>>) ({"<<.Series>>",<<.LabelMatchers>>})'"""


@pytest.mark.parametrize("query", [BARE, QUOTED, "up{<<.LabelMatchers>>}"])
@pytest.mark.parametrize("name", ["", "x} or up{", 'a"b', "a\\b", "a'b", "é", "a b", "1a"])
def test_a_series_whose_name_cannot_be_queried_is_skipped(
    name: str, query: str, rule: Callable[..., Rule], resolve: ResolveResource
) -> None:
    assert metrics_of(rule(metricsQuery=query), [series(name, "pod")], resolve) == []


BARE_IN_A_BRANCH = (
    """'<<if .GroupBy>>{"<<.Series>>",<<.LabelMatchers>>}<<else>><<.Series>>{<<.LabelMatchers>>}<<end>>'"""
)


@pytest.mark.parametrize(
    "query",
    [BARE, """'{"<<.Series>>",<<.LabelMatchers>>} / <<.Series>>{<<.LabelMatchers>>}'""", BARE_IN_A_BRANCH],
)
@pytest.mark.parametrize("name", ["my.metric", "my-metric"])
def test_a_series_whose_name_needs_quotes_is_skipped_if_the_query_has_none(
    name: str, query: str, rule: Callable[..., Rule], resolve: ResolveResource
) -> None:
    """Without quotes, the last name would be a difference of two other metrics."""
    assert metrics_of(rule(metricsQuery=query), [series(name, "pod")], resolve) == []
    assert not static_metrics(rule(seriesQuery=f"""'{{"{name}"}}'""", metricsQuery=query), resolve)


@pytest.mark.parametrize("name", ["http.server.requests", "my-metric", "a:b.c_d"])
@pytest.mark.parametrize(
    "query",
    [
        QUOTED,
        """'{__name__="<<.Series>>",<<.LabelMatchers>>}'""",
        """'{"other.name",<<.LabelMatchers>>}'""",
        """'{<<.LabelMatchers>>,"<<.Series>>"} offset 1m'""",
    ],
)
def test_a_series_whose_name_needs_quotes_is_served_by_a_query_that_has_them(
    name: str, query: str, rule: Callable[..., Rule], resolve: ResolveResource
) -> None:
    spelled_out = rule(seriesQuery=f"""'{{"{name}",namespace!="",pod!=""}}'""", metricsQuery=query)
    found = metrics_of(spelled_out, [series(name, "namespace", "pod")], resolve)
    assert [(metric.qualified, metric.series) for metric in found] == [
        (f"namespaces/{name}", name),
        (f"pods/{name}", name),
    ]
    assert f"pods/{name}" in {metric.qualified for metric in static_metrics(spelled_out, resolve)}


def test_the_quotes_of_a_pattern_do_not_count(rule: Callable[..., Rule], resolve: ResolveResource) -> None:
    """The dots would select the series of `http_server_requests`, too, and both would be added up."""
    query = """'sum by (<<.GroupBy>>) ({__name__=~"<<.Series>>",<<.LabelMatchers>>})'"""
    patterned = rule(seriesQuery="""'{__name__=~"http.*"}'""", metricsQuery=query)
    assert metrics_of(patterned, [series("http.server.requests", "namespace", "pod")], resolve) == []
    assert metrics_of(patterned, [series("http_server_requests", "namespace", "pod")], resolve)


def test_a_name_in_quotes_is_queried_in_quotes(rule: Callable[..., Rule], resolve: ResolveResource) -> None:
    quoting = rule(seriesQuery="""'{__name__=~"http[.].*"}'""", metricsQuery=QUOTED)
    _, pods = metrics_of(quoting, [series("http.requests", "namespace", "pod")], resolve)
    asked = Asked("shop", ("web-0",), EVERYTHING)
    assert plan_of(pods).kind is PlanKind.WIDE
    assert planned_query(pods, asked, PlanKind.EXACT).text == (
        'sum by (pod) ({"http.requests",namespace="shop",pod="web-0"})'
    )
    assert planned_query(pods, asked, PlanKind.WIDE).text == (
        'sum by (namespace,pod) ({"http.requests",namespace!="",pod!=""})'
    )


def test_the_sample_age_is_also_queried_with_the_quoted_name(
    rule: Callable[..., Rule], resolve: ResolveResource
) -> None:
    limited = rule(seriesQuery="""'{__name__=~"http[.].*"}'""", metricsQuery=QUOTED, maxSampleAge="1m")
    _, pods = metrics_of(limited, [series("http.requests", "namespace", "pod")], resolve)
    times = times_of(pods)
    assert times is not None
    assert planned_query(times, Asked("shop", ("web-0",), EVERYTHING), PlanKind.EXACT).text == (
        'min by (pod) (timestamp({__name__="http.requests",namespace="shop",pod="web-0"}))'
    )
    question = Question("http.requests", resource=pods.resource, namespace="shop")
    assert timestamps_query(pods, ["web-0"], question) == (
        'max by (pod) (timestamp({__name__="http.requests",namespace="shop",pod="web-0"}))'
    )


def test_of_two_labels_for_one_resource_the_first_that_the_series_has_is_used(
    rule: Callable[..., Rule], resolve: ResolveResource
) -> None:
    two = rule(
        resources="{overrides: {pod: {resource: pod}, pod_name: {resource: pod}, "
        "ns: {resource: namespace}, namespace: {resource: namespace}}}"
    )
    found = metrics_of(two, [series("a", "pod_name", "namespace"), series("b", "pod_name", "pod", "ns")], resolve)
    assert names(found) == [
        ("namespaces/a", "namespace", None),
        ("pods/a", "pod_name", "namespace"),
        ("namespaces/b", "ns", None),
        ("pods/b", "pod", "ns"),
    ]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        pytest.param(["namespace"], "namespace", id="only the second"),
        pytest.param(["namespace", "ns"], "ns", id="both"),
        pytest.param([], "ns", id="none"),
    ],
)
def test_of_two_labels_for_the_namespace_the_first_that_the_series_has_restricts_every_metric(
    labels: list[str], expected: str, rule: Callable[..., Rule], resolve: ResolveResource
) -> None:
    two = "{overrides: {ns: {resource: namespace}, namespace: {resource: namespace}, node: {resource: node}}}"
    (external,) = metrics_of(rule("externalRules", resources=two), [series("a", *labels)], resolve)
    found = metrics_of(rule(resources=two), [series("a", "node", *labels)], resolve)
    (of_nodes,) = [metric for metric in found if metric.qualified == "nodes/a"]
    within = metric_in_namespace(of_nodes)

    assert external.namespace_label == expected
    assert of_nodes.namespace_label is None
    assert within is not None
    assert within.namespace_label == expected


def test_namespaced_kinds_without_a_namespace_label_are_not_served(
    rule: Callable[..., Rule], resolve: ResolveResource
) -> None:
    half = rule(resources="{overrides: {pod: {resource: pod}, node: {resource: node}}}")
    assert names(metrics_of(half, [series("rps", "pod", "node", "namespace")], resolve)) == [
        ("nodes/rps", "node", None)
    ]


def test_an_external_rule_makes_one_metric_for_each_name(rule: Callable[..., Rule], resolve: ResolveResource) -> None:
    found = metrics_of(rule("externalRules"), [series("a", "pod"), series("a"), series("b")], resolve)
    assert names(found) == [("a", None, "namespace"), ("b", None, "namespace")]
    alike = rule("externalRules", resources="{namespaced: false, template: <<.Resource>>}")
    assert names(metrics_of(alike, [series("a")], resolve)) == [("a", None, None)]


@pytest.mark.parametrize(
    ("query", "resources", "expected"),
    [
        ("rps", OVERRIDES, ["namespaces/rps", "nodes/rps", "pods/rps"]),
        ("'{__name__=\"rps\"}'", OVERRIDES, ["namespaces/rps", "nodes/rps", "pods/rps"]),
        ("'rps{node=\"\"}'", OVERRIDES, ["namespaces/rps", "pods/rps"]),
        ("rps", TEMPLATE, []),
        ('\'rps{pod!="",service=~".+",job=~".*"}\'', TEMPLATE, ["pods/rps", "services/rps"]),
        ('\'{__name__=~"rps",pod!=""}\'', OVERRIDES, []),
        ("'{\"my.metric\"}'", OVERRIDES, ["namespaces/my.metric", "nodes/my.metric", "pods/my.metric"]),
        ("'{\"my metric\"}'", OVERRIDES, []),
        ("'rps{'", OVERRIDES, []),
    ],
)
def test_a_name_that_is_spelled_out_is_served_before_its_series_exists(
    query: str, resources: str, expected: list[str], rule: Callable[..., Rule], resolve: ResolveResource
) -> None:
    found = static_metrics(rule(seriesQuery=query, resources=resources), resolve)
    assert [metric.qualified for metric in found] == expected


def test_a_spelled_out_name_also_passes_filters_and_is_renamed(
    rule: Callable[..., Rule], resolve: ResolveResource
) -> None:
    assert static_metrics(rule(seriesFilters="[{isNot: up}]"), resolve) == []
    (metric,) = static_metrics(rule("externalRules", name="{as: alive}"), resolve)
    assert names([metric]) == [("alive", None, "namespace")]


def test_a_spelled_out_metric_equals_the_one_found_later(rule: Callable[..., Rule], resolve: ResolveResource) -> None:
    spelled = rule(resources="{overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}")
    assert static_metrics(spelled, resolve) == metrics_of(spelled, [series("up", "pod", "namespace")], resolve)


def test_the_last_metric_of_a_name_wins(rule: Callable[..., Rule], resolve: ResolveResource) -> None:
    first, second = rule(name="{as: x}"), rule(name="{as: x}", metricsQuery="down{<<.LabelMatchers>>}")
    merged = merge_metrics(
        [*metrics_of(first, [series("a", "pod", "node")], resolve), *metrics_of(second, [series("b", "pod")], resolve)]
    )
    assert [(metric.qualified, metric.series) for metric in merged] == [("nodes/x", "a"), ("pods/x", "b")]


def test_names_are_yielded_one_by_one(rule: Callable[..., Rule], resolve: ResolveResource) -> None:
    shapes = SeriesShapes()
    shapes.add([series("a", "pod"), series("b"), series("c", "node")])
    found = metrics_by_name(rule(), shapes, resolve)
    assert [names(metrics) for metrics in found] == [
        [("pods/a", "pod", "namespace")],
        [],
        [("nodes/c", "node", None)],
    ]


_LABELS = st.sets(st.sampled_from("abcde"))


@given(st.lists(st.tuples(st.sampled_from(["x", "y"]), _LABELS)), st.integers(1, 4))
def test_shapes_do_not_depend_on_the_order_of_series(found: list[tuple[str, set[str]]], size: int) -> None:
    shapes = SeriesShapes()
    batches = [found[start : start + size] for start in range(0, len(found), size)]
    for batch in batches:
        shapes.add(series(name, *labels) for name, labels in batch)
    for name in shapes.names():
        expected = set().union(*(labels for other, labels in found if other == name))
        assert shapes.labels(name) - {"__name__"} == expected
    assert len(shapes) == len({name for name, _ in found})
    assert shapes.left_out == 0


def test_the_numbers_of_names_and_labels_are_bounded() -> None:
    shapes = SeriesShapes(most_names=2, most_labels=3)
    shapes.add([series("a", "l1"), series("b"), series("c"), series("a", "l1", "l2"), series("a", "l3"), series("c")])
    assert list(shapes.names()) == ["a", "b"]
    assert shapes.labels("a") == {"__name__", "l1", "l2"}
    assert shapes.left_out == 3


@pytest.mark.parametrize("labels", [{}, {f"l{number}": "" for number in range(60)}], ids=["many names", "many labels"])
def test_one_namespace_uses_at_most_half_of_the_limit(labels: dict[str, str]) -> None:
    shapes = SeriesShapes(most_names=100, most_bytes=1_000_000, namespace_labels=("ns",))
    shapes.add(
        {"__name__": f"evil_{number}", "ns": "evil"} | {f"{label}_{number}": "" for label in labels}
        for number in range(200)
    )
    taken = len(shapes)
    assert taken <= 50
    assert shapes.left_out == 200 - taken
    shapes.add({"__name__": f"shop_{number}", "ns": "shop", **labels} for number in range(30))
    shapes.add({"__name__": f"node_{number}"} for number in range(20))
    assert len(shapes) == taken + 50


def test_a_series_with_too_many_labels_is_left_out_each_time() -> None:
    shapes = SeriesShapes(most_labels=3)
    for _ in range(3):
        shapes.add([series("a", "l1", "l2", "l3", "l4")])
    assert (shapes.labels("a"), shapes.left_out) == ({"__name__"}, 3)

    shapes.add([series("a", "l1")])
    assert shapes.labels("a") == {"__name__", "l1"}


def test_names_whose_series_have_the_same_labels_share_them() -> None:
    shapes = SeriesShapes()
    shapes.add([series("a", "pod", "node"), series("b", "node", "pod"), series("c", "pod")])
    assert shapes.labels("a") is shapes.labels("b")
    shapes.add([series("a", "verb")])
    assert shapes.labels("a") == {"__name__", "pod", "node", "verb"}
    assert shapes.labels("b") == {"__name__", "pod", "node"}


@pytest.mark.parametrize("length", [1, 1000])
def test_the_memory_of_shapes_is_bounded(length: int) -> None:
    shapes = SeriesShapes(most_bytes=100_000)
    shapes.add(series(f"{'n' * length}{number}", f"{'l' * length}{number}") for number in range(10_000))
    assert 20 < len(shapes) < 400
    assert shapes.left_out == 10_000 - len(shapes)


def test_a_name_keeps_its_labels_when_more_do_not_fit() -> None:
    shapes = SeriesShapes(most_bytes=10_000)
    shapes.add(series("a", f"label_{number}") for number in range(1000))
    assert 20 < len(shapes.labels("a")) < 100
    assert shapes.left_out > 900


def test_series_that_cannot_be_requested_do_not_count_as_left_out() -> None:
    shapes = SeriesShapes()
    shapes.add([series("with blank"), series(""), {"pod": "x"}, series("fine")])
    assert list(shapes.names()) == ["fine"]
    assert shapes.left_out == 0


OURS = "tidewatch_recommended_replicas"


@pytest.mark.parametrize(
    ("query", "filters", "served"),
    [
        pytest.param('{namespace!=""}', "[]", False, id="everything"),
        pytest.param('{namespace!="",__name__!~"^container_.*"}', "[]", False, id="a default rule"),
        pytest.param('{__name__=~"^.*_replicas$"}', "[{isNot: ^kube_}]", False, id="by an ending"),
        pytest.param('{namespace!="tidewatch"}', "[]", False, id="all but those of our namespace"),
        pytest.param('{namespace!="tidewatch",pod!=""}', "[]", False, id="all of pods but those of our namespace"),
        pytest.param('{namespace!=""}', "[{isNot: ^tidewatch_}]", False, id="all but ours"),
        pytest.param('{__name__=~"^(http|tidewatch)_.*"}', "[]", True, id="named by a pattern"),
        pytest.param('{namespace="tidewatch"}', "[]", True, id="named by their source"),
        pytest.param('{namespace!=""}', "[{is: ^tidewatch_}]", True, id="named by a filter"),
    ],
)
def test_only_a_rule_that_names_them_serves_tidewatch_series(
    rule: Callable[..., Rule], resolve: ResolveResource, query: str, filters: str, *, served: bool
) -> None:
    made = rule(seriesQuery=f"'{query}'", seriesFilters=filters)
    found = metrics_of(made, [series(OURS, "namespace"), series("other_replicas", "namespace")], resolve)
    ours = [metric.series for metric in found if metric.series == OURS]
    assert bool(ours) == served
