"""The expanders by name, and a chain of them: the choice among the options that it leaves can be repeated."""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Final

from adapter.foundation.documents.tree import did_you_mean
from adapter.foundation.reports.counts import count_of
from recommender.kinds.cluster_size.expanders.expander_context import Choice, Kept, names
from recommender.kinds.cluster_size.expanders.price import keep_cheapest
from recommender.kinds.cluster_size.expanders.priorities import highest_priority
from recommender.kinds.cluster_size.model.resources import capacity_of
from recommender.kinds.cluster_size.model.size_settings import CORES, MEMORY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from recommender.kinds.cluster_size.estimator.estimate_model import ExpansionOption
    from recommender.kinds.cluster_size.expanders.expander_context import Expander, ExpanderContext

RANDOM: Final = "random"
GRPC: Final = "grpc"
TIES: Final = "ties"
"""Name of the rule that decides among options that all expanders keep; it cannot be configured as an expander."""


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
    return Kept(
        tuple(option for option in options if len(option.estimate.pods) == most), f"{count_of(most, 'pod')}, the most"
    )


def least_nodes(options: Sequence[ExpansionOption], _context: ExpanderContext) -> Kept:
    """Keep the options with the fewest nodes; those without any are dropped (`expander/leastnodes`)."""
    counted = [option for option in options if option.estimate.node_count > 0]
    least = min((option.estimate.node_count for option in counted), default=0)
    return Kept(
        tuple(option for option in counted if option.estimate.node_count == least),
        f"{count_of(least, 'node')}, the fewest",
    )


def one_at_random(options: Sequence[ExpansionOption], context: ExpanderContext) -> Kept:
    """Keep one option, chosen by the seed and the names of the groups: the same input has the same answer."""
    if len(options) <= 1:
        return Kept(tuple(options), "the only one")

    def drawn(option: ExpansionOption) -> bytes:
        return hashlib.sha256(f"{context.seed}\0{option.group.name}".encode()).digest()

    return Kept((min(options, key=drawn),), f"drawn among {names(options)}")


def cheaper_then_by_name(options: Sequence[ExpansionOption], _context: ExpanderContext) -> Kept:
    """Keep one of several equal options: the one whose nodes cost least in total, then the first by name.

    An option without a price comes last. Unlike a random choice, this one can be repeated.
    """
    if len(options) <= 1:
        return Kept(tuple(options), "the only one")

    def order(option: ExpansionOption) -> tuple[float, str]:
        price = option.group.price
        return math.inf if price is None else price * option.estimate.node_count, option.group.name

    best = min(options, key=order)
    is_cheaper = any(order(one)[0] > order(best)[0] for one in options)
    why = "the cheapest" if is_cheaper else "the first by name"
    return Kept((best,), f"{why} of {names(options)}")


EXPANDERS: Final[Mapping[str, Expander]] = {
    "least-waste": least_waste,
    "most-pods": most_pods,
    "least-nodes": least_nodes,
    "price": keep_cheapest,
    "priority": highest_priority,
    RANDOM: one_at_random,
}
"""The expanders, by their names in Cluster Autoscaler's `--expander`."""


def expander_problems(expanders: Sequence[str]) -> tuple[str, ...]:
    """Return what is wrong with a chain, one sentence each: unknown names, names given twice, names after `random`."""
    problems: list[str] = []
    if not expanders:
        problems.append(f"no expander is given: write one or more of {', '.join(EXPANDERS)}")
    for position, name in enumerate(expanders):
        if name == GRPC:
            problems.append("the expander grpc is not supported: `tidewatch-recommender expander` is one")
        elif name not in EXPANDERS:
            fix = did_you_mean(name, EXPANDERS, f"write one of {', '.join(EXPANDERS)}")
            problems.append(f"{name!r} is not an expander: {fix}")
        elif name in expanders[:position]:
            problems.append(f"the expander {name} is given twice: give it once")
        elif RANDOM in expanders[:position]:
            problems.append(f"the expander {name} has no effect after random, which leaves one option: put random last")
    return tuple(problems)


def choose(options: Sequence[ExpansionOption], expanders: Sequence[str], context: ExpanderContext) -> Choice:
    """Return the option that the chain of expanders leaves; among equal ones, the cheapest, then the first by name."""
    chain = [(name, EXPANDERS[name]) for name in expanders if name in EXPANDERS]
    return run_chain(options, chain, (TIES, cheaper_then_by_name), context)


def run_chain(
    options: Sequence[ExpansionOption],
    chain: Sequence[tuple[str, Expander]],
    last: tuple[str, Expander],
    context: ExpanderContext,
) -> Choice:
    """Apply the named expanders in order, then `last` if several options are left; return the remaining option."""
    if len(options) == 1:
        return Choice(options[0], "the only group that can hold pods")
    left = tuple(options)
    reasons: list[str] = []
    for name, expander in (*chain, last):
        if not left:
            break
        kept = expander(left, context)
        left = kept.options
        reasons.append(f"{name}: {kept.reason}")
        if len(left) == 1 or expander is last[1]:
            return Choice(left[0] if left else None, "; ".join(reasons))
    return Choice(None, "; ".join(reasons) or "there is no option")
