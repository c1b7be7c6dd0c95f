"""The documented rules for metrics.k8s.io: no findings, one query for everybody, and each container counts once."""

from __future__ import annotations

import re
import time
from functools import partial
from typing import TYPE_CHECKING

import pytest
import yaml

from adapter.foundation.documents.load import load_documents
from adapter.foundation.objects.resources import BUILT_IN, find_resource
from adapter.foundation.objects.selectors import EVERYTHING
from adapter.metrics.rulebook.model import PlanKind
from adapter.metrics.rulebook.parsing.parse import parse_rulebook
from adapter.metrics.rulebook.plans import plan_of
from adapter.metrics.rulebook.query_rendering import exact_query
from adapter.metrics.rulebook.report import rulebook_report
from adapter.metrics.rulebook.requests import Asked
from tests.support.checkout import CHECKOUT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from adapter.metrics.rulebook.model import Rulebook
    from tests.support.prometheus import ScrapedPrometheus

PAGE = CHECKOUT / "docs" / "resource-metrics.md"
CHART = CHECKOUT / "helm" / "tidewatch" / "README.md"
RESOLVE = partial(find_resource, BUILT_IN)
AT = int(time.time()) - 600
POD = 'namespace="shop",pod="web-0"'
APP = f'{POD},container="app"'
CPU = {
    f'{APP},id="/pod/old",cpu="total"': 0.5,
    f'{APP},id="/pod/new",cpu="total"': 0.25,
    f'{APP},id="/pod/new",cpu="cpu00"': 0.125,
    f'{APP},metrics_path="/metrics/resource"': 0.25,
    f'{POD},container="POD",id="/pod/pause",cpu="total"': 0.01,
    f'{POD},id="/pod",cpu="total"': 1.0,
}
"""Cores in use by the labels of a series: a container that has restarted a moment ago, also by a second path of the
kubelet, the pause container, and the pod."""
MEMORY = {
    f'{APP},id="/pod/old"': 200,
    f'{APP},id="/pod/new"': 100,
    f'{APP},metrics_path="/metrics/resource"': 100,
    f'{POD},container="POD",id="/pod/pause"': 1,
    f'{POD},id="/pod"': 301,
}


def documented(text: str) -> str:
    """Return the resource rules of a page, as a rule file."""
    (found,) = [block for block in re.findall(r"```yaml\n(.+?)```", text, flags=re.DOTALL) if "containerQuery" in block]
    content = yaml.safe_load(found)
    return found if "resourceRules" in content else yaml.safe_dump({"resourceRules": content["rules"]["resource"]})


def rulebook_of(text: str) -> Rulebook:
    return parse_rulebook([load_documents(text, PAGE.name)], RESOLVE)


@pytest.mark.parametrize("page", [PAGE, CHART], ids=["page", "chart"])
def test_the_rules_of_the_pages_work_and_share_one_query(page: Path) -> None:
    documents = [load_documents(documented(page.read_text()), page.name)]
    rulebook = parse_rulebook(documents, RESOLVE)
    assert rulebook_report(documents, rulebook, RESOLVE).all_findings == ()
    assert {metric.qualified: plan_of(metric).kind for metric in rulebook.resource.metrics} == dict.fromkeys(
        ("pods/cpu", "nodes/cpu", "pods/memory", "nodes/memory"), PlanKind.WIDE
    )


@pytest.fixture(scope="module")
def prometheus(start_prometheus: Callable[..., ScrapedPrometheus]) -> ScrapedPrometheus:
    steps = range(0, 301, 15)
    cpu = [
        f"container_cpu_usage_seconds_total{{{labels}}} {rate * step} {AT - 300 + step}"
        for labels, rate in CPU.items()
        for step in steps
    ]
    memory = [
        f"container_memory_working_set_bytes{{{labels}}} {value} {AT - 300 + step}"
        for labels, value in MEMORY.items()
        for step in steps
    ]
    cpu_type, memory_type = (
        f"# TYPE container_{name}" for name in ("cpu_usage_seconds counter", "memory_working_set_bytes gauge")
    )
    return start_prometheus(history="\n".join([cpu_type, *cpu, memory_type, *memory, "# EOF", ""]))


@pytest.mark.parametrize("page", [PAGE, CHART], ids=["page", "chart"])
def test_a_container_counts_once_after_a_restart_and_with_two_paths_of_the_kubelet(
    prometheus: ScrapedPrometheus, page: Path
) -> None:
    asked = Asked("shop", ("web-0",), EVERYTHING)
    for metric in rulebook_of(documented(page.read_text())).resource.metrics:
        if not metric.namespaced:
            continue
        answer = prometheus.query(exact_query(metric, asked), at=AT)
        found = {one["metric"]["container"]: float(one["value"][1]) for one in answer}
        assert found == {"app": pytest.approx(0.5 if metric.name == "cpu" else 200)}
