from __future__ import annotations

import ast
import sys
import threading
from dataclasses import replace
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from recommender.cluster_size.node_groups.contract import BrokenContractError, check_provider, check_writes
from recommender.cluster_size.node_groups.protocol import InstanceState, OutcomeUnknownError, ProviderInstance
from recommender.kinds.cluster_size.model.groups import GroupOptions
from recommender.kinds.cluster_size.model.size_settings import NodeGroupSources, PluginGroups
from recommender.kinds.cluster_size.node_groups import plugin_host
from recommender.kinds.cluster_size.node_groups.discover import node_groups
from recommender.kinds.cluster_size.node_groups.plugin_host import (
    PluginHost,
    PluginMissingError,
    ProviderUnreachableError,
    load_provider,
)
from recommender.kinds.cluster_size.node_groups.plugin_reading import MOST_GROUPS, PluginError
from tests.recommender.kinds.cluster_size.builders import node
from tests.recommender.kinds.cluster_size.node_groups import example_provider
from tests.recommender.kinds.cluster_size.node_groups.cluster_api_objects import state
from tests.recommender.kinds.cluster_size.node_groups.example_provider import (
    ExampleGroup,
    ExampleProvider,
    example,
    raising,
)
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from recommender.kinds.cluster_size.model.groups import NodeGroups
    from recommender.kinds.cluster_size.node_groups.plugin_reading import PluginReading

SETTINGS = PluginGroups("example", {"region": "test"})
NODES = (node("n1", provider_id="x:///1"), node("n2", provider_id="x:///2"), node("n3"))


def read(provider: ExampleProvider) -> PluginReading:
    return PluginHost(SETTINGS, load=lambda _: provider).read(NODES)


def groups_of(reading: PluginReading) -> NodeGroups:
    return node_groups(NodeGroupSources(plugin=SETTINGS), state(nodes=NODES), 1000.0, (reading,))


def test_a_plugin_imports_only_the_stable_protocol_module() -> None:
    source = Path(example_provider.__file__).read_text()
    modules = {node.module for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)}

    assert {module for module in modules if (module or "").startswith("recommender")} == {
        "recommender.cluster_size.node_groups.protocol"
    }


def test_a_plugin_provides_groups_and_the_group_of_each_node() -> None:
    provider = example()
    provider.groups[0].answers["nodes"] = [
        ProviderInstance("x:///1"),
        ProviderInstance("x:///2", InstanceState.DELETING),
        ProviderInstance("x:///3", InstanceState.CREATING),
    ]
    provider.groups[0].answers |= {"target_size": 3, "options": GroupOptions(unneeded_seconds=5.0)}
    found = groups_of(read(provider))
    large, small = found.groups
    assert (small.name, small.nodes, small.target_size, small.max_size) == ("small", ("n1", "n2"), 3, 5)
    assert (small.deleting, small.price, small.options.unneeded_seconds) == (("n2",), 0.1, 5.0)
    assert small.scalable is None
    assert large.template is not None
    assert str(large.template.node.allocatable["cpu"]) == "3920m"
    assert str(large.template.node.capacity["cpu"]) == "4"
    assert large.template.node.labels["pool"] == "small"
    assert found.group_of == {"n1": "small", "n2": "small"}
    assert provider.refreshes == 1


def test_a_plugin_that_raises_is_reported_and_has_no_groups() -> None:
    provider = example()
    provider.on_refresh = raising
    found = groups_of(read(provider))
    assert found.groups == ()
    assert found.problems == ("the node groups of the plugin example are left out: RuntimeError: no credentials",)


def test_a_group_without_a_name_excludes_the_plugin() -> None:
    provider = example()
    provider.groups[1].answers["id"] = raising
    assert read(provider).problem == "RuntimeError: no credentials"


