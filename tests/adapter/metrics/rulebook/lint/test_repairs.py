"""Repairs change what they are meant to change, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.documents.load import Document, load_documents
from adapter.metrics.rulebook.findings import Finding, Repair, Severity
from adapter.metrics.rulebook.lint.repairs import repair_file as repaired_of

if TYPE_CHECKING:
    from collections.abc import Iterable


def repaired(text: str, findings: Iterable[Finding]) -> tuple[str, tuple[Finding, ...]]:
    return repaired_of(text, findings, lambda text: [load_documents(text, "f")])


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


def test_a_repair_beside_one_that_is_not_made_is_made() -> None:
    text = "a: {x: 1, y: 2}\nb: {nam: 1}\nc: {x: 1, y: 2}\ngone: no\nd: {nam: 1}\n"
    found = [
        finding(1, 11, Repair("y:", "x:")),
        finding(2, 5, Repair("nam:", "name:")),
        finding(3, 11, Repair("y:", "x:")),
        finding(4, 1, Repair("gone: no")),
        finding(5, 5, Repair("nam:", "name:")),
    ]

    mended, done = repaired(text, found)

    assert mended == "a: {x: 1, y: 2}\nb: {name: 1}\nc: {x: 1, y: 2}\nd: {name: 1}\n"
    assert done == (found[1], found[3], found[4])


def test_a_repair_that_adds_a_problem_is_not_made_beside_one_that_removes_one() -> None:
    text = "a: {nam: 1, name: 2}\nb: {nam: 1, nam: 2}\n"
    found = [finding(1, 5, Repair("nam:", "name:")), finding(2, 13, Repair("nam:", "name:"))]

    mended, done = repaired(text, found)

    assert mended == "a: {nam: 1, name: 2}\nb: {nam: 1, name: 2}\n"
    assert done == (found[1],)


def test_many_repairs_are_tried_together() -> None:
    read: list[str] = []

    def load(text: str) -> list[Document]:
        read.append(text)
        return [load_documents(text, "f")]

    text = "".join(f"a{number}: {{nam: 1}}\n" for number in range(1000))
    mended, done = repaired_of(
        text,
        [finding(n + 1, text.splitlines()[n].index("nam") + 1, Repair("nam:", "name:")) for n in range(1000)],
        load,
    )

    assert (mended, len(done)) == (text.replace("nam:", "name:"), 1000)
    assert len(read) == 2


@given(st.text(max_size=200), st.integers(-1, 9), st.integers(1, 30), st.text(max_size=4), st.text(max_size=4))
def test_repairs_never_fail_for_any_text_and_position(text: str, line: int, column: int, old: str, new: str) -> None:
    mended, done = repaired(text, [finding(line, column, Repair(old, new))])

    assert done or mended == text
