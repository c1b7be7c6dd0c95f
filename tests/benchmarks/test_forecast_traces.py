from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import pytest

from benchmarks import kept_forecasts
from benchmarks.forecast_goals import MOST_REGRET, REGRET_PARTS, as_goals, missed_goals
from benchmarks.forecast_traces import main
from benchmarks.made_traces import CHANGING, MADE, MadeTrace
from benchmarks.recorded_traces import RECORDINGS
from benchmarks.report import report
from benchmarks.rival_forecasts import rival_capacities
from recommender.kinds.predictive.forecast import ForecastTask
from recommender.kinds.predictive.history import of_one_series

if TYPE_CHECKING:
    from pathlib import Path

ELB = "elb_request_count_5min.csv"
TASK = ForecastTask(600.0, 600.0)
SEEDS = ("--seed", "0", "--seed", "2")


def trace(path: Path, days: float = 1.1) -> None:
    begin, count = datetime(2026, 11, 1, tzinfo=UTC), int(days * 288)
    lines = [
        f"{begin + timedelta(minutes=5 * number):%Y-%m-%dT%H:%M:%SZ},{100 + number % 7}" for number in range(count)
    ]
    path.write_text("\n".join(["timestamp,value", *lines]), encoding="utf-8")


@pytest.mark.parametrize(
    ("flags", "name", "repair"),
    [
        ((), "monday-jumps", "add --changing\n"),
        ((), "five-days@1", "add --changing --seed 1\n"),
        (("--changing",), "five-days@1", "add --seed 1\n"),
        (("--changing",), "five-day", "choose from monday-jumps, "),
    ],
)
def test_a_trace_that_needs_another_flag_is_named_with_it(
    flags: tuple[str, ...], name: str, repair: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*flags, "--trace", name]) == 2
    assert f"{name} is not one of the traces: {repair}" in capsys.readouterr().err


