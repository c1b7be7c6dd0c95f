"""Drained nodes wait for programs that delay the deletion of their machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from recommender.cluster_size.node_groups.protocol import OutcomeUnknownError, ProviderInstance
from recommender.running.sizes.removal_marks import unmarked_node
from tests.recommender.running.sizes.provider_harness import ProviderHarness

if TYPE_CHECKING:
    from collections.abc import Callable

DELAY: Final = "delay-deletion.cluster-autoscaler.kubernetes.io/storage"


def test_a_drained_node_waits_for_programs_that_delay_its_deletion() -> None:
    harness = ProviderHarness()
    harness.api.add_pod("web", "n2")
    harness.api.nodes["n2"]["metadata"]["annotations"][DELAY] = "yes"
    harness.resize(1, "n2")
    harness.later(100)
    assert (harness.is_cordoned("n2"), harness.api.evicted, harness.group.changes) == (True, ["web"], [])
    del harness.api.nodes["n2"]["metadata"]["annotations"][DELAY]
    harness.later(2)
    assert harness.group.changes == [("delete", ["n2"])]


def test_an_annotation_delays_a_deletion_for_two_minutes_after_the_last_pod() -> None:
    harness = ProviderHarness()
    harness.api.lingers = True
    harness.api.add_pod("web", "n2")
    harness.api.nodes["n2"]["metadata"]["annotations"][DELAY] = "yes"
    harness.resize(1, "n2")
    harness.later(60)
    harness.api.pods.clear()
    harness.later(115)
    assert harness.group.changes == []
    harness.later(10)
    assert harness.group.changes == [("delete", ["n2"])]


def test_a_node_that_is_removed_again_is_waited_for_again() -> None:
    harness = ProviderHarness()
    harness.api.nodes["n2"]["metadata"]["annotations"][DELAY] = "yes"
    harness.resize(1, "n2")
    harness.later(100)
    # Another process has given the node back and marked it again before this one looks at it.
    harness.api.nodes["n2"] = unmarked_node(harness.api.nodes["n2"], harness.now)
    harness.now += 10
    harness.resize(1, "n2")
    harness.later(115)
    assert (harness.is_cordoned("n2"), harness.group.changes) == (True, [])
    harness.later(15)
    assert harness.group.changes == [("delete", ["n2"])]


def test_a_node_that_took_as_long_as_it_may_to_drain_still_waits_for_its_provider() -> None:
    harness = ProviderHarness()
    harness.api.lingers = True
    harness.api.add_pod("web", "n2")
    harness.api.nodes["n2"]["metadata"]["annotations"][DELAY] = "yes"
    harness.resize(1, "n2")
    harness.later(735)
    harness.api.pods.clear()
    harness.group.answers |= {"min_size": 1, "nodes": [ProviderInstance("x:///2")]}
    harness.later(180)
    assert (harness.is_cordoned("n2"), harness.group.changes) == (True, [])
    del harness.group.answers["nodes"]
    harness.later(2)
    assert harness.group.changes == [("delete", ["n2"])]


@pytest.mark.parametrize("drained_after", [0, 735])
def test_a_drained_node_does_not_wait_for_its_provider_for_ever(drained_after: int) -> None:
    harness = ProviderHarness()
    harness.api.lingers = True
    harness.api.add_pod("web", "n2")
    harness.resize(1, "n2")
    harness.later(drained_after)
    harness.api.pods.clear()
    harness.group.answers |= {"min_size": 1, "nodes": [ProviderInstance("x:///2")]}
    harness.later(1200 - drained_after)
    assert (harness.is_usable("n2"), harness.group.changes) == (True, [])


def _fail() -> None:
    raise ValueError("the cloud is away")


def _lose_the_provider(harness: ProviderHarness) -> None:
    harness.provider.on_refresh = _fail


def _lose_the_group(harness: ProviderHarness) -> None:
    harness.group.answers["target_size"] = _fail


FAULTS: Final = pytest.mark.parametrize("lose", [_lose_the_provider, _lose_the_group], ids=["provider", "group"])


@FAULTS
def test_a_drained_node_waits_while_its_group_cannot_be_read(lose: Callable[[ProviderHarness], None]) -> None:
    harness = ProviderHarness()
    harness.resize(1, "n2")
    lose(harness)
    harness.later(30)
    assert (harness.is_cordoned("n2"), harness.group.changes) == (True, [])
    harness.provider.on_refresh = lambda: None
    harness.group.answers.clear()
    harness.later(2)
    assert harness.group.changes == [("delete", ["n2"])]


@FAULTS
def test_a_deletion_is_not_announced_while_nothing_shows_it(lose: Callable[[ProviderHarness], None]) -> None:
    harness = ProviderHarness()

    def unanswered() -> None:
        lose(harness)
        raise OutcomeUnknownError("no answer")

    harness.group.on_change = unanswered
    harness.resize(1, "n2")
    harness.later(60)
    assert (harness.group.changes, harness.is_cordoned("n2")) == ([("delete", ["n2"])], True)
    assert harness.events == []
