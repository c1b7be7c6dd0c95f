from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.foundation.documents import merge_keys as merging
from adapter.foundation.documents.load import (
    DEEPEST,
    DocumentError,
    MappingNode,
    Node,
    ScalarNode,
    WrongKindError,
    load_documents,
    nearest_word,
    problems_within,
)


def root(text: str) -> Node:
    document = load_documents(text, "rules.yaml")
    assert document.root is not None
    return document.root


def plain(node: Node) -> object:
    """Return the tree as built-in values, for comparison."""
    if isinstance(node, MappingNode):
        return {entry.name: plain(entry.value) for entry in node.entries}
    if isinstance(node, ScalarNode):
        return None if node.is_null else node.value
    return [plain(item) for item in node.sequence()]


@pytest.mark.parametrize(
    "written",
    ["yes", "1e3", "007", "0x1F", "1_000", "2026-11-21", "12:30:45", ".inf", "=", "a b", "null x", "1.10"],
)
def test_a_scalar_is_its_literal_text(written: str) -> None:
    assert plain(root(f"as: {written}")) == {"as": written}


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("a: '~'", "~"),
        ("a: !!str yes", "yes"),
        ("a: !!int 0x10", "0x10"),
        ("a: ! x", "x"),
        ("a: it's # a comment", "it's"),
        ("a: 'it''s'", "it's"),
        ('a: "\\x41\\u00e9\\n\\e"', "Aé\n\x1b"),
        ("a: one\n  two\n\n  three", "one two\nthree"),
        ("a: 'one\n\n  two'", "one\ntwo"),
        ('a: "one\\\n  two"', "onetwo"),
        ("a: |\n  one\n   two\n\n", "one\n two\n"),
        ("a: |-\n  one\n", "one"),
        ("a: |+\n  one\n\n", "one\n\n"),
        ("a: >-\n  one\n  two\n\n  three\n", "one two\nthree"),
        ("a: |1\n  one\n", " one\n"),
        # Byte order mark, ends of lines as Windows and old Macs write them, tabs that do not indent.
        ("\ufeffa: b", "b"),
        ("a: b\r\n", "b"),
        ("a: |\r\n  one\r\n  two\r\n", "one\ntwo\n"),
        ("a: 'one\r\n\r\n  two'\r\n", "one\ntwo"),
        ("# comment\ra: b\r", "b"),
        ("a:\tb", "b"),
        ("a: b\t", "b"),
        ("a: |\n  b\tc\n", "b\tc\n"),
    ],
)
def test_texts_are_read_as_go_reads_them(written: str, value: str) -> None:
    """Each text was compared with what `gopkg.in/yaml.v2` reads."""
    assert plain(root(written)) == {"a": value}


@pytest.mark.parametrize("written", ["", "~", "null", "Null", "NULL", "!!null ~"])
def test_null_is_recognised_and_counts_as_absent(written: str) -> None:
    mapping = root(f"as: {written}\nb: c").mapping()
    entry = mapping.entry("as")
    assert entry is not None
    assert entry.value.is_null
    assert mapping.get("as") is None
    assert mapping.entry("nothing") is None


@pytest.mark.parametrize("written", ["'null'", '"~"', '""', "!!str null", "|\n  null"])
def test_a_quoted_null_is_a_text(written: str) -> None:
    assert not root(f"as: {written}\n").mapping().entries[0].value.is_null


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("y", True),
        ("Yes", True),
        ("on", True),
        ("TRUE", True),
        ("n", False),
        ("No", False),
        ("OFF", False),
        ("false", False),
    ],
)
def test_booleans_are_those_of_yaml_1_1(written: str, value: bool) -> None:  # noqa: FBT001 - a column of the table
    assert root(f"namespaced: {written}").mapping().entries[0].value.boolean() is value


@pytest.mark.parametrize("written", ["'true'", "1", "tRue", "~", "[true]", "{}"])
def test_a_value_that_is_not_a_boolean_is_an_error_with_its_line(written: str) -> None:
    with pytest.raises(WrongKindError, match=r"rules.yaml:2: expected true or false, found "):
        root(f"a: b\nnamespaced: {written}").mapping().entries[1].value.boolean()