def test_a_missing_trace_is_named_with_its_source(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--traces", str(tmp_path), "--recorded-only"]) == 2
    said = capsys.readouterr().err
    assert ELB in said
    assert "https://github.com/numenta/NAB" in said
    assert "https://ita.ee.lbl.gov" in said


def test_every_file_of_the_folder_is_replayed_with_each_start_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace(tmp_path / ELB)
    trace(tmp_path / "own.csv")
    assert main(["--traces", str(tmp_path), "--recorded-only", "--model", "linear", "-o", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [(row["trace"], row["startup_seconds"]) for row in rows] == [
        (name, startup) for name in ("elb", "own") for startup in (60.0, 180.0, 600.0, 1800.0)
    ]
    assert all(row["regret"] is not None and "phpa-holt-winters_shortage" in row for row in rows)


def test_a_trace_has_a_page(tmp_path: Path) -> None:
    trace(tmp_path / "own.csv")
    pages = tmp_path / "pages"
    assert main(["--traces", str(tmp_path), "--trace", "own", "--model", "linear", "--plots", str(pages)]) == 0
    assert (pages / "own.png").read_bytes().startswith(b"\x89PNG")


def test_a_second_run_goes_on_with_the_rows_that_are_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace(tmp_path / "own.csv")
    parts = tmp_path / "parts"
    arguments = ["--traces", str(tmp_path), "--trace", "own", "--model", "linear", "--parts", str(parts), "-o", "json"]
    assert main([*arguments, "--startup", "60"]) == 0
    (first,) = json.loads(capsys.readouterr().out)["rows"]
    (parts / "own-60.json").write_text(json.dumps({**first, "cpu_seconds": 77.0}))
    assert main([*arguments, "--startup", "60", "--startup", "600"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [(row["startup_seconds"], row["cpu_seconds"] == 77.0) for row in rows] == [(60.0, True), (600.0, False)]


def test_one_folder_keeps_all_and_a_second_run_only_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace(tmp_path / "own.csv")
    kept = tmp_path / "kept"
    arguments = ["--traces", str(tmp_path), "--trace", "own", "--model", "linear", "--keep", str(kept)]
    assert main(arguments) == 0
    first = capsys.readouterr()
    assert "row 1 of 4: own, start-up 60 s" in first.err
    assert "row 4 of 4, about 0 min left: own" in first.err
    assert {each.name for each in kept.iterdir()} == {"forecasts", "plots", "rows"}
    assert main(arguments) == 0
    second = capsys.readouterr()
    assert "row 1" not in second.err
    assert second.out.splitlines()[2:] == first.out.splitlines()[2:]


def test_made_loads_of_other_seeds_have_names_of_their_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for file in {each.file for each in RECORDINGS}:
        trace(tmp_path / file)
    assert main(["--traces", str(tmp_path), "--trace", "none", "--seed", "0", "--seed", "2"]) == 2
    said = capsys.readouterr().err
    assert "spikes, " in said
    assert "spikes@2, " in said


def test_loads_whose_past_misleads_are_a_set_of_their_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--traces", str(tmp_path), "--changing", "--model", "linear", "--startup", "180"]
    assert main([*arguments, "--trace", "five-days", "--trace", "five-days@2", *SEEDS, "-o", "json"]) == 0
    found = capsys.readouterr()
    assert [row["trace"] for row in json.loads(found.out)["rows"]] == ["five-days", "five-days@2"]
    assert "missing" not in found.err
    assert main([*arguments, "--trace", "spikes"]) == 2
    assert "monday-jumps" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("models", "misses"), [(("seasonal", "linear"), True), (("seasonal-held", "conformal"), False)]
)
def test_a_regret_that_misses_its_goal_is_the_sum_of_its_parts(
    models: tuple[str, str], capsys: pytest.CaptureFixture[str], *, misses: bool
) -> None:
    chosen = ["--trace", "five-days", "--startup", "180", "--model", models[0], "--model", models[1], "-o", "json"]
    assert main(["--changing", *chosen]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    parts = [row[f"regret_{part}"] for part in REGRET_PARTS]
    if misses:
        assert row["regret"] > MOST_REGRET
        assert sum(parts) == pytest.approx(row["regret"])
        assert row["regret_cost"] != 0, "with a known cost, the same choice is replayed again"
        assert row["regret_proof"] > 0.1, "the model is right from its first day on, but has to wait for its proof"
    else:
        assert row["regret"] < MOST_REGRET
        assert parts == [None] * len(REGRET_PARTS)


GOOD = {
    "trace": "own",
    "startup_seconds": 180.0,
    "auto_tau_under_versus_headroom": 0.5,
    "auto_theta_under_versus_headroom": None,
    "auto_cost_as_headroom_ratio": 0.2,
    "auto_leads": "quantile",
    "best_model": "headroom",
    "regret": 0.1,
    **dict.fromkeys(("phpa-linear_shortage", "phpa-holt-winters_shortage", "percentile_shortage"), 0.9),
    "largest-of-both_shortage": 0.75,
}


@pytest.mark.parametrize(
    ("changed", "missed"),
    [
        ({}, []),
        ({"auto_tau_under_versus_headroom": 1.06}, ["harm", "rival"]),
        ({"auto_tau_under_versus_headroom": 0.2, "auto_theta_under_versus_headroom": 1.06}, ["harm"]),
        ({"regret": 0.11}, ["regret"]),
        ({"percentile_shortage": 0.7}, ["rival"]),
    ],
)
def test_a_row_misses_the_goals_that_it_is_above(changed: dict[str, float], missed: list[str]) -> None:
    row = {**GOOD, **changed}
    assert missed_goals(row) == missed
    text = as_goals(report("forecast_traces", [row]))
    assert text.count("nowhere") == 3 - len(missed)
    assert text.count("own 3 min") == len(missed) + missed.count("regret")
    assert ("What a regret above 0.1 consists of:" in text) == ("regret" in missed)


def test_kept_forecasts_are_not_made_again_and_give_the_same_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    trace(tmp_path / "own.csv")
    arguments = ["--traces", str(tmp_path), "--trace", "own", "--model", "linear", "--startup", "60", "-o", "json"]
    keeping = [*arguments, "--forecasts", str(tmp_path / "kept")]

    def row(given: list[str]) -> dict[str, object]:
        assert main(given) == 0
        return {**json.loads(capsys.readouterr().out)["rows"][0], "cpu_seconds": 0.0}

    made, kept = row(arguments), row(keeping)
    monkeypatch.setattr(kept_forecasts, "rolling_forecasts", None)
    assert made == kept == row(keeping)


@pytest.mark.parametrize("made", MADE + CHANGING, ids=[each.name for each in MADE + CHANGING])
def test_a_made_trace_is_the_same_load_in_every_run(made: MadeTrace) -> None:
    load = made.read().values
    np.testing.assert_array_equal(load, made.read().values)
    assert not np.array_equal(load, made.read(seed=1).values, equal_nan=True)
    known = load[~np.isnan(load)]
    assert np.isfinite(known).all()
    assert (known >= 0).all()
    assert (len(known) < load.size) == (made.name == "sensor-dropouts")


def test_rivals_forecast_what_their_papers_say() -> None:
    steps = np.arange(3 * 288, dtype=np.float64)
    rising = of_one_series(0.0, 300.0, 100.0 + steps)
    daily = of_one_series(0.0, 300.0, 100.0 + 50 * np.sin(2 * np.pi * steps / 288))
    lead = TASK.lead_steps(300.0)
    assert rival_capacities(rising, TASK)["phpa-linear"][500] == pytest.approx(100 + 500 + lead)
    seasonal = rival_capacities(daily, TASK)["phpa-holt-winters"]
    assert seasonal[700] == pytest.approx(max(daily.values[0, 700 + lead], daily.values[0, 700]), rel=0.02)
    assert rival_capacities(daily, TASK)["largest-of-both"][600] == pytest.approx(daily.values[0, 600:613].max())
    assert rival_capacities(daily, TASK)["percentile"][800] >= np.percentile(daily.values[0, :700], 90)


def test_no_rival_knows_a_step_after_its_own() -> None:
    load = 100 + 50 * np.random.default_rng(1).random(1000)
    poisoned = load.copy()
    poisoned[800:] = 1e9
    clean = rival_capacities(of_one_series(0.0, 300.0, load), TASK)
    for name, found in rival_capacities(of_one_series(0.0, 300.0, poisoned), TASK).items():
        np.testing.assert_array_equal(found[:800], clean[name][:800], err_msg=name)
