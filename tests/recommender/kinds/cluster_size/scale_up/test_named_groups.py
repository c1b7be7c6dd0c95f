"""Workloads that each name their node group: what is known of a group and a shape is not asked in each round again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from adapter.foundation.cluster.values.constraints import PodScheduling
from recommender.kinds.cluster_size.scale_up.template_fit import Exemplars
from tests.recommender.kinds.cluster_size.builders import node, pod
from tests.recommender.kinds.cluster_size.options import group
from tests.recommender.kinds.cluster_size.scale_up.harnesses import decided, situation

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pytest

    from recommender.kinds.cluster_size.model.groups import NodeGroup
    from recommender.kinds.cluster_size.predicates.pod_shapes import PodShape

COUNT = 12


def named_group(number: int) -> NodeGroup:
    made = group(f"g{number}")
    assert made.template is not None
    labelled = node(f"template-{number}", "4", "16Gi", labels={"pool": f"g{number}"})
    return replace(made, template=replace(made.template, node=labelled))


def test_each_group_is_asked_about_each_shape_once_however_many_rounds_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[str, PodShape]] = []
    fits = Exemplars.fits

    def counted(self: Exemplars, one: NodeGroup, shapes: Iterable[PodShape]) -> dict[PodShape, bool]:
        distinct = dict.fromkeys(shapes)
        asked.extend((one.name, shape) for shape in distinct)
        return fits(self, one, distinct)

    monkeypatch.setattr(Exemplars, "fits", counted)
    pods = [
        pod(
            f"p{number}",
            "1",
            controller=f"w{number}",
            scheduling=PodScheduling(node_selector=(("pool", f"g{number}"),)),
        )
        for number in range(COUNT)
    ]
    found = decided(situation([named_group(number) for number in range(COUNT)], pods=pods))
    assert found.increases == {f"g{number}": 1 for number in range(COUNT)}
    assert len(asked) <= 2 * COUNT**2
