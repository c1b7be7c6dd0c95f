from __future__ import annotations

from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from recommender.decisions.loads.prediction import PredictedLoad, Prediction
from recommender.decisions.publication import Publication
from recommender.decisions.record import Record, Status, Step, TargetAction, TargetOutcome, TargetReference
from recommender.kinds.proportional.sizes import ContainerSizes
from recommender.kinds.table import all_kinds
from recommender.outputs.metrics import RecommendationMetrics
from recommender.outputs.output_telemetry import RecommenderTelemetry
from recommender.outputs.scale_results import ScaleResult
from tests.recommender.decisions.harness import sized

DNS = TargetReference("apps/v1", "Deployment", "kube-system", "coredns")
RECORD = Record(
    name="coredns",
    type="proportional",
    time=1000.5,
    status=Status.OK,
    message="",
    replicas=11,
    steps=(Step("linear/nodes", 11.0, "ceil(176 / 16)"), Step("linear/cores", 2.0, "ceil(32 / 16)")),
    targets=(TargetOutcome(DNS, 3, TargetAction.METRIC, recommended_replicas=11),),
)

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def scraped(*records: Record, leads: bool = True, now: float = 1001.0) -> Samples:
    latest = Publication(leads=leads, time=1000.5, valid_until=1060.0, records=records)
    metrics = RecommendationMetrics(lambda: leads, all_kinds(), lambda: now)
    assert list(text_string_to_metric_families(metrics.text().decode()))
    metrics.publish(latest)
    found: Samples = {}
    for family in text_string_to_metric_families(metrics.text().decode()):
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in found, f"{key} is exposed twice"
            found[key] = sample.value
    return found


def named(samples: Samples, name: str) -> dict[tuple[tuple[str, str], ...], float]:
    return {labels: value for (found, labels), value in samples.items() if found == name}


def test_a_recommendation_has_the_promised_names_and_labels() -> None:
    assert scraped(RECORD) == {
        (
            "tidewatch_recommended_replicas",
            (
                ("recommendation", "coredns"),
                ("target_kind", "Deployment"),
                ("target_name", "coredns"),
                ("target_namespace", "kube-system"),
            ),
        ): 11.0,
        (
            "tidewatch_target_replicas",
            (
                ("recommendation", "coredns"),
                ("target_kind", "Deployment"),
                ("target_name", "coredns"),
                ("target_namespace", "kube-system"),
            ),
        ): 3.0,
        ("tidewatch_recommendation_step", (("recommendation", "coredns"), ("step", "linear/nodes"))): 11.0,
        ("tidewatch_recommendation_step", (("recommendation", "coredns"), ("step", "linear/cores"))): 2.0,
        ("tidewatch_recommendation_timestamp_seconds", (("recommendation", "coredns"),)): 1000.5,
        ("tidewatch_recommendation_status", (("recommendation", "coredns"), ("status", "ok"))): 1.0,
        ("tidewatch_recommendation_status", (("recommendation", "coredns"), ("status", "held"))): 0.0,
        ("tidewatch_recommendation_status", (("recommendation", "coredns"), ("status", "stale"))): 0.0,
        ("tidewatch_recommendation_status", (("recommendation", "coredns"), ("status", "error"))): 0.0,
    }


@pytest.mark.parametrize(
    ("record", "replicas", "timestamps"),
    [
        (replace(RECORD, status=Status.HELD, time=900.0), [11.0], [900.0]),
        (sized(RECORD, 0), [0.0], [1000.5]),
        (replace(RECORD, status=Status.STALE), [], []),
        (replace(RECORD, status=Status.ERROR), [], []),
        (sized(RECORD, None), [], [1000.5]),
    ],
    ids=["held", "zero", "stale", "error", "only-resources"],
)
def test_a_value_is_exposed_only_while_it_is_valid(
    record: Record, replicas: list[float], timestamps: list[float]
) -> None:
    samples = scraped(record)
    assert list(named(samples, "tidewatch_recommended_replicas").values()) == replicas
    assert list(named(samples, "tidewatch_recommendation_timestamp_seconds").values()) == timestamps
    present = [labels for labels, value in named(samples, "tidewatch_recommendation_status").items() if value]
    assert present == [(("recommendation", "coredns"), ("status", record.status.value))]


