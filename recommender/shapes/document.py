"""The answer of `recommend --shapes` as a JSON document and as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from adapter.foundation.documents.files import API_VERSION
from adapter.foundation.reports.counts import count_of
from adapter.foundation.reports.documents import four_digits
from adapter.foundation.reports.terminal_escaping import printable
from recommender.decisions.texts.columns import align_columns, wrap_lines
from recommender.decisions.texts.times import rfc3339
from recommender.shapes.choice import NoChoice

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recommender.shapes.report import ShapeReport

KIND: Final = "ShapeRecommendation"
_WIDTH: Final = 80
"""Width of wrapped sentences; tables may be wider."""
_SHOWN_PERCENT: Final = 0.05
"""Percentages below this are shown as 0.0."""


def shapes_document(report: ShapeReport) -> dict[str, Any]:
    """Return the answer as plain values. Costs are per hour."""
    choice = None if isinstance(report.choice, NoChoice) else report.choice
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "source": report.source,
        "peaks": [rfc3339(time) for time in report.peaks],
        "shapes": [{"shape": one.shape, "count": one.count, "cost": four_digits(one.cost)} for one in report.shapes],
        "cost": None if choice is None else four_digits(choice.cost),
        "cost_bound": None if choice is None else four_digits(choice.bound),
        "present": {"nodes": report.current_nodes, "cost": four_digits(report.current_cost)},
        "saves_ratio": four_digits(report.saves_ratio),
        "consolidations": [
            {
                "nodes": list(one.nodes),
                "shape": one.shape,
                "count": one.count,
                "evictions": one.evictions,
                "saved_per_hour": four_digits(one.saved_per_hour),
                "saved_per_eviction": four_digits(one.saved_per_eviction),
            }
            for one in report.consolidations
        ],
        "message": shapes_message(report),
        "homeless": list(report.choice.unplaceable) if isinstance(report.choice, NoChoice) else [],
        "notes": list(report.notes),
    }


def shapes_message(report: ShapeReport) -> str:
    """Return the answer in one sentence."""
    choice = report.choice
    if isinstance(choice, NoChoice):
        return f"No shapes are recommended: {choice.reason}."
    machines = ", ".join(f"{one.count} of {one.shape}" for one in report.shapes)
    hold = "holds" if sum(one.count for one in report.shapes) == 1 else "hold"
    text = f"{machines} {hold} every peak for {choice.cost:,.2f} an hour"
    saves = report.saves_ratio
    if saves is not None:
        text += f", {abs(saves) * 100:.1f}% {'less' if saves >= 0 else 'more'} than the current nodes"
    elif report.current_cost is not None:
        text += ", and the current nodes cost nothing by the prices of their groups"
    if not choice.bound:
        return f"{text}."
    above = 100 * (choice.cost / choice.bound - 1)
    if above < _SHOWN_PERCENT:
        return f"{text}; no machines of the catalogue could for less."
    return f"{text}; at most {above:.1f}% above the cheapest machines that could."


def shapes_text(report: ShapeReport) -> str:
    """Return the answer as text for people."""
    return "\n".join(_lines(report))


def _lines(report: ShapeReport) -> Iterator[str]:
    choice = report.choice
    yield from _sentence(shapes_message(report))
    yield ""
    if isinstance(choice, NoChoice):
        for each in choice.unplaceable:
            yield from _sentence(each, "  ")
    else:
        pods, peaks = count_of(report.most_pods, "pod"), count_of(len(report.peaks), "peak")
        yield from _sentence(f"{report.source}: {peaks} of up to {pods}, the first {rfc3339(report.peaks[0])}")
        yield ""
        cost = "-" if report.current_cost is None else f"{report.current_cost:,.2f}"
        rows = [("SHAPE", "COUNT", "COST/HOUR")]
        rows += [(one.shape, str(one.count), f"{one.cost:,.2f}") for one in report.shapes]
        rows += [("together", str(sum(one.count for one in report.shapes)), f"{choice.cost:,.2f}")]
        rows += [("lower bound", "-", f"{choice.bound:,.2f}"), ("current nodes", str(report.current_nodes), cost)]
        yield from align_columns(rows)
    if report.consolidations:
        yield ""
        replaced: list[tuple[str, ...]] = [("REPLACE", "BY", "EVICTIONS", "SAVED/HOUR", "SAVED/EVICTION")]
        replaced += [
            (
                " and ".join(one.nodes),
                f"{one.count} of {one.shape}",
                str(one.evictions),
                f"{one.saved_per_hour:.3f}",
                f"{one.saved_per_eviction:.4f}",
            )
            for one in report.consolidations
        ]
        yield from align_columns(replaced)
    if report.notes:
        yield ""
        for note in report.notes:
            yield from _sentence(note)


def _sentence(text: str, indent: str = "") -> Iterator[str]:
    yield from wrap_lines(printable(text), _WIDTH, indent)
