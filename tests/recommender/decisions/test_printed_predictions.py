from __future__ import annotations

from recommender.decisions.document import recommendation_list
from recommender.decisions.record import PredictedLoad, Prediction, Record, Status
from recommender.decisions.table import as_text

LOAD = PredictedLoad(180_000.0, 210_000.0, 1140.0, {"0.5": 201_000.0, "0.95": 210_000.0})
PREDICTION = Prediction(LOAD, "quantile", "it was short least", {"quantile": 0.4, "linear": None}, "2.1 % less cost")


def record(prediction: Prediction | None, kind: str = "predictive") -> Record:
    return Record("chat", kind, 1000.0, Status.OK, "", 9, prediction=prediction)


def item(given: Record) -> dict[str, object]:
    items = recommendation_list([given], 1000.0)["items"]
    assert isinstance(items, list)
    return dict(items[0])


def test_the_document_has_the_forecast_with_its_model() -> None:
    found = item(record(PREDICTION))
    assert found["load"] == {
        "now": 180_000,
        "predicted": 210_000,
        "at": "1970-01-01T00:19:00Z",
        "quantiles": {"0.5": 201_000, "0.95": 210_000},
    }
    assert (found["model"], found["model_reason"]) == ("quantile", "it was short least")
    assert found["shortage_versus_headroom"] == {"quantile": 0.4, "linear": None}
    assert found["last_day"] == "2.1 % less cost"


def test_without_a_forecast_the_keys_of_the_kind_are_null() -> None:
    found = item(record(None))
    keys = ("load", "model", "model_reason", "shortage_versus_headroom", "last_day")
    assert {key: found[key] for key in keys} == dict.fromkeys(keys)


def test_other_kinds_lack_these_keys() -> None:
    assert "load" not in item(record(None, "proportional"))


def test_the_text_says_what_is_predicted_by_which_model_and_how_it_did() -> None:
    text = as_text([record(PREDICTION)])
    for line in (
        "load: 180000 now, 210000 predicted for 1970-01-01T00:19:00Z (quantile 0.5: 201000, quantile 0.95: 210000)",
        "model: quantile: it was short least",
        "shortage relative to plain headroom at equal cost: quantile 0.4, linear no shortage",
        "last day: 2.1 % less cost",
    ):
        assert f"  {line}\n" in f"{text}\n"


def test_the_text_of_a_model_without_a_forecast_has_the_observed_load_alone() -> None:
    text = as_text([record(Prediction(PredictedLoad(180.0, None, None), "reactive", "there is no history yet"))])
    assert "load: 180 now\n" in text
