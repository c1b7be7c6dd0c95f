from __future__ import annotations

from dataclasses import replace

from recommender.decisions.loads.prediction import PredictedLoad, Prediction
from recommender.decisions.record import Record, Status, TargetAction, TargetOutcome, TargetReference
from recommender.printed.document import recommendation_list
from recommender.printed.table import as_text

LOAD = PredictedLoad(180_000.0, 210_000.0, 1140.0, {"0.5": 201_000.0, "0.95": 210_000.0})
PREDICTION = Prediction(LOAD, "quantile", "it was short least", {"quantile": 0.4, "linear": None}, "2.1% less cost")


def record(prediction: Prediction | None, kind: str = "predictive") -> Record:
    return Record("chat", kind, 1000.0, Status.OK, "", 9, details=prediction)


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
    assert found["last_day"] == "2.1% less cost"


def test_without_a_forecast_the_keys_of_the_kind_are_null() -> None:
    found = item(record(None))
    keys = ("load", "model", "model_reason", "shortage_versus_headroom", "last_day")
    assert {key: found[key] for key in keys} == dict.fromkeys(keys)


def test_other_kinds_lack_the_keys_of_predictions() -> None:
    assert "load" not in item(record(None, "proportional"))


def test_the_text_shows_the_prediction_its_model_and_its_record() -> None:
    text = as_text([record(PREDICTION)])
    for line in (
        "load      180000 now, 210000 expected at 1970-01-01T00:19:00Z (median 201000, quantile 0.95 210000)",
        "model     quantile: it was short least",
        "shortage  quantile 0.40, linear none (plain headroom at the same cost is 1; less is better)",
        "last day  2.1% less cost",
    ):
        assert f"  {line}\n" in f"{text}\n"


def test_the_text_of_a_model_without_a_forecast_shows_only_the_observed_load() -> None:
    text = as_text([record(Prediction(PredictedLoad(180.0, None, None), "reactive", "there is no history yet"))])
    assert "  load   180 now\n  model  reactive: there is no history yet" in text


def test_long_reasons_are_wrapped_beside_their_names() -> None:
    long = replace(PREDICTION, model_reason="its shortage is less than half of what plain headroom has", last_day="")
    text = as_text([record(long)], width=60)
    assert "  model     quantile: its shortage is less than half of what\n            plain headroom has\n" in text


def target(number: int, status: Status = Status.OK) -> Record:
    each = TargetReference("apps/v1", "Deployment", "shop", f"web-{number}")
    if status is not Status.OK:
        outcomes = (TargetOutcome(each, 4, TargetAction.NONE),)
        return replace(record(None), status=status, message="no series", replicas=None, targets=outcomes, each=each)
    outcomes = (TargetOutcome(each, 8, TargetAction.SCALE),)
    return replace(record(PREDICTION), binding="quantile/load", targets=outcomes, each=each)


def test_the_targets_of_a_recommendation_are_one_line_and_a_table_with_the_worst_first() -> None:
    lines = as_text([target(1), target(2), target(3, Status.STALE)]).splitlines()
    assert [" ".join(line.split()) for line in lines] == [
        "RECOMMENDATION STATUS VALUE DECIDED BY",
        "chat stale 18 replicas 3 targets: 1 stale, 2 ok",
        "",
        "chat",
        "TARGET STATUS NOW VALUE LOAD EXPECTED MODEL DECIDED BY",
        "shop/web-3 stale 4 - - - - no series",
        "shop/web-1 ok 8 9 180000 210000 quantile quantile/load",
        "shop/web-2 ok 8 9 180000 210000 quantile quantile/load",
    ]


def test_a_refused_target_is_shown_with_the_reason() -> None:
    refused = TargetOutcome(TargetReference("apps/v1", "Deployment", "shop", "web-2"), 8, TargetAction.REFUSED)
    records = [target(1), replace(target(2), targets=(replace(refused, message="it has an HPA"),))]
    assert "quantile/load, refused: it has an HPA\n" in as_text(records)


def test_ten_thousand_targets_are_printed_in_a_short_table() -> None:
    lines = as_text([target(number) for number in range(10_000)], width=100).splitlines()
    assert len(lines) < 60
    assert lines[-1] == "  and 9950 more: -o json has all of them"
