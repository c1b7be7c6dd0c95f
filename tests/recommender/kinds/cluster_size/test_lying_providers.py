"""Whatever a provider answers and does, requests to it stay within its limits and what pods need."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recommender.outputs.scale_results import ScaleResult
from tests.recommender.kinds.cluster_size.lying_cloud import MAX, START, Lies, LyingCloud, Machine, Shown

_CALLS = st.sampled_from(
    ("done", "nothing", "more", "fewer", "refused", "refused-but-done", "unknown", "late-but-done")
)
_LIES = st.builds(
    Lies,
    calls=st.lists(_CALLS, max_size=5).map(tuple),
    shown=st.sampled_from(("honest", "frozen", "late", "jumping", "too-much", "absurd")),
    machines=st.sampled_from(("honest", "none", "of-the-other-group", "unknown", "deleting")),
    owner=st.sampled_from(("honest", "no-group", "the-other-group")),
    come=st.booleans(),
)
_ARRIVALS = st.lists(st.sampled_from((0, 20, 100, 300)), min_size=1, max_size=5)


@given(lies=_LIES, arrivals=_ARRIVALS)
@settings(max_examples=20, derandomize=True)
def test_no_more_nodes_than_pods_need_are_requested_of_a_lying_provider(lies: Lies, arrivals: list[int]) -> None:
    cloud = LyingCloud(lies, arrivals)
    cloud.run(1400.0)
    accepted = [
        one for one in cloud.asked if "refused" not in one.call and one.call not in {"unknown", "late-but-done"}
    ]
    for one in cloud.asked:
        assert one.delta > 0
        assert one.shown + one.delta <= MAX
        if one.at < cloud.now - 1400.0 + 880.0:
            window = [other.delta for other in accepted if one.at <= other.at < one.at + 880.0]
            assert sum(window) <= len(arrivals), cloud.asked
        failed = [o for o in cloud.asked if o.group == one.group and o not in accepted and 0 < one.at - o.at < 280.0]
        assert not [o for o in failed if o.shown == one.shown], cloud.asked
    assert len(cloud.bound) == len(arrivals), (cloud.asked, cloud.memory)


@pytest.mark.parametrize(
    "lies",
    [
        pytest.param(Lies(shown="frozen"), id="a-size-that-never-changes"),
        pytest.param(Lies(owner="the-other-group"), id="nodes-of-another-group"),
    ],
)
def test_a_group_with_more_nodes_than_its_size_gets_the_needed_nodes_once(lies: Lies) -> None:
    cloud = LyingCloud(lies, [0, 0, 0, 400, 400, 900], boot=240.0)
    cloud.groups["liar"].machines.append(Machine("x:///second", START - 900.0, comes=True))
    cloud.run(2400.0)
    assert len(cloud.bound) == 6
    assert sum(one.delta for one in cloud.asked) == 4


def test_a_group_whose_size_never_changes_does_not_exceed_its_maximum() -> None:
    cloud = LyingCloud(Lies(shown="frozen"), [200 * number for number in range(MAX + 4)])
    cloud.run(200.0 * (MAX + 6))
    assert len(cloud.groups["liar"].machines) == MAX
    assert len(cloud.bound) == MAX + 4
    assert sum(one.delta for one in cloud.asked) == MAX + 3


@pytest.mark.parametrize("shown", ["honest", "frozen"])
def test_pods_do_not_wait_for_a_group_that_accepts_requests_without_effect(shown: Shown) -> None:
    cloud = LyingCloud(Lies(calls=("nothing",) * 9, shown=shown), [0, 0, 100, 300])
    cloud.run(500.0)
    assert len(cloud.bound) == 3, "one pod waits for the node that the group has accepted"
    assert cloud.results.count(ScaleResult.REFUSED) <= 4
    cloud.run(600.0)
    assert len(cloud.bound) == 4
