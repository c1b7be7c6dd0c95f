"""The flags that `proportional` adds to those of cluster-proportional-autoscaler."""

from __future__ import annotations

import pytest

from adapter.foundation.service.flags.parsing import parse_flags
from recommender.commands.proportional.configuration import configuration_of
from recommender.commands.proportional.flags import PROPORTIONAL
from recommender.kinds.proportional.parameters import NodeFilter, ProportionalSettings

KNOWN = ("--namespace=a", "--configmap=dns", "--target=deployment/dns")


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ((), NodeFilter()),
        (("--nodelabels=a=b",), NodeFilter(selector="a=b")),
        (("--ignore-taints=a, b",), NodeFilter(ignore_taints=frozenset({"a", "b"}))),
        (("--ignore_virtual_nodes",), NodeFilter(ignore_virtual_nodes=True)),
    ],
    ids=["none", "labels", "taints", "virtual nodes"],
)
def test_which_nodes_count(flags: tuple[str, ...], expected: NodeFilter) -> None:
    [entry] = configuration_of(parse_flags(PROPORTIONAL, (*KNOWN, *flags), {}), {}).recommendations
    assert isinstance(entry.subject, ProportionalSettings)
    assert entry.subject.node_filter == expected
