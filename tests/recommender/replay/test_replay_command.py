from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest

from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from benchmarks.made_past import START, PastPlan, made_past
from recommender.commands.main import main
from recommender.commands.replay.kube_state import PastWindow, read_kube_state
from recommender.recording.recording import RecordingGap
from tests.recommender.replay.kube_series import kube_series
from tests.recommender.replay.recordings import record
from tests.support.annotated_answers import AnnotatedClient
from tests.support.prometheus import scraped_prometheus

if TYPE_CHECKING:
    from pathlib import Path


CONFIGURATION: Final = """
apiVersion: tidewatch.io/v1alpha1
kind: RecommenderConfiguration
recommendations:
- name: nodes
  clusterSize:
    nodeGroups:
    - {name: small, min: 0, max: 100, price: 0.40, selector: {pool: small}}
    - {name: large, min: 0, max: 100, price: 0.82, selector: {pool: large}}
"""
END: Final = "2026-10-02T00:00:00Z"


@pytest.fixture(name="config")
def _config(tmp_path: Path) -> Path:
    path = tmp_path / "recommender.yaml"
    path.write_text(CONFIGURATION)
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as left:
        main(["replay", *map(str, arguments)])
    printed = capsys.readouterr()
    return int(left.value.code or 0), printed.out, printed.err


