"""The load of the nodes that benchmarks serve, as the exporters of a large cluster would have shown it at each moment.

Each node belongs to a class. Classes differ in mean load and in the time at which they are scraped. The load of a class
switches every two minutes between two values on both sides of its mean.
"""

from __future__ import annotations

import math

SCRAPE_SECONDS = 15
CLASSES = 60
SWITCH_SECONDS = 120
HALF_SWING = 0.08
_LEAST_MEAN, _MOST_MEAN = 0.10, 0.85


def class_of(node: int) -> int:
    """Return the class of a node."""
    return node % CLASSES


def mean_ratio(of_class: int) -> float:
    """Return the mean utilisation of a class, the same for each resource."""
    # 23 has no divisor in common with the number of classes, so neighbours differ from each other.
    return _LEAST_MEAN + (_MOST_MEAN - _LEAST_MEAN) * (of_class * 23 % CLASSES) / (CLASSES - 1)


def ratio_at(of_class: int, time: float) -> float:
    """Return the utilisation that the newest scrape before a time shows."""
    is_high = math.floor(scraped_at(of_class, time) / SWITCH_SECONDS) % 2
    return mean_ratio(of_class) + (HALF_SWING if is_high else -HALF_SWING)


def scraped_at(of_class: int, time: float) -> float:
    """Return when the newest scrape before a time was, in Unix seconds."""
    offset = SCRAPE_SECONDS * of_class / CLASSES
    return math.floor((time - offset) / SCRAPE_SECONDS) * SCRAPE_SECONDS + offset
