"""Times in which nothing is known of the cluster, and what survives a restart during them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adapter.foundation.cluster.values.state import Observed
from adapter.foundation.sources.kubernetes.errors import (
    ConflictError,
    ForbiddenError,
    KubernetesError,
    ServerError,
    ThrottledError,
    UnknownOutcomeError,
    UnreachableError,
    is_of_the_server,
)
from recommender.decisions.inputs import Inputs
from recommender.decisions.memory import LastValue, Memory
from recommender.kinds.cluster_size.health.times_without_facts import with_absence
from recommender.kinds.cluster_size.model.answer import answer_of
from recommender.kinds.cluster_size.model.memory import Absence, ClusterSizeMemory
from recommender.running.memory.memory_document import decode_memory, encode_memory
from recommender.running.memory.significant_changes import changed_enough_to_write
from tests.recommender.kinds.cluster_size.builders import controller, pod
from tests.recommender.kinds.cluster_size.deciding import decide_sizes
from tests.recommender.kinds.cluster_size.test_decide import NOW, POLICY, SETTINGS, cluster

STALE = 60.0


@pytest.mark.parametrize(
    ("confirmed", "decided", "now_confirmed", "absences"),
    [
        pytest.param(100.0, 110.0, 120.0, (), id="as-always"),
        pytest.param(100.0, 139.0, 141.0, (), id="a-quiet-watch"),
        pytest.param(100.0, 150.0, 165.0, (Absence(100.0, 165.0),), id="facts-stood-still"),
        pytest.param(100.0, 101.0, 221.0, (Absence(100.0, 221.0),), id="no-decision-for-long"),
        pytest.param(100.0, 101.0, 219.0, (), id="not-so-long"),
        pytest.param(None, None, 500.0, (), id="the-first-decision"),
        pytest.param(500.0, 510.0, 400.0, (), id="a-clock-that-was-set-back"),
    ],
)
def test_an_absence_is_recorded_once_facts_are_fresh_again(
    confirmed: float | None, decided: float | None, now_confirmed: float, absences: tuple[Absence, ...]
) -> None:
    last = None if confirmed is None or decided is None else LastValue(None, decided, confirmed)
    assert with_absence(ClusterSizeMemory(), last, now_confirmed, STALE).absences == absences


def test_only_the_latest_absences_are_kept_and_adjacent_ones_are_merged() -> None:
    memory = ClusterSizeMemory()
    for number in range(30):
        last = LastValue(None, 1000.0 * number, 1000.0 * number)
        memory = with_absence(memory, last, 1000.0 * number + 500, STALE)
    assert len(memory.absences) == 20
    assert memory.absences[-1] == Absence(29_000.0, 29_500.0)
    again = with_absence(memory, LastValue(None, 29_550.0, 29_500.0), 29_700.0, STALE)
    assert again.absences == (*memory.absences[:-1], Absence(29_000.0, 29_700.0))
    later = 29_700.0 + 8 * 86_400
    assert with_absence(again, LastValue(None, later, later), later + 10, STALE).absences == ()


def test_absences_survive_a_restart() -> None:
    last = LastValue(None, NOW, NOW)
    memory = Memory(last, own=ClusterSizeMemory(absences=(Absence(NOW - 500, NOW - 400),)))
    assert decode_memory("workers", encode_memory("workers", memory)).memory == memory
    assert changed_enough_to_write(Memory(last, own=ClusterSizeMemory()), memory)


@pytest.mark.parametrize(
    ("error", "is_its"),
    [
        (UnreachableError("no route"), True),
        (UnknownOutcomeError("no answer"), True),
        (ThrottledError("later", 429), True),
        (ServerError("etcd", 503), True),
        (ForbiddenError("no right", 403), False),
        (ConflictError("changed", 409), False),
        (KubernetesError("other"), False),
    ],
)
def test_failures_of_the_server_are_distinguished_from_others(error: KubernetesError, *, is_its: bool) -> None:
    assert is_of_the_server(error) is is_its


def test_a_pod_of_a_daemon_set_keeps_no_node_if_workloads_are_not_listed() -> None:
    agent = pod("agent-x", "100m", node="n2", controller=controller("agent", "DaemonSet"), created=2.0)
    facts = cluster(NOW, running=2)
    assert isinstance(facts.pods, Observed)
    facts = replace(facts, pods=Observed((*facts.pods.value, agent), NOW), workloads=Observed((), NOW))
    answer = answer_of(decide_sizes(POLICY, SETTINGS, Inputs(facts), Memory(), NOW).record)
    assert answer is not None
    assert [one.node for one in answer.removals] == ["n2"]
