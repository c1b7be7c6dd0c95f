from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING

import pytest

from recommender.commands.backtest.command import backtest
from tests.recommender.backtest.replays import BUDGETS, FEW, ONE_BUDGET, daily_load

if TYPE_CHECKING:
    from pathlib import Path

POLICY_KEYS = {
    "name",
    "parameters",
    "replica_hours",
    "tau_under_percent",
    "theta_under_percent",
    "tau_over_percent",
    "theta_over_percent",
    "lost_load_ratio",
    "changes",
    "worst_shortage_replicas",
    "cost_as_headroom_ratio",
    "tau_under_versus_headroom",
    "theta_under_versus_headroom",
}
NOWHERE = ("--query", "sum(x)", "--prometheus-url", "http://127.0.0.1:9")
"""A query to an address where no Prometheus listens."""


@pytest.fixture(autouse=True)
def light_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out heavy models and use one budget; other tests are about these."""
    monkeypatch.setattr("recommender.commands.backtest.command.MODELS", FEW)
    monkeypatch.setattr(BUDGETS, ONE_BUDGET)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "load.csv"
    load = daily_load(24 * 6 * 3)
    rows = [f"{1_767_225_600 + 600 * at},{value:.2f}" for at, value in enumerate(load)]
    path.write_text("\n".join(["timestamp,value", *rows]))
    return path


def run(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as ended:
        backtest([str(each) for each in arguments])
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_the_document_has_the_keys_that_users_rely_on(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--trace", trace, "--startup-seconds", "1200", "--warm-up", "1d", "-o", "json") == 0
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert printed.err == ""
    assert (document["apiVersion"], document["kind"]) == ("tidewatch.io/v1alpha1", "BacktestReport")
    assert document["actuator"] == "scale"
    assert document["startup_seconds"] == 1200
    assert document["trace"] == {
        "source": str(trace),
        "start": "2026-01-01T00:00:00Z",
        "end": "2026-01-03T23:50:00Z",
        "step_seconds": 600,
        "samples": 432,
        "judged_steps": 288,
        "warm_up_seconds": 86400,
    }
    assert document["load_per_replica"] > 0
    assert [each["name"] for each in document["policies"]][:2] == ["headroom:10%", "hpa"]
    assert document["policies"][-1]["name"] == "model:auto"
    for policy in document["policies"]:
        assert policy.keys() >= POLICY_KEYS
    assert document["frontier"][10].keys() >= {
        "headroom_ratio",
        "replica_hours",
        "tau_under_percent",
        "theta_under_percent",
    }
    verdict, auto = document["verdict"], document["policies"][-1]
    assert verdict.keys() >= {"best", "use"}
    for key in ("cost_as_headroom_ratio", "tau_under_versus_headroom", "theta_under_versus_headroom"):
        assert verdict[key] == auto[key]


def test_the_series_has_a_row_for_each_step(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "series.csv"
    assert run("--trace", trace, "--series", path, "--step", "1h") == 0
    assert capsys.readouterr().out.startswith("Use ")
    rows = list(csv.reader(path.read_text().splitlines()))
    assert rows[0][:3] == ["timestamp", "load", "predicted"]
    assert "replicas_headroom:10%" in rows[0]
    assert "replicas_model:auto" in rows[0]
    assert len(rows) == 1 + 72
    assert rows[1][0] == "2026-01-01T00:00:00Z"


def test_the_plot_is_a_picture(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "plot.png"
    assert run("--trace", trace, "--plot", path) == 0
    assert path.read_bytes().startswith(b"\x89PNG")
    assert "VS HEADROOM" in capsys.readouterr().out


def test_a_configuration_needs_only_a_load(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: tidewatch.io/v1alpha1\nkind: RecommenderConfiguration\nrecommendations:\n"
        "- name: chat\n  predictive: {load: sum(x), headroom: 25%, horizon: 20m, scaleDown: {decay: 5%}}\n"
    )
    assert run("--config", config, "--trace", trace, "-o", "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["startup_seconds"], document["min_replicas"]) == (1200, 2)
    assert document["policies"][0]["name"] == "headroom:25%"
    assert run("--config", config, "--trace", trace, "--recommendation", "chet") == 2
    assert "no recommendation 'chet' with predictive: did you mean chat?" in capsys.readouterr().err


def test_a_range_that_ends_before_it_starts_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: tidewatch.io/v1alpha1\nkind: RecommenderConfiguration\nprometheus: {url: http://127.0.0.1:9}\n"
        "recommendations:\n- name: chat\n  predictive: {load: sum(x)}\n"
    )
    assert run("--config", config, "--start", "2026-11-02T00:00:00Z", "--end", "2026-11-01T00:00:00Z") == 2
    expected = "--start 2026-11-02T00:00:00Z is after --end 2026-11-01T00:00:00Z: swap them"
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize("rows", ["0,5", "0,5\n60,", "0,5\n0,6"])
def test_one_sample_gives_no_advice(tmp_path: Path, capsys: pytest.CaptureFixture[str], rows: str) -> None:
    path = tmp_path / "one.csv"
    path.write_text(f"timestamp,value\n{rows}\n")
    assert run("--trace", path) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"{path}: the load of only one step of 60 s is known, so nothing can be replayed" in printed.err


def test_steps_below_a_second_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "fine.csv"
    path.write_text("timestamp,value\n" + "".join(f"{place / 1000},{place % 7}\n" for place in range(200)))
    assert run("--trace", path) == 2
    assert f"{path}: its steps of 0.001 s are below a second: write --step=1s or more" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no load is given: write --trace FILE.csv, or --query PROMQL --prometheus-url URL --last 14d"),
        (["--trace", "nothing.csv"], "nothing.csv: there is no such file"),
        (["--trace", "TRACE", "--step", "1m"], "a step of 60 s is finer than the samples, whose median step is 600 s"),
        (["--trace", "TRACE", "--step", "10d"], "the load of only one step of 864000 s is known"),
        (["--trace", "TRACE", "--step", "0"], "--step must be above 0"),
        (["--trace", "TRACE", "--startup-seconds", "soon"], "'soon' is not a duration"),
        (["--trace", "TRACE", "--startup-seconds", "2d"], "--startup-seconds of 2d"),
        (["--trace", "TRACE", "--load-per-replica", "1e-300"], "--load-per-replica of 1e-300"),
        (["--trace", "TRACE", "--load-per-replica", "0"], "--load-per-replica must be above 0"),
        (
            ["--trace", "TRACE", "--load-per-replica", "1e308"],
            "--load-per-replica must be above 0, and at most 3.4e+38",
        ),
        (["--trace", "TRACE", "--startup-seconds", "1e308"], "'1e308' is not a duration"),
        (["--trace", "TRACE", "--missing", "guess"], "'guess' is not allowed: write gap or zero"),
        (["--trace", "TRACE", "--recommendation", "chat"], "--recommendation needs --config"),
        (["--trace", "TRACE", "--start", "2026-01-01T00:00:00Z"], "--trace and --start cannot be combined"),
        (["--trace", "TRACE", "--plot", "/no/such/folder/x.png"], "--plot: /no/such/folder/x.png cannot be written"),
        (["--trace", "TRACE", "--plot", "x.2"], "--plot: x.2 cannot be written: its name must end with .png or .svg"),
        (["--trace", "TRACE", "--plot", "report"], "--plot: report cannot be written: its name must end with .png"),
        (["--trace", "TRACE", "--query", "sum(x)"], "--trace and --query cannot be combined"),
        (["--trace", "TRACE", "--last", "14d"], "--trace and --last cannot be combined"),
        (["--trace", "TRACE", "--example"], "--trace and --example cannot be combined"),
        (["--example", "--query", "sum(x)"], "--example and --query cannot be combined"),
        (["--prometheus-url", "http://127.0.0.1:9"], "there is no query for Prometheus: write --query PROMQL"),
        (["--query", "sum(x)"], "--prometheus-url is missing: write its address"),
        (["--query", " ", "--prometheus-url", "http://127.0.0.1:9"], "--query is empty"),
        (["--query", "sum(x)", "--prometheus-url", "127.0.0.1"], "--prometheus-url: "),
        ([*NOWHERE, "--start", "-2d", "--last", "2d"], "--start and --last cannot be combined"),
        ([*NOWHERE, "--last", "0"], "--last must be above 0"),
        ([*NOWHERE, "--last", "290y"], "the load would begin before 1970"),
        ([*NOWHERE, "--start", "14d"], "--start: '14d' is not a time: write 2026-11-21T06:00:00Z, a date"),
        ([*NOWHERE, "--end", ""], "--end: '' is not a time"),
        ([*NOWHERE, "--start", "-1d", "--end", "-2d"], "--start -1d is after --end -2d: swap them"),
        ([*NOWHERE, "--start", "9999-01-01"], "--start 9999-01-01 is after now, which is the end without --end"),
        ([*NOWHERE, "--last", "1h"], "http://127.0.0.1:9: sum(x): no connection to http://127.0.0.1:9: "),
    ],
)
def test_wrong_usage_ends_with_one_line(
    trace: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert run(*(str(trace) if each == "TRACE" else each for each in arguments)) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("tidewatch-recommender: ")
    assert message in printed.err
    assert printed.err.count("\n") == 1
