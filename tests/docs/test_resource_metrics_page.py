"""The rules that the page on metrics.k8s.io shows are taken in without a finding, and are asked once for everybody."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

from adapter.documents.load import load_documents
from adapter.objects.resources import BUILT_IN, find_resource
from adapter.rulebook.model import PlanKind
from adapter.rulebook.parsing.parse import parse_rulebook
from adapter.rulebook.plans import plan_of
from adapter.rulebook.report import rulebook_report

PAGE = Path(__file__).resolve().parents[2] / "docs" / "resource-metrics.md"


def test_the_rules_of_the_page_hold_and_are_asked_widely() -> None:
    (text,) = re.findall(r"```yaml\n(.+?)```", PAGE.read_text(), flags=re.DOTALL)
    resolve = partial(find_resource, BUILT_IN)
    documents = [load_documents(text, PAGE.name)]
    rulebook = parse_rulebook(documents, resolve)
    assert rulebook_report(documents, rulebook, resolve).all_findings == ()
    assert {metric.qualified: plan_of(metric).kind for metric in rulebook.resource.metrics} == dict.fromkeys(
        ("pods/cpu", "nodes/cpu", "pods/memory", "nodes/memory"), PlanKind.WIDE
    )
