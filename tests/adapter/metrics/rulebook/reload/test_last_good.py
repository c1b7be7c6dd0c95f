"""The former version of a rule that is served while its new text is refused."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.foundation.documents.load import load_documents
from adapter.foundation.objects.resources import BUILT_IN, find_resource
from adapter.metrics.rulebook.parsing.parse import parse_rulebook
from adapter.metrics.rulebook.reload.last_good import Retention, lost_list, retained_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from adapter.metrics.rulebook.model import Rulebook

RESOLVE = partial(find_resource, BUILT_IN)
BROKEN = "!"
"""Written after a rule's letter: the rule has an error in its query."""


def text(letters: str) -> str:
    """Return a rule file, one rule per letter: `a2` has another query than `a`, `a!` is broken, `?!` no seriesQuery."""
    return "rules:\n" + "".join(map(_entry, letters.split()))


def _entry(word: str) -> str:
    name, variant, broken = word[0], word[1:].rstrip(BROKEN), word.endswith(BROKEN)
    series = "" if name == "?" else f"""  seriesQuery: 'series_{name}{{namespace!=""}}'\n"""
    query = f"max by (<<.GroupBy>>) (<<.Series>>{{<<.LabelMatchers>>}}) * 1{variant}"
    return f"-\n{series}  resources: {{template: '<<.Resource>>'}}\n  metricsQuery{'X' * broken}: {query}\n"


def parsed(files: Mapping[str, str]) -> Rulebook:
    return parse_rulebook([load_documents(content, name) for name, content in files.items()], RESOLVE)


def changed(former: Rulebook, letters: str) -> Retention:
    return retained_in(parsed({"rules.yaml": text(letters)}), former)


def after(*versions: str) -> Retention:
    """Return what is in force after the file has had these contents, one after the other."""
    retention = Retention(parsed({"rules.yaml": text(versions[0])}))
    for version in versions[1:]:
        retention = changed(retention.rulebook, version)
    return retention


def served(rulebook: Rulebook) -> list[str]:
    """Return the letters and variants of the rules that are served, in order."""
    return [
        rule.series_query[len("series_") :].partition("{")[0] + rule.metrics_query.text.rpartition(" * 1")[2]
        for rule in rulebook.rules
    ]


@pytest.mark.parametrize(
    ("versions", "serves", "retained"),
    [
        (("a b c", "a b! c"), "a b c", [1]),
        (("a", "a!"), "a", [0]),
        (("a", "?!"), "a", [0]),
        (("a b c", "a! b! c!"), "a b c", [0, 1, 2]),
        (("a b c", "a! b c!"), "a b c", [0, 2]),
        (("a b c", "?! ?! ?!"), "a b c", [0, 1, 2]),
        (("a b c", "?! b ?!"), "a b c", [0, 2]),
        (("a b c d e f g h i j k l", "a b c! d e f g h i j k l"), "a b c d e f g h i j k l", [2]),
        (("a a2", "a2 a!"), "a2 a", [1]),
        (("a b", "n a! b"), "n a b", [1]),
        (("a b", "a b ?! n"), "a b n", []),
        (("a b c", "a b2 c!"), "a b2 c", [2]),
        (("a b c d", "a c d!"), "a c d", [2]),
        (("a", "a!", "a! n", "n a!"), "n a", [1]),
        (("a b", "a! b", "a! b2", "n a! b2"), "n a b2", [1]),
        (("a b", "a! b", "a2! b"), "a b", [0]),
    ],
    ids=[
        "one between two",
        "the only one",
        "in its place, though its text is another",
        "all at once",
        "two of three",
        "all at once, by their places",
        "two of three, by their places",
        "one of more than ten",
        "moved",
        "behind a new one",
        "one that is new is not retained",
        "beside one that changed",
        "behind one that was taken out",
        "over further reloads",
        "while others change",
        "and broken otherwise",
    ],
)
def test_the_last_good_version_is_served_in_its_place(
    versions: Sequence[str], serves: str, retained: Sequence[int]
) -> None:
    retention = after(*versions)
    assert served(retention.rulebook) == serves.split()
    assert list(retention.rulebook.retained) == [f"rules[{number}]" for number in retained]
    assert retention.unsure == ()


