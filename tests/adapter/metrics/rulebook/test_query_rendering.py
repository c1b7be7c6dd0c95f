"""Queries as prometheus-adapter renders them, and attempts to break out of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.objects.regex import compile_pattern
from adapter.foundation.objects.resources import BUILT_IN, Resource, find_resource
from adapter.foundation.objects.selectors import EVERYTHING, Operator, Requirement, Selector, parse_selector
from adapter.foundation.promql.tokens import TokenKind, tokens_of
from adapter.foundation.promql.tree_parser import parse_query
from adapter.metrics.rulebook.model import Api, Metric, Rule
from adapter.metrics.rulebook.naming import make_naming
from adapter.metrics.rulebook.query_rendering import RenderError, exact_query, namespace_query, wide_query
from adapter.metrics.rulebook.requests import Asked
from adapter.metrics.rulebook.resources import ResourceMapping
from adapter.metrics.rulebook.templates.matchers import names_matcher, value_matcher
from adapter.metrics.rulebook.templates.template import parse_query_template

POD = find_resource(BUILT_IN, "", "pod")
NODE = find_resource(BUILT_IN, "", "node")
PLAIN = "<<.LabelMatchers>> by (<<.GroupBy>>)"


def metric(query: str = PLAIN, resource: Resource | None = POD, namespace_label: str | None = "namespace") -> Metric:
    api = Api.CUSTOM if resource else Api.EXTERNAL
    rule = Rule("rules[0]", api, "a.yaml", 7, "up", (), make_naming(), ResourceMapping(), parse_query_template(query))
    label = resource.singular if resource else None
    return Metric(rule, "up", "up", resource, label, namespace_label)


def request(selector: str = "", names: tuple[str, ...] = ("web-0",), namespace: str | None = "shop") -> Asked:
    return Asked(namespace, names, parse_selector(selector))


@pytest.mark.parametrize(
    ("selector", "matcher"),
    [
        ("k=v", 'k="v"'),
        ("k==v", 'k="v"'),
        ("k=", 'k=""'),
        ("k!=v", 'k!="v"'),
        ("k in (v)", 'k=~"v"'),
        ("k in (b,a)", 'k=~"a|b"'),
        ("k in (a,)", 'k=~"|a"'),
        ("k in (a.c)", 'k=~"a.c"'),
        ("k notin (v)", 'k!~"v"'),
        ("k notin (b,a)", 'k!~"a|b"'),
        ("k", 'k!=""'),
        ("!k", 'k=""'),
        ("z=1,a=2", 'a="2",z="1"'),
    ],
)
def test_requirements_become_matchers(selector: str, matcher: str) -> None:
    expected = f'{matcher},namespace="shop",pod="web-0" by (pod)'
    assert exact_query(metric(), request(selector)) == expected


@pytest.mark.parametrize(
    ("names", "matcher"),
    [
        (("web-0",), 'pod="web-0"'),
        (("web.0",), 'pod="web.0"'),
        (("web-0", "web-1"), 'pod=~"web-0|web-1"'),
        # Names stand for themselves: a dot is no wildcard.
        (("web.0", "web.1"), r'pod=~"web\\.0|web\\.1"'),
        (("system:a(b)", "x"), r'pod=~"system:a\\(b\\)|x"'),
    ],
)
def test_names_become_one_matcher(names: tuple[str, ...], matcher: str) -> None:
    assert exact_query(metric(), request(names=names)) == f'namespace="shop",{matcher} by (pod)'


def test_a_cluster_scoped_object_has_no_namespace() -> None:
    nodes = metric(resource=NODE, namespace_label=None)
    assert exact_query(nodes, request(names=("a",), namespace=None)) == 'node="a" by (node)'
    assert wide_query(nodes, EVERYTHING) == 'node!="" by (node)'


@pytest.mark.parametrize(
    ("namespace_label", "query"),
    [("namespace", 'queue="a",namespace="shop" by ()'), (None, 'queue="a" by ()')],
)
def test_an_external_metric_has_matchers_for_selector_and_namespace(namespace_label: str | None, query: str) -> None:
    external = metric(resource=None, namespace_label=namespace_label)
    assert exact_query(external, request("queue=a", names=())) == query


def test_the_namespace_form_selects_all_objects_of_one_namespace() -> None:
    query = namespace_query(metric(), "shop", parse_selector("verb=GET"))
    assert query == 'verb="GET",namespace="shop",pod!="" by (pod)'
    external = metric(resource=None)
    assert namespace_query(external, "shop", EVERYTHING) == 'namespace="shop" by ()'


def test_the_wide_form_selects_all_objects_and_keeps_their_namespace() -> None:
    query = wide_query(metric(), parse_selector("verb=GET"))
    assert query == 'verb="GET",namespace!="",pod!="" by (namespace,pod)'
    assert wide_query(metric(resource=None), EVERYTHING) == 'namespace!="" by ()'
    assert wide_query(metric("up{<<.LabelMatchers>>}", None, None), EVERYTHING) == "up{}"


def test_templates_see_the_requested_values() -> None:
    query = "up{<<range $k, $v := .LabelValuesByName>><<$k>>=~'<<$v>>',<<end>>} by <<.GroupBySlice>>"
    assert exact_query(metric(query), request("k in (b,a),x", names=("p", "q"))) == (
        "up{k=~'a|b',namespace=~'shop',pod=~'p|q',x=~'',} by [pod]"
    )


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("k>5", "'k>5' compares numbers"),
        ("k<5", "'k<5' compares numbers"),
    ],
)
def test_selectors_that_promql_cannot_express_are_refused(selector: str, message: str) -> None:
    with pytest.raises(RenderError, match=message):
        exact_query(metric(), request(selector))
    with pytest.raises(RenderError, match=message):
        namespace_query(metric(), "shop", parse_selector(selector))
    with pytest.raises(RenderError, match=message):
        wide_query(metric(), parse_selector(selector))


@pytest.mark.parametrize("namespace", [None, "", "Shop", "a.b", 'a"', "a" * 64, "a\n", "-a"])
def test_an_invalid_namespace_is_refused(namespace: str | None) -> None:
    with pytest.raises(RenderError, match="not the name of a namespace"):
        exact_query(metric(), request(namespace=namespace))


@pytest.mark.parametrize("name", ["", ".*", "a|b", "shop.b", "Shop"])
def test_metrics_of_namespaces_accept_only_names_of_namespaces(name: str) -> None:
    namespaces = metric(resource=find_resource(BUILT_IN, "", "namespace"), namespace_label=None)
    assert exact_query(namespaces, request(names=("shop",))) == 'namespace="shop" by (namespace)'
    with pytest.raises(RenderError, match="not the name of a namespace"):
        exact_query(namespaces, request(names=("shop", name)))


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a%2fb", "a" * 254, "a\x00", "a\n"])
def test_an_invalid_object_name_is_refused(name: str) -> None:
    with pytest.raises(RenderError, match="not the name of an object"):
        exact_query(metric(), request(names=("web-0", name)))


def test_a_request_without_objects_is_refused() -> None:
    with pytest.raises(RenderError, match="the request names no object"):
        exact_query(metric(), request(names=()))


def test_the_namespace_form_of_a_cluster_scoped_metric_is_refused() -> None:
    with pytest.raises(RenderError, match="no namespace restricts nodes/up"):
        namespace_query(metric(resource=NODE, namespace_label=None), "shop", EVERYTHING)


@pytest.mark.parametrize("query", ["", " \n", '<<if eq .Series "down">>down<<end>> '])
def test_an_empty_query_is_an_error_of_the_rule(query: str) -> None:
    with pytest.raises(RenderError, match=r"rules\[0\] \(a\.yaml:7\) results in an empty query"):
        exact_query(metric(query), request())


def test_a_template_that_fails_for_these_values_is_an_error_of_the_rule() -> None:
    query = metric('\n<<if eq (index .LabelValuesByName "k") "x">><<index .GroupBySlice 5>><<end>>up')
    assert exact_query(query, request("k=y")) == "\nup"
    with pytest.raises(RenderError, match=r"rules\[0\] \(a\.yaml:7\) fails in line 2: index: 5 is out of range"):
        exact_query(query, request("k=x"))


# Attempts to break out. Whatever the values, the query has the same words and signs as for harmless values, and only
# the texts between its quotes differ.

_EVIL = st.one_of(
    st.text(),
    st.text(alphabet="\"'`\\{}()[],=~!|#/*\n\r\t a<>$%"),
    st.sampled_from(['"} or vector(1) #', "\\", '\\"', '"', "a\\", "`", '",pod="other', "\n", "<<.Series>>", '\\\\"']),
)
_FULL = 'sum by (<<.GroupBy>>) (up{<<.LabelMatchers>>,x="1"}) / up'


def skeleton(query: str) -> list[str]:
    return ["text" if token.kind is TokenKind.TEXT else token.text for token in tokens_of(query)]


def unchecked(operator: Operator, *values: str) -> Selector:
    """Return a selector with values that no API server accepts, to see what rendering does without that check."""
    requirement = Requirement("k", operator, ("a",))
    object.__setattr__(requirement, "values", values)
    return Selector((requirement,))


@given(_EVIL, st.sampled_from([Operator.EQUALS, Operator.NOT_EQUALS, Operator.IN, Operator.NOT_IN]))
def test_a_selector_value_cannot_break_out(value: str, operator: Operator) -> None:
    harmless = skeleton(exact_query(metric(_FULL), request("k=a")))
    evil = skeleton(exact_query(metric(_FULL), Asked("shop", ("web-0",), unchecked(operator, value))))
    signs = {"=", "!", "~"}
    assert [word for word in evil if word not in signs] == [word for word in harmless if word not in signs]
    assert len(skeleton(wide_query(metric(_FULL), unchecked(operator, value)))) > len(harmless)


@given(_EVIL, st.sampled_from([Operator.EQUALS, Operator.NOT_EQUALS]))
def test_a_selector_value_is_unchanged_in_the_parsed_query(value: str, operator: Operator) -> None:
    tree = parse_query(exact_query(metric(_FULL), Asked("shop", ("web-0",), unchecked(operator, value))))
    sign = operator.value
    harmless = parse_query(exact_query(metric(_FULL), request(f"k{sign}harmless")))
    assert repr(tree) == repr(harmless).replace("'harmless'", repr(value))


@given(_EVIL, _EVIL)
def test_an_object_name_cannot_break_out(one: str, other: str) -> None:
    harmless = [skeleton(exact_query(metric(_FULL), request(names=names))) for names in (("a",), ("a", "b"))]
    for names, expected in zip(((one,), (one, other)), harmless, strict=True):
        try:
            query = exact_query(metric(_FULL), request(names=names))
        except RenderError:
            continue
        assert skeleton(query) == expected


@given(_EVIL)
def test_a_namespace_cannot_break_out(namespace: str) -> None:
    harmless = skeleton(exact_query(metric(_FULL), request()))
    try:
        query = exact_query(metric(_FULL), request(namespace=namespace))
    except RenderError:
        return
    assert skeleton(query) == harmless


@given(_EVIL, _EVIL)
def test_names_match_themselves_and_nothing_else(one: str, other: str) -> None:
    matcher = names_matcher("pod", ("fixed", one))
    assert compile_pattern(matcher.value).matches_all_of(one)
    assert compile_pattern(matcher.value).matches_all_of(other) == (other in {"fixed", one})
    assert value_matcher("pod", one).value == one
