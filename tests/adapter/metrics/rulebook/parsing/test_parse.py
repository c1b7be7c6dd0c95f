"""Rule files: what is accepted, what is refused, and which findings are reported."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.documents.load import DocumentError, load_documents
from adapter.foundation.objects.resources import BUILT_IN, find_resource
from adapter.metrics.rulebook.findings import Code, Severity
from adapter.metrics.rulebook.model import Api
from adapter.metrics.rulebook.parsing.parse import parse_rulebook

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.objects.resources import ResolveResource
    from adapter.metrics.rulebook.model import Rulebook

    Read = Callable[..., Rulebook]

GOOD = """\
- seriesQuery: 'good{namespace!="",pod!=""}'
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
  metricsQuery: sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)
"""


def rule(**changes: str) -> str:
    """Return a good rule of six lines, with lines changed or added, or left out where the change is empty."""
    lines = {
        "seriesQuery": "some_series",
        "seriesFilters": "[{is: some}]",
        "name": "{matches: ^(.*)$}",
        "resources": "{overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}",
        "metricsQuery": "sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)",
    }
    items = (lines | changes).items()
    return "".join(f"  {key}: {value}\n" for key, value in items if value).replace("  ", "- ", 1)


def test_a_rule_is_read_with_all_its_keys(read: Read, resolve: ResolveResource) -> None:
    text = """\
rules:
- seriesQuery: '{__name__=~"^http_.*",pod!=""}'
  seriesFilters:
  - is: ^http_
  - isNot: _seconds$
  resources:
    template: kube_<<.Resource>>
    overrides:
      ns: {resource: namespaces}
      brand: {group: cheese.io, resource: Brand}
  name:
    matches: ^http_(.*)$
    as: web_${1}
  metricsQuery: |
    sum(<<.Series>>) by (<<.GroupBy>>)
externalRules:
- seriesQuery: queue_depth
  resources: {namespaced: no}
  metricsQuery: sum(<<.Series>>{<<.LabelMatchers>>})
