from __future__ import annotations

from tests.recommender.kinds.cluster_size.builders import node, pod, taint
from tests.recommender.kinds.cluster_size.cases import all_cases


def test_every_case_has_its_own_identifier_and_a_source() -> None:
    found = all_cases()
    assert len({case.id for case in found}) == len(found) == 135
    assert all(case.source for case in found)


def test_builders_read_quantities_and_taints_as_their_objects_state_them() -> None:
    built = node("n", cpu="1500m", memory="1Gi", taints=["gpu=yes:NoSchedule", "old:NoExecute"])
    assert built.allocatable["cpu"].milli_value() == 1500
    assert built.taints == (taint("gpu=yes:NoSchedule"), taint("old:NoExecute"))
    assert pod("p", cpu="0.25", memory="", controller="web").resources.requests == {"cpu": 250}
