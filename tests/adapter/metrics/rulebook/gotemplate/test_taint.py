"""Text that came from a caller stays marked, whatever a template does with it, and templates cannot see the mark."""

from __future__ import annotations

import json
import pathlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.metrics.rulebook.gotemplate import (
    Struct,
    TemplateError,
    concatenate,
    execute,
    execute_traced,
    parse_template,
    taint,
)
from adapter.metrics.rulebook.gotemplate.taint import Piece, TaintedNumber, pieces_of, substring

GO = json.loads(pathlib.Path(__file__).with_name("go_templates.json").read_text())


def struct(*, taints: bool) -> Struct:
    mark = taint if taints else str
    values = {mark(key): mark(value) for key, value in GO["data"]["LabelValuesByName"].items()}
    matchers = mark(GO["data"]["LabelMatchers"])
    group_by = tuple(GO["data"]["GroupBySlice"])
    return Struct({**GO["data"], "LabelMatchers": matchers, "LabelValuesByName": values, "GroupBySlice": group_by})


def outcome(text: str, data: Struct) -> str:
    try:
        return execute(parse_template(text, "metrics-query"), data)
    except TemplateError as e:
        return f"fails: {e}"


@pytest.mark.parametrize("text", [case["template"] for case in GO["cases"]])
def test_templates_cannot_distinguish_tainted_values(text: str) -> None:
    assert outcome(text, struct(taints=True)) == outcome(text, struct(taints=False))


# Two signs that no template and no format makes by itself, so that they can be found again.
FOREIGN = {"k": "ЖЖЖ", "other": "Ж"}
STEPS = (
    "print", "println", "html", "js", "urlquery", "not", "len", "or", "and", "and 1", "slice", "printf", 'print "a" 1',
    "index $.Map", "index $.Texts", 'printf "%s"', 'printf "%q"', 'printf "%v"', 'printf "%x"', 'printf "%X"',
    'printf "%5s|"', 'printf "%-9s|"', 'printf "%.2s"', 'printf "%#q"', 'printf "%s %s" "a"', 'printf "%c"',
    'printf "%d"', 'printf "%09d"',
)  # fmt: skip
START = ("$.Map.k", "(index $.Map `k`)", "(slice $.Map.k 2)", "$.Map", "(index $.Map.k 1)", "(len $.Map.k)", "$.Texts")


@given(st.sampled_from(START), st.lists(st.sampled_from(STEPS), max_size=4))
def test_values_derived_from_a_tainted_value_are_tainted(start: str, steps: list[str]) -> None:
    data = Struct({"Map": {key: taint(value) for key, value in FOREIGN.items()}, "Texts": (taint("Ж"), "own")})
    try:
        pieces = execute_traced(parse_template(f"<<{' | '.join((start, *steps))}>>"), data)
    except TemplateError:
        return
    own = "".join(piece.text for piece in pieces if not piece.tainted)
    assert not [spelling for spelling in ("Ж", "D0", "d0", "96", "0416", "208", "150") if spelling in own]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("a<<$.Map.k>>b", [("a", False), ("ЖЖЖ", True), ("b", False)]),
        ("<<print `a` $.Map.other `b`>>", [("a", False), ("Ж", True), ("b", False)]),
        ("<<printf `k=%q,` $.Map.k>>", [("k=", False), ('"', False), ("ЖЖЖ", True), ('"', False), (",", False)]),
        ("<<printf `%4s` $.Map.k>>", [(" ", False), ("ЖЖЖ", True)]),
        # A cut may go through what its author meant to stand together.
        ("<<slice (print `a` $.Map.k) 0 3>>", [("aЖ", True)]),
        ("<<len $.Map.k>>", [("6", True)]),
        ("<<range len (slice $.Map.other 2 2)>>x<<else>>none<<end>>", [("none", False)]),
        ("<<eq $.Map.k `x`>> <<not $.Map.k>>", [("false", False), (" ", False), ("false", False)]),
        ("<<range $k, $v := $.Map>><<$k>><<end>>", [("k", False), ("other", False)]),
        ("<<$.Map.none>>", [("<no value>", False)]),
    ],
)
def test_taint_covers_the_value_and_not_the_text_of_the_template(text: str, pieces: list[tuple[str, bool]]) -> None:
    data = Struct({"Map": {key: taint(value) for key, value in FOREIGN.items()}})
    found = [(piece.text, piece.tainted) for piece in execute_traced(parse_template(text), data)]
    assert found == pieces


@given(st.lists(st.tuples(st.text(), st.booleans())))
def test_joined_texts_keep_their_parts(parts: list[tuple[str, bool]]) -> None:
    text = concatenate(taint(part) if taints else part for part, taints in parts)
    assert text == "".join(part for part, _ in parts)
    assert "".join(piece.text for piece in pieces_of(text)) == text
    foreign = "".join(part for part, taints in parts if taints)
    assert "".join(piece.text for piece in pieces_of(text) if piece.tainted) == foreign


def test_tainted_values_are_equal_to_plain_ones() -> None:
    assert {taint("a"): 1}["a"] == 1
    assert taint("a") == "a"
    assert hash(taint("a")) == hash("a")
    assert TaintedNumber(3) == 3
    assert pieces_of(substring(taint("abc"), 1, None)) == (Piece("bc", tainted=True),)
    assert pieces_of(substring("abc", 1, None)) == (Piece("bc", tainted=False),)
    assert taint("") == ""
