"""The room of a node follows the status of pods whose resize in place is not done."""

from __future__ import annotations

import msgspec
import pytest

from adapter.foundation.cluster.facts.pods import pod_of
from adapter.foundation.cluster.forms.pods import PodForm
from adapter.foundation.cluster.stores.pods import PodStore
from adapter.nodes.model.scheduling_settings import SchedulingSettings
from adapter.nodes.placement.node_columns import ColumnsBuilder
from tests.adapter.nodes.placement.objects import END, a_node, predicted
from tests.support.cluster_objects import Json, pod_object


def event(reported: str | None, *, infeasible: bool = False) -> PodForm:
    content: Json = pod_object("web", node="a", requests={"cpu": "1"})
    if reported:
        amounts = {"cpu": reported}
        content["status"]["containerStatuses"] = [
            {"name": "c", "resources": {"requests": amounts}, "allocatedResources": amounts}
        ]
    if infeasible:
        content["status"]["conditions"] += [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]
    return msgspec.json.decode(msgspec.json.encode(content), type=PodForm)


@pytest.mark.parametrize("kind", ["requested", "non_zero_requested"])
def test_the_columns_of_a_node_follow_the_events_of_a_resize(kind: str) -> None:
    store = PodStore(pod_of, lambda: None, lambda: END)
    builder = ColumnsBuilder(SchedulingSettings(), predicted)

    def counted() -> float:
        return float(getattr(builder.build((a_node("a"),), store.view, None, END), kind)["cpu"][0])

    seen = []
    for one in (event(None), event("1"), event("2"), event("500m"), event("500m", infeasible=True), event("1")):
        store.put(one)
        seen.append(counted())
    assert seen == [1000, 1000, 2000, 1000, 500, 1000]
