"""The expanders that compare estimates: `least-waste`, `most-pods` and `least-nodes`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from recommender.kinds.cluster_size.expanders.expander_context import Kept
from recommender.kinds.cluster_size.model.resources import capacity_of
from recommender.kinds.cluster_size.model.size_settings import CORES, MEMORY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recommender.kinds.cluster_size.estimator.estimate_model import ExpansionOption
    from recommender.kinds.cluster_size.expanders.expander_context import ExpanderContext


def waste(option: ExpansionOption) -> float:
    """Return the share of CPU plus the share of memory that no pod of the option requests: 0 to 2.

    As in `expander/waste`, the share is of the capacity, not of what is allocatable. It is infinite if the template
    states no CPU or no memory, or if there is no node.
    """
    if option.group.template is None:
        return math.inf
    capacity = capacity_of(option.group.template.node)
    total = 0.0
    for resource in (CORES, MEMORY):
        available = capacity.get(resource, 0) * option.estimate.node_count
        if available <= 0:
            return math.inf
        requested = sum(pod.resources.requests.get(resource, 0) for pod in option.estimate.pods)
        total += (available - requested) / available
    return total


def least_waste(options: Sequence[ExpansionOption], _context: ExpanderContext) -> Kept:
    """Keep the options that waste the least; equal ones are all kept."""
    wasted = [waste(option) for option in options]
    least = min(wasted, default=math.inf)
    kept = tuple(option for option, its in zip(options, wasted, strict=True) if its == least)
    share = "an unknown share" if math.isinf(least) else f"{100 * least / 2:.0f}%"
    return Kept(kept, f"{share} of CPU and memory unused on average, the least")


def most_pods(options: Sequence[ExpansionOption], _context: ExpanderContext) -> Kept:
    """Keep the options that hold the most pods (`expander/mostpods`)."""
    most = max((len(option.estimate.pods) for option in options), default=0)
    return Kept(tuple(option for option in options if len(option.estimate.pods) == most), f"{most} pods, the most")


def least_nodes(options: Sequence[ExpansionOption], _context: ExpanderContext) -> Kept:
    """Keep the options with the fewest nodes; those without any are dropped (`expander/leastnodes`)."""
    counted = [option for option in options if option.estimate.node_count > 0]
    least = min((option.estimate.node_count for option in counted), default=0)
    return Kept(
        tuple(option for option in counted if option.estimate.node_count == least), f"{least} nodes, the fewest"
    )
