"""Values in every place of a query, and attempts to break out of them.

For any value of any request, the query is refused, or its tree differs from that of a harmless value only in the
literal that holds the value.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from adapter.foundation.objects.selectors import EVERYTHING, Operator, Requirement, Selector
from adapter.foundation.promql.tree import SelectorNode as SeriesSelector
from adapter.foundation.promql.tree import TreeMatcher
from adapter.foundation.promql.tree_parser import UnreadableQueryError, parse_query
from adapter.metrics.rulebook.query_rendering import exact_query
from adapter.metrics.rulebook.requests import Asked
from adapter.metrics.rulebook.templates.matchers import RenderError, selector_matchers, value_matcher
from adapter.metrics.rulebook.templates.template import PlacingError, parse_query_template, template_arguments
from adapter.metrics.rulebook.templates.unquoted import Bare, misplaced_value
from tests.adapter.metrics.rulebook.test_query_rendering import metric

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapter.foundation.promql.tree import Node

K = '<<index .LabelValuesByName "k">>'
POD = '<<index .LabelValuesByName "pod">>'


def selecting(value: str, key: str = "k") -> Selector:
    """Return a selector whose value may be one that no API server accepts."""
    requirement = Requirement("a", Operator.EQUALS, ("a",))
    object.__setattr__(requirement, "key", key)
    object.__setattr__(requirement, "values", (value,))
    return Selector((requirement,))


def rendered(template: str, value: str) -> str:
    matchers = [*selector_matchers(selecting(value)), value_matcher("namespace", "shop")]
    return parse_query_template(template).render(template_arguments("up", matchers, ("pod",)))


@pytest.mark.parametrize(
    ("template", "value", "query"),
    [
        (f'up{{x="{K}"}}', "web-0", 'up{x="web-0"}'),
        (f'up{{x="{K}"}}', 'a"b', r'up{x="a\"b"}'),
        (f'up{{x="{K}"}}', "a\\", r'up{x="a\\"}'),
        (f'up{{x="{K}"}}', "a\n'", r"""up{x="a\n'"}"""),
        (f"up{{x='{K}'}}", "a\"'b\n", r"""up{x='a"\'b\n'}"""),
        (f"up{{x='{K}'}}", "é\u00ad\x00", r"up{x='é\u00ad\x00'}"),
        (f"up{{x=`{K}`}}", "a\"'\n", "up{x=`a\"'\n`}"),
        # Several values, and their dots, stand in a regular expression as they are, as in prometheus-adapter.
        (f'up{{x=~"{K}"}}', "a.c|b", 'up{x=~"a.c|b"}'),
        (f'up{{x=~"^{K}-.*$"}}', "a", 'up{x=~"^a-.*$"}'),
        (f'up{{x="pre-{K}-post"}}', '"', r'up{x="pre-\"-post"}'),
        (rf'up{{x="\"{K}\\"}}', '"', r'up{x="\"\"\\"}'),
        (f'label_replace(up, "x", "{K}", "", "")', "$1", 'label_replace(up, "x", "$1", "", "")'),
        (f'{{"{K}", namespace="shop"}}', "http.requests", '{"http.requests", namespace="shop"}'),
        # Quotes that belong to a comment are none.
        (f'up{{ # it\'s\nx="{K}"}}', '"', 'up{ # it\'s\nx="\\""}'),
        (f"up # for {K}\n", "a ' \" b", "up # for a ' \" b\n"),
        # Bare: numbers and durations, also with digits and units of the author's.
        (f"topk({K}, up)", "5", "topk(5, up)"),
        (f"quantile({K}, up)", "0.99", "quantile(0.99, up)"),
        (f"up * {K}", "1e-3", "up * 1e-3"),
        (f"up * {K}", "0x1F", "up * 0x1F"),
        (f"rate(up[{K}])", "1h30m", "rate(up[1h30m])"),
        (f"rate(up[{K}m])", "5", "rate(up[5m])"),
        (f"rate(up[1{K}])", "5m", "rate(up[15m])"),
        (f"max_over_time(up[1h:{K}])", "5m", "max_over_time(up[1h:5m])"),
        (f"max_over_time(up[{K}:{K}])", "5m", "max_over_time(up[5m:5m])"),
        (f"up offset {K}", "5m", "up offset 5m"),
        (f"up @ {K}", "1700000000", "up @ 1700000000"),
        # Bare, and labels' names.
        (f"sum by ({K}) (up)", "zone", "sum by (zone) (up)"),
        (f"sum(up) BY (pod, {K})", "by", "sum(up) BY (pod, by)"),
        (f"up / on({K}) group_left(a,{K}) up", "zone", "up / on(zone) group_left(a,zone) up"),
        (f'up{{{K}="x"}}', "zone", 'up{zone="x"}'),
        (f'up{{a="b", {K} !~ "x"}}', "zone", 'up{a="b", zone !~ "x"}'),
        ('up{<<range $k, $v := .LabelValuesByName>><<$k>>="<<$v>>",<<end>>}', "v", 'up{k="v",namespace="shop",}'),
        # Formatted: what is made of a value is one too, and its author's quotes are none of it.
        (f"up{{k=<<printf `%q` ({K[2:-2]})>>}}", 'a"\\', r'up{k="a\"\\"}'),
        (f'up{{k="<<printf `%5s|%-4s` ({K[2:-2]}) "x">>"}}', '"', r'up{k="    \"|x   "}'),
        (f'up{{k="<<{K[2:-2]} | html>>"}}', '"', 'up{k="&#34;"}'),
        (f'up{{k="<<{K[2:-2]} | js>>"}}', '"', r'up{k="\\\""}'),
        (f'up{{k="<<slice ({K[2:-2]}) 1>>"}}', 'a"b', r'up{k="\"b"}'),
        ('up{k="<<.LabelValuesByName>>"}', '"', r'up{k="map[k:\" namespace:shop]"}'),
        (f"up * <<len ({K[2:-2]})>>", "abc", "up * 3"),
        ("up{<<.LabelMatchers>>}", '"', r'up{k="\"",namespace="shop"}'),
        ("up{x='<<.LabelMatchers>>'}", "'", """up{x='k="\\'",namespace="shop"'}"""),
        # Values are compared as they are.
        (f'<<if eq ({K[2:-2]}) `a"b`>>up<<else>>down<<end>>', 'a"b', "up"),
        (f"<<with {K[2:-2]}>>up<<else>>down<<end>>", "", "down"),
        (f'up{{x="{K}"}}', "", 'up{x=""}'),
        (f"up {K}", "", "up "),
    ],
)
def test_values_are_escaped_for_their_position(template: str, value: str, query: str) -> None:
    assert rendered(template, value) == query


