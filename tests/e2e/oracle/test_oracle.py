"""Our parsers and printers against Go's own libraries, on thousands of inputs that grammars make.

Every difference is either repaired, or listed with its reason in docs/differences-from-go.md and in `differences.py`.
The inputs are the same on every run; ORACLE_SEED gives others, ORACLE_FACTOR more of them.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final

import pytest

from tests.e2e import toolchain
from tests.e2e.oracle import asking
from tests.e2e.oracle.asking import SOURCE, Oracle, OracleError, Refused
from tests.e2e.oracle.comparisons import COMPARISONS
from tests.e2e.oracle.differences import DIFFERENCES

if TYPE_CHECKING:
    from tests.e2e.oracle.asking import Answer, Question
    from tests.e2e.oracle.comparisons import Comparison
    from tests.e2e.oracle.differences import Difference

# The first one waits for the oracle to be built.
pytestmark = pytest.mark.timeout(toolchain.BUILD_SECONDS + 60)

PAGE: Final = Path(__file__).parents[3] / "docs" / "differences-from-go.md"
TABLES: Final = sorted(Path(__file__).parents[2].rglob("go_findings.json"))
SEED: Final = os.environ.get("ORACLE_SEED", "1")
FACTOR: Final = float(os.environ.get("ORACLE_FACTOR", "1"))
MOST_SHOWN: Final = 10
BY_OP: Final = {comparison.op: comparison for comparison in COMPARISONS}


def test_the_oracle_is_formatted_and_vetted() -> None:
    assert toolchain.unformatted(SOURCE) == ""
    toolchain.go("vet", ".", folder=SOURCE)


@pytest.mark.parametrize("comparison", COMPARISONS, ids=lambda comparison: comparison.op)
def test_what_differs_from_go_is_listed(oracle: Oracle, comparison: Comparison) -> None:
    questions = list(comparison.questions(Random(f"{comparison.op} {SEED}"), int(comparison.count * FACTOR)))
    answers = oracle.ask(comparison.op, questions)
    accepted = sum(not isinstance(answer, Refused) for answer in answers)
    # Were nearly all inputs refused, a comparison would say nothing.
    assert accepted > len(questions) / 5

    unlisted = [
        _told(question, comparison.gos(go), our)
        for question, go in zip(questions, answers, strict=True)
        if (our := comparison.ours(question)) != comparison.gos(go)
        and not _is_known_difference(comparison.op, question, go, our)
    ]
    shortest = sorted(unlisted, key=len)[:MOST_SHOWN]
    assert not unlisted, f"{len(unlisted)} of {len(questions)} differ, such as\n" + "\n".join(shortest)


@pytest.mark.parametrize(
    "difference",
    [difference for difference in DIFFERENCES if difference.example],
    ids=lambda difference: f"{difference.name}-{difference.op}",
)
def test_a_listed_difference_still_is_one(oracle: Oracle, difference: Difference) -> None:
    assert difference.example
    comparison = BY_OP[difference.op]
    (go,) = oracle.ask(difference.op, [difference.example])
    our = comparison.ours(difference.example)
    assert our != comparison.gos(go)
    assert difference.covers(difference.example, go, our)


def test_the_page_and_the_list_name_the_same_differences() -> None:
    named = set(re.findall(r"^\| `([a-z0-9-]+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    assert named == {difference.name for difference in DIFFERENCES}


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.parent.name)
def test_the_stored_tables_have_the_results_of_go(oracle: Oracle, table: Path) -> None:
    rows = json.loads(table.read_text(encoding="utf-8"))
    said = [
        None if isinstance(answer, Refused) else answer
        for op in BY_OP
        for answer in oracle.ask(op, [row["asked"] for row in rows if row["op"] == op])
    ]
    assert said == [row["answer"] for op in BY_OP for row in rows if row["op"] == op]


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        (0, "at or behind {'text': 'a'}"),
        (1, "at or behind {'text': 'b'}"),
        (2, "it has answered all, but does not end"),
    ],
)
def test_a_program_that_does_not_end_is_reported_with_its_question(
    answers: int, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "ANSWER_SECONDS", 2)
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n" + "echo 1\n" * answers + "exec tail -f /dev/null\n")
    program.chmod(0o700)
    with pytest.raises(OracleError) as raised:
        Oracle(program).ask("duration", [{"text": "a"}, {"text": "b"}])
    assert str(raised.value).endswith(told)


def _is_known_difference(op: str, question: Question, go: Answer, our: Answer) -> bool:
    return any(difference.covers(question, go, our) for difference in DIFFERENCES if difference.op == op)


def _told(question: Question, go: Answer, our: Answer) -> str:
    return f"  {json.dumps(question, ensure_ascii=False)}\n    Go:   {go}\n    ours: {our}"