@pytest.mark.parametrize(
    ("versions", "serves"),
    [
        (("a b", "b"), "b"),
        (("a!", "a!"), ""),
        (("a!", "a2!"), ""),
        (("a", "a!", ""), ""),
        (("a", "a!", "a2"), "a2"),
        (("a", "a!", "a"), "a"),
        (("a b", "a! b", "b"), "b"),
        (("a", "a!", "n", "n a!"), "n"),
    ],
    ids=[
        "taken out",
        "refused from the start",
        "refused from the start, and otherwise",
        "taken out while refused",
        "its new text holds",
        "its former text is back",
        "taken out while refused, beside another",
        "written anew after it was taken out",
    ],
)
def test_a_rule_without_a_broken_version_in_force_is_not_retained(versions: Sequence[str], serves: str) -> None:
    retention = after(*versions)
    assert served(retention.rulebook) == serves.split()
    assert not retention.rulebook.retained


@pytest.mark.parametrize(
    ("before", "now", "serves"),
    [
        ("a b", "?!", ""),
        ("a b c", "?! c", "c"),
        ("a b", "n ?!", "n"),
        ("a", "n ?!", "n"),
        ("a", "?! ?!", ""),
        ("a b", "n! b", "b"),
        ("a", "n!", ""),
        ("a b c", "a n! m!", "a"),
    ],
)
def test_a_broken_rule_of_unknown_identity_is_not_retained_and_is_reported(before: str, now: str, serves: str) -> None:
    retention = after(before, now)
    assert served(retention.rulebook) == serves.split()
    assert not retention.rulebook.retained
    assert {rule.id for rule in retention.unsure} == {rule.id for rule in retention.rulebook.refused}


RULE = """\
- seriesQuery: 'SERIES'
  resources: {template: <<.Resource>>}
  name: {as: NAME}
  metricsQuery: QUERY
"""
GENERIC = "sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})"
OWN = "sum by (<<.GroupBy>>) (salaries{<<.LabelMatchers>>})"


def rules(series: str, name: str, query: str) -> Rulebook:
    text_of_rule = RULE.replace("SERIES", series).replace("NAME", name).replace("QUERY", query)
    return parsed({"rules.yaml": f"rules:\n{text_of_rule}"})


@pytest.mark.parametrize(
    ("now", "goes_on"),
    [
        (("salaries", "x/y", GENERIC), True),
        (("salaries{pod", "paid", "<<.Nope>>"), True),
        (("pay", "paid", "<<.Nope>>"), True),
        (("pay", "$0/", OWN), False),
        (("sum(salaries)", "$0/", GENERIC), True),
        (("latency", "$0", "<<.Nope>>"), False),
        (("latency", "$0/", GENERIC), False),
        (("latency{", "slow", "<<.Nope>>"), False),
    ],
    ids=[
        "the same series",
        "the same name, the series is broken",
        "the same name",
        "another series, though the query is the same",
        "the series is broken, and the rest identifies no rule",
        "another series",
        "another series, and the query of all rules",
        "another name, the series is broken",
    ],
)
def test_a_broken_rule_is_identified_by_its_place_unless_its_text_shows_another(
    now: tuple[str, str, str], *, goes_on: bool
) -> None:
    """A rule that was removed, for example because it leaked data, must not serve for a broken one in its place."""
    former = rules('salaries{namespace!=""}', "paid", OWN)
    broken = rules(*now)
    assert [refused.id for refused in broken.refused] == ["rules[0]"]
    retention = retained_in(broken, former)
    assert bool(retention.rulebook.retained) is goes_on
    assert bool(retention.unsure) is not goes_on


def one_series(*entries: str) -> Rulebook:
    """Return rules with these names, all for one series; `a!` is broken, and `a?` also has an unreadable name."""
    text_of_rules = ""
    for entry in entries:
        rule = RULE.replace("SERIES", "requests").replace("NAME", entry[0]).replace("QUERY", GENERIC)
        rule = rule if len(entry) == 1 else rule.replace("metricsQuery", "metricQuery")
        text_of_rules += rule.replace("as: ", "as: $") if entry.endswith("?") else rule
    return parsed({"rules.yaml": f"rules:\n{text_of_rules}"})