@pytest.mark.parametrize(
    ("template", "value", "message"),
    [
        (f"up{{x=`{K}`}}", "a`b", "'a`b' is not allowed between back quotes, where nothing can be escaped"),
        (f"up{{x=`{K}`}}", "a\\", "between back quotes"),
        (f"up{{x=`{K}`}}", "\ud800", "between back quotes"),
        (f"up # {K}\n", "a\nb", "in a comment, which it would end"),
        (f"up # {K}\n", "a\rb", "in a comment"),
        (rf'up{{x="\{K}"}}', "n", "right after a backslash"),
        (rf"up{{x='a\\\{K}'}}", "'", "right after a backslash"),
        (
            f"\nup * {K}",
            "down",
            r"'down' is not allowed outside quotes, .*\(line 2 of the query\): put quotes around",
        ),
        (f"up * {K}", "-5", "outside quotes"),
        (f"up * {K}", "5 # ", "outside quotes"),
        (f"up * {K}", " ", "outside quotes"),
        (f"up * {K}", "5-up", "outside quotes"),
        (f"up * {K}", "NaN", "outside quotes"),
        (f"up * {K}", '"', "outside quotes"),
        (f"{K}(up)", "sum", "outside quotes"),
        (f"{K}{{namespace='shop'}}", "secrets", "outside quotes"),
        (f"job:{K}", "5m", "'5m' is not allowed outside"),
        (f"job:{K}{{a='b'}}", "rate5m", "outside quotes"),
        (f"up_{K}", "5", "outside quotes"),
        # This would be the series `up_1e`, minus 3.
        (f"up_{K}", "1e-3", "outside quotes"),
        (f"up[5m] {K}", "5m:1m", "outside quotes"),
        (f"up{K}", "5", "outside quotes"),
        (f"sum by ({K}) (up)", "a,b", "outside quotes"),
        (f"sum by ({K}) (up)", "a.b", "outside quotes"),
        (f"sum by ({K}) (up)", "a:b", "outside quotes"),
        (f"sum by ({K}) (up)", "a)(down", "outside quotes"),
        (f"sum ({K}) (up)", "a", "outside quotes"),
        (f"sum(up, {K})", "down", "outside quotes"),
        (f"sum by (x{K}) (up)", "y", "outside quotes"),
        (f"sum by ({K} up)", "a", "outside quotes"),
        (f"sum by (a) ({K})", "up", "outside quotes"),
        (f'up{{{K}="x"}}', "a-b", "outside quotes"),
        (f'up{{a="b" {K} c="d"}}', "or", "outside quotes"),
        (f"up{{{K}}}", 'a="b"', "outside quotes"),
        (f"{{{K}}}", "up", "outside quotes"),
        # A quote that its author forgot: what should be inside is outside.
        ('up{x="<<.LabelMatchers>>"}', "v", "'v' is not allowed outside quotes"),
        ("up * <<slice .LabelMatchers 0 1>>", "v", "'k' is not allowed outside quotes"),
        ("up{<<slice .LabelMatchers 0 6>>}", "down", "outside quotes"),
        ("up<<range $k, $v := .LabelValuesByName>> + <<$k>><<end>>", "v", "'k' is not allowed"),
        (f"<<$f := {K[2:-2]}>>up<<printf $f>>", "+down", "outside quotes"),
        (f'up + <<printf "%c%c" (index ({K[2:-2]}) 0) (index ({K[2:-2]}) 1)>>', "up", "outside quotes"),
        (f'up + <<printf "%x" ({K[2:-2]})>>', "\xaa\xbb", "outside quotes"),
        (f"up_<<len ({K[2:-2]})>>", "abc", "'3' is not allowed"),
        (f"<<range len ({K[2:-2]})>>up_<<.>> <<end>>", "abc", "'0' is not allowed"),
        (f"<<define `x`>>up * <<.>><<end>><<template `x` ({K[2:-2]})>>", "down", "outside quotes"),
        (f"<<block `x` .>>up * {K}<<end>>", "down", "outside quotes"),
    ],
)
def test_values_that_would_break_out_are_refused(template: str, value: str, message: str) -> None:
    with pytest.raises(PlacingError, match=message):
        rendered(template, value)


