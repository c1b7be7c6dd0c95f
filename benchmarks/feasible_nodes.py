"""How many names kube-scheduler sends to an extender, by the size of the cluster."""

from __future__ import annotations

from typing import Final

FEWEST_NODES: Final = 100
_LOWEST_PERCENTAGE: Final = 5
_HIGHEST_PERCENTAGE: Final = 50
_NODES_PER_PERCENT: Final = 125


def names_in_a_request(nodes: int, percentage_of_nodes_to_score: int = 0) -> int:
    """Return the largest number of feasible nodes that kube-scheduler looks for, which is all that an extender gets.

    The filter plugins stop once this many are found. This is `numFeasibleNodesToFind` of kubernetes/kubernetes,
    `pkg/scheduler/schedule_one.go`, in its integer arithmetic; the percentage 0 stands for the adaptive one.
    """
    if nodes < FEWEST_NODES or percentage_of_nodes_to_score >= 100:
        return nodes
    adaptive = max(_LOWEST_PERCENTAGE, _HIGHEST_PERCENTAGE - nodes // _NODES_PER_PERCENT)
    return max(FEWEST_NODES, nodes * (percentage_of_nodes_to_score or adaptive) // 100)
