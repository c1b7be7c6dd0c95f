"""The contract of the plugin protocol as a test for authors of plugins.

from recommender.kinds.cluster_size.node_groups.contract import check_provider

def test_the_provider_keeps_the_contract() -> None:
    check_provider(provider({"region": "test"}))
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from recommender.kinds.cluster_size.node_groups.plugin_reading import PluginGroup, group_id, read_alone, read_group
from recommender.kinds.cluster_size.node_groups.protocol import InstanceState, ProviderNode, WritableNodeGroup

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from recommender.kinds.cluster_size.node_groups.protocol import CloudProvider

_UNKNOWN_NODE = ProviderNode("no-such-node", "tidewatch-contract:///no-such-machine", {})


class BrokenContractError(AssertionError):
    """A provider breaks the contract; the message lists each point, one a line."""

    def __init__(self, failures: tuple[str, ...]) -> None:
        """`failures` name the method and what is wrong with it."""
        super().__init__(
            "the provider breaks the contract of its protocol:\n" + "\n".join(f"- {each}" for each in failures)
        )
        self.failures = failures


def check_provider(provider: CloudProvider) -> None:
    """Check a provider, which is refreshed twice and closed. Raises BrokenContractError with everything that is wrong.

    These points are checked: no method raises; ids are unique and stay the same; sizes are whole numbers in ascending
    order; prices, options and templates follow the protocol; no machine is in two groups; a Node with the provider id
    of a machine is assigned to the group of the machine; a node that the provider does not know is assigned to none.
    """
    failures = tuple(_failures(provider))
    if failures:
        raise BrokenContractError(failures)


def check_writes(provider: CloudProvider, group: str) -> None:
    """Check that the size of a group can be changed. Raises BrokenContractError with everything that is wrong.

    The check changes the group: use one that may grow by two, below its maximum and with machines that may be deleted.
    These points are checked: `increase_size` raises the target size by the difference; `decrease_target_size` lowers it
    without deleting a machine, or refuses; sizes beyond the limits, and machines of other groups, are refused;
    `delete_nodes` lowers the target size, and deletes only the named machine.
    """
    failures = tuple(_write_failures(provider, group))
    if failures:
        raise BrokenContractError(failures)


def _write_failures(provider: CloudProvider, name: str) -> Iterator[str]:
    before = _stated_group(provider, name)
    if before is None:
        yield f"there is no group {name!r}, or it lacks increase_size, decrease_target_size or delete_nodes"
        return
    yield from _raised_problem("increase_size(2)", lambda: _writable(provider, name).increase_size(2))
    after = _stated_group(provider, name)
    if after is None or after.target_size != before.target_size + 2:
        size = None if after is None else after.target_size
        yield f"increase_size(2): the target size is {size} after {before.target_size}"
        return
    for delta in (0, -1, after.max_size - after.target_size + 1):
        yield from _accepted_problem(f"increase_size({delta})", partial(_increase, provider, name, delta))
    yield from _accepted_problem("decrease_target_size(1)", lambda: _writable(provider, name).decrease_target_size(1))
    yield from _accepted_problem("delete_nodes()", lambda: _writable(provider, name).delete_nodes((_UNKNOWN_NODE,)))
    yield from _decrease_failures(provider, name, after)
    yield from _deletion_failures(provider, name)


def _decrease_failures(provider: CloudProvider, name: str, before: PluginGroup) -> Iterator[str]:
    try:
        _writable(provider, name).decrease_target_size(-1)
    except Exception:  # noqa: BLE001 - all machines have come, so it is right to refuse
        return
    after = _stated_group(provider, name)
    if after is None or after.target_size != before.target_size - 1:
        yield f"decrease_target_size(-1): the target size is not {before.target_size - 1} afterwards"
    elif not _running_machines(before) <= _running_machines(after):
        yield "decrease_target_size(-1): a machine was deleted, and only requested ones may be taken back"


def _deletion_failures(provider: CloudProvider, name: str) -> Iterator[str]:
    before = _stated_group(provider, name)
    machines = () if before is None else tuple(one for one in before.instances if one.state is InstanceState.RUNNING)
    if before is None or not machines or before.target_size <= before.min_size:
        return
    gone = ProviderNode("node-0", machines[0].provider_id, {})
    yield from _raised_problem("delete_nodes()", lambda: _writable(provider, name).delete_nodes((gone,)))
    after = _stated_group(provider, name)
    if after is None or after.target_size != before.target_size - 1:
        yield f"delete_nodes(): the target size is not {before.target_size - 1} after one of {before.target_size} went"
    left = set() if after is None else _staying_instances(after)
    if left != _staying_instances(before) - {gone.provider_id}:
        yield f"delete_nodes(): not {gone.provider_id} alone is gone afterwards"


def _staying_instances(group: PluginGroup) -> set[str]:
    return {each.provider_id for each in group.instances if each.state is not InstanceState.DELETING}


def _running_machines(group: PluginGroup) -> set[str]:
    return {each.provider_id for each in group.instances if each.state is InstanceState.RUNNING}


def _stated_group(provider: CloudProvider, name: str) -> PluginGroup | None:
    """Return the facts of a writable group after a refresh; None if there is none."""
    provider.refresh()
    found = next((each for each in provider.node_groups() if group_id(each) == name), None)
    return read_group(found) if isinstance(found, WritableNodeGroup) else None


def _writable(provider: CloudProvider, name: str) -> WritableNodeGroup:
    found = next(each for each in provider.node_groups() if group_id(each) == name)
    assert isinstance(found, WritableNodeGroup), "checked before"
    return found


def _increase(provider: CloudProvider, name: str, delta: int) -> None:
    _writable(provider, name).increase_size(delta)


def _accepted_problem(method: str, call: Callable[[], object]) -> Iterator[str]:
    try:
        call()
    except Exception:  # noqa: BLE001 - whatever it raises is a refusal
        return
    yield f"{method} was accepted, but must raise"


def _failures(provider: CloudProvider) -> Iterator[str]:
    groups: list[PluginGroup] = []
    ids: list[list[str]] = []
    for _ in range(2):
        yield from _raised_problem("refresh()", provider.refresh)
        groups.clear()
        yield from _raised_problem(
            "node_groups()", lambda: ids.append([group_id(each) for each in provider.node_groups()])
        )
    yield from _raised_problem("node_groups()", lambda: groups.extend(map(read_alone, provider.node_groups())))
    if len(ids) == 2 and sorted(ids[0]) != sorted(ids[1]):
        yield f"node_groups(): the ids change from {sorted(ids[0])} to {sorted(ids[1])} without a change of the cloud"
    if ids and len(set(ids[-1])) < len(ids[-1]):
        yield f"node_groups(): an id is listed twice: {sorted(ids[-1])}"
    yield from (f"group {each.name}: {each.problem}" for each in groups if each.problem)
    yield from _machine_failures(provider, groups)
    yield from _raised_problem("close()", provider.close)


def _machine_failures(provider: CloudProvider, groups: list[PluginGroup]) -> Iterator[str]:
    group_of: dict[str, str] = {}
    for group in groups:
        for machine in group.instances:
            if machine.provider_id in group_of:
                yield f"nodes(): {machine.provider_id} is in {group_of[machine.provider_id]} and in {group.name}"
            group_of.setdefault(machine.provider_id, group.name)
    for number, (provider_id, name) in enumerate(group_of.items()):
        yield from _wrong_owner(provider, ProviderNode(f"node-{number}", provider_id, {}), name)
    yield from _wrong_owner(provider, _UNKNOWN_NODE, None)


def _wrong_owner(provider: CloudProvider, node: ProviderNode, expected: str | None) -> Iterator[str]:
    found: list[str | None] = []

    def ask() -> None:
        owner = provider.node_group_for_node(node)
        found.append(None if owner is None else group_id(owner))

    yield from _raised_problem("node_group_for_node()", ask)
    if found and found[0] != expected:
        where = "no group" if expected is None else f"group {expected}"
        yield f"node_group_for_node(): {node.provider_id} belongs to {where}, but the method returns {found[0]}"


def _raised_problem(method: str, call: Callable[[], object]) -> Iterator[str]:
    try:
        call()
    except Exception as error:  # noqa: BLE001 - likewise
        yield f"{method} raises {type(error).__name__}: {error}"
