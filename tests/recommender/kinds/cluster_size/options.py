"""Node groups and options of expanders for tests."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from adapter.foundation.cluster.values.constraints import HOSTNAME_LABEL
from recommender.kinds.cluster_size.estimator.estimate_model import Estimate, ExpansionOption
from recommender.kinds.cluster_size.model.groups import GroupOptions, NodeGroup, NodeTemplate
from tests.recommender.kinds.cluster_size.builders import node, pod

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from adapter.foundation.cluster.values.state import ClusterNode, ClusterPod


def template(
    cpu: str = "4",
    memory: str = "16Gi",
    *,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[str] = (),
    extended: Mapping[str, str] | None = None,
    allocatable: Mapping[str, str] | None = None,
    pods: Sequence[ClusterPod] = (),
    max_pods: int = 110,
) -> NodeTemplate:
    """Return a template without a hostname."""
    made = node(
        "template",
        cpu,
        memory,
        max_pods,
        labels=labels,
        taints=taints,
        extended=extended,
        allocatable=allocatable,
    )
    return NodeTemplate(_without_hostname(made), tuple(pods), source="template")


def group(
    name: str,
    *,
    size: int = 0,
    min_size: int = 0,
    max_size: int = 10,
    node_template: NodeTemplate | None = None,
    nodes: Sequence[str] = (),
    price: float | None = None,
    zero_or_max: bool = False,
    problem: str = "",
) -> NodeGroup:
    """Return a group of nodes with 4 CPUs and 16 GiB, unless a template is given."""
    return NodeGroup(
        name=name,
        min_size=min_size,
        max_size=max_size,
        target_size=size,
        nodes=tuple(nodes),
        template=template() if node_template is None else node_template,
        price=price,
        options=GroupOptions(zero_or_max=zero_or_max),
        problem=problem,
    )


def option(its: NodeGroup, node_count: int, pods: Sequence[ClusterPod] | int = ()) -> ExpansionOption:
    """Return a group's option for expanders; a number of pods stands for so many small ones."""
    held = tuple(pod(f"p{number}") for number in range(pods)) if isinstance(pods, int) else tuple(pods)
    return ExpansionOption(its, Estimate(node_count, held))


def _without_hostname(its: ClusterNode) -> ClusterNode:
    return replace(its, labels={key: value for key, value in its.labels.items() if key != HOSTNAME_LABEL})
