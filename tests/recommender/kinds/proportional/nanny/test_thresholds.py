"""When the difference between present and wanted sizes justifies a restart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.objects.quantities import Quantity, parse_quantity
from recommender.kinds.proportional.nanny.estimators import GrowingResource, linear_sizes, offset_sizes
from recommender.kinds.proportional.nanny.thresholds import (
    CurrentSizes,
    Delays,
    ResizeDirection,
    beyond_offsets,
    beyond_threshold,
)

Texts = dict[str, str]


def sizes(texts: Texts) -> dict[str, Quantity]:
    return {name: parse_quantity(text) for name, text in texts.items()}


def present(requests: Texts, limits: Texts | None = None) -> CurrentSizes:
    return CurrentSizes(sizes(requests), sizes(requests if limits is None else limits))


STANDARD = {"cpu": "300m", "memory": "200Mi"}


@pytest.mark.parametrize(
    ("now", "wanted", "threshold", "direction"),
    [
        (STANDARD, STANDARD, 0, None),
        ({**STANDARD, "cpu": "299m"}, STANDARD, 0, ResizeDirection.UP),
        # Ratios are cut to whole percent.
        ({**STANDARD, "cpu": "302m"}, STANDARD, 0, None),
        ({**STANDARD, "cpu": "303m"}, STANDARD, 0, ResizeDirection.DOWN),
        ({**STANDARD, "cpu": "285m"}, STANDARD, 5, None),
        ({**STANDARD, "cpu": "284m"}, STANDARD, 5, ResizeDirection.UP),
        ({**STANDARD, "cpu": "317m"}, STANDARD, 5, None),
        ({**STANDARD, "cpu": "318m"}, STANDARD, 5, ResizeDirection.DOWN),
        ({"memory": "200Mi"}, STANDARD, 50, ResizeDirection.UNKNOWN),
        ({**STANDARD, "memory": "100Mi"}, STANDARD, 20, ResizeDirection.UP),
        ({**STANDARD, "ephemeral-storage": "1Gi"}, STANDARD, 0, None),
        (STANDARD, {"memory": "200Mi"}, 0, None),
        ({"cpu": "0"}, {"cpu": "0"}, 0, None),
        ({"cpu": "1m"}, {"cpu": "0"}, 100, ResizeDirection.DOWN),
        # The first resource that matters decides.
        ({"cpu": "900m", "memory": "100Mi"}, STANDARD, 10, ResizeDirection.DOWN),
        ({"cpu": "302m"}, {"cpu": "301500u"}, 0, None),
        # The API server stores 41500u as 42m.
        ({"cpu": "42m"}, {"cpu": "41500u"}, 0, None),
        ({"cpu": "43m"}, {"cpu": "41500u"}, 0, ResizeDirection.DOWN),
        ({"cpu": "42m", "memory": "100Mi"}, {"cpu": "41500u", "memory": "200Mi"}, 0, ResizeDirection.UP),
    ],
)
def test_the_threshold_of_1_8_decides_whether_to_resize(
    now: Texts, wanted: Texts, threshold: int, direction: ResizeDirection | None
) -> None:
    change = beyond_threshold(present(now), sizes(wanted), threshold)
    assert (change and change.direction) == direction
    assert change is None or change.sizes == sizes(wanted)


def test_a_limit_counts_as_much_as_a_request() -> None:
    change = beyond_threshold(present(STANDARD, {"cpu": "300m"}), sizes(STANDARD), 5)
    assert change is not None
    assert change.reason == "the limit of memory is missing, and 200Mi is wanted"


ACCEPTED = sizes({"cpu": "200m", "memory": "150Mi"}), sizes({"cpu": "400m", "memory": "250Mi"})
RECOMMENDED = sizes({"cpu": "250m", "memory": "180Mi"}), sizes({"cpu": "350m", "memory": "220Mi"})


@pytest.mark.parametrize(
    ("now", "direction"),
    [
        (STANDARD, None),
        ({"cpu": "200m", "memory": "250Mi"}, None),
        ({"cpu": "199m", "memory": "200Mi"}, ResizeDirection.UP),
        ({"cpu": "401m", "memory": "200Mi"}, ResizeDirection.DOWN),
        ({"cpu": "300m", "memory": "900Mi"}, ResizeDirection.DOWN),
        ({"cpu": "300m"}, ResizeDirection.UNKNOWN),
    ],
)
def test_the_offsets_of_2_decide_whether_to_resize(now: Texts, direction: ResizeDirection | None) -> None:
    change = beyond_offsets(present(now), ACCEPTED, RECOMMENDED)
    assert (change and change.direction) == direction
    assert change is None or change.sizes == RECOMMENDED[direction is ResizeDirection.DOWN]


def test_what_the_api_server_rounds_up_is_within_the_offsets() -> None:
    ends = sizes({"cpu": "40m"}), sizes({"cpu": "41500u"})
    assert beyond_offsets(present({"cpu": "42m"}), ends, ends) is None
    change = beyond_offsets(present({"cpu": "43m"}), ends, ends)
    assert change is not None
    assert change.direction is ResizeDirection.DOWN


quantities = st.integers(0, 10**13).map(Quantity)
resources = st.tuples(quantities, quantities, quantities, quantities).map(
    lambda four: [GrowingResource("cpu", four[0], four[1]), GrowingResource("memory", four[2], four[3])]
)
nodes = st.integers(0, 5000)


@given(
    given_resources=resources,
    count=nodes,
    now=st.tuples(quantities, quantities),
    percents=st.tuples(st.integers(0, 100), st.integers(0, 100)).map(sorted),
)
def test_a_size_written_by_offsets_is_accepted_and_stays(
    given_resources: list[GrowingResource], count: int, now: tuple[Quantity, Quantity], percents: list[int]
) -> None:
    recommended, accepted = (offset_sizes(count, percent, given_resources) for percent in percents)
    pair = dict(zip(("cpu", "memory"), now, strict=True))
    change = beyond_offsets(CurrentSizes(pair, pair), accepted, recommended)
    if change is not None:
        assert all(accepted[0][name] <= size <= accepted[1][name] for name, size in change.sizes.items())
        assert beyond_offsets(CurrentSizes(change.sizes, change.sizes), accepted, recommended) is None


@given(given_resources=resources, count=nodes, threshold=st.integers(0, 100), percent=st.integers(-100, 100))
def test_nothing_changes_within_the_threshold(
    given_resources: list[GrowingResource], count: int, threshold: int, percent: int
) -> None:
    wanted = linear_sizes(count, given_resources)
    near = {name: Quantity(size.nanos * (100 + percent) // 100) for name, size in wanted.items()}
    change = beyond_threshold(CurrentSizes(near, near), wanted, threshold)
    if change is None:
        return
    assert any(abs(near[name].nanos - size.nanos) * 100 > threshold * size.nanos for name, size in wanted.items())
    assert beyond_threshold(CurrentSizes(wanted, wanted), wanted, threshold) is None


@pytest.mark.parametrize(
    ("direction", "since", "forbidden"),
    [
        (ResizeDirection.UP, 59.0, True),
        (ResizeDirection.UP, 60.0, False),
        (ResizeDirection.DOWN, 3599.0, True),
        (ResizeDirection.DOWN, 3600.0, False),
        (ResizeDirection.UNKNOWN, 0.0, False),
    ],
)
def test_delays_apply_by_direction(direction: ResizeDirection, since: float, *, forbidden: bool) -> None:
    assert Delays(up_seconds=60.0, down_seconds=3600.0).forbid(direction, since) is forbidden
