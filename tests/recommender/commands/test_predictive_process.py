"""A predictive recommendation with a real Prometheus: once by `recommend`, and in a running recommender."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from recommender.commands.main import main
from tests.recommender.configuration.files import entry, whole
from tests.support.apiserver_kinds import DEPLOYMENTS
from tests.support.cluster_objects import metadata_of
from tests.support.object_apiserver import HPAS, ObjectApiServer
from tests.support.recommenders import Recommender, forked_recommender
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.prometheus import ScrapedPrometheus

SPAN_SECONDS = 7_200
RISE = 0.5
"""Connections that are added per second."""
USUAL = "loadPerReplica: 100, horizon: 2m, history: 2h, maxReplicas: 99"
PREDICTIVE = f"predictive: {{load: sum(connections), model: linear, {USUAL}}}"
EACH = (
    f"predictive: {{load: 'sum by (namespace, app) (connections)', model: headroom, headroom: 50%, {USUAL},"
    " forEach: {namespace: namespace, name: app}}"
)
WEB = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": metadata_of("web", "shop"),
    "spec": {"replicas": 40},
    "status": {"replicas": 40, "updatedReplicas": 40, "readyReplicas": 40},
}
TARGETS = "targets: [{apiVersion: apps/v1, kind: Deployment, namespace: shop, name: web}]"


@pytest.fixture(scope="module")
def prometheus(start_prometheus: Callable[..., ScrapedPrometheus]) -> ScrapedPrometheus:
    now, lines = time.time(), ["# TYPE connections gauge"]
    for app, share in (("web", 0.9), ("chat", 0.1)):
        for ago in range(SPAN_SECONDS, -300, -15):
            value = share * (5000 - RISE * ago)
            lines.append(f'connections{{namespace="shop",app="{app}"}} {value} {now - ago}')
    return start_prometheus(history="\n".join([*lines, "# EOF", ""]))


@pytest.fixture(scope="module")
def arguments(prometheus: ScrapedPrometheus, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Return the configuration, and a folder of objects."""
    root = tmp_path_factory.mktemp("predictive")
    (root / "objects").mkdir()
    (root / "objects" / "all.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [WEB]}))
    top = f"pollInterval: 1s\nstate: {root}/state\nprometheus: {{url: '{prometheus.url}'}}\n"
    entries = [
        entry("web", PREDICTIVE, TARGETS, "outputs: [metric]", kind=""),
        entry("each", EACH, "outputs: [metric]", kind=""),
    ]
    (root / "recommender.yaml").write_text(whole(*entries, top=top))
    return f"--config={root}/recommender.yaml", root


def check(item: dict[str, Any]) -> None:
    load = item["load"]
    assert item["model"] == "linear"
    assert load["predicted"] > load["now"] + 120 * RISE
    assert item["replicas"] >= load["predicted"] / 100


def test_recommend_downloads_the_history_and_forecasts(
    arguments: tuple[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    config, root = arguments
    with pytest.raises(SystemExit) as ended:
        main(["recommend", config, f"--cluster={root}/objects", "-o", "json"])
    items = json.loads(capsys.readouterr().out)["items"]

    assert ended.value.code == 0, items
    check(next(item for item in items if item["name"] == "web"))
    each = {item["targets"][0]["name"]: item for item in items if item["name"] == "each"}
    assert set(each) == {"web", "chat"}
    assert each["chat"]["load"]["predicted"] == pytest.approx(1.5 * each["chat"]["load"]["now"])
    assert not (root / "state").exists()


@pytest.mark.parametrize("reads_a_file", [True, False], ids=["a file", "a cluster"])
def test_recommend_knows_the_present_sizes_of_the_targets_that_series_name(
    prometheus: ScrapedPrometheus, tmp_path: Path, capsys: pytest.CaptureFixture[str], *, reads_a_file: bool
) -> None:
    """There is no later poll in which they could be looked up."""
    config = tmp_path / "recommender.yaml"
    top = f"prometheus: {{url: '{prometheus.url}'}}\n"
    config.write_text(whole(entry("each", EACH, "outputs: [metric, scale]", kind=""), top=top))
    with ObjectApiServer() as server:
        server.watched.add(HPAS)
        server.objects.put(DEPLOYMENTS, "shop", "web", WEB)
        kubeconfig = server.kubeconfig(tmp_path / "kubeconfig")
        file = tmp_path / "cluster.json"
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [WEB]}))
        source = f"--cluster={file}" if reads_a_file else f"--kubeconfig={kubeconfig}"
        with pytest.raises(SystemExit) as ended:
            main(["recommend", f"--config={config}", source, "-o", "json"])
    targets = {each["name"]: each for item in json.loads(capsys.readouterr().out)["items"] for each in item["targets"]}

    assert ended.value.code == 0
    assert (targets["web"]["current_replicas"], targets["web"]["action"]) == (40, "scale")
    assert (targets["chat"]["current_replicas"], targets["chat"]["action"]) == (None, "metric")
    assert "Deployment shop/chat does not exist" in targets["chat"]["message"]


@pytest.fixture(scope="module")
def recommender(arguments: tuple[str, Path]) -> Iterator[Recommender]:
    config, root = arguments
    running = forked_recommender(root / "recommender.log", "run", config, f"--objects={root}/objects")
    with running.process:
        yield running


def test_a_running_recommender_forecasts_as_soon_as_it_has_the_history(recommender: Recommender) -> None:
    item = until(lambda: (found := recommender.items().get("web")) and found.get("model") == "linear" and found)
    assert item
    check(item)
    downloads = 'tidewatch_recommender_load_downloads_total{recommendation="web",result="ok"}'
    # A poll that comes late, on a busy machine, asks for the minutes since then as another piece.
    assert float(until(lambda: recommender.metric(downloads)) or 0) >= 1
    samples = recommender.metric('tidewatch_recommender_load_history_samples{recommendation="web"}')
    assert samples is not None
    assert float(samples) > 0
