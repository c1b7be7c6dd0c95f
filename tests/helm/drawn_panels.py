"""One panel of a dashboard as Grafana shows it, drawn with matplotlib from what its queries returned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

COLORS: Final = {
    "green": "#56a64b", "yellow": "#f2cc0c", "orange": "#ff780a", "red": "#e02f44", "blue": "#3274d9",
    "purple": "#a352cc", "text": "#52575f",
}  # fmt: skip
"""Grafana's colour names."""
_PALETTE: Final = ("#56a64b", "#e0b400", "#3274d9", "#ff780a", "#e02f44", "#a352cc", "#37872d", "#1f60c4", "#fa6400")
_LEGEND_LINES: Final = 4
"""The most lines of a legend before Grafana scrolls it."""
_SMALL: Final = 7
_MOST_TICKS: Final = 5
_TIME_STEPS: Final = (
    *(digit * 10.0**power for power in range(-6, 0) for digit in (1, 2, 5)),
    *(1.0, 2.0, 5.0, 10.0, 15.0, 30.0),
    *(60.0 * minutes for minutes in (1, 2, 5, 10, 15, 30)),
    *(3600.0 * hours for hours in (1, 2, 3, 6, 12)),
    *(86_400.0 * days for days in (1, 2, 5, 10, 20, 50, 100)),
)


@dataclass(frozen=True, slots=True)
class Series:
    """A line of a chart, or a row of states."""

    name: str
    times: tuple[float, ...]
    """Seconds since the beginning of the chart."""
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """A time that an annotation marks on every chart."""

    seconds: float
    color: str


def with_unit(value: float, unit: str) -> str:
    """Return a number as Grafana writes it in a unit."""
    match unit:
        case "percentunit":
            return f"{value * 100:.3g}%"
        case "s":
            scales = ((86_400.0, "day"), (3600.0, "hour"), (60.0, "min"), (1.0, "s"), (1e-3, "ms"))
            scale, name = next(((one, name) for one, name in scales if abs(value) >= one), (1e-6, "µs"))
            return "0 s" if value == 0 else f"{value / scale:.3g} {name}"
        case "bytes":
            return f"{value / 2**20:.4g} MiB"
    suffix = {"reqps": " req/s", "cps": " c/s", "cpm": " cpm"}.get(unit, "")
    if unit == "short" and abs(value) >= 1000:
        return f"{value / 1000:.4g} K"
    return f"{value:.4g}{suffix}"


def tick_step(top: float, unit: str) -> float | None:
    """Return the distance of the ticks of an axis up to `top`, at most five; None if matplotlib's choice is round.

    Times are counted in sixties and in hours of the day, and bytes in powers of two.
    """
    if unit not in {"s", "bytes"} or top <= 0:
        return None
    steps = _TIME_STEPS if unit == "s" else tuple(2.0**power for power in range(60))
    return next((step for step in steps if top / step <= _MOST_TICKS), None)


def mapped(panel: Mapping[str, Any], value: float) -> tuple[str, str] | None:
    """Return the text and colour that the panel shows instead of a number; None if it shows the number."""
    for one in panel["fieldConfig"]["defaults"].get("mappings", ()):
        if found := one["options"].get(f"{value:g}"):
            return found["text"], COLORS[found["color"]]
    return None


def draw_stat(axis: Axes, panel: Mapping[str, Any], series: Sequence[Series]) -> bool:
    """Draw one number; return whether the panel is filled with the colour of its threshold."""
    defaults = panel["fieldConfig"]["defaults"]
    value = series[0].values[-1] if series else None
    steps = defaults["thresholds"]["steps"]
    reached = [one["color"] for one in steps if one["value"] is None or (value is not None and value >= one["value"])]
    text, color = defaults.get("noValue", "No data"), COLORS["text"]
    if value is not None:
        rounded = round(value, int(defaults.get("decimals", 9)))
        text, color = mapped(panel, value) or (with_unit(rounded, defaults["unit"]), COLORS[reached[-1]])
    is_filled = panel["options"]["colorMode"] == "background_solid" and value is not None
    if is_filled:
        axis.set_facecolor(color)
    size = 24 if len(text) < 8 else 15
    axis.text(0.5, 0.42, text, ha="center", va="center", fontsize=size, color="white" if is_filled else color)
    return is_filled


