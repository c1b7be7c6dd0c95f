"""The page shows what a publication contains."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import pytest

from recommender.decisions.history_point import HistoryPoint
from recommender.decisions.loads.prediction import PredictedLoad, Prediction
from recommender.decisions.publication import Publication
from recommender.decisions.record import Record, Status, Step, TargetAction, TargetOutcome, TargetReference
from recommender.kinds.proportional.sizes import ContainerSizes
from recommender.page.rendering import PageRenderer

RENDERER = PageRenderer("0.1.0")
COREDNS = TargetReference("apps/v1", "Deployment", "kube-system", "coredns")


VOID = {"meta", "link", "line", "path", "input"}


def record(**changes: object) -> Record:
    values: dict[str, object] = {
        "name": "coredns",
        "type": "proportional",
        "time": 1_763_800_000.0,
        "status": Status.OK,
        "message": "",
        "replicas": 11,
        "inputs": {"nodes": 180, "cores": 2880},
        "steps": (Step("linear/nodes", 11, "ceil(176 / 16)"), Step("largest", 11, "nodes 11, cores 11")),
        "binding": "linear/nodes",
        "targets": (TargetOutcome(COREDNS, 3, TargetAction.SCALE, recommended_replicas=11),),
    }
    return Record(**(values | changes))  # type: ignore[arg-type]


def page(*records: Record, points: dict[str, list[HistoryPoint]] | None = None, **publication: object) -> str:
    values: dict[str, object] = {"leads": True, "time": 1_763_800_000.0, "records": records}
    return RENDERER.page(Publication(**(values | publication)), lambda name: (points or {}).get(name, ()))  # type: ignore[arg-type]


class Balanced(HTMLParser):
    """A parser that fails on elements that do not nest."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag


def test_a_change_is_shown_with_its_reason() -> None:
    text = page(record())
    assert "<strong>11</strong> replicas, decided by <code>linear/nodes</code>" in text
    assert "3 → 11" in text
    assert "ceil(176 / 16)" in text


def test_a_refusal_names_the_owner_and_the_reason() -> None:
    refused = TargetOutcome(
        COREDNS, 3, TargetAction.REFUSED, "HorizontalPodAutoscaler kube-system/dns", "Remove the HPA."
    )
    text = page(record(targets=(refused,)))
    assert "refused" in text
    assert "HorizontalPodAutoscaler kube-system/dns" in text
    assert "Remove the HPA." in text


@pytest.mark.parametrize(
    ("publication", "expected"),
    [
        ({"time": None, "records": ()}, "has not made its first decision yet"),
        ({"leads": False, "leader": "pod-b_1", "time": None}, "The leader is <code>pod-b_1</code>"),
        ({"leads": False, "leader": "", "time": None}, "If that lasts, its log says why."),
        ({"records": ()}, "The configuration has no recommendations: add entries"),
    ],
)
def test_a_page_without_recommendations_explains_why(publication: dict[str, object], expected: str) -> None:
    assert expected in page(**publication)  # type: ignore[arg-type]


def test_a_recommendation_without_a_value_shows_neither_its_time_nor_a_deciding_step() -> None:
    without = record(status=Status.ERROR, replicas=None, binding="max", targets=())
    text = page(without)
    assert "Value of" not in text
    assert "Decided at <time>2025-11-22 08:26:40 UTC</time>" in text
    assert "Value of <time>2025-11-22 08:26:40 UTC</time>" in page(record())
    many = [replace(without, name=f"web-{number}", message=f"{number}") for number in range(61)]
    assert "<td>max</td>" not in page(*many)
    assert "<td>linear/nodes</td>" in page(record(), *many)


@pytest.mark.parametrize("status", list(Status))
def test_every_status_is_written_out_and_not_only_colored(status: Status) -> None:
    assert f">{status.value.capitalize() if status is not Status.OK else 'OK'}</span>" in page(record(status=status))


def test_a_forecast_is_shown_with_its_time_its_band_its_model_and_the_record_of_all_models() -> None:
    load = PredictedLoad(180_000.0, 214_902.3, 1_763_800_600.0, {"0.5": 201_000.0, "0.95": 214_902.3})
    ratios = {"quantile": 0.41, "linear": 1.5, "headroom": 0.998, "reactive": None}
    prediction = Prediction(load, "quantile", "it was short least", ratios, "0.4% short, headroom 1.1%")
    text = page(record(type="predictive", details=prediction))
    for part in (
        "<dt>load now</dt><dd>180,000</dd>",
        "<dt>predicted for 08:36 UTC, in 10 min</dt><dd>214,902</dd>",
        "<dt>median</dt><dd>201,000</dd>",
        "<code>quantile</code>: it was short least",
        '<td class="number">0.41</td><td>less shortage than plain headroom</td>',
        "more shortage than plain headroom",
        '<td class="number">1.00</td><td>as plain headroom</td>',
        "neither had a shortage",
        "0.4% short, headroom 1.1%",
    ):
        assert part in text
    Balanced().feed(text)


def test_a_model_without_a_forecast_is_shown_as_such() -> None:
    prediction = Prediction(PredictedLoad(180.0, None, None), "reactive", "there is no history yet")
    assert "<dd>no forecast</dd>" in page(record(type="predictive", details=prediction))


def test_names_and_messages_cannot_become_markup() -> None:
    hostile = "<script>alert(1)</script>\"'&"
    target = TargetReference("apps/v1", "Deployment", "x", hostile)
    text = page(
        record(
            name=hostile,
            message=hostile,
            binding=hostile,
            steps=(Step(hostile, 1, hostile),),
            inputs={hostile: 1},
            targets=(TargetOutcome(target, 1, TargetAction.REFUSED, hostile, hostile),),
            details=ContainerSizes({hostile: {"requests": {hostile: hostile}}}),
        ),
        points={hostile: [HistoryPoint(1.0, 1, "ok", None, 1)]},
    )
    assert "<script" not in text
    Balanced().feed(text)


def test_elements_are_nested_correctly() -> None:
    parser = Balanced()
    parser.feed(
        page(record(), record(name="sizes", replicas=None, details=ContainerSizes({"dns": {"requests": {"cpu": "1"}}})))
    )
    assert parser.open == []


def test_nothing_is_loaded_from_elsewhere() -> None:
    assert "http" not in page(record(), points={"coredns": [HistoryPoint(1.0, 1, "ok", None, 1)]})