def test_each_accessor_refuses_other_kinds_and_names_the_expected_one() -> None:
    a_list, a_text, a_mapping, nothing = (entry.value for entry in root("a: [1]\nb: c\nd: {}\ne:").mapping().entries)
    for refused in (a_list.mapping, a_text.mapping, nothing.mapping):
        with pytest.raises(WrongKindError, match="expected a mapping"):
            refused()
    for refused_list in (a_mapping.sequence, a_text.sequence, nothing.sequence):
        with pytest.raises(WrongKindError, match="expected a list"):
            refused_list()
    for refused_text in (a_mapping.text, a_list.text, nothing.text):
        with pytest.raises(WrongKindError, match="expected a string, found"):
            refused_text()


def test_nodes_have_their_file_line_and_column() -> None:
    rule = root("rules:\n- seriesQuery: up\n  name:\n    as: x\n").mapping().entries[0].value.sequence()[0]
    name = rule.mapping().get("name")
    assert name is not None
    assert (rule.file, rule.line, rule.column) == ("rules.yaml", 2, 3)
    assert (name.line, name.column) == (4, 5)


@pytest.mark.parametrize("text", ["", "\n", "# only a comment\n", "---\n", "--- ~\n", "\ufeff", "---\n---\n"])
def test_an_empty_file_is_an_empty_document(text: str) -> None:
    assert load_documents(text, "rules.yaml").root is None


@pytest.mark.parametrize(
    "text", ["a: b\n---\n", "a: b\n...\n", "--- {a: b}\n---\n# nothing more\n", "%YAML 1.1\n---\na: b\n"]
)
def test_one_document_may_have_empty_ones_around_it(text: str) -> None:
    assert plain(root(text)) == {"a": "b"}


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a: [1", 1, "not YAML"),
        ("a: b: c", 1, "not YAML"),
        ("a: 1\n\tb: 2", 2, "not YAML"),
        ('a: "open', 1, "not YAML"),
        ("a: 1\nb: 2\na: 3", 3, "the key 'a' appears a second time; the first is in line 1"),
        ("a: 1\n? [b]\n: 2", 2, "expected a key, found a list"),
        ("a: 1\n---\nb: 2", 2, "a second document begins here"),
        ("a: 1\nb: *nothing", 2, "*nothing is not defined"),
        ("base: &base 1\nb: *bose", 2, "did you mean *base?"),
        ("a: &a [*a]", 1, "*a contains itself"),
        ("a: &a {b: {<<: *a}}", 1, "*a contains itself"),
        ("a: ok\nb: \x07", 2, "U+0007"),
        ("a: ok\nb: \ud800", 2, "U+D800"),
        ("a:\n " + "[" * 100_000, 2, f"more than {DEEPEST} levels"),
        ("<<: 5\na: b", 1, "cannot be merged by `<<`"),
    ],
)
def test_a_problem_of_the_whole_file_is_raised_with_its_line(text: str, line: int, message: str) -> None:
    with pytest.raises(DocumentError) as caught:
        load_documents(text, "rules.yaml")
    assert caught.value.problem.line in {line, line + 1}, "the C parser sees the end of a file one line later"
    assert message in str(caught.value)
    assert str(caught.value).startswith("rules.yaml:")


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("{a: 1, a: 2}", "the key 'a' appears a second time"),
        ("{b: {a: 1, a: 2}}", "the key 'a' appears a second time"),
        ("{? [a] : 1}", "expected a key, found a list"),
        ("{<<: [1]}", "cannot be merged by `<<`"),
        ("{a: !include other.yaml}", "the tag '!include' has no meaning here"),
        ("{!include a: other.yaml}", "the tag '!include' has no meaning here"),
        ("{a: !!binary aGk=}", "the tag 'tag:yaml.org,2002:binary' has no meaning here"),
        ("{a: !!null something}", "the tag !!null is on a value that is not null"),
        ("{<<: {a: 1, a: 2}}", "the key 'a' appears a second time"),
        ("{<<: [{b: 1}, {a: 1, a: 2}]}", "the key 'a' appears a second time"),
    ],
)
def test_a_problem_of_one_rule_is_attached_to_that_rule(rule: str, message: str) -> None:
    bad, good = root(f"rules:\n- {rule}\n- {{a: 1}}").mapping().entries[0].value.sequence()
    problems = list(problems_within(bad))
    assert [problem.line for problem in problems] == [2]
    assert message in problems[0].message
    assert list(problems_within(good)) == []


def test_the_first_value_of_a_repeated_key_is_kept() -> None:
    assert plain(root("rule: {a: 1, a: 2}")) == {"rule": {"a": "1"}}


def test_aliases_have_the_value_of_their_anchor() -> None:
    assert plain(root("a: &x [1, {b: c}]\nd: *x")) == {"a": ["1", {"b": "c"}], "d": ["1", {"b": "c"}]}


