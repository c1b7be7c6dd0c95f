"""An entry that is refused for lack of `maxReplicas` gets a suggested number from the history of its load."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest

from recommender.commands.recommend.command import recommend
from tests.recommender.configuration.files import entry, whole

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.prometheus import ScrapedPrometheus

TARGETS = "targets: [{apiVersion: apps/v1, kind: Deployment, namespace: shop, name: web}]"
WEB = "'sum(load{app=\"web\"})'"
UNLIMITED = "the output scale needs `maxReplicas`"


@pytest.fixture(scope="module")
def prometheus(start_prometheus: Callable[..., ScrapedPrometheus]) -> ScrapedPrometheus:
    """Return a Prometheus with two loads of an hour, whose largest values are ten minutes old."""
    now, lines = time.time(), ["# TYPE load gauge"]
    for app, size in (("web", 1.0), ("chat", 3.0)):
        for ago in range(3600, -300, -15):
            value = size * (1000 if 570 <= ago <= 690 else 100)
            lines.append(f'load{{namespace="shop",app="{app}"}} {value} {now - ago}')
    return start_prometheus(history="\n".join([*lines, "# EOF", ""]))


@pytest.mark.parametrize(
    ("predictive", "targets", "message"),
    [
        (
            f"load: {WEB}, loadPerReplica: 100",
            TARGETS,
            "{maxReplicas: 15}: the largest load of the last 2h was 1000, which needs 10, and forecasts are at ",
        ),
        (f"load: {WEB}, loadPerReplica: 100, maxOverHistory: 2", TARGETS, "{maxReplicas: 20}"),
        (f"load: {WEB}, loadPerReplica: 1k, minReplicas: 4", TARGETS, "{maxReplicas: 4}"),
        ("load: load, loadPerReplica: 100, forEach: {namespace: namespace, name: app}", "", "{maxReplicas: 45}"),
        ("load: sum(nothing), loadPerReplica: 100", TARGETS, "its history could not be asked: "),
        ("load: sum(load) - 1e9, loadPerReplica: 100", TARGETS, "which is not a load"),
    ],
    ids=["one load", "another bound", "fewest replicas", "many targets", "no series", "negative"],
)
def test_recommend_names_the_max_replicas_that_the_history_suggests(
    predictive: str,
    targets: str,
    message: str,
    prometheus: ScrapedPrometheus,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "r.yaml"
    kind = f"predictive: {{{predictive}, horizon: 1m, history: 2h}}"
    lines = [each for each in (targets, "outputs: [scale]") if each]
    path.write_text(whole(entry("web", *lines, kind=kind), top=f"prometheus: {{url: '{prometheus.url}'}}\n"))
    with pytest.raises(SystemExit) as end:
        recommend([f"--config={path}", "-o", "json"])
    assert end.value.code == 1
    (item,) = json.loads(capsys.readouterr().out)["items"]
    assert UNLIMITED in item["message"]
    assert message in item["message"]


def test_the_message_says_how_to_get_a_suggestion_if_prometheus_does_not_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "r.yaml"
    kind = "predictive: {load: x, loadPerReplica: 1, horizon: 1m}"
    path.write_text(
        whole(entry("web", TARGETS, "outputs: [scale]", kind=kind), top="prometheus: {url: http://127.0.0.1:9}\n")
    )
    with pytest.raises(SystemExit):
        recommend([f"--config={path}", "-o", "json"])
    (item,) = json.loads(capsys.readouterr().out)["items"]
    assert (
        "recommend, doctor and backtest say which N the history of the load suggests; its history could not be asked"
        in item["message"]
    )
