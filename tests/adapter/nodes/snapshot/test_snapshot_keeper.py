"""The keeper of the snapshot, with a scripted Prometheus and a clock that is moved by hand."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
import pytest

from adapter.foundation.cluster.values.placed_pods import pods_by_place
from adapter.foundation.files.gzip_format import text_of_pieces
from adapter.nodes.hotspots.exposition import hot_text
from adapter.nodes.model.columns import PendingPod
from adapter.nodes.model.loads import LoadResource, UnmappedSeries
from adapter.nodes.model.samples import SampleSet
from adapter.nodes.model.scheduling_settings import (
    FilterSettings,
    GpuPackingArgs,
    HotspotSettings,
    PolicyName,
    PolicySettings,
    SchedulingSettings,
    TargetLoadPackingArgs,
)
from adapter.nodes.model.week import FORECAST_VERDICTS, QUARTER_SECONDS, QUARTERS, QUARTERS_A_DAY
from adapter.nodes.queries.refresh_results import RefreshResult
from adapter.nodes.scores.table import score_nodes
from adapter.nodes.snapshot.cluster_facts import NodeFacts
from tests.adapter.nodes.placement.objects import a_node, a_pod, resources
from tests.adapter.nodes.snapshot.scripted_keeper import CPU, NODES, Script, averages, steady
from tests.support.sample_grids import END, STEP, grid_of

PREDICTED = PolicySettings(PolicyName.PREDICTED_LOAD_PACKING, 1, TargetLoadPackingArgs())


@pytest.fixture(name="script")
def _script() -> Script:
    return Script()


def test_before_the_first_data_nothing_is_known(script: Script) -> None:
    published = script.keeper().published
    assert (published.snapshot.loads, published.snapshot.basis, published.watcher) == (None, "none", None)
    assert script.basis_shown() == ["none"]


def test_a_refresh_publishes_everything_together(script: Script) -> None:
    script.facts = NodeFacts(NODES, pods=pods_by_place([a_pod("one", "b", resources("1"))]))
    keeper = script.keeper()
    keeper.refresh()
    published = keeper.published
    assert averages(keeper) == pytest.approx({"a": 0.2, "b": 0.4})
    assert published.snapshot.basis == "metrics"
    assert published.snapshot.columns.requested["cpu"].tolist() == [0.0, 1000.0]
    assert published.snapshot.columns.mean_ratio[CPU] == pytest.approx([0.2, 0.4])
    assert [pod.name for pod in published.snapshot.pods_by_node["b"]] == ["one"]
    assert published.watcher is not None
    assert b'"dataCenter":"east"' in published.watcher.windows[0].whole.body
    assert published.exposition is not None
    assert b'tidewatch_node_utilization_ratio{node="a"' in text_of_pieces(published.exposition.pieces(script.now))
    (offered,) = script.offered
    assert (offered.grids, set(offered.machines)) == (script.result.samples.grids, {"a", "b"})
    assert script.basis_shown() == ["metrics"]


def test_a_node_is_not_free_because_its_pods_are_not_known(script: Script) -> None:
    script.facts = NodeFacts((a_node("a", nvidia_com_gpu="2"), a_node("b", nvidia_com_gpu="1")), pods=None)
    keeper = script.keeper()
    keeper.refresh()
    snapshot, asked = keeper.published.snapshot, PendingPod(resources=resources(gpus=1), gpu_count=1, gpu_milli=1000)
    policy = PolicySettings(PolicyName.GPU_PACKING, 1, GpuPackingArgs())
    scores = score_nodes(policy, asked, snapshot, np.arange(2))
    assert np.isnan(scores.values).all()
    script.result = RefreshResult(SampleSet({}))
    for later in (30.0, 400.0):
        script.now = END + later
        keeper.refresh()
        assert keeper.published.snapshot.basis == "none"
    script.facts = replace(script.facts, pods=pods_by_place([a_pod("one", "b", resources(gpus=1))]))
    keeper.refresh()
    assert keeper.published.snapshot.basis == "requests"
    scores = score_nodes(policy, asked, keeper.published.snapshot, np.arange(2))
    assert scores.values.tolist() == [100.0, 0.0]


def test_the_file_is_served_until_the_first_refresh(script: Script) -> None:
    script.file = steady(0.3, 0.3, end=END - 300, from_file=True)
    script.facts = NodeFacts(why_unknown="not listed yet")
    keeper = script.keeper()
    keeper.read_file()
    assert averages(keeper) == pytest.approx({"a": 0.3, "b": 0.3})
    loads = keeper.published.snapshot.loads
    assert loads is not None
    assert (loads.from_file, loads.window_end) == (True, END - 300)
    assert keeper.published.snapshot.basis == "metrics"
    assert not keeper.has_tried
    keeper.refresh()
    assert script.refreshed_with == [script.file]
    assert averages(keeper) == pytest.approx({"a": 0.2, "b": 0.4})


def test_samples_from_the_state_file_alone_are_not_written_to_it_again(script: Script) -> None:
    script.file = steady(0.3, 0.3, from_file=True)
    script.result = RefreshResult(script.file, failures={CPU: "no connection."})
    keeper = script.keeper()
    keeper.read_file()
    keeper.refresh()
    assert script.offered == []


def test_an_outage_leads_to_middle_scores_and_then_to_requests_and_estimates(script: Script) -> None:
    script.facts = NodeFacts(
        NODES, pods=pods_by_place([a_pod("one", "a", resources("1")), a_pod("two", "b", resources("2"))])
    )
    keeper = script.keeper()
    keeper.refresh()
    script.result = replace(script.result, failures={CPU: "no connection."})
    basis = []
    for later in (30, 200, 400, 520):
        script.now = END + later
        keeper.refresh()
        basis.append(keeper.published.snapshot.basis)
    assert basis == ["metrics", "none", "none", "requests"]
    assert script.basis_shown() == ["requests"]
    loads = keeper.published.snapshot.loads
    assert loads is not None
    assert loads.resources[CPU].is_estimated.all()
    assert averages(keeper) == pytest.approx({"a": 0.2, "b": 0.4})
    assert keeper.published.watcher is not None
    assert keeper.published.watcher.windows[0].hosts == 0
    script.result = RefreshResult(steady(0.5, 0.5, end=END + 540))
    script.now = END + 550
    keeper.refresh()
    assert keeper.published.snapshot.basis == "metrics"


def test_a_query_failure_is_reported_until_the_resource_has_newer_samples(
    script: Script, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    keeper = script.keeper()

    def failures() -> dict[LoadResource, str]:
        loads = keeper.published.snapshot.loads
        return dict(loads.query_failures) if loads else {}

    keeper.refresh()
    for result, expected in (
        (replace(script.result, failures={CPU: "refused."}), {CPU: "refused."}),
        (script.result, {CPU: "refused."}),
        (RefreshResult(steady(0.2, 0.4, end=END + STEP)), {}),
    ):
        script.result = result
        keeper.refresh()
        assert failures() == expected
    lines = [message for message in caplog.messages if "newest samples" in message]
    assert lines == ["the newest samples of cpu are missing: refused.", "the newest samples of cpu are available again"]


def test_changed_pods_take_effect_without_a_refresh(script: Script) -> None:
    keeper = script.keeper()
    keeper.refresh()
    watcher = keeper.published.watcher
    script.facts = NodeFacts(NODES, pods=pods_by_place([a_pod("new", "a", resources("1"), bound_at=END)]))
    keeper.rebuild()
    assert keeper.published.snapshot.columns.requested["cpu"].tolist() == [1000.0, 0.0]
    assert keeper.published.watcher is watcher
    assert len(script.refreshed_with) == 1


def test_a_pod_that_is_bound_during_a_refresh_is_counted(script: Script) -> None:
    keeper = script.keeper()

    def bind() -> None:
        script.facts = NodeFacts(NODES, pods=pods_by_place([a_pod("new", "a", resources("1"), bound_at=END)]))
        keeper.rebuild()

    script.meanwhile = bind
    keeper.refresh()
    assert keeper.published.snapshot.columns.requested["cpu"].tolist() == [1000.0, 0.0]
    assert averages(keeper) == pytest.approx({"a": 0.2, "b": 0.4})


def test_nodes_that_become_known_during_a_refresh_are_used_from_the_next_one(script: Script) -> None:
    known, script.facts = script.facts, NodeFacts(why_unknown="not listed yet")
    script.result = RefreshResult(steady(0.2, 0.4, nodes=("10.0.0.1", "10.0.0.2")))
    keeper = script.keeper()

    def become_known() -> None:
        script.facts = known

    script.meanwhile = become_known
    keeper.refresh()
    assert averages(keeper) == pytest.approx({"10.0.0.1": 0.2, "10.0.0.2": 0.4})
    script.result = RefreshResult(steady(0.2, 0.4, end=END + STEP))
    keeper.refresh()
    assert averages(keeper) == pytest.approx({"a": 0.2, "b": 0.4})


def test_a_configuration_with_other_queries_discards_the_answer_of_the_current_refresh(script: Script) -> None:
    keeper = script.keeper()
    script.meanwhile = lambda: keeper.use(SchedulingSettings(matchers={"cluster": "east"}))
    keeper.refresh()
    assert keeper.published.snapshot.loads is None
    assert script.offered == []


def test_a_configuration_with_other_queries_discards_an_answer_that_is_being_published(script: Script) -> None:
    keeper = script.keeper()

    def answered() -> None:
        # The time is read next when the answer is added to the day.
        script.when_time_is_read = lambda: keeper.use(SchedulingSettings(matchers={"cluster": "east"}))

    script.meanwhile = answered
    keeper.refresh()
    assert len(script.made) == 2
    assert keeper.published.snapshot.loads is None


def test_a_new_node_has_no_load_before_the_next_refresh(script: Script) -> None:
    keeper = script.keeper()
    keeper.refresh()
    script.facts = NodeFacts((*NODES, a_node("c")), pods=pods_by_place([]))
    keeper.rebuild()
    assert keeper.published.snapshot.columns.names == ("a", "b", "c")
    assert np.isnan(keeper.published.snapshot.columns.mean_ratio[CPU]).tolist() == [False, False, True]


def test_another_policy_keeps_the_samples_and_another_query_drops_them(script: Script) -> None:
    keeper = script.keeper()
    keeper.refresh()
    keeper.use(SchedulingSettings(filter=FilterSettings({CPU: 0.5})))
    keeper.refresh()
    assert (len(script.made), script.refreshed_with[-1]) == (1, script.result.samples)
    keeper.use(SchedulingSettings(matchers={"cluster": "east"}))
    keeper.refresh()
    assert (len(script.made), script.refreshed_with[-1]) == (2, None)


def test_the_next_hour_is_published_once_the_week_is_read(script: Script) -> None:
    """The load of `a` rises in half an hour, as on every day; that of `b` never rises."""
    load = np.where(np.arange(QUARTERS) % QUARTERS_A_DAY >= 2, 0.7, 0.2)
    script.past = grid_of([load, np.full(QUARTERS, 0.4)], nodes=("a", "b"))
    script.past = replace(script.past, step_seconds=QUARTER_SECONDS)
    keeper = script.keeper(SchedulingSettings(policies=(PREDICTED,)))
    verdicts = []
    for _ in range(2):
        keeper.refresh()
        forecast = keeper.published.snapshot.columns.forecast
        assert forecast is not None
        verdicts.append([FORECAST_VERDICTS[verdict] for verdict in forecast.verdicts.tolist()])
    assert verdicts == [["short_history"] * 2, ["predicted", "not_better"]]
    assert forecast is not None
    assert forecast.ratio[0] == pytest.approx(0.7, abs=0.001)
    assert keeper.published.exposition is not None
    assert b'tidewatch_node_forecasts{verdict="predicted"} 1' in text_of_pieces(
        keeper.published.exposition.pieces(script.now)
    )
    assert script.needed == [True, True]


def test_a_policy_that_is_added_later_needs_the_week_from_then_on(script: Script) -> None:
    keeper = script.keeper()
    keeper.refresh()
    keeper.use(SchedulingSettings(policies=(PREDICTED,)))
    keeper.refresh()
    assert script.needed == [False, True]


def test_the_past_is_not_queried_while_prometheus_answers_nothing(script: Script) -> None:
    """Its failure would say in the log once more what the failures of the newest samples say."""
    keeper = script.keeper()
    grids = {
        resource: replace(steady(0.2, 0.4).grids[CPU], resource=resource) for resource in (CPU, LoadResource.MEMORY)
    }
    for is_answered in (True, False):
        failures = dict.fromkeys(grids, "it hangs")
        script.result = RefreshResult(SampleSet(grids), failures=failures, is_answered=is_answered)
        keeper.refresh()
    assert script.needed == [False]


def test_hot_nodes_are_exposed_as_metrics(script: Script) -> None:
    keeper = script.keeper(SchedulingSettings(hotspots=HotspotSettings({CPU: 0.3}, rounds=1)))
    keeper.refresh()
    assert keeper.published.hot.splitlines()[2] == b'tidewatch_node_hot{node="b"} 1'
    assert hot_text(['a"b\\c']).splitlines()[2] == b'tidewatch_node_hot{node="a\\"b\\\\c"} 1'


def test_unmapped_instances_are_logged_once(script: Script, caplog: pytest.LogCaptureFixture) -> None:
    series = tuple(UnmappedSeries(name, {}, (CPU,), "Relabel.") for name in ("x", "y"))
    keeper = script.keeper()
    for unmapped in (series[:1], series[:1], series, series):
        script.result = replace(script.result, unmapped=unmapped)
        keeper.refresh()
    assert sum("cannot be mapped" in message for message in caplog.messages) == 2


def test_without_a_cluster_nodes_are_named_by_instance_which_is_logged_once(
    script: Script, caplog: pytest.LogCaptureFixture
) -> None:
    script.facts = NodeFacts()
    keeper = script.keeper()
    keeper.refresh()
    keeper.refresh()
    assert averages(keeper) == pytest.approx({"a": 0.2, "b": 0.4})
    assert keeper.published.snapshot.columns.names == ("a", "b")
    assert sum("label instance" in message for message in caplog.messages) == 1


def test_no_samples_at_all_are_not_written_to_the_state_file(script: Script) -> None:
    script.result = RefreshResult(SampleSet({}), failures={CPU: "no connection."})
    script.keeper().refresh()
    assert script.offered == []


def test_objects_that_are_left_out_are_logged_once(script: Script, caplog: pytest.LogCaptureFixture) -> None:
    keeper = script.keeper()
    odd = a_pod("odd", "a", gpus="none")
    counts = [(f"pods that cannot be used are left out ({number})",) for number in (1, 2)]
    more = ("Node c: bad.", "Node d: bad.")
    for problems in (("Node c: bad.",), ("Node c: bad.",), more, (), ("Node c: bad.",), *counts):
        script.facts = NodeFacts(NODES, pods=pods_by_place([odd]), problems=problems)
        keeper.refresh()
    logged = [record for record in caplog.records if "left out" in record.message]
    assert [record.__dict__["fields"]["count"] for record in logged] == [2, 1, 1, 1]
    assert "Node c: bad." in logged[0].message
    assert "Pod shop/odd: annotation" in logged[0].message


def test_a_refresh_that_fails_unexpectedly_counts_as_tried(script: Script) -> None:
    keeper = script.keeper()
    script.fails = RuntimeError("a bug")
    with pytest.raises(RuntimeError):
        keeper.refresh()
    assert keeper.has_tried
    assert keeper.published.snapshot.loads is None
