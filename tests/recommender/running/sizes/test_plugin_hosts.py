"""Each recommendation has the plugin that its settings name, as long as they name it."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints
from typing import TYPE_CHECKING, Final

import pytest

from adapter.foundation.cluster.values.state import ClusterState, Unknown
from recommender.kinds.cluster_size.model.size_settings import NodeGroupSources, PluginGroups
from recommender.kinds.cluster_size.node_groups import plugin_host
from recommender.kinds.cluster_size.node_groups.plugin_host import ProviderUnreachableError
from recommender.kinds.cluster_size.node_groups.protocol import ENTRY_POINTS
from recommender.running.sizes.plugin_hosts import PluginHosts
from tests.recommender.kinds.cluster_size.builders import node
from tests.recommender.kinds.cluster_size.node_groups.cluster_api_objects import state
from tests.recommender.kinds.cluster_size.node_groups.example_provider import ExampleProvider, example

if TYPE_CHECKING:
    from collections.abc import Mapping

    Started = list[tuple[Mapping[str, object], ExampleProvider]]

NORTH: Final = NodeGroupSources(plugin=PluginGroups("example", {"region": "north"}))
SOUTH: Final = NodeGroupSources(plugin=PluginGroups("example", {"region": "south"}))
WITHOUT: Final = NodeGroupSources()
CLUSTER: Final = state(nodes=(node("n1", provider_id="x:///1"), node("n2", provider_id="x:///2"), node("n3")))
STARTED: Final[Started] = []


def start(options: Mapping[str, object]) -> ExampleProvider:
    """Start a provider as a package's entry point does."""
    STARTED.append((options, provider := example()))
    return provider


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    entry = EntryPoint("example", f"{__name__}:start", ENTRY_POINTS)
    monkeypatch.setattr(plugin_host, "entry_points", lambda group: EntryPoints((entry,)).select(group=group))
    STARTED.clear()
    return STARTED


def test_a_recommendation_keeps_its_plugin_and_does_not_share_it(
    started: Started,
) -> None:
    hosts = PluginHosts()
    readings = [
        hosts.read(name, sources, CLUSTER, 60.0)[0] for name, sources in (("a", NORTH), ("b", SOUTH), ("a", NORTH))
    ]
    assert [(options["region"], provider.refreshes) for options, provider in started] == [("north", 2), ("south", 1)]
    assert all(reading.problem == "" for reading in readings)


def test_changed_settings_close_the_plugin_and_start_another_one(
    started: Started,
) -> None:
    hosts = PluginHosts()
    hosts.read("a", NORTH, CLUSTER, 60.0)
    hosts.read("b", NORTH, CLUSTER, 60.0)
    hosts.read("a", SOUTH, CLUSTER, 60.0)
    assert [(options["region"], provider.closed) for options, provider in started] == [
        ("north", True),
        ("north", False),
        ("south", False),
    ]


def test_a_plugin_is_closed_once_its_recommendation_no_longer_names_it(
    started: Started,
) -> None:
    hosts = PluginHosts()
    assert hosts.read("a", WITHOUT, CLUSTER, 60.0) == ()
    assert started == []
    hosts.read("a", NORTH, CLUSTER, 60.0)
    assert hosts.read("a", WITHOUT, CLUSTER, 60.0) == ()
    assert [provider.closed for _, provider in started] == [True]
    hosts.close()
    assert [provider.refreshes for _, provider in started] == [1]


def test_the_plugins_of_removed_recommendations_are_closed(started: Started) -> None:
    hosts = PluginHosts()
    hosts.read("a", NORTH, CLUSTER, 60.0)
    hosts.read("b", SOUTH, CLUSTER, 60.0)
    hosts.keep({"b"})
    assert [(options["region"], provider.closed) for options, provider in started] == [
        ("north", True),
        ("south", False),
    ]


def test_all_plugins_are_closed_at_the_end(started: Started) -> None:
    hosts = PluginHosts()
    hosts.read("a", NORTH, CLUSTER, 60.0)
    hosts.read("b", SOUTH, CLUSTER, 60.0)
    hosts.close()
    assert [provider.closed for _, provider in started] == [True, True]


@pytest.mark.usefixtures("started")
def test_a_plugin_is_read_while_nodes_are_unknown_and_claims_none_of_them() -> None:
    unknown = ClusterState(nodes=Unknown("the API server has not answered yet"))
    (reading,) = PluginHosts().read("a", NORTH, unknown, 60.0)
    assert ([group.name for group in reading.groups], reading.group_of) == (["small", "large"], {})


def test_a_provider_that_a_process_has_not_asked_yet_cannot_be_reached() -> None:
    hosts = PluginHosts()
    with pytest.raises(ProviderUnreachableError, match="has not been asked yet"):
        hosts.look("a", "plugin/example", "small")
    with pytest.raises(ProviderUnreachableError, match="has not been asked yet"):
        hosts.change("a", "plugin/example", "small", lambda group: group.increase_size(1))
