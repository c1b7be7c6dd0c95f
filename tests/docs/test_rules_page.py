"""The example on the page of rules is a rule that works, with all of its keys."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from adapter.objects.resources import BUILT_IN, find_resource
from adapter.rulebook.model import OnNoData, Policy
from adapter.rulebook.parse import parse_rulebook
from adapter.rulebook.policies import POLICY_KEYS
from adapter.service.documents import load_documents

PAGE = Path(__file__).resolve().parents[2] / "docs" / "rules.md"


def test_the_example_says_what_its_keys_say() -> None:
    example = PAGE.read_text().split("```yaml\n")[1].split("```")[0]
    book = parse_rulebook([load_documents(example, "rules.md")], partial(find_resource, BUILT_IN))

    assert book.findings == ()
    assert book.rules[0].policy == Policy(OnNoData.ERROR, None, 60.0, 30.0, 120)


def test_each_key_has_its_section() -> None:
    sections = [line.strip("# `") for line in PAGE.read_text().splitlines() if line.startswith("## `")]
    assert set(sections) >= set(POLICY_KEYS)
