"""The flags that `proportional` adds to those of cluster-proportional-autoscaler."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adapter.foundation.service.flags.parsing import UsageError, parse_flags
from recommender.commands.cpva.flags import CPVA
from recommender.commands.pod_nanny.flags import POD_NANNY
from recommender.commands.proportional.command import configuration_of
from recommender.commands.proportional.flags import PROPORTIONAL
from recommender.kinds.proportional.parameters import NodeFilter, ProportionalSettings

if TYPE_CHECKING:
    from adapter.foundation.service.flags.table import CommandFlags

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
def test_node_filter_flags_select_which_nodes_count(flags: tuple[str, ...], expected: NodeFilter) -> None:
    [entry] = configuration_of(parse_flags(PROPORTIONAL, (*KNOWN, *flags), {}), {}).recommendations
    assert isinstance(entry.subject, ProportionalSettings)
    assert entry.subject.node_filter == expected


@pytest.mark.parametrize("period", ["0", "-1", "9" * 400])
def test_the_poll_period_is_between_a_second_and_a_year(period: str) -> None:
    with pytest.raises(UsageError, match=r"write 1 to 31536000 seconds"):
        configuration_of(parse_flags(PROPORTIONAL, (*KNOWN, f"--poll-period-seconds={period}"), {}), {})


@pytest.mark.parametrize(
    ("command", "flags"),
    [
        (PROPORTIONAL, KNOWN),
        (CPVA, ("--namespace=a", "--target=deployment/dns")),
        (POD_NANNY, ("--deployment=dns",)),
    ],
    ids=["proportional", "cpva", "pod-nanny"],
)
def test_words_that_are_not_flags_are_ignored_with_a_warning(command: CommandFlags, flags: tuple[str, ...]) -> None:
    found = parse_flags(command, ("--logtostderr", "true", *flags), {})
    assert found.given == {"logtostderr", *(flag.removeprefix("--").partition("=")[0] for flag in flags)}
    assert any("a word that is not a flag, which has no effect" in warning for warning in found.warnings)
