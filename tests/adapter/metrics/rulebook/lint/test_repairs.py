"""Repairs change what they are meant to change, and nothing else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adapter.metrics.rulebook.findings import Finding, Repair, Severity
from adapter.metrics.rulebook.lint.repairs import repaired


def finding(line: int, column: int, repair: Repair | None) -> Finding:
    return Finding(Severity.ERROR, "unknown-key", "f", line, "", "", column=column, repair=repair)


def test_each_repair_is_made_at_its_position_despite_the_others() -> None:
    text = "a: 1\nrulez: 2  # stays\ngone: no\nlast: {nam: x, othr: y}\n"
    found = [
        finding(2, 1, Repair("rulez:", "rules:")),
        finding(3, 1, Repair("gone: no")),
        finding(4, 8, Repair("nam:", "name:")),
        finding(4, 16, Repair("othr:", "other:")),
    ]

    mended, done = repaired(text, found)

    assert mended == "a: 1\nrules: 2  # stays\nlast: {name: x, other: y}\n"
    assert done == tuple(found)


def test_a_text_that_does_not_match_is_not_repaired() -> None:
    text = "key: {a: 1, gone: no}\n"
    found = [
        finding(1, 13, Repair("gone: no")),
        finding(1, 1, Repair("yek:", "key:")),
        finding(9, 1, Repair("key:", "x:")),
        finding(1, 1, None),
    ]

    assert repaired(text, found) == (text, ())


def test_a_quoted_key_is_not_repaired_further_on_in_the_line() -> None:
    text = '"resource": {overrides: {pod: {resource: pod}}}\n'

    assert repaired(text, [finding(1, 1, Repair("resource:", "resources:"))]) == (text, ())


def test_a_repeated_finding_is_repaired_once() -> None:
    found = finding(1, 1, Repair("resource:", "resources:"))

    mended, done = repaired("resource: {overrides: {pod: {resource: pod}}}\n", [found, found])

    assert (mended, done) == ("resources: {overrides: {pod: {resource: pod}}}\n", (found,))


def test_a_quoted_value_is_repaired_within_its_quotes() -> None:
    mended, _ = repaired("as: '$1_x'\n", [finding(1, 5, Repair("$1_x", "${1}_x"))])

    assert mended == "as: '${1}_x'\n"


def test_a_file_with_a_byte_order_mark_is_repaired_too() -> None:
    mended, _ = repaired("\ufeffrulez: []\n", [finding(1, 1, Repair("rulez:", "rules:"))])

    assert mended == "\ufeffrules: []\n"


def test_a_repair_that_would_break_the_file_is_not_made() -> None:
    text = "a: {b: $1_x}\n"

    assert repaired(text, [finding(1, 8, Repair("$1_x", "${1}_x"))]) == (text, ())


def test_a_key_is_not_repaired_to_an_existing_one() -> None:
    text = "rules:\n- metricsQuery: x\n  metricQuery: y\n"

    assert repaired(text, [finding(3, 3, Repair("metricQuery", "metricsQuery"))]) == (text, ())


@given(st.text(max_size=200), st.integers(-1, 9), st.integers(1, 30), st.text(max_size=4), st.text(max_size=4))
def test_repairs_never_fail_for_any_text_and_position(text: str, line: int, column: int, old: str, new: str) -> None:
    mended, done = repaired(text, [finding(line, column, Repair(old, new))])

    assert done or mended == text