def test_sizes_of_containers_are_cores_and_bytes() -> None:
    resources = {
        "dns": {"requests": {"cpu": "150m", "memory": "68Mi"}, "limits": {"memory": "1e8", "nvidia.com/gpu": "2"}},
        "log": {"limits": {"cpu": "2"}},
    }
    record = replace(RECORD, details=ContainerSizes(resources))
    found = named(scraped(record), "tidewatch_recommended_resources")
    parts = {
        tuple(value for key, value in labels if key in {"container", "resource", "bound"}): size
        for labels, size in found.items()
    }
    assert parts == {
        ("target", "dns", "cpu"): 0.15,
        ("target", "dns", "memory"): 68.0 * 1024 * 1024,
        ("upper", "dns", "memory"): 1e8,
        ("target", "dns", "nvidia.com/gpu"): 2.0,
        ("target", "log", "cpu"): 2.0,
    }
    of_target = [("target_kind", "Deployment"), ("target_name", "coredns"), ("target_namespace", "kube-system")]
    assert all(list(labels)[-3:] == of_target for labels in found)
    assert named(scraped(replace(record, status=Status.STALE)), "tidewatch_recommended_resources") == {}
    assert len(named(scraped(replace(record, targets=())), "tidewatch_recommended_resources")) == len(found)


def test_only_the_leader_exposes_recommendations() -> None:
    assert scraped(RECORD, leads=False) == {}


def test_series_end_when_polls_no_longer_succeed() -> None:
    assert scraped(RECORD, now=1060.0)
    assert scraped(RECORD, now=1060.1) == {}


def test_records_with_the_same_name_never_expose_a_series_twice() -> None:
    other = TargetOutcome(replace(DNS, name="other"), 1, TargetAction.METRIC, recommended_replicas=4)
    records = (RECORD, replace(RECORD, time=5.0, status=Status.HELD, replicas=4, targets=(other, *RECORD.targets)))
    samples = scraped(*records)
    assert sorted(named(samples, "tidewatch_recommended_replicas").values()) == [4.0, 11.0]
    assert list(named(samples, "tidewatch_recommendation_timestamp_seconds").values()) == [5.0]
    present = [labels for labels, value in named(samples, "tidewatch_recommendation_status").items() if value]
    assert present == [(("recommendation", "coredns"), ("status", "held"))]


def test_a_step_without_a_finite_value_is_not_exposed() -> None:
    steps = (Step("query", float("nan"), ""), Step("max", 3.0, ""))
    samples = named(scraped(replace(RECORD, steps=steps)), "tidewatch_recommendation_step")
    assert list(samples.values()) == [3.0]


def test_removed_entries_and_namespaces_without_objects_are_no_longer_counted() -> None:
    registry = CollectorRegistry(auto_describe=True)
    telemetry = RecommenderTelemetry(registry)
    telemetry.add_scale_output("web")
    for name in ("coredns", "former", "shop/a", "preview-1/a"):
        telemetry.count_scale_call(name, ScaleResult.OK)
        telemetry.observe_decision(name, 0.004)

    def counted() -> set[str]:
        found = (sample.labels.get("recommendation") for family in registry.collect() for sample in family.samples)
        return {name for name in found if name}

    telemetry.keep(["coredns", "former", "web", "shop/a"], None)
    assert counted() == {"coredns", "former", "web", "shop/*", "preview-1/*"}
    telemetry.keep(["coredns"], None)
    assert counted() == {"coredns", "shop/*", "preview-1/*"}
    telemetry.keep(["coredns"], {"shop/b"})
    assert counted() == {"coredns", "shop/*"}
    # A scale call or a decision that was under way may end later.
    for late in ("preview-1/a", "former"):
        telemetry.count_scale_call(late, ScaleResult.OK)
    telemetry.keep(["coredns"], {"shop/b"})
    assert counted() == {"coredns", "shop/*"}


