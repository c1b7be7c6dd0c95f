"""Problems of a file, as people read them."""

from __future__ import annotations

import pytest

from adapter.foundation.documents.tree import MOST_LINES, DocumentError, DocumentProblem, problem_lines


@pytest.mark.parametrize("number", [0, 1, 2, MOST_LINES])
def test_each_problem_has_a_line(number: int) -> None:
    assert problem_lines([f"p{each}" for each in range(number)]) == [f"p{each}" for each in range(number)]


@pytest.mark.parametrize(("number", "others"), [(MOST_LINES + 1, 2), (1000, 1000 - MOST_LINES + 1)])
def test_only_the_first_of_very_many_problems_are_shown_and_the_others_are_counted(number: int, others: int) -> None:
    *shown, last = problem_lines(range(number))
    assert shown == [str(each) for each in range(MOST_LINES - 1)]
    assert last == f"… and {others} more: correct these first"


def test_a_refused_file_has_each_problem_on_its_own_line() -> None:
    problems = [DocumentProblem("r.yaml", line, 1, "wrong", "write it right") for line in range(1, 8)]
    lines = [f"r.yaml:{line}: wrong: write it right" for line in range(1, 8)]
    assert str(DocumentError(*problems)).split("\n") == lines
    assert problem_lines([DocumentError(*problems), "another"]) == [*lines, "another"]