@pytest.mark.parametrize("method", ["min_size", "nodes", "template", "price", "options", "target_size"])
def test_only_the_group_whose_method_raises_is_left_out(method: str) -> None:
    provider = example()
    provider.groups[1].answers[method] = raising
    found = read(provider)
    assert found.problem == ""
    assert [each.problem for each in found.groups] == ["", "RuntimeError: no credentials"]


def test_only_groups_with_the_same_name_are_left_out() -> None:
    found = read(ExampleProvider([ExampleGroup("a"), ExampleGroup("b"), ExampleGroup("a")]))
    assert {each.name: each.problem for each in found.groups} == {"a": "two groups have this id", "b": ""}


def test_a_plugin_that_hangs_is_left_out_without_a_second_call() -> None:
    released, entered = threading.Event(), threading.Event()
    provider = example()

    def hang() -> None:
        entered.set()
        released.wait(30.0)

    provider.on_refresh = hang
    host = PluginHost(SETTINGS, seconds=0.01, load=lambda _: provider, clock=lambda: 100.0)
    assert host.read(NODES).problem == "it has not answered within 0.01 s"
    assert entered.wait(30.0)
    assert host.read(NODES).problem == "its call that began 0 s ago has not ended"
    assert provider.refreshes == 1
    host.close()
    assert not provider.closed, "nothing else is called while a call hangs"
    released.set()
    for thread in threading.enumerate():
        if thread.name == "node group plugin":
            thread.join(30.0)
    provider.on_refresh = lambda: None
    assert PluginHost(SETTINGS, load=lambda _: provider).read(NODES).problem == ""
    host.close()
    assert provider.closed


def test_a_plugin_that_is_closed_during_a_call_is_closed_when_the_call_ends() -> None:
    released = threading.Event()
    provider = example()
    provider.on_refresh = lambda: (released.wait(30.0), None)[1]
    host = PluginHost(SETTINGS, seconds=0.01, load=lambda _: provider)
    host.read(NODES)
    host.close()
    assert not provider.closed
    released.set()
    until(lambda: provider.closed)


def vanish(provider: ExampleProvider) -> None:
    del provider.groups[0]


def state_the_impossible(provider: ExampleProvider) -> None:
    provider.groups[0].answers["target_size"] = -1


@pytest.mark.parametrize(
    ("fail", "why"),
    [
        (vanish, "it is not among the groups that the provider lists"),
        (state_the_impossible, "target_size() returns -1"),
    ],
)
def test_a_single_failing_group_keeps_its_last_answer_for_a_minute(
    fail: Callable[[ExampleProvider], None], why: str
) -> None:
    now = [0.0]
    provider = example()
    host = PluginHost(SETTINGS, load=lambda _: provider, clock=lambda: now[0])
    before = groups_of(host.read(NODES))
    fail(provider)
    for now[0] in (10.0, 59.0):
        kept = host.read(NODES)
        assert groups_of(kept).groups == before.groups
        assert groups_of(kept).group_of == before.group_of
        assert [each for each in groups_of(kept).problems if why in each] == [
            f"small of the plugin example counts with its last answer: {why}"
            + (": it must be a whole number of at least 0" if "returns" in why else "")
        ]
    now[0] = 61.0
    assert "small" not in {group.name for group in groups_of(host.read(NODES)).groups if not group.problem}


def test_a_node_that_moved_to_another_group_is_not_kept_in_the_failing_group() -> None:
    provider = example()
    host = PluginHost(SETTINGS, load=lambda _: provider, clock=lambda: 0.0)
    host.read(NODES)
    provider.groups[0].answers["target_size"] = -1
    provider.groups[1].machines, provider.groups[0].machines = ["x:///1"], []
    assert host.read(NODES).group_of == {"n1": "large", "n2": "small"}


def test_a_failing_group_whose_nodes_all_moved_to_another_group_is_not_kept() -> None:
    provider = example()
    host = PluginHost(SETTINGS, load=lambda _: provider, clock=lambda: 0.0)
    names = [group.name for group in host.read(NODES).groups]
    assert "small" in names
    provider.groups[0].name = "renamed"
    found = host.read(NODES)
    assert {group.name for group in found.groups} == {"renamed", *names} - {"small"}
    assert found.kept == {}