def test_the_process_exposes_counters_with_stable_names() -> None:
    registry = CollectorRegistry(auto_describe=True)
    telemetry = RecommenderTelemetry(registry)
    telemetry.add_scale_output("coredns")
    telemetry.count_scale_call("coredns", ScaleResult.OK)
    telemetry.record_poll(0.02, failures=0)
    telemetry.record_poll(0.02, failures=3)
    telemetry.set_poll_interval(1.0)
    telemetry.observe_decision("coredns", 0.004)
    telemetry.count_event("created")
    telemetry.count_memory_write("ok")
    telemetry.count_history_failure()
    calls = {
        result: registry.get_sample_value(
            "tidewatch_scale_calls_total", {"recommendation": "coredns", "result": result.value}
        )
        for result in ScaleResult
    }
    assert calls == {result: float(result is ScaleResult.OK) for result in ScaleResult}
    for name, labels in (
        ("polls_total", {"result": "ok"}),
        ("polls_total", {"result": "error"}),
        ("decision_duration_seconds_count", {"recommendation": "coredns"}),
        ("events_total", {"result": "created"}),
        ("memory_writes_total", {"result": "ok"}),
        ("history_failures_total", {}),
        ("poll_interval_seconds", {}),
    ):
        assert registry.get_sample_value(f"tidewatch_recommender_{name}", labels) == 1.0, name


def test_a_target_of_unknown_size_exposes_no_size() -> None:
    unknown = replace(RECORD, targets=(replace(RECORD.targets[0], current_replicas=None),))
    assert named(scraped(unknown), "tidewatch_target_replicas") == {}
    assert len(named(scraped(unknown), "tidewatch_recommended_replicas")) == 1


def test_the_step_that_binds_is_marked() -> None:
    bound = replace(RECORD, binding="linear/nodes")
    labels = (("recommendation", "coredns"), ("step", "linear/nodes"))
    assert named(scraped(bound), "tidewatch_recommendation_binding") == {labels: 1.0}
    assert named(scraped(replace(bound, status=Status.STALE)), "tidewatch_recommendation_binding") == {}


def test_names_that_need_escapes_are_exposed_unchanged() -> None:
    odd = 'we"b\\1\n2'
    samples = named(scraped(replace(RECORD, name=odd)), "tidewatch_recommended_replicas")
    assert [dict(labels)["recommendation"] for labels in samples] == [odd]


LOAD = PredictedLoad(now=180.0, predicted=210.0, at=1180.0, quantiles={"0.5": 201.0, "0.95": 210.0})
PREDICTION = Prediction(LOAD, "quantile", "", shortage_versus_headroom={"quantile": 0.4, "linear": None})


def test_with_for_each_every_target_has_its_own_status_and_time() -> None:
    targets = [replace(DNS, name=name) for name in ("a", "b", "c")]
    states = [(Status.OK, 3, 1000.0), (Status.HELD, 4, 900.0), (Status.STALE, None, 800.0)]
    records = [
        replace(
            RECORD,
            status=status,
            replicas=replicas,
            time=time,
            targets=(TargetOutcome(target, None, TargetAction.METRIC, recommended_replicas=replicas),),
            details=PREDICTION,
            each=target,
        )
        for target, (status, replicas, time) in zip(targets, states, strict=True)
    ]
    samples = scraped(*records)

    def by_target(name: str, label: str = "target_namespace") -> dict[str, tuple[str, float]]:
        found = [(dict(labels), value) for labels, value in named(samples, name).items()]
        return {labels["target_name"]: (labels[label], value) for labels, value in found}

    assert by_target("tidewatch_recommended_replicas") == {"a": ("kube-system", 3.0), "b": ("kube-system", 4.0)}
    assert by_target("tidewatch_recommendation_timestamp_seconds") == {
        "a": ("kube-system", 1000.0),
        "b": ("kube-system", 900.0),
    }
    assert by_target("tidewatch_recommendation_status", "status") == {
        "a": ("ok", 1.0),
        "b": ("held", 1.0),
        "c": ("stale", 1.0),
    }
    assert list(named(samples, "tidewatch_model_active").values()) == [2.0]
    for family in ("step", "binding"):
        assert not named(samples, f"tidewatch_recommendation_{family}")
