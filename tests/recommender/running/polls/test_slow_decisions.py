"""Decisions of slow kinds, such as cluster sizes, which may follow the forecasts of others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from adapter.foundation.cluster.values.state import ClusterState, Observed
from adapter.foundation.time.clock import Clock
from recommender.configuration.reading import read_configuration
from recommender.decisions.inputs import Inputs
from recommender.running.inputs.poll_plan import plan_of
from recommender.running.memory.memories import Memories
from recommender.running.memory.store_protocol import ProcessMemoryStore
from recommender.running.polls.poll_decisions import PollDecisions
from recommender.running.sizes.background_decisions import ImmediateSizing
from tests.recommender.configuration.files import entry, whole

if TYPE_CHECKING:
    from recommender.decisions.calculation import Calculate
    from recommender.decisions.loop import Decision
    from recommender.decisions.memory import Memory
    from recommender.kinds.kind import Recommendation

NOW: Final = 1_767_225_600.0
NODES: Final = entry("nodes", kind="clusterSize: {nodeGroups: {clusterAPI: {namespaces: [capi]}}}")


class Seeing(ImmediateSizing):
    """Keeps the names of the recommendations that were decided before."""

    def decide(
        self, recommendation: Recommendation, calculate: Calculate, inputs: Inputs, memory: Memory, now: float
    ) -> Decision:
        self.before = set(inputs.decided)
        return super().decide(recommendation, calculate, inputs, memory, now)


@pytest.mark.parametrize("entries", [(NODES, entry("dns")), (entry("dns"), NODES)], ids=["first", "last"])
def test_a_cluster_size_sees_the_other_decisions_of_its_poll_wherever_it_is_in_the_file(
    entries: tuple[str, ...],
) -> None:
    configuration, slow = read_configuration(whole(*entries), "r.yaml"), Seeing()
    inputs = Inputs(ClusterState(nodes=Observed((), NOW)))
    found = PollDecisions(Memories(ProcessMemoryStore()), Clock(), slow).decide(plan_of(configuration), inputs, NOW)
    assert slow.before == {"dns"}
    assert [one.name for one in found] == [each.policy.name for each in configuration.recommendations]