def replayed(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    status, out, err = run(capsys, "-o", "json", *arguments)
    assert status == 0, err
    document: dict[str, Any] = json.loads(out)
    return document


def test_recording_is_replayed_with_every_policy(
    capsys: pytest.CaptureFixture[str], config: Path, tmp_path: Path
) -> None:
    folder = record(made_past(PastPlan(days=3, nodes=3)), tmp_path / "recording", every=240.0)
    plot = tmp_path / "nodes.svg"
    document = replayed(capsys, "--config", config, "--recording", folder, "--plot", plot)
    assert list(document.items())[:2] == [("apiVersion", "tidewatch.io/v1alpha1"), ("kind", "ReplayReport")]
    names = [policy["name"] for policy in document["policies"]]
    assert names[0] == "configured"
    assert {"expander: price", "utilizationThreshold: 65%", "unneededTime: 5m"} <= set(names)
    assert document["verdict"]["use"] in names
    assert document["recorded"]["node_hours"] == pytest.approx(3 * 72, rel=0.01)
    for policy in document["policies"]:
        assert 0 < policy["node_hours"] < document["recorded"]["node_hours"], "nodes of the night go"
        assert policy["unplaced_pods"] == 0
        assert sum(policy["nodes_by_day"]) * 24 == pytest.approx(policy["node_hours"], rel=0.01)
    assert plot.read_text().startswith("<?xml")


@pytest.mark.parametrize("days", [0.1, 1.25])
def test_the_mean_number_of_nodes_on_the_last_day_covers_only_recorded_time(
    capsys: pytest.CaptureFixture[str], config: Path, tmp_path: Path, days: float
) -> None:
    folder = record(made_past(PastPlan(days=days, nodes=3)), tmp_path / "recording", every=240.0)
    document = replayed(capsys, "--config", config, "--recording", folder)
    assert document["recorded"]["nodes_by_day"] == [3.0] * math.ceil(days)


def test_text_starts_with_the_verdict(capsys: pytest.CaptureFixture[str], config: Path, tmp_path: Path) -> None:
    folder = record(made_past(PastPlan(days=0.1, nodes=3)), tmp_path / "recording")
    status, out, _ = run(capsys, "--config", config, "--recording", folder)
    assert status == 0
    verdict, _, table, notes = out.split("\n\n")
    assert verdict.replace("\n", " ").startswith(
        "No policy is recommended: there are 0 whole days, and a verdict needs 3"
    )
    assert [line.split()[0] for line in table.splitlines()[:3]] == ["POLICY", "recorded", "configured"]
    assert max(map(len, [*verdict.splitlines(), *notes.splitlines()])) <= 80


def test_series_of_kube_state_metrics_give_the_same_result_as_the_recording(
    capsys: pytest.CaptureFixture[str], config: Path, tmp_path: Path
) -> None:
    past = made_past(PastPlan(days=1, nodes=6))
    folder = record(past, tmp_path / "recording")
    by_recording = replayed(capsys, "--config", config, "--recording", folder)
    with scraped_prometheus(tmp_path, history=kube_series(past, 300)) as prometheus:
        flags = ("--prometheus-url", prometheus.url, "--last", "1d", "--end", END)
        by_series = replayed(capsys, "--config", config, *flags)
    pairs = zip(by_recording["policies"], by_series["policies"], strict=True)
    for recorded, scraped in pairs:
        assert scraped["name"] == recorded["name"]
        assert scraped["node_hours"] == pytest.approx(recorded["node_hours"], rel=0.15)
    assert by_series["verdict"]["use"] is None, "a day is too little"
    assert "needs 3" in by_series["verdict"]["reason"]
    assert any("kube-state-metrics does not say" in note for note in by_series["notes"])


def test_pods_that_exceed_the_maxima_are_reported(
    capsys: pytest.CaptureFixture[str], config: Path, tmp_path: Path
) -> None:
    folder = record(made_past(PastPlan(days=0.3, nodes=6)), tmp_path / "recording")
    config.write_text(CONFIGURATION.replace("max: 100", "max: 1"))
    document = replayed(capsys, "--config", config, "--recording", folder)
    unplaced = document["policies"][0]["unplaced_pods"]
    assert unplaced > 1
    notes = [note for note in document["notes"] if "no node at the end" in note]
    assert [note.split(" have ")[0] for note in notes] == [f"{unplaced} pods"]


def test_costs_are_unknown_if_a_group_has_no_price(
    capsys: pytest.CaptureFixture[str], config: Path, tmp_path: Path
) -> None:
    folder = record(made_past(PastPlan(days=0.3, nodes=6)), tmp_path / "recording")
    config.write_text(CONFIGURATION.replace("price: 0.40, ", ""))
    document = replayed(capsys, "--config", config, "--recording", folder)
    outcomes = [document["recorded"], *document["policies"]]
    assert [one["cost"] for one in outcomes] == [None] * len(outcomes)
    assert all(one["node_hours"] > 0 for one in outcomes)
    assert "expander: price" not in [one["name"] for one in document["policies"]]


def test_groups_without_recorded_nodes_are_reported_with_their_selectors(
    capsys: pytest.CaptureFixture[str], config: Path, tmp_path: Path
) -> None:
    folder = record(made_past(PastPlan(days=0.1, nodes=4)), tmp_path / "recording")
    config.write_text(CONFIGURATION.replace("{pool: ", "{pool: other-"))
    status, out, err = run(capsys, "--config", config, "--recording", folder)
    assert (status, out) == (2, "")
    for name in ("small", "large"):
        assert err.count(f"node group {name}: its selector pool=other-{name} matches no node") == 1


@pytest.mark.parametrize(
    "missing",
    ["kube_node_info", "kube_pod_status_phase", "kube_pod_container_resource_requests", "kube_node_status_allocatable"],
)
def test_missing_series_are_named_and_the_replay_is_refused(
    capsys: pytest.CaptureFixture[str], config: Path, tmp_path: Path, missing: str
) -> None:
    past = made_past(PastPlan(days=0.1, nodes=4))
    history = kube_series(past, 300, without=frozenset({missing}))
    with scraped_prometheus(tmp_path, history=history) as prometheus:
        flags = ("--prometheus-url", prometheus.url, "--last", "2h", "--end", "2026-10-01T02:20:00Z")
        status, out, err = run(capsys, "--config", config, *flags)
    assert (status, out) == (2, "")
    assert f"no series {missing}" in err
    assert "kube-state-metrics" in err


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-1", "1e308"])
def test_impossible_values_are_left_out(
    capsys: pytest.CaptureFixture[str], config: Path, tmp_path: Path, value: str
) -> None:
    history = kube_series(made_past(PastPlan(days=0.1, nodes=4)), 300)
    for series in (
        'kube_pod_container_resource_requests{[^}]*uid="u0"',
        "kube_pod_created{[^}]*",
        "kube_node_created{",
    ):
        history = re.sub(rf"^({series}[^}}]*}}) \S+", rf"\1 {value}", history, flags=re.MULTILINE)
    with scraped_prometheus(tmp_path, history=history) as prometheus:
        flags = ("--prometheus-url", prometheus.url, "--last", "2h", "--end", "2026-10-01T02:20:00Z")
        document = replayed(capsys, "--config", config, *flags)
    assert document["policies"][0]["node_hours"] > 0


def test_a_native_histogram_of_others_takes_no_past_away(tmp_path: Path) -> None:
    """The query engine of Prometheus 3 leaves it out of a metric of kube-state-metrics, and says so in its answer."""
    history = kube_series(made_past(PastPlan(days=0.1, nodes=4)), 300)
    with (
        scraped_prometheus(tmp_path, history=history) as prometheus,
        AnnotatedClient(PrometheusSettings(prometheus.url)) as client,
    ):
        found = read_kube_state(client, PastWindow(START, START + 7200, 300), lambda *_: None)
    assert len(found.nodes) == len(found.allocatable) == 4


def test_unrecorded_time_gives_no_verdict(capsys: pytest.CaptureFixture[str], config: Path, tmp_path: Path) -> None:
    past = made_past(PastPlan(days=1, nodes=4))
    gap = RecordingGap(START + 6 * 3600, START + 12 * 3600)
    with scraped_prometheus(tmp_path, history=kube_series(replace(past, gaps=(gap,)), 300)) as prometheus:
        flags = ("--prometheus-url", prometheus.url, "--last", "1d", "--end", END)
        document = replayed(capsys, "--config", config, *flags)
    assert document["verdict"]["use"] is None
    assert "% of the time is not recorded" in document["verdict"]["reason"]
    assert any(note.startswith("1 gap without") for note in document["notes"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "--config is missing"),
        (("--config", "CONFIG"), "no history is given"),
        (("--config", "CONFIG", "--recording", "missing"), "cannot be read"),
        (("--config", "CONFIG", "--recording", "FOLDER"), "there is no recording"),
        (("--config", "CONFIG", "--recording", "x", "--prometheus-url", "http://x"), "cannot be combined"),
        (("--config", "CONFIG", "--recommendation", "node", "--recording", "x"), "did you mean nodes?"),
        (("--config", "CONFIG", "--recording", "CONFIG"), "is not a recording"),
        (("--config", "CONFIG", "--recording", "CONFIG"), "name a file that `run` writes with `record: 30d`"),
        (
            ("--config", "CONFIG", "--prometheus-url", "http://x", "--end", "2199-01-01"),
            "--end: 2199-01-01 is in the future: write a time that is past",
        ),
        (
            ("--config", "CONFIG", "--recording", "x", "--plot", "FOLDER/x.txt"),
            "x.txt cannot be written: its name must end with .png or .svg",
        ),
    ],
)
def test_invalid_flags_are_refused(
    capsys: pytest.CaptureFixture[str], config: Path, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    written = (each.replace("FOLDER", str(tmp_path)).replace("CONFIG", str(config)) for each in arguments)
    status, out, err = run(capsys, *written)
    assert (status, out) == (2, "")
    assert message in err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--spot-interruptions", "small=0.1"), "--spot-interruptions is given alone"),
        (("--spot-absence", "30m"), "--spot-absence is given alone"),
        (("--spot-interruptions", "small", "--spot-absence", "30m"), "'small' is not GROUP=RATE"),
        (("--spot-interruptions", "small=often", "--spot-absence", "30m"), "'small=often' is not GROUP=RATE"),
        (("--spot-interruptions", "small=-1", "--spot-absence", "30m"), "'small=-1' is not GROUP=RATE"),
        (("--spot-interruptions", "smal=0.1", "--spot-absence", "30m"), "no node group 'smal' to replay"),
    ],
)
def test_spot_flags_need_a_group_a_rate_and_an_absence(
    capsys: pytest.CaptureFixture[str], config: Path, tmp_path: Path, flags: tuple[str, ...], message: str
) -> None:
    folder = record(made_past(PastPlan(days=0.1, nodes=3)), tmp_path / "recording")
    status, out, err = run(capsys, "--config", config, "--recording", folder, *flags)
    assert (status, out) == (2, "")
    assert message in err