"""
    book = read(text)
    custom, external = book.rules
    assert (custom.id, custom.api, custom.file, custom.line) == ("rules[0]", Api.CUSTOM, "a.yaml", 2)
    assert custom.series_query == '{__name__=~"^http_.*",pod!=""}'
    assert [series_filter.wanted for series_filter in custom.series_filters] == [True, False]
    assert custom.naming.name_for("http_requests") == "web_requests"
    assert custom.resources.namespace_label() == "ns"
    assert custom.resources.label_of(resolve("cheese.io", "brands")) == "brand"
    assert custom.resources.label_of(resolve("", "pods")) == "kube_pod"
    assert custom.metrics_query.text == "sum(<<.Series>>) by (<<.GroupBy>>)\n"
    assert (external.id, external.api, external.line, external.namespaced) == (
        "externalRules[0]",
        Api.EXTERNAL,
        17,
        False,
    )
    assert [finding.code for finding in book.findings] == ["no-label-matchers"]
    assert book.refused == ()


def test_scalars_keep_their_text(read: Read) -> None:
    book = read("rules:\n" + rule(seriesQuery="up", name="{as: 1e3}") + rule(name="{as: yes}"))
    assert [one.naming.template for one in book.rules] == ["1e3", "yes"]


def test_anchors_and_merge_keys_are_followed(read: Read) -> None:
    text = "rules:\n" + GOOD.replace("resources: {", "resources: &r {") + rule(resources="*r")
    one, other = read(text).rules
    assert one.resources == other.resources


def test_rules_are_counted_over_all_files(read: Read) -> None:
    book = read(f"rules:\n{GOOD}{rule(metricsQuery='')}", f"externalRules:\n{GOOD}", f"rules:\n{GOOD}")
    assert [(one.id, one.file) for one in book.rules] == [
        ("rules[0]", "a.yaml"),
        ("externalRules[0]", "b.yaml"),
        ("rules[2]", "c.yaml"),
    ]
    assert [(one.id, one.file, one.line) for one in book.refused] == [("rules[1]", "a.yaml", 5)]
    assert book.files == ("a.yaml", "b.yaml", "c.yaml")


# Each case: the rule that stands in lines 5 and following between two good ones; line, code and message of the finding.
ERRORS = [
    (rule(seriesquery="x"), 10, "unknown-key", "the key 'seriesquery' is not known: did you mean 'seriesQuery'?"),
    (rule(metricsQuery="", metricQuery="up{<<.LabelMatchers>>}"), 9, "unknown-key", "did you mean 'metricsQuery'?"),
    (rule(onNoData="value"), 10, "bad-policy", "does not say which value: write the value itself"),
    (
        rule(metricsQuery="some_series{<<.LabelMatchers>>} offset 1m", maxSampleAge="1m"),
        10,
        "sample-age-not-checked",
        "is evaluated at another time by `offset` or `@`",
    ),
    (rule(zzz="1"), 10, "unknown-key", "remove it; the keys here are seriesQuery, seriesFilters"),
    (rule(resources="", overrides="{pod: {resource: pod}}"), 9, "unknown-key", "indent it below `resources:`"),
    (rule(template="<<.Resource>>"), 10, "unknown-key", "is not known here, but in `resources`"),
    (rule(name="{match: x}"), 7, "unknown-key", "did you mean 'matches'?"),
    (rule(seriesFilters="[{isnt: x}]"), 6, "unknown-key", "did you mean 'isNot'?"),
    (rule(resources="{override: {}}"), 8, "unknown-key", "did you mean 'overrides'?"),
    (rule(resources="{overrides: {pod: {kind: Pod}}}"), 8, "unknown-key", "the key 'kind' is not known"),
    (rule() + "  name: {as: x}\n", 10, "bad-yaml", "'name' appears a second time; the first is in line 7"),
    (rule(resources="{overrides: {pod: {resource: pod}, pod: {resource: node}}}"), 8, "bad-yaml", "second time"),
    (
        rule(resources="{template: <<.Resource>>, overrides: {<<: {pod: {resource: node}}, pod: {resource: pod}}}"),
        8,
        "bad-yaml",
        "the key 'pod' is set both here and by a merge",
    ),
    (rule(resources="{overrides: {~: {resource: pod}}, template: <<.Resource>>}"), 8, "bad-label", "'~' cannot be"),
    (rule(resources="{overrides: {null: {resource: pod}}, template: <<.Resource>>}"), 8, "bad-label", "'null' cannot"),
    (rule(name="[x]"), 7, "wrong-kind", "expected a mapping (`key: value` lines), found a list"),
    (rule(seriesQuery="{a: b}"), 5, "wrong-kind", "expected a string, found a mapping"),
    (rule(metricsQuery="[x]"), 9, "wrong-kind", "expected a string, found a list"),
    (rule(seriesFilters="x"), 6, "wrong-kind", "expected a list (lines that start with `- `), found the string 'x'"),
    (rule(resources="{namespaced: maybe}"), 8, "wrong-kind", "expected true or false, found"),
    (rule(resources="{overrides: {pod: {resource: [pod]}}}"), 8, "wrong-kind", "expected a string, found a list"),
    (
        rule(resources="{overrides: {pod: pod}}"),
        8,
        "wrong-kind",
        "expected a mapping (`key: value` lines), found the string 'pod'",
    ),
    ("- just text\n", 5, "wrong-kind", "expected a mapping (`key: value` lines), found the string 'just text'"),
    ("-\n", 5, "wrong-kind", "expected a mapping (`key: value` lines), found null"),
    (rule(seriesQuery=""), 5, "missing-key", "`seriesQuery` is missing"),
    (rule(seriesQuery="''"), 5, "missing-key", "`seriesQuery` is missing"),
    (rule(metricsQuery=""), 5, "missing-key", "`metricsQuery` is missing"),
    (rule(metricsQuery="' '"), 9, "missing-key", "`metricsQuery` is missing"),
    (
        rule(resources="{overrides: {pod: {group: apps}}}"),
        8,
        "missing-key",
        "`resource` is missing, so the label identifies no object",
    ),
    (
        rule(resources="{overrides: {pod: }}"),
        8,
        "missing-key",
        "`resource` is missing, so the label identifies no object",
    ),
    (rule(seriesQuery="sum(up)"), 5, "bad-series-query", "'sum(up)' cannot be looked up: it is an expression"),
    (rule(seriesFilters="[{is: (a}]"), 6, "bad-regex", "`is` '(a' is not a regular expression of RE2: missing )"),
    (rule(seriesFilters="[{isNot: (?=a)}]"), 6, "bad-regex", "`isNot` '(?=a)' is not"),
    (rule(name="{matches: '*'}"), 7, "bad-regex", "`matches` '*' is not a regular expression of RE2"),
    (rule(seriesFilters="[{is: a, isNot: b}]"), 6, "bad-filter", "both `is` and `isNot`"),
    (rule(seriesFilters="[{}]"), 6, "bad-filter", "neither `is` nor `isNot`"),
    (rule(seriesFilters="[{is: ''}]"), 6, "bad-filter", "neither `is` nor `isNot`"),
    (rule(name="{matches: (a)(b)}"), 7, "missing-as", "`matches` has 2 groups and `as` is missing"),
    (rule(name="{matches: ^(.*)$, as: $1_rate}"), 7, "bad-metric-name", "`matches` has no group 1_rate"),
    (rule(name="{as: a/b}"), 7, "bad-metric-name", "names with a slash"),
    (rule(resources="{overrides: {a+b: {resource: pod}}}"), 8, "bad-label", "'a+b' cannot be a label"),
    (rule(resources="{template: <<.Group>>}"), 8, "bad-label-template", "does not contain <<.Resource>>"),
    (rule(resources="{template: <<.Resource}"), 8, "bad-label-template", "not closed by >>"),
    (rule(resources="{template: '(<<.Resource>>'}"), 8, "bad-label-template", "missing )"),
    (rule(resources=""), 5, "no-resources", "does not say which labels"),
    (rule(resources="{overrides: {pod: {resource: pod}}}"), 8, "no-namespace-label", "and pods are namespaced"),
    (rule(resources="{overrides: {pod: {resource: pot}}}"), 8, "unknown-resource", "pot"),
    (rule(metricsQuery="sum(<<.Series)"), 9, "bad-template", "not closed by >>"),
    (rule(metricsQuery="<<.Serie>>"), 9, "bad-template", "there is no field .Serie; the fields are .Series"),
    (rule(metricsQuery="<<call .Series>>"), 9, "bad-template", "`call` is not supported"),
    (rule(metricsQuery="'<<template `x`>>'"), 9, "bad-template", "the template 'x' is not defined"),
    (
        rule(metricsQuery="up * <<.LabelValuesByName.pod>>"),
        9,
        "bad-template",
        "'web-0' is not allowed outside quotes",
    ),
    (rule(metricsQuery="'<<index .GroupBySlice 1>>'"), 9, "bad-template", "1 is out of range"),
    (rule(metricsQuery='"up\\n<<.Nope>>"'), 9, "bad-template", "(its line 2)"),
    (rule(metricsQuery="<<if false>>up<<end>>"), 9, "empty-query", "results in an empty query"),
    (
        rule(metricsQuery="sum(up{<<.LabelMatchers>>}"),
        9,
        "unbalanced-query",
        "`metricsQuery` makes a query that no version of Prometheus can parse: the ( of '(up{",
    ),
]


@pytest.mark.parametrize(("bad", "line", "code", "message"), ERRORS)
def test_an_error_is_one_clear_line_and_refuses_only_its_rule(
    bad: str, line: int, code: str, message: str, read: Read
) -> None:
    book = read(f"rules:\n{GOOD}{bad}{GOOD}")
    assert [one.id for one in book.rules] == ["rules[0]", "rules[2]"]
    assert [(one.id, one.api, one.line) for one in book.refused] == [("rules[1]", Api.CUSTOM, 5)]
    errors = [finding for finding in book.findings if finding.severity is Severity.ERROR]
    assert [(error.rule, error.code, error.line) for error in errors] == [("rules[1]", code, line)]
    assert str(errors[0]).startswith(f"a.yaml:{line}: ")
    assert message in str(errors[0])
    assert "\n" not in str(errors[0])


WARNINGS = [
    (rule(name="{matches: ^(.*)$, as: x$2}"), 7, "unknown-group", "`as` 'x$2' refers to 2"),
    (
        rule(resources="{overrides: {namespace: {resource: namespace}, pod: {resource: pod}, p: {resource: pods}}}"),
        8,
        "ambiguous-override",
        "the labels pod and p both stand for pods",
    ),
    (
        rule(resources="{overrides: {node: {resource: node}, pod: {resource: pod}}}"),
        8,
        "no-namespace-label",
        "so metrics of pods are not served",
    ),
    (rule(resources="{template: <<.Resource>>, namespaced: false}"), 8, "namespaced-ignored", "no meaning in `rules`"),
    (rule(seriesQuery="'up{a='"), 5, "series-query-not-read", "'up{a=' cannot be read"),
    (rule(metricsQuery="sum(up) by (pod)"), 9, "no-label-matchers", "gives the same result"),
    (rule(metricsQuery="sum(up{<<.LabelMatchers>>}) over later"), 9, "query-not-read", "cannot be read"),
    (
        rule(metricsQuery="'sum(up{<<.LabelMatchers>>})<<if gt (len .LabelValuesByName) 3>>)<<end>>'"),
        9,
        "query-not-read",
        "closes nothing",
    ),
    (
        rule(metricsQuery="quantile(<<.LabelValuesByName.q>>, up{<<.LabelMatchers>>})"),
        9,
        "query-not-read",
        "cannot be read",
    ),
    (
        rule(metricsQuery="'sum(up{<<.LabelMatchers>>}<<if eq .Series `up`>>)<<end>>'"),
        9,
        "query-not-read",
        "is never closed",
    ),
]


@pytest.mark.parametrize(("doubtful", "line", "code", "message"), WARNINGS)
def test_a_warning_refuses_no_rule(doubtful: str, line: int, code: str, message: str, read: Read) -> None:
    book = read(f"rules:\n{GOOD}{doubtful}")
    assert [one.id for one in book.rules] == ["rules[0]", "rules[1]"]
    found = [(finding.severity, finding.rule, finding.code, finding.line) for finding in book.findings]
    assert found == [(Severity.WARNING, "rules[1]", code, line)]
    assert message in str(book.findings[0])


def test_foreign_delimiters_are_reported(read: Read) -> None:
    book = read("rules:\n" + rule(metricsQuery="'up{<<.LabelMatchers>>} {{.Series}}'"))
    assert [finding.code for finding in book.findings] == ["foreign-delimiters", "query-not-read"]


def test_all_errors_of_a_rule_are_reported_at_once(read: Read) -> None:
    bad = rule(seriesFilters="[{is: (}]", name="{matches: '*'}", resources="{template: x}", metricsQuery="<<x>>", y="1")
    codes = {finding.code for finding in read(f"rules:\n{bad}").findings}
    assert codes == {"unknown-key", "bad-regex", "bad-label-template", "bad-template"}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "empty-configuration"),
        ("# nothing\n", "empty-configuration"),
        ("{}", "empty-configuration"),
        ("rules: []\nexternalRules:\n", "empty-configuration"),
    ],
)
def test_a_file_without_rules_is_a_warning(text: str, code: str, read: Read) -> None:
    book = read(text)
    assert [(finding.severity, finding.code, finding.rule) for finding in book.findings] == [
        (Severity.WARNING, code, None)
    ]
    assert book.rules == ()


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        (f"rule: []\nrules:\n{GOOD}", "unknown-key", "a.yaml:1: the key 'rule' is not known: did you mean 'rules'?"),
        (
            f"rules:\n{GOOD}externalRules: x\n",
            "wrong-kind",
            "a.yaml:5: expected a list (lines that start with `- `), found the string 'x'",
        ),
        (f"rules:\n{GOOD}externalRules: !odd []\n", "bad-yaml", "a.yaml:5: the tag '!odd'"),
    ],
)
def test_an_error_outside_of_the_rules_refuses_no_rule(text: str, code: str, message: str, read: Read) -> None:
    book = read(text)
    assert [one.id for one in book.rules] == ["rules[0]"]
    assert [(finding.severity, finding.code, finding.rule) for finding in book.findings] == [
        (Severity.ERROR, code, None)
    ]
    assert str(book.findings[0]).startswith(message)


def test_a_file_that_is_not_a_mapping_serves_nothing(read: Read) -> None:
    book = read("- x", f"rules:\n{GOOD}")
    assert [finding.code for finding in book.findings] == ["wrong-kind"]
    assert [one.file for one in book.rules] == ["b.yaml"]


@pytest.mark.parametrize("text", ["rules: [", "rules: []\nrules: []\n"])
def test_an_error_in_the_yaml_of_a_file_is_raised_on_load(text: str) -> None:
    with pytest.raises(DocumentError, match=r"a\.yaml:\d+: "):
        load_documents(text, "a.yaml")


def test_a_resource_that_appears_later_makes_its_rule_valid(resolve: ResolveResource) -> None:
    brands = "{overrides: {namespace: {resource: namespace}, brand: {group: cheese.io, resource: brand}}}"
    documents = [load_documents(f"rules:\n{rule(resources=brands)}", "a.yaml")]
    before = parse_rulebook(documents, partial(find_resource, BUILT_IN))
    assert [finding.code for finding in before.findings] == ["unknown-resource"]
    assert "brand" in before.findings[0].message
    after = parse_rulebook(documents, resolve)
    assert after.findings == ()
    assert [one.id for one in after.rules] == ["rules[0]"]


def test_every_finding_code_is_covered() -> None:
    of_check = {
        Code.COUNTER_WITHOUT_RATE,
        Code.EXACT_PLAN,
        Code.LONG_REFRESH,
        Code.MATCHES_EVERYTHING,
        Code.NAME_COLLISION,
        Code.NO_DATA_NOT_SERVED,
        Code.NO_DATA_OF_SEVERAL,
        Code.NO_GROUP_BY,
        Code.NO_METRIC_NAME,
        Code.NO_SERIES,
        Code.NOT_ASKED,
        Code.NOT_CONFINED,
        Code.OPERATOR_IGNORED,
        Code.QUERY_REFUSED,
        Code.ROWS_OF_ALL_NAMESPACES,
        Code.SERIES_OF_ANYBODY,
        Code.UNANCHORED_PATTERN,
        Code.UNQUOTED_SERIES,
    }
    elsewhere = of_check | {Code.EMPTY_CONFIGURATION, Code.FOREIGN_DELIMITERS}
    elsewhere |= {Code.BAD_WINDOW, Code.REPEATED_RESOURCE_RULE, Code.UNREADABLE_FILE, Code.UNSERVED_USAGE}
    elsewhere |= {Code.BAD_BACKEND, Code.REPEATED_BACKEND, Code.UNKNOWN_BACKEND}
    assert {code for *_, code, _ in (*ERRORS, *WARNINGS)} | elsewhere == set(Code)


def test_rules_that_repeat_a_query_have_findings_of_their_own(read: Read) -> None:
    doubtful = rule(metricsQuery="'sum(<<.Series>>{<<.LabelMatchers>>}[5m] offset (1 * 1))'")
    wrong = rule(metricsQuery="'sum(<<.Series>>{<<.LabelMatchers>>}'")
    external = rule(metricsQuery="sum(<<.Series>>) by (<<.GroupBy>>)")
    book = read(f"rules:\n{doubtful}{wrong}{external}{doubtful}{wrong}{external}")
    found = [(finding.rule, finding.code, finding.line) for finding in book.findings]
    assert [code for _, code, _ in found[: len(found) // 2]] == [code for _, code, _ in found[len(found) // 2 :]]
    assert len({(each, line) for each, _, line in found}) == len(found)
    assert len(book.rules) == 4