def test_a_query_of_bare_values_is_scanned_once() -> None:
    # Were each of them looked for from the beginning, this would take minutes, and time out.
    values = [Bare(2 * number, 2 * number + 1, line=number) for number in range(60_000)]

    assert misplaced_value("+".join("5" * len(values)), values) is None
    assert misplaced_value("+".join([*"5" * (len(values) - 1), "x"]), values) == values[-1]


def test_a_refusal_names_the_value_the_rule_and_the_line() -> None:
    raw = metric(f"up{{<<.LabelMatchers>>}}\n* {K}")
    with pytest.raises(RenderError) as caught:
        exact_query(raw, Asked("shop", ("web-0",), selecting("secrets")))
    assert str(caught.value) == (
        "the metricsQuery of rules[0] (a.yaml:7): the value 'secrets' is not allowed outside quotes, where only "
        "numbers, durations and, in lists and before =, names of labels are allowed (line 2 of the query): put quotes "
        "around it, or request a number"
    )


# For any request, each template reads only series of the namespace of the request.

IN_SHOP = 'namespace="shop"'
TEMPLATES = (
    "sum by (<<.GroupBy>>) (up{<<.LabelMatchers>>})",
    f'up{{{IN_SHOP},x="{K}",y="{POD}"}}',
    f"up{{{IN_SHOP},x='{K}',y='{POD}'}}",
    f"up{{{IN_SHOP},x=`{K}`,y=`{POD}`}}",
    f'up{{{IN_SHOP},x=~"a{K}b",y!~"{POD}|"}}',
    f"up{{{IN_SHOP},x=<<printf `%q` ({K[2:-2]})>>}}",
    f'up{{{IN_SHOP},x="<<.LabelValuesByName>>"}}',
    f"up{{{IN_SHOP}}} # {K} {POD}\n",
    f"up{{{IN_SHOP}}} * {K}",
    f"up{{{IN_SHOP}}} + {POD}{K}",
    f"rate(up{{{IN_SHOP}}}[{K}])",
    f"max_over_time(up{{{IN_SHOP}}}[1h:{K}])",
    f"sum by ({K}, {POD}) (up{{{IN_SHOP}}})",
    f'up{{{IN_SHOP},{K}="x"}}',
    f'up{{{IN_SHOP}}} and on({K}) down{{{IN_SHOP},x="{POD}"}}',
    f'label_replace(up{{{IN_SHOP}}}, "x", "{K}", "y", "(.*)")',
    f'up{{{IN_SHOP},x="{K[:-2]} | js>>",y="{K[:-2]} | urlquery>>"}}',
    f'up{{{IN_SHOP},<<range $k, $v := .LabelValuesByName>>x<<len $k>>_<<printf "%.1s" "z">>="<<$v>>",<<end>>}}',
    'up{<<range $k, $v := .LabelValuesByName>><<$k>>="<<$v>>",<<end>>}',
    '{"up",<<.LabelMatchers>>}',
)
HOSTILE = st.one_of(
    st.text(max_size=12),
    st.text(alphabet="\"'`\\{}()[],=~!|#/*\n\r\t a<>$%:5m_.-+", max_size=12),
    st.from_regex(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,8}[A-Za-z0-9])?", fullmatch=True),
    st.from_regex(r"[0-9]{1,3}(\.[0-9]|ms|m|h|e-?[0-9])?", fullmatch=True),
    st.sampled_from(["<<.Series>>", "or", "1 or down", "down", ") or (down", "namespace", "__name__", "5m]+down[5m"]),
    st.sampled_from(['"} or down #', "\\", '\\"', "a\\", "`", '",namespace="other', "'}or down{x='", "\ud800", "\n+x"]),
)  # fmt: skip
HARMLESS = ("madeupvalue", "madeuppod")


