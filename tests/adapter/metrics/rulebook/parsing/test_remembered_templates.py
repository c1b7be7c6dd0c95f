"""The memory of tried templates is limited, whatever tenants write into MetricRules."""

from __future__ import annotations

import gc
import tracemalloc
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.metrics.rulebook.model import Rulebook

LONGEST = 8192
"""The longest query that the CustomResourceDefinition of MetricRules admits."""


def rule(number: int) -> str:
    query = f"sum by (<<.GroupBy>>) (<<.Series>>{{<<.LabelMatchers>>}} + {number})"
    query += (LONGEST - len(query)) // 18 * "<<if true>><<end>>"
    resources = "{overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}"
    return f"rules:\n- seriesQuery: s\n  resources: {resources}\n  metricsQuery: '{query}'\n"


def test_remembered_templates_of_all_tenants_take_a_few_megabytes(read: Callable[..., Rulebook]) -> None:
    """In an attack, 512 changes of MetricRules with many actions left 75 MiB."""
    assert read(rule(0)).rules
    tracemalloc.start()
    for number in range(1, 13):
        read(rule(number))
    gc.collect()  # What waits for a collection is not held.
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 1 << 20
