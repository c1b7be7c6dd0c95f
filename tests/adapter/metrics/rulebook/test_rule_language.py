"""Rules from their text to the queries of their metrics: the meaning of each line of prometheus-adapter's format."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adapter.foundation.objects.selectors import parse_selector
from adapter.foundation.promql.tree_parser import parse_query
from adapter.metrics.rulebook.query_rendering import RenderError, exact_query
from adapter.metrics.rulebook.requests import Asked
from tests.support.metrics import merge_metrics, metrics_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.objects.resources import ResolveResource
    from adapter.metrics.rulebook.model import Metric, Rule, Rulebook

    Read = Callable[..., Rulebook]

ALL = "sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)"
BY_RESOURCE = "{template: <<.Resource>>}"


def one_rule(read: Read, key: str = "rules", **changes: str) -> Rule:
    lines = {"seriesQuery": "'{__name__!=\"\"}'", "resources": BY_RESOURCE, "metricsQuery": f"'{ALL}'"} | changes
    text = "".join(f"  {name}: {value}\n" for name, value in lines.items() if value).replace("  ", "- ", 1)
    book = read(f"{key}:\n{text}")
    assert not book.refused, book.findings
    return book.rules[0]


def found(rule: Rule, resolve: ResolveResource, *series: str) -> list[Metric]:
    """Return the metrics of series that are written as `name label label …`."""
    shapes = [series.split() for series in series]
    return metrics_of(rule, [{"__name__": name} | dict.fromkeys(labels, "x") for name, *labels in shapes], resolve)


@pytest.mark.parametrize(
    ("filters", "name", "kept"),
    [
        ("", "", ["http_requests_total", "http_latency_seconds", "queue_depth", "my_http_errors"]),
        ("[{is: http}]", "", ["http_requests_total", "http_latency_seconds", "my_http_errors"]),
        ("[{is: ^http}]", "", ["http_requests_total", "http_latency_seconds"]),
        ("[{isNot: ^http}]", "", ["queue_depth", "my_http_errors"]),
        ("[{is: http}, {isNot: _seconds$}, {isNot: ^my}]", "", ["http_requests_total"]),
        ("[{is: ^http}, {is: _seconds$}]", "", ["http_latency_seconds"]),
        # The pattern of the name filters as well, and is as little anchored.
        ("", "{matches: _total, as: a}", ["http_requests_total"]),
        ("[{isNot: ^http}]", "{matches: http, as: a}", ["my_http_errors"]),
        ("", "{matches: ^$, as: a}", []),
    ],
)
def test_series_must_match_all_filters_and_the_name_pattern(
    filters: str, name: str, kept: list[str], read: Read, resolve: ResolveResource
) -> None:
    rule = one_rule(read, seriesFilters=filters, name=name)
    series = ("http_requests_total", "http_latency_seconds", "queue_depth", "my_http_errors")
    metrics = found(rule, resolve, *(f"{one} node" for one in series))
    assert [metric.series for metric in metrics] == kept


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("", {"http_requests_total": "http_requests_total"}),
        ("{matches: ^(.*)_total$}", {"http_requests_total": "http_requests"}),
        ('{matches: ^(.*)_total$, as: ""}', {"http_requests_total": "http_requests"}),
        ("{matches: ^(.*)_total$, as: ~}", {"http_requests_total": "http_requests"}),
        ("{matches: _total$}", {"http_requests_total": "_total"}),
        ("{as: fixed}", {"http_requests_total": "fixed"}),
        ("{matches: '^(?:(a)|http)_(.*)$', as: '${1}x_$2'}", {"http_requests_total": "x_requests_total"}),
        ("{matches: '^(.+)_(.+)_(.+)$', as: '$3-$1'}", {"http_requests_total": "total-http"}),
        ("{matches: '^(?P<what>.*)_total$', as: '$$${what}'}", {"http_requests_total": "$http_requests"}),
        # A name that comes out empty, or with a slash, could not be requested.
        ("{matches: '^(x?)'}", {}),
        ("{matches: '^(.*)$', as: '$1'}", {"http_requests_total": "http_requests_total"}),
    ],
)
def test_names_are_the_expansion_of_as(name: str, names: dict[str, str], read: Read, resolve: ResolveResource) -> None:
    metrics = found(one_rule(read, name=name), resolve, "http_requests_total node")
    assert {metric.series: metric.name for metric in metrics} == names


def test_of_series_that_collapse_to_one_name_the_last_is_served(read: Read, resolve: ResolveResource) -> None:
    rule = one_rule(read, name="{matches: '^(.*?)(_seconds)?_total$', as: $1}")
    metrics = merge_metrics(found(rule, resolve, "cpu_total node", "cpu_seconds_total node"))
    assert [(metric.qualified, metric.series) for metric in metrics] == [("nodes/cpu", "cpu_seconds_total")]


@pytest.mark.parametrize(
    ("override", "qualified"),
    [
        ("{resource: pod}", "pods"),
        ("{resource: pods}", "pods"),
        ("{resource: Pod}", "pods"),
        ('{group: "", resource: pod}', "pods"),
        ("{group: apps, resource: deployment}", "deployments.apps"),
        ("{group: apps, resource: Deployments}", "deployments.apps"),
        # Found by its name alone, and by the beginning of its group.
        ("{resource: deployment}", "deployments.apps"),
        ("{group: networking, resource: ingress}", "ingresses.networking.k8s.io"),
        ("{group: networking.k8s.io, resource: ingress}", "ingresses.networking.k8s.io"),
        ("{group: cheese.io, resource: brand}", "brands.cheese.io"),
    ],
)
def test_resources_are_named_as_the_cluster_knows_them(
    override: str, qualified: str, read: Read, resolve: ResolveResource
) -> None:
    rule = one_rule(read, resources=f"{{overrides: {{namespace: {{resource: namespace}}, l: {override}}}}}")
    metrics = found(rule, resolve, "up namespace l")
    assert [metric.qualified for metric in metrics] == [f"{qualified}/up", "namespaces/up"]


@pytest.mark.parametrize(
    "override", ["{group: apps, resource: pod}", "{resource: nothing}", "{group: x, resource: pod}"]
)
def test_a_resource_that_the_cluster_lacks_refuses_its_rule(override: str, read: Read) -> None:
    book = read(f"rules:\n- {{seriesQuery: up, metricsQuery: up, resources: {{overrides: {{l: {override}}}}}}}")
    assert [rule.id for rule in book.refused] == ["rules[0]"]
    assert "unknown-resource" in [finding.code for finding in book.findings]


@pytest.mark.parametrize(
    ("resources", "labels", "metrics"),
    [
        # What a label stands for is a matter of overrides first, then of the template.
        (BY_RESOURCE, "namespace pod", [("namespaces", "namespace", None), ("pods", "pod", "namespace")]),
        # In any spelling that the cluster knows; queries use the label that the series has.
        (BY_RESOURCE, "namespace pods pod_", [("namespaces", "namespace", None), ("pods", "pods", "namespace")]),
        # The group is not empty if the template has one, as in prometheus-adapter.
        (
            "{template: kube_<<.Group>>_<<.Resource>>, overrides: {ns: {resource: namespace}}}",
            "ns kube__pod kube_apps_deployment kube_batch_job pod namespace",
            [("deployments.apps", "kube_apps_deployment", "ns"), ("jobs.batch", "kube_batch_job", "ns"),
             ("namespaces", "ns", None)],
        ),
        (
            "{template: <<.Resource>>, overrides: {pod: {resource: service}}}",
            "namespace pod service",
            [("namespaces", "namespace", None), ("services", "pod", "namespace")],
        ),
        # Cluster-scoped kinds are so whatever other labels a series has.
        (BY_RESOURCE, "persistentvolume namespace x", [("namespaces", "namespace", None),
                                                       ("persistentvolumes", "persistentvolume", None)]),
        (BY_RESOURCE, "node instance", [("nodes", "node", None)]),
        (BY_RESOURCE, "clusterrole", [("clusterroles.rbac.authorization.k8s.io", "clusterrole", None)]),
        # A series without the label for the namespace: the label is taken from the template all the same.
        (BY_RESOURCE, "pod", [("pods", "pod", "namespace")]),
        ("{overrides: {pod: {resource: pod}, node: {resource: node}}}", "pod node", [("nodes", "node", None)]),
        (BY_RESOURCE, "instance job_name le", []),
    ],
)  # fmt: skip
def test_labels_determine_objects_and_their_scope(
    resources: str, labels: str, metrics: list[tuple[str, str, str | None]], read: Read, resolve: ResolveResource
) -> None:
    rule = one_rule(read, resources=resources)
    seen = [
        (metric.qualified.removesuffix("/up"), metric.object_label, metric.namespace_label)
        for metric in found(rule, resolve, f"up {labels}")
    ]
    assert seen == metrics


REQUIREMENTS = [
    ("", ""),
    ("k=v", 'k="v",'),
    ("k==v", 'k="v",'),
    ("k!=v", 'k!="v",'),
    ("k in (v)", 'k=~"v",'),
    ("k in (b,a)", 'k=~"a|b",'),
    ("k notin (v)", 'k!~"v",'),
    ("k notin (b,a)", 'k!~"a|b",'),
    ("k", 'k!="",'),
    ("!k", 'k="",'),
    ("z=1,b in (x),a", 'a!="",b=~"x",z="1",'),
    # Two conditions on one label are two matchers.
    ("k!=a,k!=b", 'k!="a",k!="b",'),
    # A dot is a wildcard where Prometheus matches by pattern, as in prometheus-adapter.
    ("k in (a.b)", 'k=~"a.b",'),
]


@pytest.mark.parametrize(("selector", "matchers"), REQUIREMENTS)
def test_matchers_are_ordered_selector_namespace_object(
    selector: str, matchers: str, read: Read, resolve: ResolveResource
) -> None:
    (metric,) = [one for one in found(one_rule(read), resolve, "up namespace pod") if one.object_label == "pod"]
    one = Asked("shop", ("web-0",), parse_selector(selector))
    assert exact_query(metric, one) == f'sum(up{{{matchers}namespace="shop",pod="web-0"}}) by (pod)'
    several = Asked("shop", ("a-1", "b-2"), parse_selector(selector))
    assert exact_query(metric, several) == f'sum(up{{{matchers}namespace="shop",pod=~"a-1|b-2"}}) by (pod)'


@pytest.mark.parametrize(("selector", "matchers"), REQUIREMENTS)
def test_external_matchers_are_ordered_selector_namespace(
    selector: str, matchers: str, read: Read, resolve: ResolveResource
) -> None:
    asked = Asked("shop", (), parse_selector(selector))
    (metric,) = found(one_rule(read, "externalRules"), resolve, "queue")
    assert exact_query(metric, asked) == f'sum(queue{{{matchers}namespace="shop"}}) by ()'
    (metric,) = found(one_rule(read, "externalRules", resources="{namespaced: false}"), resolve, "queue namespace")
    assert exact_query(metric, asked) == f"sum(queue{{{matchers.removesuffix(',')}}}) by ()"


@pytest.mark.parametrize("selector", ["k>1", "k<1"])
@pytest.mark.parametrize("key", ["rules", "externalRules"])
def test_numbers_cannot_be_compared(selector: str, key: str, read: Read, resolve: ResolveResource) -> None:
    metric, *_ = found(one_rule(read, key), resolve, "up node")
    with pytest.raises(RenderError, match="compares numbers"):
        exact_query(metric, Asked("shop", ("n",), parse_selector(selector)))


@pytest.mark.parametrize(
    ("query", "rendered"),
    [
        ("<<.GroupBy>>|<<.GroupBySlice>>|<<len .GroupBySlice>>", "|[]|0"),
        ("<<range .GroupBySlice>>x<<else>>none<<end>>", "none"),
        ('x{a="<<index .LabelValuesByName `k`>>",b="<<index .LabelValuesByName `none`>>"}', 'x{a="v|w",b=""}'),
        ("x{<<range $k, $v := .LabelValuesByName>><<$k>>=~'<<$v>>',<<end>>}", "x{k=~'v|w',namespace=~'shop',}"),
        # What prometheus-adapter's users write besides plain selectors.
        ("sum(<<.Series>>{<<.LabelMatchers>>}) or vector(0)", "sum(queue{M}) or vector(0)"),
        ("max_over_time(sum(<<.Series>>{<<.LabelMatchers>>})[5m:30s])", "max_over_time(sum(queue{M})[5m:30s])"),
        ("<<.Series>>{<<.LabelMatchers>>} @ end() offset 5m", "queue{M} @ end() offset 5m"),
        ("<<.Series>>{<<.LabelMatchers>>} offset -1h", "queue{M} offset -1h"),
        ('sum({"http.server.requests",<<.LabelMatchers>>})', 'sum({"http.server.requests",M})'),
        ('sum({__name__="<<.Series>>",<<.LabelMatchers>>})', 'sum({__name__="queue",M})'),
        ('sum by ("k8s.pod") ({"<<.Series>>","k8s.ns"="a",<<.LabelMatchers>>})',
         'sum by ("k8s.pod") ({"queue","k8s.ns"="a",M})'),
        ('<<.Series>>{<<.LabelMatchers>> or zone="x"}', 'queue{M or zone="x"}'),
        ('label_replace(<<.Series>>{<<.LabelMatchers>>}, "a", "$1", "b", "(.*)")',
         'label_replace(queue{M}, "a", "$1", "b", "(.*)")'),
    ],
)  # fmt: skip
def test_external_queries_are_rendered(query: str, rendered: str, read: Read, resolve: ResolveResource) -> None:
    quoted = query.replace("'", "''")
    rule = one_rule(read, "externalRules", metricsQuery=f"'{quoted}'")
    (metric,) = found(rule, resolve, "queue namespace")
    text = exact_query(metric, Asked("shop", (), parse_selector("k in (w,v)")))
    assert text == rendered.replace("M", 'k=~"v|w",namespace="shop"')
    if ".LabelMatchers" in query:
        parse_query(text)


def test_external_names_collide_with_each_other_and_not_with_custom_ones(read: Read, resolve: ResolveResource) -> None:
    rule = (
        "{seriesQuery: up, name: {as: x}, resources: {template: <<.Resource>>}, metricsQuery: 'up{<<.LabelMatchers>>}'}"
    )
    book = read(f"externalRules:\n- {rule}\n- {rule}\nrules:\n- {rule}\n")
    metrics = [metric for rule in book.rules for metric in found(rule, resolve, "up node", "down node")]
    assert [(metric.qualified, metric.rule.id, metric.series) for metric in merge_metrics(metrics)] == [
        ("nodes/x", "rules[0]", "down"),
        ("x", "externalRules[1]", "down"),
    ]


def test_a_namespace_in_a_selector_only_narrows(read: Read, resolve: ResolveResource) -> None:
    """The namespace of the request is always required, and is what templates see."""
    asked = Asked("shop", (), parse_selector("namespace=bank"))
    (metric,) = found(one_rule(read, "externalRules"), resolve, "queue namespace")
    assert exact_query(metric, asked) == 'sum(queue{namespace="bank",namespace="shop"}) by ()'
    raw = """'x{namespace="<<index .LabelValuesByName `namespace`>>"}'"""
    (metric,) = found(one_rule(read, "externalRules", metricsQuery=raw), resolve, "queue namespace")
    assert exact_query(metric, asked) == 'x{namespace="shop"}'
