"""The price expander compares the cost of nodes with the value of their pods (`expander/price`)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from recommender.kinds.cluster_size.expanders.expander_context import Kept, names
from recommender.kinds.cluster_size.model.resources import capacity_of, is_gpu
from recommender.kinds.cluster_size.model.size_settings import CORES, MEMORY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from recommender.kinds.cluster_size.estimator.estimate_model import ExpansionOption
    from recommender.kinds.cluster_size.expanders.expander_context import ExpanderContext

GIB_PER_CORE: Final = 7.5
"""How many GiB of memory cost as much as one core: about the list prices of general-purpose machines."""
GPU_UNFITNESS: Final = 1000.0
"""The unfitness of nodes with GPUs, so that they are chosen only if no others hold the pods."""
ABSENT_GROUP_FACTOR: Final = 2.0
"""The factor for a group that would have to be created first."""
_STABILISING_CPU_MILLI: Final = 500
_STABILISING_MEMORY_BYTES: Final = 500 << 20
_PREFERRED_CORES: Final = ((2, 1), (6, 2), (20, 4), (60, 8), (200, 16))
"""Pairs of the most nodes that a cluster may have, and the cores of a new node that are preferred up to that size."""
_LARGEST_PREFERRED_CORES: Final = 32
_FADING_NODES: Final = 15
_MILLI: Final = 1000
_GIB: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class Offer:
    """An option as the price expander compares it. Prices are for one hour."""

    nodes_price: float
    """The price of all nodes of the option."""
    node_count: int
    pods_price: float
    """The value of all pods of the option."""
    unfitness: float
    """How badly the size of a node fits: 1 fits, larger values fit less."""
    has_gpu: bool = False
    exists: bool = True


def preferred_cores(cluster_nodes: int) -> int:
    """Return how many cores a new node should have in a cluster of this many nodes."""
    return next((cores for most, cores in _PREFERRED_CORES if cluster_nodes <= most), _LARGEST_PREFERRED_CORES)


def unfitness(preferred_milli: int, node_milli: int) -> float:
    """Return how much a node's CPU differs from the preferred one, as a factor of at least 1."""
    if node_milli <= 0 or preferred_milli <= 0:
        return math.inf
    return max(preferred_milli / node_milli, node_milli / preferred_milli)


def price_score(offer: Offer, stabilising_price: float) -> float:
    """Return the score of an offer; the smallest is best.

    `stabilising_price` is the price of a small pod; it keeps the ratio of tiny prices bounded. The more nodes there
    are, the less the size of a node matters, unless it is not known.
    """
    ratio = (offer.nodes_price + stabilising_price) / (offer.pods_price + stabilising_price)
    fading = 1 - math.tanh((offer.node_count - 1) / _FADING_NODES)
    misfit = offer.unfitness if math.isinf(offer.unfitness) else (offer.unfitness - 1) * fading + 1
    factor = GPU_UNFITNESS if offer.has_gpu else misfit
    return ratio * factor * (1 if offer.exists else ABSENT_GROUP_FACTOR)


def keep_cheapest(options: Sequence[ExpansionOption], context: ExpanderContext) -> Kept:
    """Keep the options with the best score among those whose group has a price; all of them if none has a price.

    Pods have no price of their own. Their value is the cost of their requested CPU and memory in the cheapest of the
    groups compared, where a core costs as much as 7.5 GiB.
    """
    priced = [(option, price) for option in options if (price := option.group.price) is not None]
    if not priced:
        return Kept(tuple(options), "no group has a price, so all of them stay")
    unit_prices = [price / units for option, price in priced if (units := _units(_capacity(option))) > 0]
    unit_price = min(unit_prices, default=0.0)
    stabilising = unit_price * _units({CORES: _STABILISING_CPU_MILLI, MEMORY: _STABILISING_MEMORY_BYTES})
    scores = [price_score(_offer(option, price, unit_price, context), stabilising or 1.0) for option, price in priced]
    best = min(scores)
    kept = tuple(option for (option, _), score in zip(priced, scores, strict=True) if score == best)
    unpriced = [option for option in options if option.group.price is None]
    left_out = f"; not compared, because they have no price: {names(unpriced)}" if unpriced else ""
    return Kept(kept, f"price and size of nodes have the score {best:.3g}, the lowest{left_out}")


def _offer(option: ExpansionOption, price: float, unit_price: float, context: ExpanderContext) -> Offer:
    capacity = _capacity(option)
    count = option.estimate.node_count
    return Offer(
        nodes_price=price * count,
        node_count=count,
        pods_price=unit_price * sum(_units(pod.resources.requests) for pod in option.estimate.pods),
        unfitness=unfitness(preferred_cores(context.node_count) * _MILLI, capacity.get(CORES, 0)),
        has_gpu=has_gpu(capacity),
    )


def has_gpu(amounts: Mapping[str, int]) -> bool:
    """Return whether there are GPUs among the resources, such as `nvidia.com/gpu` or `gpu.intel.com/i915`."""
    return any(
        amount > 0 and (is_gpu(name) or "/gpu" in name or name.startswith("gpu.")) for name, amount in amounts.items()
    )


def _capacity(option: ExpansionOption) -> dict[str, int]:
    return {} if option.group.template is None else capacity_of(option.group.template.node)


def _units(amounts: Mapping[str, int]) -> float:
    """Return CPU and memory together as an equivalent number of cores."""
    return amounts.get(CORES, 0) / _MILLI + amounts.get(MEMORY, 0) / _GIB / GIB_PER_CORE