@pytest.mark.parametrize(
    ("before", "now", "serves"),
    [
        ("a b c", "a b! c", "a b c"),
        ("a b c", "a! b! c!", "a b c"),
        ("a b c", "c! a b!", "c a b"),
        ("a b c", "c! a!", "c a"),
        ("a b c", "c? a b", "c a b"),
        ("a b c", "a? b? c?", "a b c"),
        ("a b c", "b! c n", "b c n"),
        ("a b c", "c a? n", "c n"),
    ],
    ids=[
        "one of them",
        "all of them",
        "moved",
        "moved, and one deleted",
        "moved, its name unreadable",
        "all names unreadable",
        "one deleted, one new",
        "one deleted, one new, and a name unreadable",
    ],
)
def test_rules_with_the_same_series_query_are_distinguished_by_their_names(before: str, now: str, serves: str) -> None:
    rulebook = retained_in(one_series(*now.split()), one_series(*before.split())).rulebook
    assert [rule.naming.template for rule in rulebook.rules] == serves.split()


@pytest.mark.parametrize(
    ("before", "now", "serves", "retained"),
    [
        ("a b c d", "?! c d b", "a c d b", [0]),
        ("a b c", "c ?! a", "c b a", [1]),
        ("a b c d", "d b ?! a", "d b c a", [2]),
        ("a b c", "?! b c n", "a b c n", [0]),
        ("a b c d", "?! b n d", "a b n d", [0]),
    ],
)
def test_an_unreadable_rule_is_recognised_by_its_neighbours(
    before: str, now: str, serves: str, retained: Sequence[int]
) -> None:
    rulebook = after(before, now).rulebook
    assert served(rulebook) == serves.split()
    assert list(rulebook.retained) == [f"rules[{number}]" for number in retained]


def test_a_rule_of_another_file_is_another_rule() -> None:
    former = parsed({"a.yaml": text("a"), "b.yaml": text("b")})
    renamed = retained_in(parsed({"c.yaml": text("a!"), "b.yaml": text("b")}), former).rulebook
    assert served(renamed) == ["b"]
    moved_down = retained_in(parsed({"0.yaml": text("n"), "a.yaml": text("a!"), "b.yaml": text("b")}), former).rulebook
    assert served(moved_down) == ["n", "a", "b"]
    assert list(moved_down.retained) == ["rules[1]"]


def test_a_retained_rule_has_the_place_of_its_broken_text() -> None:
    rulebook = after("a b", "n a b!").rulebook
    (rule,) = (rule for rule in rulebook.rules if rule.id in rulebook.retained)
    (refused,) = rulebook.refused
    assert (rule.id, rule.file, rule.line) == (refused.id, refused.file, refused.line) == ("rules[2]", "rules.yaml", 11)


@pytest.mark.parametrize(
    ("versions", "newer"),
    [
        (("a b", "a! b"), []),
        (("a b", "n a! b"), [0]),
        (("a b", "a! b2"), [1]),
        (("a b", "a! b", "a! b n"), [2]),
        (("a b", "a! n b", "a! n b2", "m a! n b2"), [0, 2, 3]),
    ],
    ids=["none", "with it", "changed with it", "after it", "over further reloads"],
)
def test_rules_newer_than_the_retained_version_are_known(versions: Sequence[str], newer: Sequence[int]) -> None:
    (known,) = after(*versions).rulebook.retained.values()
    assert known == {f"rules[{number}]" for number in newer}


RESOURCES = """\
resourceRules:
  cpu:
    containerQuery: sum by (<<.GroupBy>>) (cpu{<<.LabelMatchers>>})
    nodeQuery: sum by (<<.GroupBy>>) (node_cpu{<<.LabelMatchers>>})
    resources: {template: <<.Resource>>}
    containerLabel: container
  memory:
    containerQuery: sum by (<<.GroupBy>>) (memory{<<.LabelMatchers>>})
    nodeQuery: sum by (<<.GroupBy>>) (node_memory{<<.LabelMatchers>>})
    resources: {template: <<.Resource>>}
    containerLabel: container
"""


def test_a_refused_resource_rule_is_retained_by_its_name() -> None:
    former = parsed({"rules.yaml": RESOURCES})
    assert [rule.id for rule in former.resource.rules] == ["resourceRules.cpu", "resourceRules.memory"]
    broken = RESOURCES.replace("(memory{<<.LabelMatchers>>})", "(memory{<<.LabelMatcher>>})")
    rulebook = retained_in(parsed({"rules.yaml": broken}), former).rulebook
    assert {metric.qualified for metric in rulebook.resource.metrics} == {
        "pods/cpu",
        "nodes/cpu",
        "pods/memory",
        "nodes/memory",
    }
    assert list(rulebook.retained) == ["resourceRules.memory"]
    again = retained_in(parsed({"rules.yaml": broken}), rulebook).rulebook
    assert again.resource == rulebook.resource
    gone = retained_in(parsed({"rules.yaml": RESOURCES.partition("  memory")[0]}), again).rulebook
    assert [rule.id for rule in gone.resource.rules] == ["resourceRules.cpu"]


