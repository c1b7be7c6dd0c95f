"""`recommend --shapes` with each kind of history."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.made_past import PastPlan, made_past
from recommender.commands.main import main
from tests.recommender.replay.kube_series import kube_series
from tests.recommender.replay.recordings import record
from tests.recommender.replay.test_replay_command import CONFIGURATION
from tests.support.checkout import CHECKOUT
from tests.support.prometheus import scraped_prometheus

if TYPE_CHECKING:
    from pathlib import Path

EXAMPLE = CHECKOUT / "docs/examples/machine-shapes"
CATALOGUE = """apiVersion: tidewatch.io/v1alpha1
kind: MachineShapeCatalogue
shapes:
- {name: four, price: 0.16, template: {cpu: 4, memory: 16Gi}}
- {name: sixteen, price: 0.6, template: {cpu: 16, memory: 64Gi}}
"""
PAST = made_past(PastPlan(days=0.1, nodes=4))


@pytest.fixture(name="flags")
def _flags(tmp_path: Path) -> list[str]:
    (tmp_path / "recommender.yaml").write_text(CONFIGURATION)
    (tmp_path / "catalogue.yaml").write_text(CATALOGUE)
    return ["--config", f"{tmp_path}/recommender.yaml", "--shapes", f"{tmp_path}/catalogue.yaml"]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as left:
        main(["recommend", *arguments])
    printed = capsys.readouterr()
    return int(left.value.code or 0), printed.out, printed.err


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    status, out, err = run(capsys, *arguments, "-o", "json")
    assert status == 0, err
    document: dict[str, Any] = json.loads(out)
    return document


def test_recording_gives_machines_cheaper_than_the_present_nodes(
    capsys: pytest.CaptureFixture[str], flags: list[str], tmp_path: Path
) -> None:
    found = answer(capsys, *flags, "--recording", str(record(PAST, tmp_path / "recording")), "--max-shapes", "1")
    assert found["kind"] == "ShapeRecommendation"
    (one,) = found["shapes"]
    assert one.keys() == {"shape", "count", "cost"}
    assert found["cost_bound"] <= found["cost"] == pytest.approx(one["cost"])
    assert found["present"] == {"nodes": 4, "cost": pytest.approx(2 * 0.82 + 2 * 0.4)}
    assert found["saves_ratio"] == pytest.approx(1 - found["cost"] / found["present"]["cost"], abs=1e-3)
    for each in found["consolidations"]:
        assert each["saved_per_eviction"] == pytest.approx(each["saved_per_hour"] / max(1, each["evictions"]), abs=1e-3)


def test_series_of_kube_state_metrics_are_a_history(
    capsys: pytest.CaptureFixture[str], flags: list[str], tmp_path: Path
) -> None:
    with scraped_prometheus(tmp_path, history=kube_series(PAST, 300)) as prometheus:
        past = ("--prometheus-url", prometheus.url, "--last", "2h", "--end", "2026-10-01T02:20:00Z")
        found = answer(capsys, *flags, *past)
    assert found["shapes"]
    assert found["present"]["nodes"] == 4


def test_nodes_are_consolidated_on_one_machine(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    cluster = json.loads((EXAMPLE / "cluster.json").read_text())
    cluster["items"] = [item for item in cluster["items"] if not item["metadata"]["name"].startswith("web")]
    (tmp_path / "cluster.json").write_text(json.dumps(cluster))
    names = ("--config", "recommender.yaml", "--shapes", "catalogue.yaml")
    flags = [str(EXAMPLE / each) if each.endswith("yaml") else each for each in names]
    status, out, _ = run(capsys, *flags, "--cluster", str(tmp_path / "cluster.json"))
    assert status == 0
    assert "EVICTIONS" in out
    found = answer(capsys, *flags, "--cluster", str(tmp_path / "cluster.json"))
    assert all(each["shape"] == "m7i.xlarge" and each["count"] == 1 for each in found["consolidations"])
    assert {len(each["nodes"]) for each in found["consolidations"]} <= {1, 2}


def test_pods_without_a_machine_end_with_exit_status_1(
    capsys: pytest.CaptureFixture[str], flags: list[str], tmp_path: Path
) -> None:
    (tmp_path / "catalogue.yaml").write_text(
        CATALOGUE.replace("cpu: 4, memory: 16Gi", "cpu: 1, memory: 1Gi").replace("16, memory: 64Gi", "1, memory: 2Gi")
    )
    status, out, _ = run(capsys, *flags, "--recording", str(record(PAST, tmp_path / "recording")))
    assert status == 1
    message, _, _ = out.replace("\n", " ").partition("  ")
    assert message == "No shapes are recommended: pods of the history fit on no machine of the catalogue."
    assert "Insufficient cpu" in out
    assert "on 1 shape" in out


@pytest.mark.parametrize("end", ["now", "-1m"])
def test_the_end_of_a_recording_may_be_given_as_a_duration_ago(
    capsys: pytest.CaptureFixture[str], flags: list[str], tmp_path: Path, end: str
) -> None:
    recording = ("--recording", str(record(PAST, tmp_path / "recording")))
    assert answer(capsys, *flags, *recording, f"--end={end}") == answer(capsys, *flags, *recording)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--cluster", "x", "--recording", "y"), "so remove the other"),
        (("--max-shapes", "0"), "write 1 to 8"),
        (("--recommendation", "nodes", "--recommendation", "nodes"), "--shapes packs the pods of one recommendation"),
        (("--assume", "shop/web:3"), "which packs pods of the past: remove one of them"),
        (("--recording", "missing"), "cannot be read"),
    ],
)
def test_invalid_flags_are_refused(
    capsys: pytest.CaptureFixture[str], flags: list[str], more: tuple[str, ...], message: str
) -> None:
    status, out, err = run(capsys, *flags, *more)
    assert (status, out) == (2, "")
    assert message in err


def test_history_without_a_catalogue_is_refused(capsys: pytest.CaptureFixture[str], flags: list[str]) -> None:
    status, out, err = run(capsys, *flags[:2], "--recording", "x")
    assert (status, out) == (2, "")
    assert "--recording has no effect without --shapes" in err


def test_error_of_a_catalogue_names_its_line(
    capsys: pytest.CaptureFixture[str], flags: list[str], tmp_path: Path
) -> None:
    (tmp_path / "catalogue.yaml").write_text(CATALOGUE + "- {name: four, price: x, template: {cpu: 1, memory: 1Gi}}\n")
    status, out, err = run(capsys, *flags, "--cluster", "missing")
    assert (status, out) == (2, "")
    assert "catalogue.yaml:6" in err


def test_only_the_cheapest_shapes_of_a_large_catalogue_are_combined(
    capsys: pytest.CaptureFixture[str], flags: list[str], tmp_path: Path
) -> None:
    flags = [*flags, "--recording", str(record(PAST, tmp_path / "recording")), "--max-shapes", "2"]
    few = answer(capsys, *flags)
    assert not any("shapes, the" in note for note in few["notes"])
    dear = "".join(
        f"- {{name: dear-{n}, price: {90 + n}, template: {{cpu: 16, memory: {65 + n}Gi}}}}\n" for n in range(63)
    )
    (tmp_path / "catalogue.yaml").write_text(CATALOGUE + dear)
    many = answer(capsys, *flags)
    assert (many["shapes"], many["cost_bound"]) == (few["shapes"], few["cost_bound"])
    assert any("shapes, the 64 that hold a kind of pod for the least are combined" in note for note in many["notes"])


def test_sentences_fit_80_columns_and_agree_with_the_number_of_machines(
    capsys: pytest.CaptureFixture[str], flags: list[str], tmp_path: Path
) -> None:
    past = str(record(made_past(PastPlan(days=0.1, nodes=1)), tmp_path / "recording"))
    status, out, _ = run(capsys, *flags, "--recording", past)
    assert status == 0
    assert out.startswith("1 of sixteen holds every peak for 0.60 an hour")
    assert max(map(len, out.splitlines())) <= 80


def test_groups_that_match_no_node_are_named(
    capsys: pytest.CaptureFixture[str], flags: list[str], tmp_path: Path
) -> None:
    config = tmp_path / "recommender.yaml"
    config.write_text(config.read_text().replace("pool: small", "pool: gone"))
    found = answer(capsys, *flags, "--recording", str(record(PAST, tmp_path / "recording")))
    assert any("its selector pool=gone matches no node" in note for note in found["notes"])


def test_nodes_that_cost_nothing_have_a_cost_and_no_savings(
    capsys: pytest.CaptureFixture[str], flags: list[str], tmp_path: Path
) -> None:
    config = tmp_path / "recommender.yaml"
    config.write_text(config.read_text().replace("0.40", "0").replace("0.82", "0"))
    found = answer(capsys, *flags, "--recording", str(record(PAST, tmp_path / "recording")))
    assert found["present"]["cost"] == 0
    assert found["saves_ratio"] is None
    assert "the current nodes cost nothing by the prices of their groups" in found["message"]
