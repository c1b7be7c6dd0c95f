"""Nodes are reduced to what is counted, and their counts are those of whole nodes."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import pytest

from adapter.foundation.cluster.facts.counted_nodes import CountedNodeForm, counted_node_of
from adapter.foundation.cluster.facts.objects import FactError, node_of
from adapter.foundation.cluster.forms.objects import NodeForm
from adapter.foundation.cluster.values.node_counts import count_nodes
from adapter.foundation.objects.selectors import parse_selector

READY = [{"type": "Ready", "status": "True"}]


def node(status: dict[str, Any], spec: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"metadata": {"name": "n", "labels": {"pool": "a", "zone": "b"}}, "spec": spec or {}, "status": status}


NODES = {
    "ready": node({"allocatable": {"cpu": "3900m", "memory": "1Gi"}, "conditions": READY}),
    "a number": node({"allocatable": {"cpu": 4}, "conditions": READY}),
    "cordoned": node({"allocatable": {"cpu": "4"}, "conditions": READY}, {"unschedulable": True}),
    "not ready": node({"allocatable": {"cpu": "4"}, "conditions": [{"type": "Ready", "status": "False"}]}),
    "Ready once more": node({"conditions": [*READY, {"type": "Ready", "status": "Unknown"}]}),
    "Ready at last": node({"conditions": [{"type": "Ready", "status": "Unknown"}, *READY]}),
    "tainted": node({"conditions": READY}, {"taints": [{"key": "k", "effect": "NoSchedule"}]}),
    "empty": node({}),
}


@pytest.mark.parametrize("name", NODES)
def test_reduced_nodes_are_counted_like_whole_nodes(name: str) -> None:
    body = msgspec.json.encode(NODES[name])
    whole = node_of(msgspec.json.decode(body, type=NodeForm))
    for selector, ignored in itertools.product(("", "pool=a", "pool=b", "!zone"), ((), ("k",))):
        parsed = parse_selector(selector)
        lean = counted_node_of(msgspec.json.decode(body, type=CountedNodeForm), parsed.keys)
        assert count_nodes([lean], parsed, ignored) == count_nodes([whole], parsed, ignored), (selector, ignored)


@pytest.mark.parametrize("name", ["Ready once more", "Ready at last"])
def test_a_node_with_two_ready_conditions_is_ready_if_one_is_true(name: str) -> None:
    whole = node_of(msgspec.convert(NODES[name], NodeForm))
    assert count_nodes([whole]).schedulable_nodes == 1


def test_unreadable_cores_are_an_error_and_other_unreadable_resources_are_not() -> None:
    odd = node({"allocatable": {"cpu": "1", "memory": "much"}})
    assert count_nodes([counted_node_of(msgspec.convert(odd, CountedNodeForm), ())]).cores == 1
    bad = node({"allocatable": {"cpu": "much"}})
    with pytest.raises(FactError, match=r"^Node n: status\.allocatable\.cpu: "):
        counted_node_of(msgspec.convert(bad, CountedNodeForm), ())
