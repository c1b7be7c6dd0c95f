from __future__ import annotations

from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from recommender.decisions.loads.prediction import PredictedLoad, Prediction
from recommender.decisions.record import Record, Status, TargetAction, TargetOutcome, TargetReference
from recommender.kinds.predictive.shown import PREDICTION_FAMILIES, prediction_samples
from recommender.outputs.metric_text import exposition_of


def record(name: str, target: str, prediction: Prediction | None) -> Record:
    outcome = TargetOutcome(TargetReference("apps/v1", "Deployment", "chat", target), 3, TargetAction.METRIC)
    return Record(name, "predictive", 1000.0, Status.OK, "", 9, targets=(outcome,), details=prediction)


def prediction(model: str = "quantile", **ratios: float | None) -> Prediction:
    load = PredictedLoad(180.0, 210.0, 1140.0, {"0.5": 201.0, "0.95": 210.0})
    return Prediction(load, model, "it was short least", ratios)


_SHOWN_LABELS = ("recommendation", "target_name", "model", "quantile")


def samples(*records: Record) -> dict[tuple[str, ...], float]:
    """Return the samples by name and label values, without those of the target's namespace and kind."""
    text = exposition_of(PREDICTION_FAMILIES, prediction_samples(records))
    return {
        (
            sample.name.removeprefix("tidewatch_"),
            *(sample.labels[key] for key in _SHOWN_LABELS if key in sample.labels),
        ): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def test_a_forecast_is_exposed_with_its_quantiles_its_model_and_the_records_of_all_models() -> None:
    assert samples(record("chat", "gateway", prediction(quantile=0.4, seasonal=1.2))) == {
        ("predicted_load", "chat", "gateway", "0.5"): 201.0,
        ("predicted_load", "chat", "gateway", "0.95"): 210.0,
        ("observed_load", "chat", "gateway"): 180.0,
        ("model_active", "chat", "quantile"): 1.0,
        ("model_shortage_versus_headroom", "chat", "quantile"): 0.4,
        ("model_shortage_versus_headroom", "chat", "seasonal"): 1.2,
    }


def test_a_model_without_a_forecast_leaves_only_the_observed_load() -> None:
    without = Prediction(PredictedLoad(180.0, None, None), "reactive", "there is no history yet")
    assert samples(record("chat", "gateway", without)) == {
        ("observed_load", "chat", "gateway"): 180.0,
        ("model_active", "chat", "reactive"): 1.0,
    }


def test_a_model_without_any_shortage_has_no_ratio() -> None:
    found = samples(record("chat", "gateway", prediction(quantile=None)))
    assert not [key for key in found if key[0] == "model_shortage_versus_headroom"]


def test_many_targets_of_one_recommendation_are_counted_by_model_and_their_ratios_are_averaged() -> None:
    found = samples(
        record("chat", "a", prediction("quantile", quantile=0.4)),
        record("chat", "b", prediction("quantile", quantile=0.6)),
        record("chat", "c", prediction("headroom")),
    )
    assert found["model_active", "chat", "quantile"] == 2.0
    assert found["model_active", "chat", "headroom"] == 1.0
    assert found["model_shortage_versus_headroom", "chat", "quantile"] == pytest.approx(0.5)
    assert {key[2] for key in found if key[0] == "observed_load"} == {"a", "b", "c"}


def test_the_cost_of_many_targets_is_their_mean_and_is_shown_with_the_budget() -> None:
    costs = (("a", 0.2), ("b", 0.6), ("c", None))
    found = samples(
        *(
            record("chat", name, replace(prediction(), cost_above_load_ratio=cost, budget_ratio=0.25))
            for name, cost in costs
        ),
        record("feed", "d", replace(prediction(), cost_above_load_ratio=0.1)),
    )
    assert {key: value for key, value in found.items() if key[0].startswith("forecast_")} == {
        ("forecast_cost_ratio", "chat"): pytest.approx(0.4),
        ("forecast_cost_ratio", "feed"): pytest.approx(0.1),
        ("forecast_budget_ratio", "chat"): pytest.approx(0.25),
    }


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_nan_or_infinite_value_has_no_sample(value: float) -> None:
    broken = Prediction(PredictedLoad(180.0, value, 1140.0, {"0.95": value}), "linear", "")
    assert not [key for key in samples(record("chat", "gateway", broken)) if key[0] == "predicted_load"]


def test_a_recommendation_of_another_kind_has_none_of_these_samples() -> None:
    assert samples(record("coredns", "coredns", None)) == {}