def draw_lines(axis: Axes, panel: Mapping[str, Any], series: Sequence[Series], marks: Sequence[Mark]) -> None:
    """Draw a line for each series, the marks of annotations, and the legend as a table."""
    defaults = panel["fieldConfig"]["defaults"]
    has_steps = defaults["custom"].get("lineInterpolation") == "stepAfter"
    colors, dashed = _colors(panel, series)
    for one, color in zip(series, colors, strict=True):
        style, steps = "--" if one.name in dashed else "-", "steps-post" if has_steps else "default"
        axis.plot(one.times, one.values, color=color, linewidth=1.1, linestyle=style, drawstyle=steps)
        if len(series) == 1:
            axis.fill_between(one.times, one.values, alpha=0.08, color=color, step="post" if has_steps else None)
    _fill_band(axis, panel, series)
    for mark in marks:
        axis.axvline(mark.seconds, color=mark.color, linewidth=0.8, linestyle="--", alpha=0.8)
    decorate(axis, defaults["unit"])
    top = 1.08 * max((max(one.values) for one in series), default=0.0) or 1.0
    axis.set_ylim(0, top)
    step = tick_step(top, defaults["unit"])
    if step is not None:
        axis.set_yticks([step * number for number in range(int(top / step) + 1)])
    _draw_legend(axis, defaults, series, colors)


def _draw_legend(axis: Axes, defaults: Mapping[str, Any], series: Sequence[Series], colors: Sequence[str]) -> None:
    """Write the names below the chart, ordered by current value, the largest first."""
    decimals = int(defaults.get("decimals", 9))
    order = sorted(range(len(series)), key=lambda index: -series[index].values[-1])
    for line, index in enumerate(order[:_LEGEND_LINES]):
        one, height = series[index], -0.30 - 0.10 * line
        last, largest = (
            with_unit(round(value, decimals), defaults["unit"]) for value in (one.values[-1], max(one.values))
        )
        axis.text(0.0, height, f"━ {one.name[:60]}", transform=axis.transAxes, fontsize=_SMALL,
                  color=colors[index], va="center")  # fmt: skip
        axis.text(0.82, height, last, transform=axis.transAxes, fontsize=_SMALL, ha="right", va="center")
        axis.text(1.0, height, largest, transform=axis.transAxes, fontsize=_SMALL, ha="right", va="center")
    for place, heading in ((0.82, "Last *"), (1.0, "Max")):
        axis.text(place, -0.225, heading, transform=axis.transAxes, fontsize=_SMALL, ha="right", color=COLORS["blue"])


def _colors(panel: Mapping[str, Any], series: Sequence[Series]) -> tuple[list[str], set[str]]:
    """Return the colour of each series, and the names of those that an override draws dashed."""
    properties = {
        one["matcher"]["options"]: {each["id"]: each["value"] for each in one["properties"]}
        for one in panel["fieldConfig"]["overrides"]
    }
    fixed = {name: COLORS[found["color"]["fixedColor"]] for name, found in properties.items() if "color" in found}
    palette = [fixed.get(one.name, _PALETTE[index % len(_PALETTE)]) for index, one in enumerate(series)]
    return palette, {name for name, found in properties.items() if "custom.lineStyle" in found}


