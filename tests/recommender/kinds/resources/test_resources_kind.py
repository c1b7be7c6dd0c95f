"""Requests from usage as a recommendation: from the configuration to records, metrics, JSON, text and the page."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.cluster.values.state import Autoscaler, ClusterState, Observed, Unknown
from adapter.foundation.time.clock import Clock
from recommender.decisions.inputs import Inputs
from recommender.decisions.publication import Publication
from recommender.decisions.record import Status
from recommender.kinds.resources.size_record import ResourceSize, WorkloadUsage
from recommender.kinds.resources.workloads import WorkloadAutoscaler
from recommender.kinds.table import all_kinds
from recommender.outputs.metrics import RecommendationMetrics
from recommender.page.rendering import PageRenderer
from recommender.page.selection import Selection
from recommender.printed.table import as_text
from recommender.running.memory.folder_store import FolderMemoryStore
from recommender.running.memory.memories import Memories
from recommender.running.polls.poll_decisions import PollDecisions
from tests.recommender.kinds.resources.usage_decisions import (
    API,
    MIB,
    NOW,
    WEB,
    cluster,
    decided,
    decided_after,
    hpa,
    inputs,
    item_of,
    last,
    plan,
    requests,
    size,
    usage,
)

if TYPE_CHECKING:
    from pathlib import Path


def test_the_record_has_the_requests_with_their_bounds() -> None:
    [record] = decided(plan(), inputs({WEB: usage()}))
    item = item_of(record)
    assert (record.status, record.each) == (Status.OK, WEB)
    assert item["resources"] == {
        "app": {
            "requests": {"cpu": "300m", "memory": "400Mi"},
            "lower": {"cpu": "150m", "memory": "200Mi"},
            "upper": {"cpu": "600m", "memory": "800Mi"},
            "current": {"cpu": "1", "memory": "1Gi"},
            "held": {},
        }
    }
    assert [step["step"] for step in item["steps"]] == ["app/cpu", "app/memory"]


def test_metrics_have_bounds_in_cores_and_bytes() -> None:
    metrics = RecommendationMetrics(lambda: True, all_kinds(), lambda: NOW)
    records = tuple(decided(plan(), inputs({WEB: usage()})))
    metrics.publish(Publication(leads=True, leader="me", time=NOW, valid_until=NOW + 60, records=records))
    target = 'target_kind="Deployment",target_name="web",target_namespace="shop"'
    for bound, resource, value in (("lower", "cpu", 0.15), ("target", "cpu", 0.3), ("upper", "memory", 800.0 * MIB)):
        labels = f'bound="{bound}",container="app",recommendation="sizes",resource="{resource}",{target}'
        [line] = [line for line in metrics.text().decode().splitlines() if labels in line]
        assert float(line.split()[-1]) == value


def test_text_and_page_show_the_requests() -> None:
    records = decided(plan(), inputs({WEB: usage(), API: usage(500)}))
    text = as_text(records)
    assert "shop/web" in text
    assert "300m" in text
    assert "sizes of 2 targets" in text
    publication = Publication(records=tuple(records), time=NOW, leads=True)
    page = PageRenderer("1").page(publication, lambda _: (), Selection("sizes", "shop/web"))
    assert "300m" in page


def test_one_target_without_usage_does_not_affect_others() -> None:
    web, api = sorted(
        decided(plan(), inputs({WEB: usage(), API: Unknown("no samples")})), key=lambda each: str(each.each)
    )[::-1]
    assert (web.status, api.status) == (Status.OK, Status.STALE)
    assert "no samples" in api.message


@pytest.mark.parametrize(
    ("followed", "held", "kept"),
    [
        (hpa("cpu"), {"cpu"}, {"cpu": "1", "memory": "400Mi"}),
        (hpa("memory"), {"memory"}, {"cpu": "300m", "memory": "1Gi"}),
        (hpa("cpu", "memory"), {"cpu", "memory"}, {"cpu": "1", "memory": "1Gi"}),
        (hpa("cpu", name="api"), set(), {"cpu": "300m", "memory": "400Mi"}),
        (hpa(), set(), {"cpu": "300m", "memory": "400Mi"}),
    ],
    ids=["cpu", "memory", "both", "another target", "other metrics"],
)
def test_requests_of_resources_that_an_hpa_follows_are_held(
    followed: Autoscaler, held: set[str], kept: dict[str, str]
) -> None:
    [record] = decided(plan(), inputs({WEB: usage()}, cluster(followed)))
    assert requests(record) == kept
    assert {word for word in ("cpu", "memory") if f"requests of {word} stay" in record.message} == held
    assert (record.status is Status.HELD) == bool(held)


def test_a_request_held_for_an_hpa_does_not_count_as_a_change() -> None:
    memory = replace(last(500), changes=(NOW - 10,))
    [record] = decided(plan("maxChangesPerHour: 1"), inputs({WEB: usage()}, cluster(hpa("cpu"))), memory)
    assert requests(record) == {"cpu": "1", "memory": "400Mi"}
    assert "in the last hour" not in record.message


def test_an_hpa_known_only_from_kube_state_metrics_counts_too() -> None:
    found = replace(usage(), autoscaler=WorkloadAutoscaler("web", ("CPU",)))
    [record] = decided(plan(), inputs({WEB: found}))
    assert requests(record) == {"cpu": "1", "memory": "400Mi"}


def test_also_with_hpa_changes_requests_that_an_hpa_follows() -> None:
    followed = plan(kind="fromUsage: {}, forEach: {namespaces: [shop]}, alsoWithHPA: true")
    [record] = decided(followed, inputs({WEB: usage()}, cluster(hpa("cpu"))))
    assert requests(record) == {"cpu": "300m", "memory": "400Mi"}


def test_requests_are_held_while_hpas_are_unknown() -> None:
    unknown = ClusterState(autoscalers={"shop": Unknown("the API server does not answer")})
    [record] = decided(plan(), inputs({WEB: usage()}, unknown))
    assert requests(record) == {"cpu": "1", "memory": "1Gi"}
    assert "does not answer" in record.message


def test_an_unknown_request_held_for_an_hpa_is_left_out() -> None:
    [record] = decided(plan(), inputs({WEB: usage(cpu=300, memory=400 * MIB)}, cluster(hpa("cpu"))))
    assert requests(record)["cpu"] == "1"
    unstated = usage()
    unstated = replace(unstated, sizes=(replace(unstated.sizes[0], cpu=size(300)),))
    [record] = decided(plan(), inputs({WEB: unstated}, cluster(hpa("cpu"))))
    assert requests(record) == {"memory": "400Mi"}


@pytest.mark.parametrize(
    ("lines", "before", "used", "expected", "binding"),
    [
        (("paused: true",), 500, 300, 500, "app/cpu/paused"),
        (("paused: down",), 500, 300, 500, "app/cpu/paused"),
        (("paused: down",), 200, 300, 300, None),
        (("paused: up",), 200, 300, 200, "app/cpu/paused"),
        (("paused: up",), 500, 300, 300, None),
        (("maxStep: 10%",), 500, 300, 450, "app/cpu/maxStep"),
        (("maxStep: 10%",), 200, 300, 220, "app/cpu/maxStep"),
        (("maxChangesPerHour: 5",), 200, 300, 300, None),
    ],
)
def test_brakes_apply_to_requests(
    lines: tuple[str, ...], before: int, used: int, expected: int, binding: str | None
) -> None:
    [record] = decided(plan(*lines), inputs({WEB: usage(used)}), last(before))
    assert requests(record)["cpu"] == f"{expected}m"
    assert record.binding == binding
    assert (record.status is Status.HELD) is (binding == "app/cpu/paused")


def test_a_pause_before_the_first_decision_recommends_nothing_for_containers_without_requests() -> None:
    unstated = replace(usage().sizes[0], cpu=size(300), memory=size(400 * MIB))
    [record] = decided(plan("paused: true"), inputs({WEB: WorkloadUsage((unstated,))}))
    assert (record.status, record.has_value) == (Status.HELD, False)
    assert [step.step for step in record.steps] == ["app/cpu", "app/memory"]


def test_too_many_changes_keep_the_last_requests() -> None:
    memory = replace(last(500), changes=(NOW - 60, NOW - 30))
    [record] = decided(plan("maxChangesPerHour: 2"), inputs({WEB: usage(300)}), memory)
    assert requests(record)["cpu"] == "500m"
    assert record.status is Status.HELD


def test_min_and_max_hold_whatever_the_brakes_keep() -> None:
    kind = "fromUsage: {}, forEach: {}, min: {cpu: 600m}, max: {memory: 256Mi}"
    [record] = decided(plan("paused: true", kind=kind), inputs({WEB: usage(300)}), last(500))
    assert requests(record) == {"cpu": "600m", "memory": "256Mi"}


@pytest.mark.parametrize("age", [901.0, -10.0])
def test_usage_that_is_too_old_or_from_the_future_gives_no_value(age: float) -> None:
    given = Inputs(cluster(), usage={"sizes": {WEB: Observed(usage(), NOW - age)}})
    [record] = decided(plan(), given, last(500))
    assert (record.status, record.has_value) == (Status.STALE, False)


def test_containers_with_too_little_history_are_left_out_and_named() -> None:
    young = replace(usage().sizes[0], container="new", cpu=None, memory=None, message="only 10m of history")
    [record] = decided(plan(), inputs({WEB: WorkloadUsage((*usage().sizes, young))}))
    assert "new: only 10m of history" in record.message
    assert record.inputs["containers"] == 1


def test_a_target_none_of_whose_containers_can_be_sized_has_no_value_and_says_why() -> None:
    young = replace(usage().sizes[0], cpu=None, memory=None, message="only 10m of history")
    [record] = decided(plan(), inputs({WEB: WorkloadUsage((young,))}), last(500))
    assert (record.status, record.has_value) == (Status.STALE, False)
    assert "only 10m of history" in record.message


def test_each_named_target_has_its_own_record() -> None:
    target = "{apiVersion: apps/v1, kind: Deployment, namespace: shop, name: %s}"
    followed = plan(f"targets: [{target % 'web'}, {target % 'api'}]", kind="fromUsage: {percentile: 95, margin: 20%}")
    records = decided(followed, inputs({WEB: usage(), API: usage(100)}))
    assert {record.each for record in records} == {WEB, API}
    assert followed.needs.autoscaler_namespaces == {"shop"}


@pytest.mark.parametrize(
    ("used", "history_seconds", "expected"),
    [
        # A core is requested, and the upper bound is twice the target.
        (300, 3600.0, "600m"),
        (300, 86_399.0, "600m"),
        (300, 86_400.0, "300m"),
        (700, 3600.0, "1"),
        # More is given at once.
        (1200, 3600.0, "1200m"),
    ],
)
def test_requests_with_little_history_are_lowered_only_to_the_upper_bound(
    used: int, history_seconds: float, expected: str
) -> None:
    [record] = decided(plan(), inputs({WEB: usage(used, history_seconds=history_seconds)}))
    assert requests(record)["cpu"] == expected
    assert ("less than a day" in record.message) is (history_seconds < 86_400)


def test_requests_with_a_gap_in_their_history_are_lowered_only_to_the_upper_bound() -> None:
    [record] = decided(plan(), inputs({WEB: usage(history_seconds=200_000.0, measured_seconds=7200.0)}))
    assert requests(record) == {"cpu": "600m", "memory": "800Mi"}
    assert "less than a day" in record.message


def test_memory_with_less_history_than_cpu_is_lowered_only_to_the_upper_bound() -> None:
    [record] = decided(plan(), inputs({WEB: usage(memory_history_seconds=3600.0)}))
    assert requests(record) == {"cpu": "300m", "memory": "800Mi"}
    assert "less than a day" in record.message


@pytest.mark.parametrize(
    ("usage_keys", "percentile_ratio", "margin_ratio", "detail"),
    [
        ("{}", 0.9, 0.15, "percentile 90, and 15%"),
        ("{percentile: auto}", None, 0.05, "percentile of its own, and 5%"),
        ("{percentile: auto, margin: 20%}", None, 0.2, "percentile of its own, and 20%"),
        ("{percentile: 95}", 0.95, 0.15, "percentile 95, and 15%"),
    ],
)
def test_a_percentile_is_a_number_or_automatic_for_each_container(
    usage_keys: str, percentile_ratio: float | None, margin_ratio: float, detail: str
) -> None:
    followed = plan(kind=f"fromUsage: {usage_keys}, forEach: {{}}")
    [record] = decided(followed, inputs({WEB: usage()}))
    assert record.steps[0].detail == detail
    [recommendation] = followed.configuration.recommendations
    found = recommendation.subject.from_usage
    assert (found.percentile_ratio, found.margin_ratio) == (percentile_ratio, margin_ratio)


@pytest.mark.parametrize(
    ("most", "used", "status", "changes"), [(1, 300, Status.OK, 1), (1, 400, Status.HELD, 1), (2, 400, Status.OK, 2)]
)
def test_requests_that_stay_the_same_are_no_change(most: int, used: int, status: Status, changes: int) -> None:
    memory = replace(last(300), changes=(NOW - 60,))
    [found] = decided_after(plan(f"maxChangesPerHour: {most}"), inputs({WEB: usage(used)}), memory)
    [decision] = found.decisions
    assert found.memory is not None
    assert (decision.record.status, len(found.memory.by_target[WEB].changes)) == (status, changes)


def with_cpu(of_cpu: ResourceSize) -> WorkloadUsage:
    return WorkloadUsage((replace(usage().sizes[0], cpu=of_cpu),))


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        # From the current request of a core, and then from the last recommendation.
        ((usage(500), usage(500)), ["900m", "810m"]),
        # From the first recommendation, where the current request is unknown.
        ((with_cpu(size(500)), with_cpu(size(900))), ["500m", "550m"]),
    ],
    ids=["requested", "unknown"],
)
def test_steps_begin_at_the_last_request_even_after_a_restart(
    tmp_path: Path, seen: tuple[WorkloadUsage, ...], expected: list[str]
) -> None:
    followed = plan("maxStep: 10%")

    def polled(found: WorkloadUsage) -> str:
        memories = Memories(FolderMemoryStore(tmp_path))
        [decided_now] = PollDecisions(memories, Clock()).decide(followed, inputs({WEB: found}), NOW)
        assert decided_now.memory is not None
        memories.remember("sizes", decided_now.memory)
        [decision] = decided_now.decisions
        return requests(decision.record)["cpu"]

    assert [polled(each) for each in seen] == expected
