"""The panels of a plot that show shortage over cost, of plain headroom and each policy, and what a budget buys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.ticker import FuncFormatter

from recommender.backtest.replayed_policies import AUTO
from recommender.plots.labels import PointLabel, label_beside

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from recommender.backtest.report import BacktestReport


AUTO_COLOUR: Final = "#0b6fb8"
RIVAL_COLOUR: Final = "#e08214"
OTHER_COLOURS: Final = ("#8c8c8c", "#7b5ea7", "#4d9a6a", "#b0a030", "#a05050", "#50a0a0", "#c080b0", "#606060")

_FAR_DEARER: Final = 1.6
"""A policy that costs more than this many times as much as auto is drawn at the edge."""
_SHORT_AXIS: Final = 1000
"""A logarithmic axis whose end is less than this many times its start has room for labels between powers of ten."""


def tidy(axes: Axes, *, dated: bool = False) -> None:
    """Draw only a faint grid and two edges; `dated` axes count days and are labelled with times."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    if dated:
        axes.xaxis_date()
        locator = AutoDateLocator(minticks=4, maxticks=10)  # type: ignore[no-untyped-call]
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]


def _percent_on_log_scale(axes: Axes) -> None:
    """Label a logarithmic axis at 1, 10 … percent; a short one also at 2 and 5, one within a decade at each mark."""

    def between(value: float, _place: int) -> str:
        low, high = axes.get_ylim()
        is_labelled = high < 10 * low or (high < _SHORT_AXIS * low and f"{value:.0e}"[0] in "25")
        return f"{value:g}%" if is_labelled else ""

    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _place: f"{value:g}%"))
    axes.yaxis.set_minor_formatter(FuncFormatter(between))


def draw_frontier(axes: Axes, report: BacktestReport) -> None:
    """Draw shortage over cost, where a policy below the line beats plain headroom.

    Policies that cost far more than auto are at the edge.
    """
    shown = [policy for policy in report.policies if policy.name not in {"model:headroom", "model:reactive"}]
    auto = report.policy(AUTO).measures.replica_hours
    costs = [policy.measures.replica_hours for policy in shown]
    right = 1.05 * max([cost for cost in costs if cost <= _FAR_DEARER * auto], default=1.0) or 1.0
    points = [point for point in report.frontier if point.measures.replica_hours <= right] or [report.frontier[0]]
    hours = np.array([point.measures.replica_hours for point in points])
    taus = np.array([point.measures.tau_under_percent for point in points])
    floor = _floor([*taus, *(policy.measures.tau_under_percent for policy in shown)])
    axes.plot(hours, np.maximum(taus, floor), color=RIVAL_COLOUR, linewidth=2)
    labels = []
    for index, policy in enumerate(shown):
        is_auto, tau, cost = policy.name == AUTO, policy.measures.tau_under_percent, policy.measures.replica_hours
        colour = AUTO_COLOUR if is_auto else OTHER_COLOURS[index % len(OTHER_COLOURS)]
        is_far, x, y = cost > right, min(cost, right), max(tau, floor)
        marker = "D" if is_auto else ">" if is_far else "s"
        axes.plot(x, y, marker, color=colour, markersize=9 if is_auto else 5, zorder=4 - is_auto, clip_on=False)
        name = policy.name.removeprefix("model:") + ("" if tau else ", never short")
        labels.append(PointLabel(f"{name}, {cost / auto:.1f}x the cost" if is_far else name, x, y, colour, is_auto))
    _percent_on_log_scale(axes)
    axes.set_xlim(0.96 * min(float(hours[0]), *costs), right)
    label_beside(axes, labels)
    axes.set_xlabel("cost: replica-hours")
    axes.set_ylabel("short: share of the judged steps")
    axes.set_title("Below the orange line (plain headroom):\nbetter at the same cost", loc="left", fontsize=11)
    tidy(axes)


def draw_budgets(axes: Axes, report: BacktestReport) -> None:
    """Draw shortage against budget, so that a budget can be chosen."""
    costs = [100 * point.budget_ratio for point in report.budgets]
    ours = np.array([point.measures.tau_under_percent for point in report.budgets])
    theirs = np.array([point.headroom_tau_under_percent for point in report.budgets])
    axes.set_title("What a `budget` buys", loc="left", fontsize=11)
    if not costs:
        axes.text(0.5, 0.5, "not calculated through an HPA", transform=axes.transAxes, ha="center")
        axes.set_axis_off()
        return
    floor = _floor([*ours, *theirs])
    axes.plot(costs, np.maximum(theirs, floor), "o-", color=RIVAL_COLOUR, linewidth=1.6, label="headroom, same cost")
    axes.plot(costs, np.maximum(ours, floor), "D-", color=AUTO_COLOUR, linewidth=1.6, label=AUTO)
    if report.verdict.cost_above_load_ratio is not None:
        bill = 100 * report.verdict.cost_above_load_ratio
        axes.axvline(bill, color="#888888", linewidth=1, linestyle=":", label=f"without a budget: {bill:.0f}%")
    _percent_on_log_scale(axes)
    axes.set_xlim(0, 1.05 * costs[-1])
    axes.set_xlabel("budget: cost above the load in percent" + ("; lowest: never short" if not ours.all() else ""))
    axes.set_ylabel("short")
    axes.legend(fontsize=8, framealpha=0.85)
    tidy(axes)


def _floor(taus: list[float]) -> float:
    """Return the value at which a shortage of 0 is drawn on a logarithmic axis."""
    return 0.5 * min((tau for tau in taus if tau > 0), default=0.2)
