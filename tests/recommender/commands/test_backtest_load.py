from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from recommender.backtest.errors import BacktestError
from recommender.commands.backtest.command import backtest
from tests.recommender.backtest.replays import AT, BUDGETS, FEW, ONE_BUDGET, daily_load

if TYPE_CHECKING:
    from collections.abc import Callable

    from recommender.backtest.recorded.prometheus_range import LoadRange
    from tests.support.prometheus import ScrapedPrometheus

STEPS_A_DAY = 144
HISTORY = "\n".join(
    [
        "# TYPE load gauge",
        *(
            f'load{{pod="{pod}"}} {value / 2:.3f} {AT + 600 * at:.0f}'
            for pod in "ab"
            for at, value in enumerate(daily_load(2 * STEPS_A_DAY + 1))
        ),
        "# EOF",
        "",
    ]
)
TWO_DAYS = ("--start", "2026-01-01", "--end", "2026-01-03", "--step", "10m")
NOW = AT + 20 * 86_400


@pytest.fixture(scope="module")
def url(start_prometheus: Callable[..., ScrapedPrometheus]) -> str:
    return start_prometheus(history=HISTORY).url


@pytest.fixture(autouse=True)
def an_empty_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Work in an empty folder, where answers of Prometheus are kept, with light models and one budget."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("recommender.commands.backtest.command.MODELS", FEW)
    monkeypatch.setattr(BUDGETS, ONE_BUDGET)


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        backtest(arguments)
    assert isinstance(ended.value.code, int)
    return ended.value.code


@pytest.mark.parametrize("times", [TWO_DAYS, ("--last", "2d", "--end", "2026-01-03T00:00:00Z", "--step", "10m")])
def test_a_query_needs_no_file(url: str, capsys: pytest.CaptureFixture[str], times: tuple[str, ...]) -> None:
    assert run("--query", "sum(load)", "--prometheus-url", url, *times, "-o", "json") == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    document = json.loads(printed.out)
    trace = document["trace"]
    assert (trace["source"], trace["samples"]) == (f"{url}: sum(load)", 2 * STEPS_A_DAY + 1)
    assert (trace["start"], trace["end"]) == ("2026-01-01T00:00:00Z", "2026-01-03T00:00:00Z")
    assert document["policies"][-1]["name"] == "model:auto"
    assert (document["startup_seconds"], document["min_replicas"]) == (180, 2)
    assert document["notes"][0] == "A pod is assumed to start in 180 s: --startup-seconds changes it."
    assert "--load-per-replica changes it" in document["notes"][1]
    assert list(Path("state/backtest").iterdir())


def test_stated_values_are_not_reported_as_assumed(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    stated = ("--startup-seconds", "5m", "--load-per-replica", "25")
    assert run("--query", "sum(load)", "--prometheus-url", url, *TWO_DAYS, *stated) == 0
    printed = capsys.readouterr().out
    assert "a pod starts in 300 s and serves 25" in printed
    assert "assumed" not in printed


def test_a_query_replaces_that_of_the_configuration(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(
        f"apiVersion: tidewatch.io/v1alpha1\nkind: RecommenderConfiguration\nprometheus: {{url: '{url}'}}\n"
        f"state: {tmp_path / 'memories'}\n"
        "recommendations:\n- name: chat\n  predictive: {load: sum(absent_one), horizon: 20m}\n"
    )
    assert run("--config", str(config), "--query", "sum(load)", *TWO_DAYS, "-o", "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["startup_seconds"], document["trace"]["source"]) == (1200, f"{url}: sum(load)")
    assert list((tmp_path / "memories" / "backtest").iterdir())
    assert run("--config", str(config), *TWO_DAYS) == 2
    assert "sum(absent_one): the query has no value from" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("sum(nothing)", "the query has no value from 2026-01-01T00:00:00Z to 2026-01-03T00:00:00Z: check it, and"),
        ("load", "the query has 2 series, and a backtest replays one: write --query with sum(…) around it"),
        ("sum(", "parse error"),
    ],
)
def test_a_query_without_exactly_one_series_of_load_ends_with_one_line(
    url: str, capsys: pytest.CaptureFixture[str], query: str, message: str
) -> None:
    assert run("--query", query, "--prometheus-url", url, *TWO_DAYS) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"tidewatch-recommender: {url}: {query}: " in printed.err
    assert message in printed.err
    assert printed.err.count("\n") == 1


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ((), (NOW - 14 * 86_400, NOW)),
        (("--last", "36h"), (NOW - 1.5 * 86_400, NOW)),
        (("--last", "3600"), (NOW - 3600, NOW)),
        (("--start", "-14d"), (NOW - 14 * 86_400, NOW)),
        (("--start=-2d", "--end=-1d12h"), (NOW - 2 * 86_400, NOW - 1.5 * 86_400)),
        (("--start", "2026-01-02", "--end", "2026-01-03T12:00:00+12:00"), (AT + 86_400, AT + 2 * 86_400)),
        (("--end", "2026-01-17"), (AT + 2 * 86_400, AT + 16 * 86_400)),
        (("--start", "-1w", "--end", "now"), (NOW - 7 * 86_400, NOW)),
    ],
)
def test_the_range_is_taken_from_the_flags(
    monkeypatch: pytest.MonkeyPatch, times: tuple[str, ...], expected: tuple[float, float]
) -> None:
    ranges: list[LoadRange] = []

    def read(what: LoadRange, *_others: object) -> None:
        ranges.append(what)
        raise BacktestError("enough is known")

    monkeypatch.setattr("recommender.commands.backtest.load.read_range", read)
    monkeypatch.setattr("recommender.commands.backtest.load.time", SimpleNamespace(time=lambda: NOW))
    assert run("--query", "sum(x)", "--prometheus-url", "http://127.0.0.1:9", *times) == 2
    assert [(each.start, each.end) for each in ranges] == [expected]


def test_the_example_needs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--example", "-o", "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["trace"]["source"] == "a generated load (--example)"
    assert document["trace"]["judged_steps"] == 7 * 288
    assert document["notes"][0].endswith("--startup-seconds changes it.")
    assert not list(Path().iterdir())
