"""How many different pods one decision looks at."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adapter.cluster.predicates.snapshot import Snapshot
from adapter.cluster.scheduling.constraints import HOSTNAME_LABEL, PodScheduling, PodTerm
from adapter.objects.selectors import EVERYTHING
from recommender.cluster_size.calculate import decide_size
from recommender.cluster_size.scale_up import work_bound
from recommender.cluster_size.scale_up.work_bound import NOT_LOOKED_AT, within_bound
from tests.cluster_size.builders import node, pod
from tests.cluster_size.options import group, template
from tests.cluster_size.scale_up.worlds import settings, situation

APART = PodScheduling(anti_affinity=(PodTerm(HOSTNAME_LABEL, EVERYTHING, frozenset({"evil"})),))


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_bound, "MOST_SHAPES", 3)
    monkeypatch.setattr(work_bound, "MOST_RELATED_SHAPES", 2)


def test_pods_of_a_tenant_with_many_different_ones_wait_and_those_of_others_do_not() -> None:
    evil = [pod(f"e{number}", f"{number + 1}m", namespace="evil") for number in range(9)]
    first = pod("first", "1", namespace="evil", priority=7)
    web = [pod(f"w{number}", "1", namespace="shop") for number in range(5)]

    looked_at, beyond = within_bound([*evil, first, *web], Snapshot((), ()))

    assert looked_at == [evil[0], first, *web]
    assert beyond == evil[1:]


def test_pods_that_depend_on_others_have_a_smaller_bound_of_their_own() -> None:
    evil = [pod(f"e{number}", f"{number + 1}m", namespace="evil", scheduling=APART) for number in range(5)]
    plain = [pod("plain")]

    assert within_bound([*evil, *plain], Snapshot((), ())) == ([*evil[:2], *plain], evil[2:])


def test_pods_that_are_not_looked_at_are_named_and_keep_nodes() -> None:
    evil = [pod(f"e{number}", f"{number + 100}", namespace="evil") for number in range(5)]
    members = replace(group("a", size=1, nodes=("n0",), max_size=3, node_template=template("4", "8Gi")), min_size=0)
    its = situation([members], nodes=[node("n0")], pods=evil, waits=False)

    answer = decide_size(its, settings())

    assert {len(alike.pods) for alike in answer.unschedulable if alike.reason == NOT_LOOKED_AT} == {2}
    assert answer.pending_pods == 5
    assert [(one.is_due, one.reason.partition(":")[0]) for one in answer.removals] == [
        (False, "PendingPodsNotLookedAt")
    ]