def test_stated_spot_machines_and_configured_forecasts_are_replayed(
    capsys: pytest.CaptureFixture[str], config: Path, tmp_path: Path
) -> None:
    past = made_past(PastPlan(days=2.5, nodes=4))
    folder = record(past, tmp_path / "recording", every=240.0)
    most = max(range(60), key=lambda kind: sum(pod.kind == kind for pod in past.pods))
    config.write_text(
        CONFIGURATION.replace("recommendations:", "prometheus: {url: http://127.0.0.1:1}\nrecommendations:")
        + f"""
    forecasts: [web]
- name: web
  predictive: {{load: sum(load), loadPerReplica: 10, horizon: 2m, model: seasonal, maxReplicas: 30}}
  targets: [{{apiVersion: apps/v1, kind: ReplicaSet, namespace: shop, name: web-{most}}}]
"""
    )
    flags = ("--spot-interruptions", "small=0.1", "--spot-absence", "10m")
    document = replayed(capsys, "--config", config, "--recording", folder, *flags)
    by_name = {one["name"]: one for one in document["policies"]}
    assert {"forecasts: none", "spot: none"} <= set(by_name)
    assert by_name["configured"]["spot"]["interruptions"] > 0
    assert by_name["spot: none"]["spot"]["interruptions"] == 0
    assert document["recorded"]["spot"] is None
    assert document["forecast_worth"] is None, "less than three whole days"
    assert any(note.startswith("Forecasts are of the configuration") for note in document["notes"])
