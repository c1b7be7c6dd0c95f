"""Metrics, page and log fields of a cluster size recommendation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from recommender.decisions.publication import Publication
from recommender.decisions.record import Record, Status, Step
from recommender.decisions.texts.record_texts import log_fields
from recommender.kinds.cluster_size.model.answer import (
    ClusterSizeAnswer,
    FailedMachine,
    GroupSize,
    KeptNode,
    Removal,
    SizeStep,
    UnschedulablePods,
    summary_text,
)
from recommender.kinds.cluster_size.model.pod_places import PodMove, PodName
from recommender.kinds.cluster_size.scale_up.pending_pods import left_out_pods
from recommender.kinds.cluster_size.scale_up.pod_work_limit import NOT_LOOKED_AT
from recommender.kinds.table import all_kinds, kind_of
from recommender.outputs.metrics import RecommendationMetrics
from recommender.page.rendering import PageRenderer
from recommender.printed.table import value_text
from recommender.running.history.history_points import points_of
from tests.recommender.kinds.cluster_size.builders import pod

if TYPE_CHECKING:
    from collections.abc import Mapping

NOW = 1_800_000_000.0
EVIL = "<script>alert(1)</script>"
ANSWER = ClusterSizeAnswer(
    groups=(
        GroupSize("a", 3, 5, 4, 0, 9, f"because {EVIL}", registered=2),
        GroupSize("odd", 2, 2, 2, 0, 9, "no node and no template", is_left_out=True),
    ),
    removals=(
        Removal("n7", "a", 0.12, EVIL, 700.0, moves=(PodMove(PodName("shop", "y"), "n1"),) * 2, saved_per_hour=0.5),
    ),
    failed_machines=(FailedMachine("x:///9", "a", EVIL),),
    kept=(KeptNode("n8", "a", f"NotUnderutilized: {EVIL}"),),
    unschedulable=(
        UnschedulablePods((PodName("shop", "x-0"), PodName("shop", "x-1")), {"a": f"Insufficient cpu {EVIL}"}),
    ),
    steps=(SizeStep("round/1", "a", 5, "2 nodes"),),
    binding="round/1",
    saved_per_hour=0.5,
    pending_pods=11,
)
RECORD = Record(
    "workers",
    "clusterSize",
    NOW,
    Status.OK,
    "grow a from 3 to 5",
    steps=(Step("round/1", 5, "a: 2 nodes"),),
    binding="round/1",
    details=ANSWER,
)


def logged(record: Record) -> Mapping[str, object]:
    found = kind_of(record.type).log_line(record)
    return {} if found is None else found.fields


def exposed(record: Record) -> dict[str, float]:
    metrics = RecommendationMetrics(lambda: True, all_kinds(), lambda: NOW)
    metrics.publish(Publication(leads=True, time=NOW, valid_until=NOW + 60, records=(record,)))
    lines = [line.rpartition(" ") for line in metrics.text().decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in lines}


@pytest.mark.parametrize(
    ("series", "value"),
    [
        ('tidewatch_recommended_nodes{node_group="a",recommendation="workers"}', 5),
        ('tidewatch_recommended_nodes_after_removals{node_group="a",recommendation="workers"}', 4),
        ('tidewatch_node_group_nodes{node_group="a",recommendation="workers"}', 3),
        ('tidewatch_node_group_registered_nodes{node_group="a",recommendation="workers"}', 2),
        ('tidewatch_node_group_min_nodes{node_group="a",recommendation="workers"}', 0),
        ('tidewatch_node_group_max_nodes{node_group="a",recommendation="workers"}', 9),
        ('tidewatch_removable_nodes{recommendation="workers"}', 1),
        ('tidewatch_failed_machines{recommendation="workers"}', 1),
        ('tidewatch_unschedulable_pods{recommendation="workers"}', 2),
        ('tidewatch_pending_pods{recommendation="workers"}', 11),
        ('tidewatch_removals_saved_per_hour{recommendation="workers"}', 0.5),
        ('tidewatch_recommendation_step{recommendation="workers",step="round/1"}', 5),
        ('tidewatch_recommendation_status{recommendation="workers",status="ok"}', 1),
        ('tidewatch_recommendation_timestamp_seconds{recommendation="workers"}', NOW),
    ],
)
def test_an_answer_is_exposed(series: str, value: float) -> None:
    assert exposed(RECORD)[series] == value


def test_untried_pods_are_not_counted_as_unschedulable() -> None:
    left_out = left_out_pods([(pod("p"), NOT_LOOKED_AT), (pod("gated"), "it has a scheduling gate")])
    answer = replace(ANSWER, unschedulable=(*ANSWER.unschedulable, *left_out))

    found = exposed(replace(RECORD, details=answer))

    assert found['tidewatch_unschedulable_pods{recommendation="workers"}'] == 2
    assert summary_text(answer).endswith("; 2 pods that no group can hold")


def test_a_group_that_is_left_out_has_no_series() -> None:
    assert not [series for series in exposed(RECORD) if 'node_group="odd"' in series]


def test_held_sizes_without_facts_state_nothing_about_pods() -> None:
    held = ClusterSizeAnswer((GroupSize("a", None, 5, 5, None, None, "held"),), is_held=True)
    record = Record("workers", "clusterSize", NOW, Status.HELD, "held", details=held)

    names = {series.partition("{")[0] for series in exposed(record)}

    assert "tidewatch_recommended_nodes" in names
    assert not names & {"tidewatch_unschedulable_pods", "tidewatch_node_group_nodes", "tidewatch_pending_pods"}


def test_the_history_sums_the_nodes_of_all_groups_and_the_page_labels_them() -> None:
    groups = [group for group in ANSWER.groups if not group.is_left_out]
    ((name, point),) = points_of(NOW, [RECORD])
    assert point.replicas == sum(group.after_removals for group in groups) > 0
    assert point.current == sum(group.current or 0 for group in groups)
    shown = Publication(leads=True, time=NOW, valid_until=NOW + 60, records=(RECORD,))
    assert "recommended nodes" in PageRenderer("v1").page(shown, {name: (point,)}.__getitem__)


def test_the_page_shows_and_escapes_the_whole_answer() -> None:
    page = PageRenderer("v1").page(
        Publication(leads=True, time=NOW, valid_until=NOW + 60, records=(RECORD,)), lambda _: ()
    )

    assert EVIL not in page
    for text in ("Node groups", "Removable nodes", "Pods for which no node is added", "Nodes that stay", "12%", "x-0"):
        assert text in page
    assert "<strong>4</strong> nodes in 1 node group" in page


def test_the_value_is_one_line_of_text() -> None:
    assert value_text(RECORD) == "4 nodes in 1 group"
    assert log_fields(RECORD, logged(RECORD))["nodes"] == "4 nodes in 1 group"
