"""Every picture that a command draws, with ordinary and difficult data: no label overlaps, is cut or is flat."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from matplotlib.backend_bases import FigureCanvasBase
from matplotlib.figure import Figure
from matplotlib.text import Text

import recommender.commands.sizes.size_plot
from benchmarks.gpu_plot import write_plot as write_gpu_plot
from demo.moments import Moment
from demo.plot import plot_day
from recommender.backtest.reports.cost_panels import draw_budgets
from recommender.backtest.reports.plot import write_plot as write_backtest_plot
from recommender.commands.sizes.size_plot import write_size_plot
from recommender.kinds.resources.size_record import ResourceSize
from recommender.recording.recording import RecordingGap
from recommender.replay.policy_outcome import PolicyOutcome
from recommender.replay.reports.plot import write_replay_plot
from tests.recommender.backtest.replays import LIGHT, daily_load, replayed
from tests.support.overlaps import outside, overlaps

if TYPE_CHECKING:
    from pathlib import Path

LONG = "-with-a-very-long-name-that-somebody-has-chosen-for-groups-of-nodes"
Facts: Any = SimpleNamespace
"""Stands in for reports, of which a plot reads some attributes."""


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """Return the figures that the commands draw, without writing them as pictures, which would take seconds."""
    figures: list[Figure] = []

    def drew(canvas: FigureCanvasBase, *_: object, **__: object) -> None:
        figures.append(canvas.figure)
        # A name may have dollar signs, which are no formula.
        assert [text for text in canvas.figure.findobj(Text) if text.get_parse_math()] == []

    monkeypatch.setattr(FigureCanvasBase, "print_figure", drew)
    return figures


def judge(figure: Figure) -> None:
    assert overlaps(figure) == []
    assert outside(figure) == []


def marks(figure: Figure) -> list[str]:
    """Return the labels for values beyond an axis."""
    return [text.get_text() for axes in figure.axes for text in axes.texts if "▲" in text.get_text()]


def replay_report(*, nasty: bool) -> Any:  # noqa: ANN401 - likewise
    day = np.ones(7)

    def outcome(place: int) -> PolicyOutcome:
        sizes = tuple((600.0 * step, int(20 + 10 * np.sin(step / 20) + place)) for step in range(1000))
        peak = ((180_000.0, 5000), (180_600.0, 20)) if nasty and place == 3 else ()
        times = tuple(sorted((*(each for each in sizes if each[0] not in {180_000.0, 180_600.0}), *peak)))
        cost = day * 24.0 * (1e5 if nasty and place == 2 else 1.0)
        name = f"policy-{place}{LONG if nasty else ''}"
        return PolicyOutcome(name, cost, cost, day * (1e7 if nasty else 12), day, day * 3, 5, times, 0)

    policies = tuple(outcome(place) for place in range(14 if nasty else 4))
    reason = "it is cheaper and no pod waits longer; " * (12 if nasty else 1)
    verdict = Facts(reason=reason, use=policies[1].name)
    return Facts(start=0.0, end=600_000.0, recorded=outcome(0), policies=policies, verdict=verdict, gaps=())


@pytest.mark.parametrize("nasty", [False, True], ids=["ordinary", "nasty"])
def test_a_replay_plot_is_readable(drawn: list[Figure], tmp_path: Path, *, nasty: bool) -> None:
    write_replay_plot(replay_report(nasty=nasty), tmp_path / "x.png")
    judge(drawn[0])
    nodes, costs = drawn[0].axes
    assert nodes.get_ylim()[1] < 100
    assert costs.get_xlim()[1] < 200
    assert [mark.split(";")[0] for mark in marks(drawn[0])] == (["▲ 5,000", "▲ 16,800,000"] if nasty else [])


def test_the_axes_of_a_replay_show_days_hours_and_whole_nodes(drawn: list[Figure], tmp_path: Path) -> None:
    report = replay_report(nasty=False)
    for seconds in (600_000.0, 7200.0):
        report.start, report.end = 1_790_812_800.0, 1_790_812_800.0 + seconds
        report.policies[0].cost[:] = 0.2338
        write_replay_plot(report, tmp_path / "x.png")
    for figure, words in zip(drawn, (["1 Oct", "2 Oct", "3 Oct"], ["00:00", "00:15", "00:30"]), strict=True):
        nodes, costs = figure.axes
        figure.canvas.draw()
        assert [each.get_text() for each in nodes.get_xticklabels()][:3] == words
        assert nodes.get_xlabel() == "UTC, from 2026-10-01"
        assert all(float(value).is_integer() for value in nodes.get_yticks())
        assert costs.texts[0].get_text().startswith("1.64; 84 pod-minutes")
        judge(figure)


def test_unrecorded_time_is_marked_in_a_replay(drawn: list[Figure], tmp_path: Path) -> None:
    report = replay_report(nasty=False)
    write_replay_plot(report, tmp_path / "x.png")
    report.gaps = (RecordingGap(86_400.0, 172_800.0), RecordingGap(300_000.0, 310_000.0))
    write_replay_plot(report, tmp_path / "x.png")
    labels = [figure.axes[0].get_legend_handles_labels()[1] for figure in drawn]
    assert [each.count("not recorded") for each in labels] == [0, 1]
    assert drawn[1].axes[0].get_ylim() == drawn[0].axes[0].get_ylim()
    judge(drawn[1])


@pytest.mark.parametrize(
    "shorts",
    [
        (3.2, 0.0, 0.0),
        (0.4, 0.4, 0.4),
        (0.0, 0.0, 0.0),
        (0.7, 0.3, 0.0),
        (13.0, 0.6, 0.05),
        (90.0, 1.0, 1e-4),
        (1.3, 1.2, 1.1),
        (0.14, 0.13, 0.12),
        (9.9, 9.8, 9.6),
        (1.5, 1.2, 0.97),
    ],
)
def test_shortage_can_be_read_from_the_axis_of_budgets(shorts: tuple[float, ...]) -> None:
    figure = Figure(figsize=(5, 4), layout="constrained")
    axes = figure.subplots()
    points = [
        Facts(budget_ratio=0.1 * at, measures=Facts(tau_under_percent=short), headroom_tau_under_percent=short)
        for at, short in enumerate(shorts, 1)
    ]
    draw_budgets(axes, Facts(budgets=points, verdict=Facts(cost_above_load_ratio=None)))
    figure.draw_without_rendering()
    low, high = axes.get_ylim()
    labels = axes.yaxis.get_majorticklabels() + axes.yaxis.get_minorticklabels()
    assert len([each for each in labels if each.get_text() and low <= each.get_position()[1] <= high]) >= 2
    judge(figure)


@pytest.mark.parametrize("name", ["a$b$", "a$b", r"$\frac$", r"a\$b", "^_{"])
def test_a_name_with_markup_is_drawn_literally(tmp_path: Path, name: str) -> None:
    report = replay_report(nasty=False)
    report.policies = tuple(replace(one, name=name) for one in report.policies)
    report.verdict.reason, report.verdict.use = f"{name} is cheaper", name
    write_replay_plot(report, tmp_path / "x.png")
    assert (tmp_path / "x.png").stat().st_size > 0


@pytest.mark.parametrize("nasty", [False, True], ids=["ordinary", "nasty"])
def test_the_plot_of_the_allocation_of_gpus_is_readable(drawn: list[Figure], tmp_path: Path, *, nasty: bool) -> None:
    names = ["gpu-fragmentation", "fgd", *(f"other-{place}{LONG}" for place in range(18 if nasty else 2))]
    curves = {name: [np.minimum(np.arange(131.0), 96.0 - 5 * place)] * 3 for place, name in enumerate(names)}
    write_gpu_plot(curves, tmp_path / "x.png")
    judge(drawn[0])
    legend = drawn[0].axes[0].get_legend()
    assert legend is not None
    assert sum(text.get_text().startswith("▼") for text in legend.get_texts()) == (16 if nasty else 0)


def fleet_day(*, follows_forecast: bool, nasty: bool) -> Any:  # noqa: ANN401 - likewise
    waves = [int(300 + 200 * np.sin(second / 60)) for second in range(400)]
    moments = [
        Moment(
            float(second),
            wanted=90_000 if nasty and second == 100 else wave,
            open=wave - 10,
            attempted=10_000,
            refused=second // 50 if nasty else 0,
            dropped=0,
            lost=0,
            replicas=800 if nasty and second == 200 else 10,
            serving=9,
            limit=60,
            over=False,
        )
        for second, wave in enumerate(waves)
    ]
    syncs = [Facts(seconds=float(second), predicted=Facts(values={"a": 300_000.0})) for second in range(0, 400, 15)]
    target = Facts(follows_forecast=follows_forecast, connections_per_pod=50)
    return Facts(moments=moments, target=target, syncs=syncs, refused=moments[-1].refused, pod_seconds=4000.0)


@pytest.mark.parametrize("nasty", [False, True], ids=["ordinary", "nasty"])
def test_the_plot_of_the_day_of_the_demo_is_readable(drawn: list[Figure], tmp_path: Path, *, nasty: bool) -> None:
    days = (fleet_day(follows_forecast=False, nasty=nasty), fleet_day(follows_forecast=True, nasty=nasty))
    reason = "the model quantile was short in 0.3% of the last day; " * (6 if nasty else 1)
    choice = Facts(reason=reason, headroom_ratio=0.2, is_made=True)
    plot_day(days, (Facts(held=True), Facts(held=True)), choice, path=tmp_path / "x.png")
    judge(drawn[0])
    assert drawn[0].axes[0].get_ylim()[1] < 1200
    assert marks(drawn[0]) == (["▲ 90,000", "▲ 90,000", "▲ 800", "▲ 800"] if nasty else [])


@pytest.mark.parametrize("nasty", [False, True], ids=["ordinary", "nasty"])
def test_the_plot_of_the_sizes_of_a_workload_is_readable(
    drawn: list[Figure], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, nasty: bool
) -> None:
    random = np.random.default_rng(3)

    def usage(_client: object, query: str, start: float, end: float, step: float) -> Any:  # noqa: ANN401 - likewise
        times = np.arange(start, end, step)
        values = random.gamma(2, 0.05, (20, len(times))) * (2**30 if "memory" in query else 1)
        if nasty:
            values[7, 50] = 4000.0 * (2**30 if "memory" in query else 1)
            values[3, ::3] = np.nan
        return Facts(series=[Facts(timestamps=times.tobytes(), values=each.tobytes()) for each in values])

    monkeypatch.setattr(recommender.commands.sizes.size_plot, "matrix", usage)
    size = ResourceSize(500_000 if nasty else 500, None, 180, 200, 300, None, None, None, None)
    workload = SimpleWorkload(f"Deployment shop/web{LONG * 3 if nasty else ''}")
    memory = ResourceSize(500 * 2**20, None, 180 * 2**20, 200 * 2**20, 300 * 2**20, None, None, None, None)
    records = [Facts(workload=workload, container=name, cpu=size, memory=memory) for name in ("app", "proxy")]
    sizes = Facts(records=records, pods={workload: ("a",)}, window=Facts(end=1.79e9, seconds=86_400.0))
    write_size_plot(Facts(client=None), sizes, Facts(rate_seconds=300, step_seconds=600.0), tmp_path / "x.png")
    judge(drawn[0])
    assert drawn[0].axes[0].get_ylim()[1] < 2
    assert len(marks(drawn[0])) == (4 if nasty else 0)
    legend = drawn[0].axes[0].get_legend()
    assert legend is not None
    assert legend.get_texts()[-1].get_text() == ("request now: ▲ 500 cores" if nasty else "request now")


class SimpleWorkload(str):
    """A workload that is its printed text."""

    namespace = "shop"
    __slots__ = ()


def test_a_backtest_plot_with_one_absurd_step_is_readable(drawn: list[Figure], tmp_path: Path) -> None:
    load = daily_load(24 * 10, 3600.0)
    load[190], load[100:110] = 1e6, np.nan
    write_backtest_plot(replayed(load, step_seconds=3600.0, models=LIGHT[:2]), tmp_path / "x.png")
    judge(drawn[0])
    overview, *_, worst_day = drawn[0].axes
    assert max(overview.get_ylim()[1], worst_day.get_ylim()[1]) < 500
    assert len(marks(drawn[0])) == 2


def test_a_short_logarithmic_axis_of_a_backtest_has_percentages_between_the_powers_of_ten(
    drawn: list[Figure], tmp_path: Path
) -> None:
    write_backtest_plot(
        replayed(daily_load(24 * 10, 3600.0), step_seconds=3600.0, models=LIGHT[:2]), tmp_path / "x.png"
    )
    logarithmic = [axes for axes in drawn[0].axes if axes.get_yscale() == "log"]
    assert logarithmic
    for axes in logarithmic:
        between = axes.yaxis.get_minor_formatter()
        axes.set_ylim(0.8, 9.0)
        assert [between(value) for value in (0.5, 2.0, 3.0, 5.0)] == ["0.5%", "2%", "", "5%"]
        axes.set_ylim(0.001, 90.0)
        assert between(2.0) == ""
