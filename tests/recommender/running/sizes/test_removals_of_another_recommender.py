"""Two recommenders of one cluster, such as two releases, remove nodes of different groups."""

from __future__ import annotations

from recommender.outputs.scale_results import ScaleResult
from tests.recommender.running.sizes.provider_harness import ProviderHarness


def test_the_removal_of_another_recommender_is_left_to_it() -> None:
    harness = ProviderHarness()
    harness.api.add_pod("web", "n2")
    harness.resize(1, "n2")
    harness.owner, harness.stopped = "shop/tidewatch", "no recommendation nodes is configured"
    harness.begin()
    assert harness.resize(1, "n2").result is ScaleResult.REFUSED
    harness.later(300)
    assert (harness.is_cordoned("n2"), harness.api.evicted, harness.events) == (True, [], [])


def test_a_removal_of_a_clock_that_is_ahead_is_left_to_its_recommender_for_an_hour_too() -> None:
    harness = ProviderHarness()
    harness.now += 2 * 86_400.0
    harness.resize(1, "n2")
    harness.now -= 2 * 86_400.0
    harness.owner, harness.stopped = "shop/tidewatch", "no recommendation nodes is configured"
    harness.begin()
    harness.later(3500)
    assert harness.is_cordoned("n2")
    harness.later(200)
    assert (harness.is_usable("n2"), harness.group.changes) == (True, [])


def test_a_node_is_usable_again_an_hour_after_its_recommender_has_gone() -> None:
    harness = ProviderHarness()
    harness.resize(1, "n2")
    harness.owner, harness.stopped = "shop/tidewatch", "no recommendation nodes is configured"
    harness.begin()
    harness.now += 3600.0
    harness.later(2)
    assert (harness.is_usable("n2"), harness.group.changes) == (True, [])