def query_of(template: str, key: str, value: str, pod: str) -> str | None:
    """Return the query, or None if the request is refused."""
    try:
        return exact_query(metric(template), Asked("shop", (pod,), selecting(value, key)))
    except RenderError:
        return None


def _tree(query: str) -> Node | None:
    try:
        return parse_query(query)
    except UnreadableQueryError:
        return None


def leaves(node: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Yield the leaves of a query's tree; matchers and lists of labels come without their order."""
    if is_dataclass(node):
        for field in fields(node):
            yield from leaves(getattr(node, field.name), f"{path}.{type(node).__name__}.{field.name}")
    elif isinstance(node, (tuple, frozenset)):
        for position, element in enumerate(node):
            ordered = not isinstance(element, (TreeMatcher, str))
            yield from leaves(element, f"{path}[{position if ordered else ''}]")
    else:
        yield path, node


def selectors_in(node: object) -> Iterator[SeriesSelector]:
    if isinstance(node, SeriesSelector):
        yield node
    if is_dataclass(node):
        for field in fields(node):
            yield from selectors_in(getattr(node, field.name))
    elif isinstance(node, tuple):
        for element in node:
            yield from selectors_in(element)


@pytest.mark.parametrize("template", TEMPLATES)
@settings(max_examples=60, deadline=None)
@given(HOSTILE, HOSTILE)
def test_no_request_reads_series_of_another_namespace(template: str, value: str, pod: str) -> None:
    query = query_of(template, "k", value, pod)
    if query is None:
        return
    tree = _tree(query)
    if tree is None:
        # Prometheus refuses it as well: a number where a label belongs, for example.
        return
    found = list(selectors_in(tree))
    assert found
    for selector in found:
        assert TreeMatcher("namespace", "=", "shop") in selector.matchers
        assert not selector.alternatives
        names = {matcher.value for matcher in selector.matchers if matcher.label == "__name__"}
        assert names <= {"up", "down"}


QUOTED = TEMPLATES[:7] + TEMPLATES[15:16] + TEMPLATES[-1:]


@pytest.mark.parametrize("template", QUOTED)
@settings(max_examples=60, deadline=None)
@given(HOSTILE, HOSTILE)
@example('"} or down #', "\\")
def test_a_value_in_quotes_is_one_literal_of_an_unchanged_query(template: str, value: str, pod: str) -> None:
    # Half of a surrogate pair is no text: it is sent as the replacement character.
    assume(value and not any("\ud800" <= mark <= "\udfff" for mark in value + pod))
    query = query_of(template, "k", value, pod)
    harmless = query_of(template, "k", HARMLESS[0], HARMLESS[1])
    assert harmless is not None
    if query is None:
        # Not the name of an object, or a back quote or backslash between back quotes.
        return
    tree = _tree(query)
    if tree is None:
        # Names of objects that make no regular expression: Prometheus refuses the query as well.
        assert "=~" in template
        return
    expected = [
        (path, leaf.replace(HARMLESS[0], value).replace(HARMLESS[1], pod) if isinstance(leaf, str) else leaf)
        for path, leaf in leaves(parse_query(harmless))
    ]
    assert Counter(leaves(tree)) == Counter(expected)


@given(HOSTILE)
def test_a_key_of_a_selector_is_a_label_or_refused(key: str) -> None:
    query = query_of('up{<<range $k, $v := .LabelValuesByName>><<$k>>="<<$v>>",<<end>>}', key, "v", "web-0")
    if query is not None and key != "__name__":
        (selector,) = selectors_in(parse_query(query))
        own = {"__name__": "up", "namespace": "shop", "pod": "web-0"}
        assert {matcher.label for matcher in selector.matchers} == {*own, key}


@given(st.lists(st.sampled_from(["a", "web-0", "x.y"]), min_size=1, max_size=3), st.sampled_from(["v", "a.b", "A_1"]))
def test_values_that_need_no_escaping_are_unchanged(names: list[str], value: str) -> None:
    for template in (f'up{{x="{K}",y="{POD}"}}', f"up{{x='{K}',y=`{POD}`}} # {K}"):
        plain = template.replace(K, value).replace(POD, "|".join(names))
        assert exact_query(metric(template), Asked("shop", tuple(names), selecting(value))) == plain
    assert exact_query(metric(f'up{{x="{POD}"}}'), Asked("shop", ("p",), EVERYTHING)) == 'up{x="p"}'
