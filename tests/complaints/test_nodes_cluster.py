"""Complaints about what a scheduler knows of pods: ended pods that count, and recent ones that count twice or never."""

from __future__ import annotations

import msgspec
import pytest

from adapter.foundation.cluster.facts.pods import pod_of
from adapter.foundation.cluster.forms.pods import PodForm
from adapter.foundation.cluster.stores.pods import PodStore
from adapter.nodes.model.loads import LoadResource
from adapter.nodes.model.scheduling_settings import SchedulingSettings
from adapter.nodes.placement.node_columns import ColumnsBuilder
from tests.adapter.nodes.placement.objects import END, a_node, loads, predicted
from tests.support.cluster_objects import pod_object

NODES = (a_node("a"),)
BOUND = "1970-01-02T03:46:40Z"
"""The time `END` as text."""


def form(name: str, **named: object) -> PodForm:
    content = pod_object(name, node="a", requests={"cpu": "600m"}, bound=BOUND) | {}
    content["status"] |= named
    return msgspec.json.decode(msgspec.json.encode(content), type=PodForm)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_has_no_requests__koordinator_490(phase: str) -> None:
    store = PodStore(pod_of, lambda: None, lambda: END)
    store.put(form("job"))
    store.put(form("web"))
    builder = ColumnsBuilder(SchedulingSettings(), predicted)
    assert builder.build(NODES, store.view, None, END).requested["cpu"].tolist() == [1200]
    store.put(form("job", phase=phase))
    found = builder.build(NODES, store.view, None, END)
    assert (found.requested["cpu"].tolist(), found.requested["pods"].tolist()) == ([600], [1])
    assert found.recent_requests[LoadResource.CPU].tolist() == [600]


def test_a_recent_pod_counts_once_from_its_binding_on__scheduler_plugins_115() -> None:
    """For a pod that uses what it requests, the measured part and the added part sum to its requests at any age."""
    store = PodStore(pod_of, lambda: None, lambda: END)
    store.put(form("web"))
    builder = ColumnsBuilder(SchedulingSettings(), predicted)
    for age in range(0, 1200, 15):
        measured_milli = 600 * min(age / 900, 1.0)
        load = loads({"a": measured_milli / 4000}, end=END + age)
        found = builder.build(NODES, store.view, load, END + age)
        counted = found.mean_ratio[LoadResource.CPU][0] * 4000 + found.recent_requests[LoadResource.CPU][0]
        assert counted == pytest.approx(600), age


def test_after_a_restart_running_pods_do_not_count_twice__scheduler_plugins_115() -> None:
    """The time of a pod is that of its binding, and not the time at which the process first saw it."""
    store = PodStore(pod_of, lambda: None, lambda: END + 86400)
    store.put(form("web"))
    load = loads({"a": 0.15}, end=END + 86400)
    found = ColumnsBuilder(SchedulingSettings(), predicted).build(NODES, store.view, load, END + 86400)
    assert found.recent_cpu_prediction_milli.tolist() == [0]
    assert found.recent_requests[LoadResource.CPU].tolist() == [0]
