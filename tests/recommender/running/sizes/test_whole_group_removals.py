"""Groups that have either no node or all of them lose all of them or none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from recommender.outputs.scale_results import ScaleResult
from recommender.running.sizes.machine_deletion import DeletionProblem, MachineDeletion
from recommender.running.sizes.removal_marks import mark_of, marked_node
from tests.recommender.running.sizes.provider_harness import ProviderHarness

if TYPE_CHECKING:
    import pytest


def test_no_node_of_a_group_that_goes_as_a_whole_is_deleted_before_all_are_drained() -> None:
    harness = ProviderHarness()
    harness.api.lingers = True
    harness.api.add_pod("web", "n1")
    assert harness.resize(0, "n1", "n2", whole=2).result is ScaleResult.OK
    harness.later(300)
    assert (harness.is_cordoned("n2"), harness.group.changes) == (True, [])
    harness.api.pods.clear()
    harness.later(3)
    assert harness.group.changes == [("delete", ["n1"]), ("delete", ["n2"])]


def test_if_one_node_of_a_group_that_goes_as_a_whole_stays_all_do() -> None:
    harness = ProviderHarness()
    harness.api.add_pod("web", "n1")
    harness.api.budget = {"web"}
    harness.resize(0, "n1", "n2", whole=2)
    harness.later(140)
    assert (harness.is_usable("n1"), harness.is_usable("n2"), harness.group.changes) == (True, True, [])
    assert "the group small goes as a whole" in harness.events[-1].message


def test_a_group_that_goes_as_a_whole_stays_if_not_all_of_its_nodes_could_be_marked() -> None:
    harness = ProviderHarness()
    harness.resize(0, "n2", whole=2)
    harness.later(50)
    assert (harness.is_cordoned("n2"), harness.group.changes) == (True, [])
    harness.later(20)
    assert (harness.is_usable("n2"), harness.group.changes) == (True, [])


def test_a_group_stays_as_a_whole_if_a_pod_that_tolerates_its_removal_must_not_be_moved() -> None:
    harness = ProviderHarness()
    harness.api.lingers = True
    harness.api.add_pod("web", "n2")
    harness.resize(0, "n1", "n2", whole=2)
    harness.later(10)
    harness.api.pods.clear()
    harness.api.add_pod("alone", "n1", owner="")
    harness.api.pods["alone"]["spec"]["tolerations"] = [{"operator": "Exists"}]
    harness.later(100)
    assert (harness.is_usable("n1"), harness.is_usable("n2"), harness.group.changes) == (True, True, [])


def test_a_group_stays_as_a_whole_if_its_deletion_could_not_begin_for_long() -> None:
    harness = ProviderHarness()
    harness.resize(0, "n1", "n2", whole=2)
    # No recommender was there.
    harness.begin()
    harness.now += 2000.0
    harness.later(2)
    assert (harness.is_usable("n1"), harness.is_usable("n2"), harness.group.changes) == (True, True, [])
    assert "it could not be deleted within 2001 s" in harness.events[0].message


def test_another_process_continues_the_removal_of_a_group_as_a_whole() -> None:
    harness = ProviderHarness()
    harness.api.lingers = True
    harness.api.add_pod("web", "n1")
    harness.resize(0, "n1", "n2", whole=2)
    harness.later(30)
    harness.begin()
    harness.later(10)
    assert harness.group.changes == []
    harness.api.pods.clear()
    harness.later(5)
    assert sorted(harness.group.changes) == [("delete", ["n1"]), ("delete", ["n2"])]


def test_another_process_continues_the_deletion_of_a_group_as_a_whole() -> None:
    harness = ProviderHarness()
    harness.resize(0, "n1", "n2", whole=2)

    def die() -> None:
        harness.permits = False

    harness.group.on_change = die
    harness.later(10)
    assert harness.group.changes == [("delete", ["n2"])]
    harness.group.on_change, harness.permits = lambda: None, True
    harness.begin()
    harness.later(30)
    del harness.api.nodes["n2"]
    harness.later(300)
    assert harness.group.changes == [("delete", ["n2"]), ("delete", ["n1"])]


def test_the_removal_of_another_group_does_not_count_for_a_group_that_goes_as_a_whole() -> None:
    harness = ProviderHarness()
    harness.resize(0, "n2", whole=2)
    mark = mark_of(harness.api.nodes["n2"])
    assert mark is not None
    harness.api.nodes["n1"] = marked_node(harness.api.nodes["n1"], msgspec.structs.replace(mark, group="large"))
    harness.later(70)
    assert (harness.is_usable("n2"), harness.group.changes) == (True, [])


def test_a_group_whose_deletion_has_begun_goes_as_a_whole_however_slow_its_provider_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    harness = ProviderHarness()
    harness.resize(0, "n1", "n2", whole=2)
    delete = MachineDeletion.delete

    def slow(*arguments: Any) -> DeletionProblem:  # noqa: ANN401 - passed on as they are
        harness.now += 1200.0
        return delete(*arguments)

    monkeypatch.setattr(MachineDeletion, "delete", slow)
    harness.later(10)
    assert sorted(harness.group.changes) == [("delete", ["n1"]), ("delete", ["n2"])]


def test_a_group_that_goes_as_a_whole_stays_if_its_deletion_has_not_begun_within_a_long_time() -> None:
    harness = ProviderHarness()
    harness.resize(0, "n1", "n2", whole=2)
    harness.later(1)
    assert (harness.is_cordoned("n1"), harness.is_cordoned("n2")) == (True, True)
    harness.now += 3 * 3600.0
    harness.later(20)
    assert (harness.is_usable("n1"), harness.is_usable("n2"), harness.group.changes) == (True, True, [])
    assert "it could not be deleted within" in harness.events[-1].message
