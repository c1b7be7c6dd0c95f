"""The rules that the page on metrics.k8s.io shows are accepted without a finding, and queried once for everybody."""

from __future__ import annotations

import re
from functools import partial

from adapter.foundation.documents.load import load_documents
from adapter.foundation.objects.resources import BUILT_IN, find_resource
from adapter.metrics.rulebook.model import PlanKind
from adapter.metrics.rulebook.parsing.parse import parse_rulebook
from adapter.metrics.rulebook.plans import plan_of
from adapter.metrics.rulebook.report import rulebook_report
from tests.support.checkout import CHECKOUT

PAGE = CHECKOUT / "docs" / "resource-metrics.md"


def test_the_rules_of_the_page_work_and_share_one_query() -> None:
    (text,) = re.findall(r"```yaml\n(.+?)```", PAGE.read_text(), flags=re.DOTALL)
    resolve = partial(find_resource, BUILT_IN)
    documents = [load_documents(text, PAGE.name)]
    rulebook = parse_rulebook(documents, resolve)
    assert rulebook_report(documents, rulebook, resolve).all_findings == ()
    assert {metric.qualified: plan_of(metric).kind for metric in rulebook.resource.metrics} == dict.fromkeys(
        ("pods/cpu", "nodes/cpu", "pods/memory", "nodes/memory"), PlanKind.WIDE
    )