def test_an_alias_refers_to_the_last_anchor_of_its_name() -> None:
    assert plain(root("a: &x 1\nb: &x 2\nc: *x")) == {"a": "1", "b": "2", "c": "2"}
    assert plain(root("a: &x {b: &x 1}\nc: *x")) == {"a": {"b": "1"}, "c": "1"}
    assert plain(root("a: &x {b: &x 1, c: *x}")) == {"a": {"b": "1", "c": "1"}}


BASE = "base: &base {a: 1, name: {matches: m, as: x}, list: [1]}\nother: &other {a: 2, b: 3}\nrule:\n"


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("  <<: *base\n", {"a": "1", "name": {"matches": "m", "as": "x"}, "list": ["1"]}),
        ("  <<: *other\n  a: own\n", {"a": "own", "b": "3"}),
        # Go's yaml.v2 sets fields in the order of the file, merged ones too: what stands later wins.
        ("  a: own\n  <<: *other\n", {"a": "2", "b": "3"}),
        ("  <<: [*other, *base]\n  list: ~\n", {"a": "2", "name": {"matches": "m", "as": "x"}, "list": None, "b": "3"}),
        # A struct that is there already is filled up, a list is replaced.
        ("  <<: *base\n  name: {as: y}\n  list: [2]\n", {"a": "1", "name": {"matches": "m", "as": "y"}, "list": ["2"]}),
        ("  <<: {a: {b: {c: 1}}}\n  a: {b: {d: 2}}\n", {"a": {"b": {"c": "1", "d": "2"}}}),
        ("  '<<': *other\n", {"<<": {"a": "2", "b": "3"}}),
        ("  !!str <<: *other\n", {"<<": {"a": "2", "b": "3"}}),
        ("  !!merge <<: *other\n", {"a": "2", "b": "3"}),
    ],
)
def test_merge_keys_are_resolved_as_go_does(rule: str, expected: object) -> None:
    merged = root(BASE + rule).mapping().get("rule")
    assert merged is not None
    assert plain(merged) == expected
    assert list(problems_within(merged)) == []


@pytest.mark.parametrize(
    ("overrides", "lines"),
    [
        ("{a: {resource: pod}, b: {resource: pod}}", []),
        ("{<<: {b: {resource: node}}, a: {resource: pod}}", []),
        ("{<<: {a: {resource: node}}, a: {resource: pod}}", [2]),
        ("{a: {resource: pod}, <<: {a: {resource: node}}}", [2]),
        ("{<<: [{a: {resource: node}}, {a: {resource: pod}}]}", [2]),
        ("{<<: {a: {resource: node}}, <<: {a: {resource: pod}}}", [2]),
    ],
)
def test_repeated_keys_that_go_would_refuse_in_a_map_are_reported(overrides: str, lines: list[int]) -> None:
    mapping = root(f"x: y\noverrides: {overrides}").mapping().get("overrides")
    assert mapping is not None
    assert [problem.line for problem in mapping.mapping().repeated] == lines
    assert list(problems_within(mapping)) == []


def test_a_map_within_a_merged_mapping_is_merged_too() -> None:
    text = "rule: {<<: {resources: {overrides: {a: 1, b: 2}}}, resources: {overrides: {a: 3}}}"
    rule = root(text).mapping().get("rule")
    assert rule is not None
    resources = rule.mapping().get("resources")
    assert resources is not None
    assert plain(resources) == {"overrides": {"a": "3", "b": "2"}}
    (overrides,) = (entry.value.mapping() for entry in resources.mapping().entries)
    assert [problem.message for problem in overrides.repeated] == ["the key 'a' is set both here and by a merge"]


def test_a_merged_entry_keeps_its_own_line() -> None:
    rule = root(BASE + "  <<: *other\n").mapping().get("rule")
    assert rule is not None
    assert [entry.key.line for entry in rule.mapping().entries] == [2, 2]


def test_aliases_of_aliases_cannot_expand_to_billions_of_values() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, 12)]
    with pytest.raises(DocumentError, match="stand for more than 1000000 values"):
        load_documents("\n".join(lines), "rules.yaml")


def test_aliases_of_aliases_cannot_nest_without_end() -> None:
    """Two deep mappings that are merged would exhaust the stack."""
    lines = ["a0: &a0 {k: 1}", "b0: &b0 {k: 1}"]
    lines += [f"{name}{level}: &{name}{level} {{k: *{name}{level - 1}}}" for level in range(1, 900) for name in "ab"]
    for text in ("\n".join(lines), "\n".join([*lines, "c: {<<: [*a899, *b899]}"])):
        with pytest.raises(DocumentError, match=f"more than {DEEPEST} levels"):
            load_documents(text, "rules.yaml")


