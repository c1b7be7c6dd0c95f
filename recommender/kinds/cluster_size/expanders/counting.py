"""The expanders that count: most pods, fewest nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recommender.kinds.cluster_size.expanders.expander_context import Kept

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recommender.kinds.cluster_size.estimator.estimate_model import ExpansionOption
    from recommender.kinds.cluster_size.expanders.expander_context import ExpanderContext


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