def test_the_last_answer_does_not_count_for_longer_than_inputs_may_be_old() -> None:
    now = 0.0
    provider = example()
    host = PluginHost(SETTINGS, load=lambda _: provider, clock=lambda: now)
    host.read(NODES)
    provider.on_refresh = raising
    now = 31.0
    assert host.read(NODES, kept_seconds=30.0).problem == "RuntimeError: no credentials"
    assert host.read(NODES, kept_seconds=300.0).kept_because == "RuntimeError: no credentials"


def test_the_age_of_a_late_answer_counts_against_the_minute_it_is_kept() -> None:
    """The age is that of a group that hangs, whose provider reads it in the background."""
    now = 0.0
    provider = example()
    provider.groups[0].answers["age_seconds"] = 20.0
    host = PluginHost(SETTINGS, load=lambda _: provider, clock=lambda: now)
    assert len(host.read(NODES).groups) == 2
    provider.on_refresh = raising
    now = 41.0
    assert [group.name for group in host.read(NODES).groups] == ["large"]


def test_a_late_answer_of_a_hanging_provider_is_as_old_as_its_request() -> None:
    now = 0.0
    released, hung = threading.Event(), threading.Event()
    provider = example()

    def hang() -> None:
        hung.set()
        released.wait(30.0)

    host = PluginHost(SETTINGS, seconds=0.01, load=lambda _: provider, clock=lambda: now)
    provider.on_refresh = hang
    assert host.read(NODES).problem
    assert hung.wait(30.0)
    now = 70.0
    released.set()
    for thread in threading.enumerate():
        if thread.name == "node group plugin":
            thread.join(30.0)
    provider.on_refresh = raising
    until(lambda: host.read(NODES).problem == "RuntimeError: no credentials")


BROKEN: list[tuple[str, object, str]] = [
    ("min_size", -1, "min_size() returns -1"),
    ("min_size", 9, "max_size() returns 5, which is less than min_size(), 9"),
    ("max_size", 2.5, "max_size() returns 2.5"),
    ("target_size", True, "target_size() returns True"),
    ("target_size", None, "target_size() returns None"),
    ("nodes", ["x:///1"], "nodes() lists 'x:///1'"),
    ("nodes", None, "nodes() returns NoneType"),
    ("nodes", [ProviderInstance("")], "the provider id ''"),
    ("nodes", [ProviderInstance("a", "running")], "each must be a ProviderInstance with a state"),  # type: ignore[arg-type]
    ("nodes", [ProviderInstance("a"), ProviderInstance("a")], "the provider id 'a' twice"),
    ("template", "node", "template() returns str"),
    ("template", {"status": {"capacity": {"cpu": "many"}}}, "template() does not return a Node"),
    ("template", {"status": {"capacity": {"cpu": "4"}}}, "without cpu or memory"),
    ("template", {"status": 3}, "template() does not return a Node"),
    ("price", float("nan"), "price() returns nan"),
    ("price", "cheap", "price() returns 'cheap'"),
    ("price", 10**400, "it must be a number of at least 0"),
    ("nodes", [ProviderInstance(7)], "the provider id 7: it must be a string"),  # type: ignore[arg-type]
    ("nodes", [ProviderInstance("a", error=None)], "nodes() states the error None of a"),  # type: ignore[arg-type]
    ("options", {}, "options() returns dict"),
    ("options", GroupOptions(utilization_threshold_ratio=50.0), "utilization_threshold_ratio=50.0"),
    ("options", GroupOptions(gpu_utilization_threshold_ratio=float("nan")), "gpu_utilization_threshold_ratio=nan"),
    ("options", GroupOptions(unneeded_seconds=-1.0), "unneeded_seconds=-1.0: it must be a number of at least 0"),
    ("options", GroupOptions(unready_seconds=float("inf")), "unready_seconds=inf"),
    ("options", GroupOptions(max_node_provision_seconds="15m"), "max_node_provision_seconds='15m'"),  # type: ignore[arg-type]
    ("options", GroupOptions(zero_or_max=1), "zero_or_max=1: it must be True or False"),  # type: ignore[arg-type]
    ("gpu_label", None, "gpu_label() returns None: it must be a string"),
    ("gpu_label", ["gpu"], "gpu_label() returns ['gpu']"),
    ("age_seconds", -1.0, "age_seconds() returns -1.0: it must be a number of at least 0"),
    ("age_seconds", float("nan"), "age_seconds() returns nan"),
]


