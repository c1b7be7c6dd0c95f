"""The contract of node group plugins: what `check_provider` and `check_writes` accept and name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from recommender.cluster_size.node_groups.contract import BrokenContractError, check_provider, check_writes
from recommender.cluster_size.node_groups.protocol import InstanceState, ProviderInstance
from tests.recommender.kinds.cluster_size.node_groups.example_provider import (
    ExampleGroup,
    ExampleProvider,
    example,
    raising,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def test_the_example_fulfils_the_contract() -> None:
    provider = example()
    check_provider(provider)
    assert provider.closed


def _changing_ids() -> ExampleProvider:
    provider = example()
    provider.on_refresh = lambda: setattr(provider.groups[0], "name", f"small-{provider.refreshes}")
    return provider


def _unknown_machine() -> ExampleProvider:
    provider = example()
    provider.groups[0].machines.append("tidewatch-contract:///no-such-machine")
    return provider


def _unassigned_machine() -> ExampleProvider:
    provider = example()
    provider.groups[1].answers["nodes"] = [ProviderInstance("x:///7")]
    return provider


@pytest.mark.parametrize(
    ("provider", "failure"),
    [
        (ExampleProvider([ExampleGroup("a"), ExampleGroup("a")]), "node_groups(): an id is listed twice"),
        (ExampleProvider([ExampleGroup("")]), "node_groups() raises PluginError: id() returns ''"),
        (ExampleProvider([ExampleGroup("a", ["m"]), ExampleGroup("b", ["m"])]), "nodes(): m is in a and in b"),
        (ExampleProvider([], on_refresh=raising), "refresh() raises RuntimeError: no credentials"),
        (_changing_ids(), "node_groups(): the ids change from"),
        (_unknown_machine(), "belongs to no group, but the method returns small"),
        (_unassigned_machine(), "x:///7 belongs to group large, but the method returns None"),
    ],
    ids=["ids", "empty", "shared-machine", "raises", "changing", "unknown-machine", "unassigned-machine"],
)
def test_violations_of_the_contract_by_a_provider_are_reported(provider: ExampleProvider, failure: str) -> None:
    with pytest.raises(BrokenContractError) as raised:
        check_provider(provider)
    assert any(failure in each for each in raised.value.failures), raised.value.failures


def test_the_example_fulfils_the_contract_of_writes() -> None:
    check_writes(example(), "small")


class StartingGroup(ExampleGroup):
    """A group that lists requested machines while they are being created, and can take these back."""

    def nodes(self) -> Sequence[ProviderInstance]:
        return [
            ProviderInstance(each, InstanceState.RUNNING if number < 2 else InstanceState.CREATING)
            for number, each in enumerate(self.machines)
        ]

    def decrease_target_size(self, delta: int) -> None:
        if delta >= 0 or self.target_size() + delta < 2:
            raise ValueError("only requested nodes can be taken back")
        del self.machines[delta:]


class DeletingGroup(StartingGroup):
    """A group that deletes running machines instead."""

    def decrease_target_size(self, delta: int) -> None:
        if delta >= 0:
            raise ValueError("the change must be negative")
        del self.machines[:-delta]


def test_only_machines_that_are_being_created_may_be_taken_back() -> None:
    check_writes(ExampleProvider([StartingGroup("small", ["x:///1", "x:///2"])]), "small")
    with pytest.raises(BrokenContractError, match="a machine was deleted, and only requested ones"):
        check_writes(ExampleProvider([DeletingGroup("small", ["x:///1", "x:///2"])]), "small")


def _quiet(_: int) -> None:
    """Do nothing."""


@pytest.mark.parametrize(
    ("method", "instead", "failure"),
    [
        ("increase_size", _quiet, "increase_size(2): the target size is 2 after 2"),
        ("decrease_target_size", _quiet, "decrease_target_size(1) was accepted"),
        ("delete_nodes", _quiet, "delete_nodes() was accepted"),
    ],
)
def test_violations_of_the_contract_by_a_write_are_reported(
    method: str, instead: Callable[[int], None], failure: str
) -> None:
    provider = example()
    setattr(provider.groups[0], method, instead)
    with pytest.raises(BrokenContractError) as raised:
        check_writes(provider, "small")
    assert any(failure in each for each in raised.value.failures), raised.value.failures
