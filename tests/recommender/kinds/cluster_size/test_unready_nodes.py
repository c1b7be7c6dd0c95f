"""A node that is not ready gets no further pod, even in the moment before a controller has tainted it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from recommender.kinds.cluster_size.calculate import decide_size
from recommender.kinds.cluster_size.model.size_settings import ScaleDownSettings
from tests.recommender.kinds.cluster_size.builders import node, pod
from tests.recommender.kinds.cluster_size.options import group, template
from tests.recommender.kinds.cluster_size.scale_up.harnesses import settings, situation

DOWN = ScaleDownSettings(unneeded_seconds=0.0, delay_after_add_seconds=0.0)


@pytest.mark.parametrize(
    "taints", [(), ("node.kubernetes.io/not-ready:NoSchedule",), ("node.kubernetes.io/unreachable:NoExecute",)]
)
def test_a_pending_pod_gets_a_new_node_instead_of_an_unready_one(taints: tuple[str, ...]) -> None:
    broken = node("broken", "8", "16Gi", conditions={"Ready": "Unknown"}, taints=taints, created=1.0)
    workers = replace(group("a", size=1, max_size=3, node_template=template("4", "8Gi")), nodes=("broken",))
    its = situation([workers], nodes=[broken], pods=[pod("web", "1", "1Gi", controller="web")])
    [found] = decide_size(its, settings(scale_down=ScaleDownSettings(enabled=False))).groups
    assert found.recommended == 2


def test_a_node_is_kept_if_its_pods_would_move_to_an_unready_one() -> None:
    names = ("used", "broken")
    used = node("used", "8", "16Gi", created=1.0)
    broken = node("broken", "8", "16Gi", conditions={"Ready": "False"}, created=1.0)
    workers = replace(group("a", size=2, max_size=3, node_template=template("8", "16Gi")), nodes=names)
    its = situation(
        [workers],
        nodes=[used, broken],
        pods=[pod("web", "1", "1Gi", node="used", controller="web")],
        assumed_controllers=frozenset({"ReplicaSet"}),
    )
    answer = decide_size(its, settings(scale_down=DOWN))
    assert "used" not in {removal.node for removal in answer.removals}