@pytest.mark.parametrize(("method", "answer", "problem"), BROKEN)
def test_only_the_group_with_an_invalid_value_is_left_out(method: str, answer: object, problem: str) -> None:
    provider = ExampleProvider([ExampleGroup("small", ["x:///1"]), ExampleGroup("large", answers={method: answer})])
    large, small = groups_of(read(provider)).groups
    assert problem in large.problem
    assert small.problem == ""
    with pytest.raises(BrokenContractError) as raised:
        check_provider(provider)
    assert any(problem in failure for failure in raised.value.failures)


def test_a_plugin_that_lists_too_many_groups_is_reported() -> None:
    reading = read(ExampleProvider([ExampleGroup(f"g{number}") for number in range(MOST_GROUPS + 1)]))
    assert reading.problem == "it lists 5001 node groups, and at most 5000 can be read: let it list fewer"


def test_a_change_that_ends_its_thread_has_an_unknown_outcome() -> None:
    provider = example()
    provider.groups[0].on_change = lambda: sys.exit(1)
    host = PluginHost(SETTINGS, load=lambda _: provider)
    with pytest.raises(OutcomeUnknownError, match="the plugin has ended its thread"):
        host.change("small", lambda group: group.increase_size(1))
    provider.on_refresh = lambda: sys.exit(1)
    with pytest.raises(ProviderUnreachableError, match="the plugin has ended its thread"):
        host.look("small")


class ReadOnly:
    """A group with the interface that plugins had before groups could be written."""

    def __init__(self, group: ExampleGroup) -> None:
        self.machines = group.machines
        for name in ("id", "min_size", "max_size", "target_size", "nodes", "template", "price", "options"):
            setattr(self, name, getattr(group, name))


def test_a_group_without_write_methods_is_read_but_not_written() -> None:
    provider = example()
    provider.groups = [ReadOnly(provider.groups[0])]  # type: ignore[list-item]
    stated = read(provider)
    sources = NodeGroupSources(plugin=replace(SETTINGS, writes=True))
    found = node_groups(sources, state(nodes=NODES), 1000.0, (stated,))
    assert (found.groups[0].problem, found.groups[0].is_writable) == ("", False)
    assert "small of the plugin example cannot be written" in found.problems[0]
    with pytest.raises(PluginError, match="lacks increase_size"):
        PluginHost(SETTINGS, load=lambda _: provider).change("small", lambda group: group.increase_size(1))
    with pytest.raises(BrokenContractError, match="or it lacks"):
        check_writes(provider, "small")


def made(options: Mapping[str, object]) -> ExampleProvider:
    assert options == {"region": "test"}
    return example()


def test_a_plugin_is_found_by_its_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint("example", f"{__name__}:made", "tidewatch.node_groups")
    monkeypatch.setattr(plugin_host, "entry_points", lambda group: EntryPoints((entry,)).select(group=group))
    assert len(load_provider(SETTINGS).node_groups()) == 2
    with pytest.raises(PluginMissingError, match=r"no package with an entry point 'other' .* .installed: example"):
        load_provider(PluginGroups("other"))
    host = PluginHost(PluginGroups("other"))
    assert host.read(()).problem.startswith("no package")