def test_an_unreadable_window_keeps_its_former_value() -> None:
    former = parsed({"rules.yaml": RESOURCES + "  window: 5m\n"})
    broken = retained_in(parsed({"rules.yaml": RESOURCES + "  window: 5x\n"}), former).rulebook
    assert broken.resource.window_seconds == 300
    of_another_kind = retained_in(parsed({"rules.yaml": RESOURCES + "  window: [5m]\n"}), broken).rulebook
    assert of_another_kind.resource.window_seconds == 300
    taken_out = retained_in(parsed({"rules.yaml": RESOURCES}), of_another_kind).rulebook
    assert taken_out.resource.window_seconds == 60


@pytest.mark.parametrize(
    ("before", "now", "is_lost"),
    [
        (text("a"), text("a").replace("rules:", "rule:"), True),
        (text("a"), "rules: a text\n", True),
        (text("a"), "externalRules: []\n", False),
        (text("a"), "", False),
        (text("a"), text("a!"), False),
        (text("a"), text("a!") + "other: 1\n", False),
        (text("a") + text("b").replace("rules:", "externalRules:"), text("a!"), False),
        (text("a"), text("b") + "other: 1\n", False),
        (RESOURCES, RESOURCES.replace("resourceRules:", "resourceRule:"), True),
    ],
    ids=["key", "kind", "taken out", "empty", "refused", "refused and a key", "one of two", "another key", "resources"],
)
def test_a_list_that_vanishes_by_an_error_is_lost_and_not_removed(before: str, now: str, *, is_lost: bool) -> None:
    found = lost_list(parsed({"rules.yaml": now}), parsed({"rules.yaml": before}))
    assert (found is not None) is is_lost


def test_an_error_of_one_file_does_not_bring_back_what_was_taken_out_of_another() -> None:
    former = parsed({"a.yaml": text("a"), "b.yaml": text("b")})
    assert lost_list(parsed({"a.yaml": "", "b.yaml": text("b") + "other: 1\n"}), former) is None


def test_the_valid_ones_of_many_equal_rules_are_served() -> None:
    former = parsed({"rules.yaml": text("a " * 300 + "b")})
    rulebook = retained_in(parsed({"rules.yaml": text("a a a! " * 100 + "b")}), former).rulebook
    assert served(rulebook) == ["a"] * 200 + ["b"]


def test_twenty_thousand_refused_entries_are_handled_in_time() -> None:
    former = parsed({"rules.yaml": text("a b c")})
    rubbish = parsed({"rules.yaml": text("a b! c") + "- x\n" * 20_000})
    more_rubbish = parsed({"rules.yaml": text("n a b! c") + "- x\n" * 20_000 + "- y\n"})
    rulebook = retained_in(more_rubbish, retained_in(rubbish, former).rulebook).rulebook
    assert served(rulebook) == ["n", "a", "b", "c"]


WORDS = st.lists(
    st.builds("{}{}{}".format, st.sampled_from("abcd"), st.sampled_from(("", "2")), st.sampled_from(("", "!"))),
    max_size=5,
).map(" ".join)


@given(st.lists(WORDS, min_size=2, max_size=4))
@settings(max_examples=150, deadline=None)
def test_after_any_changes_valid_rules_are_served_and_retained_ones_only_once(versions: list[str]) -> None:
    held: set[object] = set()
    rulebook = parsed({"rules.yaml": text(versions[0])})
    for version in versions[1:]:
        held |= {rule.content for rule in rulebook.rules}
        now = parsed({"rules.yaml": text(version)})
        rulebook = retained_in(now, rulebook).rulebook
        assert [rule for rule in rulebook.rules if rule.id not in rulebook.retained] == list(now.rules)
        kept = [rule for rule in rulebook.rules if rule.id in rulebook.retained]
        assert {rule.content for rule in kept} <= held
        assert len({rule.id for rule in rulebook.rules}) == len(rulebook.rules)
        assert set(rulebook.retained) == {rule.id for rule in kept} <= {rule.id for rule in now.refused}
        assert rulebook.refused == now.refused
