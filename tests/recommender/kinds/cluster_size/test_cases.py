from __future__ import annotations

import re
from pathlib import Path

from tests.recommender.kinds.cluster_size.builders import node, pod, taint
from tests.recommender.kinds.cluster_size.cases import all_cases
from tests.support.checkout import CHECKOUT

WITHOUT_COUNTERPART = {
    "fastpath_choice": "a heuristic that saves the peer time: pods that are alike are placed by division here"
}
"""Kinds of cases that no test uses, with the reason."""


def test_every_case_has_its_own_identifier_and_a_source() -> None:
    found = all_cases()
    assert len({case.id for case in found}) == len(found) == 139
    assert all(case.source for case in found)


def test_every_kind_of_case_is_used_by_a_test_or_has_no_counterpart() -> None:
    tests = Path(__file__).parent.rglob("test_*.py")
    asked = {kind for test in tests for kind in re.findall(r'\bcases\("(\w+)"\)', test.read_text())}
    kinds = {case.kind for case in all_cases()}
    assert asked | set(WITHOUT_COUNTERPART) == kinds
    assert not asked & set(WITHOUT_COUNTERPART)


def test_the_page_of_cases_has_the_count_of_each_kind() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \|", (CHECKOUT / "docs" / "peer-cases.md").read_text(), re.MULTILINE)
    stated = {kind: int(count) for kind, count in rows}
    counted = [case.kind for case in all_cases()]
    assert {kind: stated.get(kind) for kind in counted} == {kind: counted.count(kind) for kind in counted}


def test_builders_read_quantities_and_taints_as_written() -> None:
    built = node("n", cpu="1500m", memory="1Gi", taints=["gpu=yes:NoSchedule", "old:NoExecute"])
    assert built.allocatable["cpu"].milli_value() == 1500
    assert built.taints == (taint("gpu=yes:NoSchedule"), taint("old:NoExecute"))
    assert pod("p", cpu="0.25", memory="", controller="web").resources.requests == {"cpu": 250}
