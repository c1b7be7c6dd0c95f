"""The sizes that addon-resizer's estimators calculate."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.objects.quantities import Quantity, parse_quantity
from recommender.kinds.proportional.nanny.estimators import (
    GrowingResource,
    exponential_size,
    linear_sizes,
    offset_sizes,
)

ALL = (
    ("cpu", "0.3", "1"),
    ("memory", "30Mi", "1Mi"),
    ("storage", "30Gi", "1Gi"),
)
TINY = (("cpu", "0.3", "0.5m"),)
SMALL = (("cpu", "10m", "0.5m"), ("memory", "50Mi", "4.5Mi"), ("storage", "500Mi", "100Mi"))


def growing(rows: tuple[tuple[str, str, str], ...]) -> list[GrowingResource]:
    return [GrowingResource(name, parse_quantity(base), parse_quantity(extra)) for name, base, extra in rows]


@pytest.mark.parametrize(
    ("rows", "nodes", "smallest", "sizes"),
    [
        (ALL, 0, None, {"cpu": "0.3", "memory": "30Mi", "storage": "30Gi"}),
        (ALL, 3, None, {"cpu": "3.3", "memory": "33Mi", "storage": "33Gi"}),
        (ALL, 16, None, {"cpu": "16.3", "memory": "46Mi", "storage": "46Gi"}),
        (ALL[1:], 3, None, {"memory": "33Mi", "storage": "33Gi"}),
        (TINY, 3, None, {"cpu": "0.3015"}),
        ((), 3, None, {}),
        (ALL, 0, 16, {"cpu": "16.3", "memory": "46Mi", "storage": "46Gi"}),
        (ALL, 16, 16, {"cpu": "16.3", "memory": "46Mi", "storage": "46Gi"}),
        (ALL, 17, 16, {"cpu": "24.3", "memory": "54Mi", "storage": "54Gi"}),
        (ALL, 24, 16, {"cpu": "24.3", "memory": "54Mi", "storage": "54Gi"}),
        (TINY, 3, 16, {"cpu": "0.308"}),
        (SMALL, 1, 5, {"cpu": "12.5m", "memory": "72.5Mi", "storage": "1000Mi"}),
    ],
)
def test_sizes_match_the_table_of_the_peer(
    rows: tuple[tuple[str, str, str], ...], nodes: int, smallest: int | None, sizes: dict[str, str]
) -> None:
    """The table is `TestEstimateResources` in estimator_test.go of addon-resizer 1.8 (346353ae)."""
    size = nodes if smallest is None else exponential_size(nodes, smallest)
    assert linear_sizes(size, growing(rows)) == {name: parse_quantity(text) for name, text in sizes.items()}


@pytest.mark.parametrize(
    ("nodes", "smallest", "size"),
    [(9, 5, 10), (11, 5, 15), (13, 5, 15), (41, 5, 49), (2, 2, 2), (5, 2, 6), (41, 16, 54)],
)
def test_the_exponential_series_grows_by_half_and_is_rounded_down(nodes: int, smallest: int, size: int) -> None:
    assert exponential_size(nodes, smallest) == size


@pytest.mark.parametrize(
    ("nodes", "percent", "low", "high"),
    [(10, 10, 9, 11), (10, 20, 8, 12), (11, 20, 8, 14), (1, 10, 0, 2), (3, 0, 3, 3), (40, 100, 0, 80)],
)
def test_offsets_are_rounded_away_from_the_number_of_nodes(nodes: int, percent: int, low: int, high: int) -> None:
    one = [GrowingResource("cpu", Quantity(0), parse_quantity("1"))]
    assert offset_sizes(nodes, percent, one) == (linear_sizes(low, one), linear_sizes(high, one))


@given(nodes=st.integers(0, 10**5), more=st.integers(0, 10**4), smallest=st.integers(2, 500))
def test_a_larger_cluster_never_has_a_smaller_estimate(nodes: int, more: int, smallest: int) -> None:
    few, many = exponential_size(nodes, smallest), exponential_size(nodes + more, smallest)
    assert few <= many
    assert max(nodes, smallest) <= few <= max(smallest, nodes * 3 // 2)