def _fill_band(axis: Axes, panel: Mapping[str, Any], series: Sequence[Series]) -> None:
    """Fill the area below a series if an override asks for it."""
    named = {one.name: one for one in series}
    for override in panel["fieldConfig"]["overrides"]:
        values = {one["id"]: one["value"] for one in override["properties"]}
        upper, lower = named.get(override["matcher"]["options"]), named.get(values.get("custom.fillBelowTo", ""))
        if upper is not None and lower is not None:
            width = min(len(upper.times), len(lower.times))
            axis.fill_between(upper.times[-width:], lower.values[-width:], upper.values[-width:], alpha=0.2)


def draw_states(axis: Axes, panel: Mapping[str, Any], series: Sequence[Series], _marks: Sequence[Mark]) -> None:
    """Draw a row for each series, with a bar for each time in which its state stays the same."""
    for row, one in enumerate(reversed(series)):
        for begin, end, value in _runs(one):
            text, color = mapped(panel, value) or (f"{value:g}", COLORS["green"])
            axis.barh(row, end - begin, left=begin, height=0.8, color=color, alpha=0.85)
            if end - begin > 6:
                axis.text(begin + 0.6, row, text, va="center", fontsize=_SMALL, color="white", clip_on=True)
    decorate(axis, "none")
    axis.set_yticks(range(len(series)), [one.name[:34] for one in reversed(series)])
    axis.set_ylim(-0.5, len(series) - 0.5)
    axis.set_xlim(0, max((one.times[-1] for one in series), default=1.0))
    axis.grid(visible=False)


def _runs(series: Series) -> list[tuple[float, float, float]]:
    """Return begin, end and value of each time without a change or a gap."""
    runs: list[tuple[float, float, float]] = []
    for at, value in zip(series.times, series.values, strict=True):
        if runs and runs[-1][2] == value and at - runs[-1][1] < 1.5:
            runs[-1] = (runs[-1][0], at + 1.0, value)
        else:
            runs.append((at, at + 1.0, value))
    return runs


def draw_cells(axis: Axes, _panel: Mapping[str, Any], series: Sequence[Series], _marks: Sequence[Mark]) -> None:
    """Draw a row of cells for each series, the lowest series at the bottom."""
    width = min(len(one.values) for one in series)
    decorate(axis, "none")
    cells = [one.values[-width:] for one in series]
    axis.imshow(cells, origin="lower", aspect="auto", cmap="Oranges", interpolation="nearest")
    axis.set_yticks(range(len(series)), [one.name for one in series])
    axis.grid(visible=False)


def draw_points(axis: Axes, panel: Mapping[str, Any], series: Sequence[Series], _marks: Sequence[Mark]) -> None:
    """Draw a point for each value of the label that joins the two queries."""
    x, y = ([one for one in series if one.name.startswith(target["legendFormat"])] for target in panel["targets"])
    axis.scatter([one.values[-1] for one in x], [one.values[-1] for one in y], s=14, color=_PALETTE[0])
    decorate(axis, "percentunit")
    axis.xaxis.set_major_formatter(lambda value, _: with_unit(value, "percentunit"))
    axis.set_xlim(0, 1)
    axis.set_ylim(bottom=0)
    axis.set_xlabel(panel["targets"][0]["legendFormat"], fontsize=_SMALL)
    axis.set_ylabel(panel["targets"][1]["legendFormat"], fontsize=_SMALL)


def decorate(axis: Axes, unit: str) -> None:
    """Give the axes Grafana's look: a light grid, units at the left, and seconds below."""
    axis.tick_params(labelsize=_SMALL, length=0)
    axis.grid(color="#e8e8e8", linewidth=0.6)
    axis.set_axisbelow(True)
    for spine in axis.spines.values():
        spine.set_visible(False)
    axis.yaxis.set_major_formatter(lambda value, _: with_unit(value, unit))
    axis.xaxis.set_major_formatter(lambda value, _: f":{value:02.0f}")


DRAWING: Final = {
    "timeseries": draw_lines,
    "state-timeline": draw_states,
    "heatmap": draw_cells,
    "xychart": draw_points,
}
"""The drawing function of each kind of panel except `stat`."""
