"""Scale-up decides as in Cluster Autoscaler's own tests, in one round."""

from __future__ import annotations

import pytest

from recommender.kinds.cluster_size.model.size_settings import SizeLimits
from tests.recommender.kinds.cluster_size.builders import node, pod
from tests.recommender.kinds.cluster_size.cases import Case, cases
from tests.recommender.kinds.cluster_size.options import group
from tests.recommender.kinds.cluster_size.scale_up.harnesses import decided, like, situation

OUTSIDE = "(none)"


@pytest.mark.parametrize("case", cases("scale_up"))
def test_limits_and_minimum_sizes(case: Case) -> None:
    groups, nodes, pods = [], [], []
    for name, row in case.input["groups"].items():
        its = node(f"node-of-{name.strip('()')}", f"{row['cpu_milli']}m", str(row["memory"]))
        nodes.append(its)
        pods.append(pod(f"on-{its.name}", f"{row['cpu_milli']}m", "", node=its.name))
        if name != OUTSIDE:
            groups.append(group(name, size=1, min_size=row.get("min", 0), node_template=like(its), nodes=(its.name,)))
    if case.input["choose"] != "enforce-min":
        pods += [pod(f"pending-{number}", "2000m", "", controller="pending") for number in range(2)]
    limits = SizeLimits(max_cores=case.input["limits"]["cores"], max_memory_bytes=case.input["limits"].get("memory"))
    answer = decided(situation(groups, nodes=nodes, pods=pods), limits=limits, rounds=1)
    assert answer.increases == case.expected["increase"]
    if case.expected.get("reason") == "quota":
        assert answer.binding == "limits.cores"
        assert all("limits.cores" in reason for reason in answer.reasons.values())
