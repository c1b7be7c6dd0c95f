"""How the labels of a series name its node."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.foundation.cluster.values.state import NodeAddress
from adapter.nodes.model.loads import LoadResource
from adapter.nodes.names.mapping import series_mapper, unmapped_series
from adapter.nodes.names.matching import canonical_address, names_of, without_port
from tests.adapter.nodes.names.cluster_nodes import cluster_node, internal

if TYPE_CHECKING:
    from random import Random

    from adapter.foundation.cluster.values.state import ClusterNode
    from adapter.nodes.model.scheduling_settings import NodeMatch

NODES = (
    cluster_node("worker-1", internal("10.0.0.1"), internal("fd00::1"), hostname="worker-1.example.com"),
    cluster_node("ip-10-0-0-2.ec2.internal", internal("10.0.0.2"), NodeAddress("Hostname", "alias-2")),
    cluster_node("db.a.example", internal("10.0.0.3"), NodeAddress("ExternalIP", "192.0.2.9")),
    cluster_node("db.b.example", internal("10.0.0.4"), NodeAddress("ExternalIP", "192.0.2.9")),
    cluster_node("10.0.0.5", internal("10.9.9.9")),
)


@pytest.mark.parametrize(
    ("instance", "node"),
    [
        ("worker-1", "worker-1"),
        ("worker-1:9100", "worker-1"),
        ("WORKER-1:9100", "worker-1"),
        ("http://worker-1:9100/metrics", "worker-1"),
        ("worker-1.example.com:9100", "worker-1"),
        ("worker-1.other.org:9100", "worker-1"),
        ("10.0.0.1:9100", "worker-1"),
        ("[fd00::1]:9100", "worker-1"),
        ("[fd00:0:0::0001]:9100", "worker-1"),
        ("fd00::1", "worker-1"),
        ("[::ffff:10.0.0.1]:9100", "worker-1"),
        ("ip-10-0-0-2", "ip-10-0-0-2.ec2.internal"),
        ("alias-2:9100", "ip-10-0-0-2.ec2.internal"),
        ("10.0.0.5:9100", "10.0.0.5"),
        ("db.a.example:9100", "db.a.example"),
        ("db:9100", ""),
        ("db.c.example", ""),
        ("192.0.2.9:9100", ""),
        ("10.0.0.99:9100", ""),
        ("unknown", ""),
        ("", ""),
    ],
)
def test_an_instance_is_mapped_by_name_address_or_host_name(instance: str, node: str) -> None:
    assert series_mapper(NODES, "auto").node_of({"instance": instance}) == node


@pytest.mark.parametrize(
    ("labels", "node"),
    [
        ({"instance": "10.244.1.7:9400", "Hostname": "worker-1"}, "worker-1"),
        ({"instance": "10.244.1.7:9100", "node": "worker-1"}, "worker-1"),
        ({"instance": "10.244.1.7:9100", "kubernetes_node": "db.b.example"}, "db.b.example"),
        ({"instance": "10.244.1.7:9100", "nodename": "worker-1.example.com"}, "worker-1"),
        ({"instance": "10.0.0.3:9100", "node": "worker-1"}, "worker-1"),
        ({"instance": "10.0.0.3:9400", "Hostname": "dcgm-exporter-x7"}, "db.a.example"),
    ],
)
def test_a_label_that_names_the_node_takes_precedence_over_the_instance(labels: dict[str, str], node: str) -> None:
    assert series_mapper(NODES, "auto").node_of(labels) == node


def test_the_host_name_that_an_exporter_reports_is_the_last_resort() -> None:
    mapper = series_mapper(NODES, "auto", {"10.244.1.7:9100": "ip-10-0-0-2", "10.0.0.1:9100": "ip-10-0-0-2"})
    assert mapper.node_of({"instance": "10.244.1.7:9100"}) == "ip-10-0-0-2.ec2.internal"
    assert mapper.node_of({"instance": "10.0.0.1:9100"}) == "worker-1"


@pytest.mark.parametrize(
    ("match", "instance", "node"),
    [
        ("instance", "worker-1:9100", "worker-1"),
        ("instance", "10.0.0.1:9100", ""),
        ("ip", "10.0.0.1:9100", "worker-1"),
        ("ip", "worker-1:9100", ""),
        ("nodename", "10.0.0.1:9100", "db.a.example"),
        ("nodename", "worker-1", ""),
    ],
)
def test_the_configured_match_allows_only_one_kind_of_name(match: NodeMatch, instance: str, node: str) -> None:
    mapper = series_mapper(NODES, match, {"10.0.0.1:9100": "db.a.example"})
    assert mapper.node_of({"instance": instance}) == node


@pytest.mark.parametrize(
    ("labels", "name"),
    [
        ({"instance": "worker-1:9100"}, "worker-1"),
        ({"instance": "worker-1"}, "worker-1"),
        ({"instance": "10.0.0.1:9100"}, "10.0.0.1"),
        ({"instance": "[fd00::1]:9100"}, "fd00::1"),
        ({"node": "worker-1"}, "worker-1"),
        ({}, ""),
    ],
)
def test_without_node_objects_the_instance_without_its_port_is_the_name(labels: dict[str, str], name: str) -> None:
    assert series_mapper(None, "auto").node_of(labels) == name


@pytest.mark.parametrize(
    ("match", "labels", "words"),
    [
        ("auto", {"instance": "10.244.0.9:9100"}, "No node has the address 10.244.0.9, which may be that of a pod"),
        ("auto", {"instance": "db:9100"}, "fits the nodes db.a.example, db.b.example"),
        ("auto", {"instance": "mars:9100"}, "No node has the name, host name or address 'mars'"),
        ("auto", {"node": "mars"}, "No node has the name, host name or address 'mars'"),
        ("auto", {}, "no label `instance`"),
        ("ip", {"instance": "worker-1"}, "use `nodes.match: auto`"),
    ],
)
def test_a_series_without_a_node_has_a_repair(match: NodeMatch, labels: dict[str, str], words: str) -> None:
    mapper = series_mapper(NODES, match)
    (found,) = unmapped_series({LoadResource.CPU: [labels], LoadResource.MEMORY: [labels]}, mapper)
    assert words in found.fix
    assert found.resources == (LoadResource.CPU, LoadResource.MEMORY)
    assert found.fix.endswith(".")


HOSTS = st.sampled_from(["a", "b", "a.x", "a.y", "b.x", "b.x.y", "c"])
ADDRESSES = st.sampled_from(["10.0.0.1", "10.0.0.2", "fd00::1", "::ffff:10.0.0.1"])
CLUSTERS = st.lists(
    st.builds(
        lambda name, address, hostname: cluster_node(name, internal(address), hostname=hostname),
        HOSTS,
        ADDRESSES,
        HOSTS,
    ),
    max_size=4,
    unique_by=lambda node: node.name,
)
TEXTS = HOSTS | ADDRESSES | ADDRESSES.map(lambda text: f"[{text}]:9100") | HOSTS.map(lambda text: f"{text}:9100")


@settings(max_examples=60)
@given(nodes=CLUSTERS, instance=TEXTS, label=TEXTS, uname=HOSTS, chance=st.randoms(use_true_random=False))
def test_the_order_of_the_nodes_does_not_matter(
    nodes: list[ClusterNode], instance: str, label: str, uname: str, chance: Random
) -> None:
    labels, shuffled = {"instance": instance, "node": label}, list(nodes)
    chance.shuffle(shuffled)
    mappers = [series_mapper(order, "auto", {instance: uname}) for order in (nodes, shuffled)]
    assert mappers[0].node_of(labels) == mappers[1].node_of(labels)
    assert mappers[0].fix(labels) == mappers[1].fix(labels)


@settings(max_examples=60)
@given(nodes=CLUSTERS, instance=TEXTS)
def test_a_node_is_never_chosen_if_another_fits_as_well(nodes: list[ClusterNode], instance: str) -> None:
    found = series_mapper(nodes, "auto").node_of({"instance": instance})
    host, address = without_port(instance), canonical_address(without_port(instance))
    for node in nodes:
        if not found or node.name in {found, host}:
            continue
        assert node.name != host
        if address and found != host:
            assert canonical_address(node.addresses[0].address) != address


@given(text=st.text(max_size=20))
def test_without_port_accepts_any_text(text: str) -> None:
    assert isinstance(without_port(text), str)


def test_all_names_of_a_node_share_one_set_object() -> None:
    names = names_of([cluster_node("node-1.example.com", internal("10.0.0.1"))], "auto")
    (found,) = names.names.values()
    others = (*names.addresses.values(), *names.hosts.values(), *names.short_of_full.values())
    assert len(others) == 3
    assert all(other is found for other in others)
