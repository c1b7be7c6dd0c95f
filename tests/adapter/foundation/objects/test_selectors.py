from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.objects.selectors import (
    EVERYTHING,
    Operator,
    Requirement,
    Selector,
    SelectorError,
    label_selector,
    parse_selector,
)

keys = st.sampled_from(["app", "tier", "in", "notin", "example.com/app", "A_b.c-1"])
values = st.sampled_from(["", "a", "web-0", "v1.2", "5", "in"])


def requirements() -> st.SearchStrategy[Requirement]:
    several = st.lists(values, min_size=1, max_size=4).map(tuple)
    exact = st.sampled_from([Operator.EQUALS, Operator.DOUBLE_EQUALS, Operator.NOT_EQUALS])
    ordered = st.sampled_from([Operator.GREATER_THAN, Operator.LESS_THAN])
    numbers = st.integers(min_value=0, max_value=2**63 - 1).map(lambda number: (str(number),))
    return st.one_of(
        st.builds(Requirement, keys, exact, values.map(lambda value: (value,))),
        st.builds(Requirement, keys, st.sampled_from([Operator.IN, Operator.NOT_IN]), several),
        st.builds(Requirement, keys, st.sampled_from([Operator.EXISTS, Operator.DOES_NOT_EXIST])),
        st.builds(Requirement, keys, ordered, numbers),
    )


selectors = st.lists(requirements(), max_size=5).map(lambda some: Selector(tuple(some)))
labels = st.dictionaries(keys, values)


@given(selectors)
def test_the_text_of_a_selector_parses_to_the_same_selector(selector: Selector) -> None:
    again = parse_selector(str(selector))
    assert (again, again.requirements, hash(again)) == (selector, selector.requirements, hash(selector))


@given(selectors, labels)
def test_a_selector_is_the_conjunction_of_its_requirements(selector: Selector, given_labels: dict[str, str]) -> None:
    each = [requirement.matches(given_labels) for requirement in selector.requirements]
    assert selector.matches(given_labels) == (False not in each)


@given(st.text(alphabet="ab1-/.=!<>(), \tinotx\0é", max_size=20) | st.text(max_size=20))
def test_any_text_is_a_selector_or_refused_with_a_position(text: str) -> None:
    place: int | None = 0
    try:
        selector = parse_selector(text)
    except SelectorError as error:
        place = error.position
    else:
        assert parse_selector(str(selector)) == selector
    assert place is not None
    assert 0 <= place <= len(text)


@given(requirements(), labels)
def test_opposite_operators_never_agree(requirement: Requirement, given_labels: dict[str, str]) -> None:
    opposites = {
        Operator.EQUALS: Operator.NOT_EQUALS,
        Operator.IN: Operator.NOT_IN,
        Operator.EXISTS: Operator.DOES_NOT_EXIST,
    }
    if opposite := opposites.get(requirement.operator):
        other = Requirement(requirement.key, opposite, requirement.values)
        assert other.matches(given_labels) != requirement.matches(given_labels)


@pytest.mark.parametrize("text", ["", " ", "\t\r\n"])
def test_an_empty_selector_matches_everything(text: str) -> None:
    assert parse_selector(text) is EVERYTHING
    assert EVERYTHING.matches({}) is True
    assert EVERYTHING.keys == frozenset()


@pytest.mark.parametrize("text", ["canary!=true", "canary notin (true)", "!canary"])
def test_an_absent_label_satisfies_the_negative_operators(text: str) -> None:
    assert parse_selector(text).matches({"app": "web"}) is True


@pytest.mark.parametrize("text", ["n>1", "n<1"])
@pytest.mark.parametrize("value", ["", "x", "1.5", "1_0", " 1", "9223372036854775808", "٣"])
def test_greater_and_less_need_an_integer_of_64_bits(text: str, value: str) -> None:
    assert parse_selector(text).matches({"n": value}) is False


def test_leading_zeros_and_signs_are_part_of_an_integer() -> None:
    assert parse_selector("n>00000000000000000000004").matches({"n": "+" + "0" * 5000 + "5"}) is True
    assert parse_selector("n<4").matches({"n": "-9223372036854775808"}) is True


def test_requirements_are_sorted_by_key() -> None:
    selector = parse_selector("zone in (b, a), !canary, app==web")
    assert str(selector) == "app==web,!canary,zone in (a,b)"
    assert selector.keys == {"app", "canary", "zone"}
    assert selector == Selector(tuple(reversed(selector.requirements)))


def test_a_selector_differs_from_other_values() -> None:
    assert parse_selector("a=b") != "a=b"


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ("app=web,", 8, "found the end where a label key"),
        ("app web", 4, "found 'web' where one of =, ==, !=, in, notin"),
        ("app in web", 7, r"found 'web' where '\('"),
        ("app in (web", 11, r"found the end where ',' or '\)'"),
        ("app=web tier=a", 8, "found 'tier' where ',' or the end"),
        ("app=(", 4, r"found '\(' where a value"),
        ("a=b,app=/x", 4, "value '/x' of 'app' is not allowed"),
        ("-app", 0, "label key '-app' is not allowed: only letters"),
        ("UP.com/app", 0, "its prefix 'UP.com' is not a DNS subdomain"),
        ("n>many", 0, "> needs an integer"),
    ],
)
def test_the_error_has_the_position_and_the_reason(text: str, position: int, message: str) -> None:
    with pytest.raises(SelectorError, match=message) as caught:
        parse_selector(text)
    assert caught.value.position == position


@pytest.mark.parametrize(
    ("operator", "given_values"),
    [
        (Operator.IN, ()),
        (Operator.EQUALS, ()),
        (Operator.EQUALS, ("a", "b")),
        (Operator.EXISTS, ("a",)),
        (Operator.GREATER_THAN, ()),
    ],
)
def test_a_requirement_with_the_wrong_number_of_values_is_refused(
    operator: Operator, given_values: tuple[str, ...]
) -> None:
    with pytest.raises(SelectorError, match="requirement on 'app' is not allowed"):
        Requirement("app", operator, given_values)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", None),
        ("b==2,a=1", {"matchLabels": {"a": "1", "b": "2"}}),
        ("a in (y,x)", {"matchExpressions": [{"key": "a", "operator": "In", "values": ["x", "y"]}]}),
        ("a notin ()", {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": [""]}]}),
        (
            "!a,b,c=3",
            {
                "matchLabels": {"c": "3"},
                "matchExpressions": [{"key": "a", "operator": "DoesNotExist"}, {"key": "b", "operator": "Exists"}],
            },
        ),
        (
            "a=1,a=2",
            {"matchLabels": {"a": "1"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["2"]}]},
        ),
    ],
)
def test_a_selector_is_converted_to_an_equivalent_label_selector(text: str, expected: dict[str, object] | None) -> None:
    assert label_selector(parse_selector(text)) == expected


@pytest.mark.parametrize("text", ["a!=1", "a>1", "a<1"])
def test_a_selector_without_an_equivalent_label_selector_is_refused(text: str) -> None:
    with pytest.raises(SelectorError, match=f"'{text}' has no LabelSelector form"):
        label_selector(parse_selector(text))