def test_thousands_of_merges_of_one_mapping_report_each_problem_once() -> None:
    keys = ", ".join(f"k{number}: {{a: 1, a: 2}}" for number in range(20))
    text = f"base: &b {{x: {{{keys}}}}}\nrule: {{<<: [{', '.join(['*b'] * 1000)}]}}"
    rule = root(text).mapping().get("rule")
    assert rule is not None
    assert len(list(problems_within(rule))) == 20


@pytest.mark.parametrize(
    "rule",
    [
        ", ".join(f"<<: {{x: {{k{number}: 1}}}}" for number in range(300)),
        "<<: [" + ", ".join(f"{{x: {{k{number}: 1}}}}" for number in range(300)) + "]",
    ],
    ids=["one by one", "in a list"],
)
def test_a_mapping_that_is_merged_many_times_is_built_once(monkeypatch: pytest.MonkeyPatch, rule: str) -> None:
    made: list[int] = []

    def counted(mapping: MappingNode, **changes: Any) -> MappingNode:  # noqa: ANN401 - those of any field
        made.append(len(changes["entries"]))
        return dataclasses.replace(mapping, **changes)

    monkeypatch.setattr(merging, "replace", counted)
    filled = root(f"{{{rule}}}").mapping().get("x")
    assert filled is not None
    assert plain(filled) == {f"k{number}": "1" for number in range(300)}
    assert made == [300]


@pytest.mark.timeout(60)
def test_long_words_are_not_compared() -> None:
    assert nearest_word("ab" * 50_000, ["ba" * 50_000]) is None


def test_unknown_keys_are_listed() -> None:
    mapping = root("seriesQuery: a\nserieQuery: b").mapping()
    assert [entry.name for entry in mapping.unknown({"seriesQuery", "name"})] == ["serieQuery"]


@pytest.mark.parametrize(
    ("word", "meant"),
    [("serieQuery", "seriesQuery"), ("SERIESQUERY", "seriesQuery"), ("metricQuery", "metricsQuery"), ("zzz", None)],
)
def test_the_nearest_known_word_is_suggested(word: str, meant: str | None) -> None:
    assert nearest_word(word, ["seriesQuery", "metricsQuery", "name"]) == meant


yaml_like = st.text(alphabet="ab:-[]{}&*!<>?|#'\"\n\t ,%~.1\\\x00é", max_size=60)


@settings(max_examples=400, deadline=None)
@given(yaml_like)
def test_any_text_is_a_document_or_an_error_that_says_where(text: str) -> None:
    try:
        document = load_documents(text, "x")
        problems = list(problems_within(document.root)) if document.root else []
    except DocumentError as e:
        problems = [e.problem]
    # Lines of YAML also end at characters that only it takes for line ends; hence twice.
    assert all(1 <= problem.line <= 2 * text.count("\n") + 3 for problem in problems)


values = st.recursive(
    st.text(alphabet="abc 1:'\"-é\n", max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet="abc", min_size=1), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(values)
def test_json_is_read_back_unchanged(value: object) -> None:
    assert plain(root(json.dumps({"value": value}, ensure_ascii=False))) == {"value": value}


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("rules:\n\t- a: 1\n", 2, 1),
        ("rules:\n- a: 1\n \tb: 2\n", 3, 2),
        ("a: b\n\tc: d\n", 2, 1),
        ("a:\n\tb:\n\t\tc: 1\n", 2, 1),
    ],
)
def test_the_error_for_a_line_indented_with_a_tab_names_the_tab(text: str, line: int, column: int) -> None:
    with pytest.raises(DocumentError) as caught:
        load_documents(text, "f")
    problem = caught.value.problem
    assert (problem.line, problem.column) == (line, column)
    assert str(problem).endswith("this is not YAML: this line is indented with a tab: indent it with spaces")


def test_a_tab_elsewhere_is_not_named_as_the_reason() -> None:
    with pytest.raises(DocumentError) as caught:
        load_documents("a: [1,\t2\n\nb: }\n", "f")
    assert "tab" not in str(caught.value)
    root = load_documents("a: |\n  x\n  \ty\n", "f").root
    assert root is not None
    assert root.mapping().entries[0].value.text() == "x\n\ty\n"
