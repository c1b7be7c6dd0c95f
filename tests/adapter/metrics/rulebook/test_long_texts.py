"""Long texts of the worst form are read or refused in time that grows with their length.

Where a test can count the work, it does. Elsewhere the text is so long that a reader whose time grows with the square
of the length does not finish within the limit, which is a hundred times what a linear reader needs.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.objects.regex import BadPatternError, compile_pattern
from adapter.foundation.objects.resources import Resource
from adapter.foundation.promql.malformed import flaw_of
from adapter.foundation.promql.tokens import TokenKind, tokens_of
from adapter.metrics.rulebook.gotemplate import Struct, TemplateError, cursor, evaluate, execute, parse_template
from adapter.metrics.rulebook.gotemplate.lexer import TemplateToken
from adapter.metrics.rulebook.gotemplate.variables import Variables
from adapter.metrics.rulebook.naming import NamingError, parse_expansion
from adapter.metrics.rulebook.provided_metrics import static_metrics
from adapter.metrics.rulebook.resources import ResourceMapping

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from adapter.foundation.objects.resources import ResolveResource
    from adapter.metrics.rulebook.model import Rulebook

BOUND_SECONDS = 60
REFUSALS = (TemplateError, BadPatternError, NamingError)


def run(text: str) -> str:
    return execute(parse_template(text), Struct({"Series": "up"}))


class CountedList(list[TemplateToken]):
    """A list that counts the items taken out of it."""

    taken = 0

    def __getitem__(self, key: Any) -> Any:  # noqa: ANN401 - a position or a slice, as a list's
        found = super().__getitem__(key)
        CountedList.taken += len(found) if isinstance(key, slice) else 1
        return found


ACTIONS = {
    "actions": lambda count: "<<.Series>>" * count,
    "controls": lambda count: "<<if 1>>x<<end>>" * count,
    "parentheses": lambda count: f"<<print{' (1)' * count}>>",
    "variables": lambda count: "<<$v := 1>><<$v = 2>>" * count,
}


@pytest.mark.parametrize("text", ACTIONS.values(), ids=ACTIONS.keys())
def test_the_template_parser_is_linear_in_the_number_of_tokens(
    monkeypatch: pytest.MonkeyPatch, text: Callable[[int], str]
) -> None:
    monkeypatch.setattr(cursor, "list", CountedList, raising=False)

    def taken(count: int) -> int:
        CountedList.taken = 0
        parse_template(text(count))
        return CountedList.taken

    assert taken(200) <= 2 * taken(100)


def test_reading_a_rule_is_linear_in_the_number_of_overrides(
    monkeypatch: pytest.MonkeyPatch, read: Callable[[str], Rulebook], resolve: ResolveResource
) -> None:
    looked = Counter[str]()
    qualified, resource_of = Resource.qualified.fget, ResourceMapping.resource_of  # type: ignore[attr-defined]

    def counted_name(resource: Resource) -> str:
        looked["names"] += 1
        return str(qualified(resource))

    def counted_search(mapping: ResourceMapping, label: str, of: ResolveResource) -> Resource | None:
        looked["searches"] += len(mapping.overrides)
        return resource_of(mapping, label, of)

    monkeypatch.setattr(Resource, "qualified", property(counted_name))
    monkeypatch.setattr(ResourceMapping, "resource_of", counted_search)

    def looks(count: int) -> int:
        looked.clear()
        labels = "".join(f", l{each}: {{resource: pod}}" for each in range(count))
        resources = f"{{overrides: {{namespace: {{resource: namespace}}{labels}}}}}"
        book = read(f"rules:\n- seriesQuery: up\n  resources: {resources}\n  metricsQuery: <<.Series>>\n")
        assert [metric.object_label for metric in static_metrics(book.rules[0], resolve)] == ["l0", "namespace"]
        return looked.total()

    assert looks(200) < 2.1 * looks(100)


def test_a_range_that_breaks_at_once_produces_only_the_used_items(monkeypatch: pytest.MonkeyPatch) -> None:
    made = 0

    def counted(most: int) -> Iterator[int]:
        nonlocal made
        for number in range(most):
            made += 1
            yield number

    monkeypatch.setattr(evaluate, "range", counted, raising=False)
    assert run("<<range 10>><<range 20000>>x<<break>><<end>><<end>>") == "x" * 10
    assert made == 20


class CountedName(str):
    """A name that counts how often it is compared."""

    __slots__ = ()
    __hash__ = str.__hash__
    compared = 0

    def __eq__(self, other: object) -> bool:
        CountedName.compared += 1
        return str.__eq__(self, other)


def test_a_variable_is_found_without_comparing_all_others() -> None:
    CountedName.compared = 0
    known = Variables(0)
    for number in range(500):
        known.declare(CountedName(f"$v{number}"), number)
    assert [known[CountedName(f"$v{number}")] for number in range(500)] == list(range(500))
    assert CountedName.compared < 5 * 500


@given(st.lists(st.one_of(st.sampled_from(["$", "$a", "$b", "$c"]), st.integers(1, 6)), max_size=20))
def test_variables_are_those_of_the_open_scopes(steps: list[str | int]) -> None:
    known, expected = Variables(-1), [("$", -1)]
    for value, step in enumerate(steps):
        if isinstance(step, int):
            known.end_scope(step)
            del expected[step:]
        else:
            known.declare(step, value)
            expected.append((step, value))
        visible = dict(expected)
        assert len(known) == len(expected)
        assert {name: known[name] for name in ("$", "$a", "$b", "$c") if name in known} == visible


TEXTS: dict[str, tuple[Callable[[str], object], str]] = {
    "template: a number with an odd end": (parse_template, f"<<{'1' * 400_000}i>>"),
    "template: a number in hexadecimal with an odd end": (parse_template, f"<<0x{'1' * 400_000}.g>>"),
    "query: strings that nothing closes": (tokens_of, '"\\' * 60_000),
    "query: strings of all kinds that nothing closes": (flaw_of, "\"\\'\\`" * 60_000),
    "pattern: classes that nothing closes": (compile_pattern, "[" * 65_000),
    "pattern: names that nothing closes": (compile_pattern, "(?P<" * 16_000),
    "pattern: a long one": (compile_pattern, "[[:" * 1_000_000),
    "name: dollar signs": (parse_expansion, "$" * 1_500_000),
}


@pytest.mark.timeout(BOUND_SECONDS)
@pytest.mark.parametrize(("read", "text"), TEXTS.values(), ids=TEXTS.keys())
def test_long_texts_are_read_in_time(read: Callable[[str], object], text: str) -> None:
    with suppress(*REFUSALS):
        read(text)


@pytest.mark.parametrize(
    "action",
    ["1" * 5000, "-" + "1" * 5000, "1_" * 5000 + "1", f"printf `%{'1' * 5000}d` 1", f"printf `%.{'0' * 5000}1d` 1"],
    ids=["digits", "a sign", "groups of digits", "a width", "a precision"],
)
def test_numbers_of_thousands_of_digits_are_refused(action: str) -> None:
    with pytest.raises(TemplateError, match=r"too large|asks for more than 1000") as raised:
        run(f"<<{action}>>")
    assert len(str(raised.value)) < 300


@given(st.text(alphabet="\"'`\\\na #(", max_size=40))
def test_the_tokens_of_a_query_are_its_text_without_whitespace(query: str) -> None:
    end = 0
    for token in tokens_of(query):
        assert query[token.start : token.end] == token.text
        assert all(part.isspace() or "#" in part for part in [query[end : token.start]] if part)
        end = token.end
        if token.kind is TokenKind.TEXT:
            assert token.text[0] == token.text[-1]
            assert len(token.text) > 1


@given(st.text(alphabet="\"'`\\\na", max_size=12))
def test_a_quote_that_begins_no_string_is_a_sign(query: str) -> None:
    for token in tokens_of(query):
        if token.kind is TokenKind.SIGN and token.text in "\"'`":
            rest = query[token.start :]
            assert tokens_of(rest)[0].kind is TokenKind.SIGN
