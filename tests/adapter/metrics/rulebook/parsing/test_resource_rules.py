"""`resourceRules`: what is accepted, what is refused and why, and what the queries become."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adapter.foundation.documents.load import load_documents
from adapter.foundation.objects.selectors import EVERYTHING
from adapter.metrics.rulebook.findings import Severity
from adapter.metrics.rulebook.model import Api, PlanKind
from adapter.metrics.rulebook.plans import plan_of, planned_query
from adapter.metrics.rulebook.query_rendering import RenderError, exact_query, wide_query
from adapter.metrics.rulebook.report import rulebook_report
from adapter.metrics.rulebook.requests import Asked

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.objects.resources import ResolveResource
    from adapter.metrics.rulebook.model import Metric, Rulebook

    Read = Callable[..., Rulebook]

OVERRIDES = "{node: {resource: node}, namespace: {resource: namespace}, pod: {resource: pod}}"
CONTAINERS = 'sum by (<<.GroupBy>>) (irate(container_cpu_usage_seconds_total{<<.LabelMatchers>>,container!=""}[120s]))'
NODES = "sum by (<<.GroupBy>>) (1 - irate(node_cpu_seconds_total{mode='idle',<<.LabelMatchers>>}[60s]))"


def cpu(**changed: str | None) -> str:
    """Return a good rule for CPU, with some keys changed or, if None, left out."""
    keys: dict[str, str | None] = {
        "containerQuery": f"'{CONTAINERS}'",
        "nodeQuery": f'"{NODES}"',
        "resources": f"{{overrides: {OVERRIDES}}}",
        "containerLabel": "container",
        **changed,
    }
    return "".join(f"    {key}: {value}\n" for key, value in keys.items() if value is not None)


def rules(**changed: str | None) -> str:
    return f"resourceRules:\n  cpu:\n{cpu(**changed)}"


def metric(book: Rulebook, qualified: str) -> Metric:
    (found,) = (one for one in book.resource.metrics if one.qualified == qualified)
    return found


def codes(book: Rulebook) -> list[tuple[Severity, str, str | None]]:
    return [(finding.severity, finding.code, finding.rule) for finding in book.findings]


def test_a_rule_makes_a_metric_of_containers_and_one_of_nodes(read: Read) -> None:
    book = read(f"resourceRules:\n  memory:\n{cpu()}  cpu:\n{cpu()}  window: 5m\n")
    assert book.findings == ()
    assert [one.qualified for one in book.resource.metrics] == ["pods/cpu", "nodes/cpu", "pods/memory", "nodes/memory"]
    assert book.resource.window_seconds == 300
    assert [(rule.id, rule.line) for rule in book.resource.rules] == [
        ("resourceRules.cpu", 7),
        ("resourceRules.memory", 2),
    ]
    pods, nodes = metric(book, "pods/cpu"), metric(book, "nodes/cpu")
    assert (pods.object_label, pods.namespace_label, pods.container_label) == ("pod", "namespace", "container")
    assert (nodes.object_label, nodes.namespace_label, nodes.container_label) == ("node", None, None)
    assert {one.rule.api for one in (pods, nodes)} == {Api.RESOURCE}


def test_the_default_window_is_a_minute(read: Read) -> None:
    assert read(rules()).resource.window_seconds == 60


@pytest.mark.parametrize("text", ["resourceRules:\n", "resourceRules: {}\n", "resourceRules: {cpu: }\n"])
def test_without_a_rule_nothing_is_served(text: str, read: Read) -> None:
    book = read(f"rules: []\n{text}")
    assert book.resource.rules == ()
    assert not any(severity is Severity.ERROR for severity, *_ in codes(book))


QUERIES = [
    ("exact", "pods/cpu", 'sum by (pod,container) (irate(container_cpu_usage_seconds_total{%s,container!=""}[120s]))'),
    (
        "wide",
        "pods/cpu",
        'sum by (namespace,pod,container) (irate(container_cpu_usage_seconds_total{%s,container!=""}[120s]))',
    ),
    ("exact", "nodes/cpu", "sum by (node) (1 - irate(node_cpu_seconds_total{mode='idle',%s}[60s]))"),
    ("wide", "nodes/cpu", "sum by (node) (1 - irate(node_cpu_seconds_total{mode='idle',%s}[60s]))"),
]
MATCHERS = {
    ("exact", "pods/cpu"): 'namespace="shop",pod=~"a|b"',
    ("wide", "pods/cpu"): 'namespace!="",pod!=""',
    ("exact", "nodes/cpu"): 'node=~"a|b"',
    ("wide", "nodes/cpu"): 'node!=""',
}


@pytest.mark.parametrize(("width", "name", "query"), QUERIES)
def test_values_are_grouped_by_container_and_in_wide_queries_by_namespace(
    width: str, name: str, query: str, read: Read
) -> None:
    asked = metric(read(rules()), name)
    namespace = "shop" if asked.namespaced else None
    text = (
        wide_query(asked, EVERYTHING)
        if width == "wide"
        else exact_query(asked, Asked(namespace, ("a", "b"), EVERYTHING))
    )
    assert text == query.replace("%s", MATCHERS[width, name])


KUBE_PROMETHEUS = {
    "containers' CPU": ("containerQuery", CONTAINERS.replace('container!=""', 'container!="",pod!=""')),
    "containers' memory": (
        "containerQuery",
        'sum by (<<.GroupBy>>) (container_memory_working_set_bytes{<<.LabelMatchers>>,container!="",pod!=""})',
    ),
    "nodes' CPU by a join": (
        "nodeQuery",
        (
            'sum(1 - irate(node_cpu_seconds_total{mode="idle"}[60s]) * on(namespace, pod) group_left(node) '
            "node_namespace_pod:kube_pod_info:{<<.LabelMatchers>>}) by (<<.GroupBy>>)"
        ),
    ),
    "nodes' CPU by a join or of another system": (
        "nodeQuery",
        (
            'sum by (<<.GroupBy>>) (1 - irate(node_cpu_seconds_total{mode="idle"}[60s]) '
            "* on (namespace, pod) group_left (node) (node_namespace_pod:kube_pod_info:{<<.LabelMatchers>>})) "
            'or sum by (<<.GroupBy>>) (1 - irate(windows_cpu_time_total{mode="idle",<<.LabelMatchers>>}[4m]))'
        ),
    ),
    "nodes' CPU of two systems": (
        "nodeQuery",
        (
            'sum by (<<.GroupBy>>) (1 - irate(node_cpu_seconds_total{mode="idle",<<.LabelMatchers>>}[60s])) '
            'or sum by (<<.GroupBy>>) (1 - irate(windows_cpu_time_total{mode="idle",<<.LabelMatchers>>}[60s]))'
        ),
    ),
    "nodes' CPU without a sum": (
        "nodeQuery",
        '1 - irate(node_cpu_seconds_total{<<.LabelMatchers>>, mode="idle"}[60s])',
    ),
    "nodes' memory": (
        "nodeQuery",
        (
            'sum(node_memory_MemTotal_bytes{job="node-exporter",<<.LabelMatchers>>} - '
            'node_memory_MemAvailable_bytes{job="node-exporter",<<.LabelMatchers>>}) by (<<.GroupBy>>)'
        ),
    ),
}


@pytest.mark.parametrize("name", KUBE_PROMETHEUS)
def test_common_queries_have_a_proven_wide_plan(name: str, read: Read) -> None:
    key, query = KUBE_PROMETHEUS[name]
    book = read(rules(**{key: f"'{query}'"}))
    plan = plan_of(metric(book, "pods/cpu" if key == "containerQuery" else "nodes/cpu"))
    assert (plan.kind, plan.reason) == (PlanKind.WIDE, "proven")


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("topk(3, sum by (<<.GroupBy>>) (container_x{<<.LabelMatchers>>}))", PlanKind.EXACT),
        ("sum by (namespace) (container_x{<<.LabelMatchers>>})", PlanKind.EXACT),
        ("max by (pod, container) (container_x{<<.LabelMatchers>>})", PlanKind.NAMESPACE),
    ],
)
def test_other_queries_have_narrower_plans(query: str, kind: PlanKind, read: Read) -> None:
    assert plan_of(metric(read(rules(containerQuery=f"'{query}'")), "pods/cpu")).kind is kind


def test_a_planned_query_marks_container_rows_and_non_negative_values(read: Read) -> None:
    book = read(rules())
    asked = Asked("shop", ("web-0",), EVERYTHING)
    for kind in PlanKind:
        planned = planned_query(metric(book, "pods/cpu"), asked, kind)
        assert (planned.container_label, planned.non_negative) == ("container", True)
    planned = planned_query(metric(book, "nodes/cpu"), Asked(None, ("n1",), EVERYTHING), PlanKind.WIDE)
    assert (planned.container_label, planned.non_negative) == (None, True)


ERRORS = [
    ("unknown-key", rules(containerQuerry="x"), "a.yaml:7: the key 'containerQuerry' is not known: did you mean"),
    ("bad-template", rules(containerQuery="sum(<<.Nothing>>)"), "a.yaml:3: `containerQuery` is not a working template"),
    ("bad-template", rules(nodeQuery="<<range"), "a.yaml:4: `nodeQuery` is not a working template"),
    ("empty-query", rules(nodeQuery="<<if .Series>>x<<end>>"), "a.yaml:4: `nodeQuery` results in an empty query"),
    ("unknown-resource", rules(resources="{overrides: {pod: {resource: podd}}}"), "a.yaml:5: no resource 'podd'"),
    ("bad-label", rules(containerLabel="con+tainer"), "a.yaml:6: `containerLabel` 'con+tainer' cannot be a label"),
    ("wrong-kind", rules(containerLabel="[x]"), "a.yaml:6: expected a string, found a list"),
    (
        "wrong-kind",
        "resourceRules:\n  cpu: 1\n",
        "a.yaml:2: expected a mapping (`key: value` lines), found the string '1'",
    ),
    ("bad-yaml", rules(nodeQuery="!odd x"), "a.yaml:4: the tag '!odd'"),
]


@pytest.mark.parametrize(("code", "text", "message"), ERRORS)
def test_an_error_refuses_only_its_rule(code: str, text: str, message: str, read: Read) -> None:
    book = read(f"{text}  memory:\n{cpu()}")
    assert [rule.id for rule in book.resource.rules] == ["resourceRules.memory"]
    assert [(one.id, one.api) for one in book.refused] == [("resourceRules.cpu", Api.RESOURCE)]
    assert (Severity.ERROR, code, "resourceRules.cpu") in codes(book)
    assert any(str(finding).startswith(message) for finding in book.findings), book.findings


PARTS = [
    ({"containerQuery": None}, ["nodes/cpu"], "`containerQuery` is missing, so what pods use of cpu is not served"),
    ({"nodeQuery": None}, ["pods/cpu"], "`nodeQuery` is missing, so what nodes use of cpu is not served"),
    ({"containerLabel": None}, ["nodes/cpu"], "`containerLabel` is missing, so what pods use of cpu is not served"),
    (
        {"resources": "{overrides: {pod: {resource: pod}, namespace: {resource: namespace}}}"},
        ["pods/cpu"],
        "`resources` maps no label to nodes, so what nodes use of cpu is not served",
    ),
    (
        {"resources": "{overrides: {node: {resource: node}, namespace: {resource: namespace}}}"},
        ["nodes/cpu"],
        "`resources` maps no label to pods, so what pods use of cpu is not served",
    ),
    (
        {"resources": "{overrides: {node: {resource: node}, pod: {resource: pod}}}"},
        ["nodes/cpu"],
        "`resources` maps no label to namespaces, so what pods use of cpu is not served",
    ),
]


@pytest.mark.parametrize(("changed", "served", "message"), PARTS)
def test_a_rule_without_one_kind_still_serves_the_other(
    changed: dict[str, str | None], served: list[str], message: str, read: Read
) -> None:
    book = read(rules(**changed))
    assert [one.qualified for one in book.resource.metrics] == served
    assert codes(book) == [(Severity.WARNING, "unserved-usage", "resourceRules.cpu")]
    assert book.findings[0].message == message


@pytest.mark.parametrize("changed", [{"containerQuery": None, "nodeQuery": None}, {"resources": None}])
def test_a_rule_that_serves_no_kind_is_refused(changed: dict[str, str | None], read: Read) -> None:
    book = read(rules(**changed))
    assert book.resource.rules == ()
    assert [one.id for one in book.refused] == ["resourceRules.cpu"]
    assert codes(book) == [(Severity.ERROR, "unserved-usage", "resourceRules.cpu")] * 2


def test_labels_may_be_mapped_by_a_template(read: Read) -> None:
    book = read(rules(resources="{template: 'kube_<<.Resource>>'}"))
    assert metric(book, "pods/cpu").object_label == "kube_pod"
    assert metric(book, "pods/cpu").namespace_label == "kube_namespace"
    assert metric(book, "nodes/cpu").object_label == "kube_node"


def test_a_definition_repeated_in_a_second_file_is_an_error_and_the_first_counts(read: Read) -> None:
    first = f"resourceRules:\n  cpu:\n{cpu()}  window: 2m\n"
    second = f"resourceRules:\n  cpu:\n{cpu(nodeQuery=None)}  memory:\n{cpu()}  window: 3m\n"
    book = read(first, second)
    assert [(rule.id, rule.file) for rule in book.resource.rules] == [
        ("resourceRules.cpu", "a.yaml"),
        ("resourceRules.memory", "b.yaml"),
    ]
    assert book.resource.window_seconds == 120
    assert codes(book) == [(Severity.ERROR, "repeated-resource-rule", None)] * 2
    assert [(finding.file, finding.line) for finding in book.findings] == [("b.yaml", 2), ("b.yaml", 11)]
    assert "is already defined in a.yaml:2" in book.findings[0].message


@pytest.mark.parametrize("window", ["1 minute", "-1m", "1.5m", "[]"])
def test_an_invalid_window_is_an_error_and_refuses_no_rule(window: str, read: Read) -> None:
    book = read(f"{rules()}  window: {window}\n")
    assert [rule.id for rule in book.resource.rules] == ["resourceRules.cpu"]
    assert book.resource.window_seconds == 60
    assert [(severity, rule) for severity, _, rule in codes(book)] == [(Severity.ERROR, None)]


def test_a_file_of_resource_rules_alone_is_not_empty(read: Read) -> None:
    assert read(rules()).findings == ()


def test_values_of_a_request_cannot_break_out_of_their_matcher(read: Read) -> None:
    pods = metric(read(rules()), "pods/cpu")
    with pytest.raises(RenderError):
        exact_query(pods, Asked('shop"} or vector(1)#', ("web-0",), EVERYTHING))
    assert 'pod=~"web-0|x\\\\.y"' in exact_query(pods, Asked("shop", ("web-0", "x.y"), EVERYTHING))


def test_the_report_shows_the_narrower_of_two_plans(read: Read, resolve: ResolveResource) -> None:
    text = rules(nodeQuery="'topk(1, sum by (<<.GroupBy>>) (node_x{<<.LabelMatchers>>}))'")
    documents = [load_documents(text, "a.yaml")]
    (report,) = rulebook_report(documents, read(text), resolve).rules
    assert (report.id, report.api, report.line) == ("resourceRules.cpu", Api.RESOURCE, 2)
    assert report.plan is not None
    assert report.plan.kind is PlanKind.EXACT
    assert report.plan.reason == "`nodeQuery`: `topk` selects among the series of all requests"


LINTS = [
    ("no-label-matchers", "sum by (<<.GroupBy>>) (container_x)"),
    ("no-group-by", "sum(container_x{<<.LabelMatchers>>})"),
    ("no-group-by", "sum by (pod) (container_x{<<.LabelMatchers>>})"),
    ("counter-without-rate", "sum by (<<.GroupBy>>) (container_cpu_usage_seconds_total{<<.LabelMatchers>>})"),
    ("no-metric-name", "sum by (<<.GroupBy>>) ({<<.LabelMatchers>>})"),
    ("no-metric-name", "sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})"),
    ("exact-plan", "topk(1, sum by (<<.GroupBy>>) (container_x{<<.LabelMatchers>>}))"),
    ("foreign-delimiters", "sum by (<<.GroupBy>>) (container_x{<<.LabelMatchers>>,a='{{b}}'})"),
]


@pytest.mark.parametrize(("code", "query"), LINTS)
def test_warnings_about_a_query_have_its_line(code: str, query: str, read: Read, resolve: ResolveResource) -> None:
    text = rules(containerQuery=f'"{query}"')
    (report,) = rulebook_report([load_documents(text, "a.yaml")], read(text), resolve).rules
    found = [finding for finding in report.findings if finding.code == code]
    assert [(finding.severity, finding.line) for finding in found] == [(Severity.WARNING, 3)]
    assert "`containerQuery`" in found[0].message or code == "exact-plan"
