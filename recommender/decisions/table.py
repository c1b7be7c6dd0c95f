"""Records as text for people: a table of all recommendations, then each one with its steps and its targets."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final

from adapter.reports.terminal import printable
from recommender.decisions.record import Status
from recommender.decisions.texts import prediction_lines, shown, value_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from recommender.decisions.record import Record

_COLOURS: Final = {Status.OK: "32", Status.HELD: "33", Status.STALE: "31", Status.ERROR: "31"}
_BOLD: Final = "1"
_GAP: Final = "  "
_NARROWEST: Final = 20
"""Characters that the last column has, even if the line then is longer than the terminal."""


def as_text(records: Sequence[Record], *, width: int | None = None, colour: bool = False) -> str:
    """Return the text; `width` is that of the terminal, None for lines of any length."""
    if not records:
        return "There are no recommendations."
    paint = _painted if colour else _plain
    lines = [*_summary(records, width, paint)]
    for record in records:
        lines += ["", paint(printable(record.name) or "(no name)", _BOLD), *_details(record, width, paint)]
    return "\n".join(line.rstrip() for line in lines)


def _summary(records: Sequence[Record], width: int | None, paint: Callable[[str, str], str]) -> Iterator[str]:
    rows = [("RECOMMENDATION", "STATUS", "VALUE", "DECIDED BY")]
    rows += [(record.name, record.status.value, value_text(record), record.binding or "-") for record in records]
    colours = {place: _COLOURS[record.status] for place, record in enumerate(records, 1)}
    return _columns(rows, width, lambda place, column, text: _status(place, column, text, colours, paint))


def _status(place: int, column: int, text: str, colours: dict[int, str], paint: Callable[[str, str], str]) -> str:
    return paint(text, colours[place]) if column == 1 and place in colours else text


def _details(record: Record, width: int | None, paint: Callable[[str, str], str]) -> Iterator[str]:
    if record.message:
        yield from _wrapped(printable(record.message), width, _GAP)
    for line in prediction_lines(record.prediction):
        yield from _wrapped(printable(line), width, _GAP)
    if record.inputs:
        inputs = ", ".join(f"{name} {shown(value)}" for name, value in record.inputs.items())
        yield from _wrapped(printable(f"inputs: {inputs}"), width, _GAP)
    if record.steps:
        rows = [("STEP", "VALUE", "DETAIL")]
        rows += [(step.step, shown(step.value), step.detail) for step in record.steps]
        binding = {place for place, step in enumerate(record.steps, 1) if step.step == record.binding}
        yield from _columns(
            rows,
            width,
            lambda place, column, text: paint(text, _BOLD) if column == 0 and place in binding else text,
            indent=_GAP,
        )
    if record.targets:
        rows_of_targets = [("TARGET", "NOW", "ACTION", "NOTE")]
        for outcome in record.targets:
            current = "unknown" if outcome.current_replicas is None else str(outcome.current_replicas)
            rows_of_targets.append((str(outcome.target), current, outcome.action.value, outcome.message))
        yield from _columns(rows_of_targets, width, lambda _place, _column, text: text, indent=_GAP)
    for container, kinds in (record.resources or {}).items():
        for kind, quantities in kinds.items():
            sizes = ", ".join(f"{resource} {quantity}" for resource, quantity in quantities.items())
            yield from _wrapped(printable(f"{container} {kind}: {sizes}"), width, _GAP)


def _columns(
    rows: Sequence[tuple[str, ...]],
    width: int | None,
    finish: Callable[[int, int, str], str],
    indent: str = "",
) -> Iterator[str]:
    """Yield the rows with aligned columns, the last one wrapped. `finish` gets each padded cell with its place."""
    safe = [tuple(map(printable, row)) for row in rows]
    widths = [max(len(row[column]) for row in safe) for column in range(len(rows[0]) - 1)]
    start = len(indent) + sum(widths) + len(_GAP) * len(widths)
    for place, row in enumerate(safe):
        cells = [finish(place, column, row[column].ljust(size)) for column, size in enumerate(widths)]
        first, *rest = _wrapped(row[-1], width if width is None else max(width - start, _NARROWEST), "") or [""]
        yield indent + _GAP.join([*cells, first])
        yield from (" " * start + line for line in rest)


def _wrapped(text: str, width: int | None, indent: str) -> list[str]:
    if width is None:
        return [indent + text]
    return textwrap.wrap(
        text,
        max(width, _NARROWEST),
        initial_indent=indent,
        subsequent_indent=indent,
        break_on_hyphens=False,
    )


def _plain(text: str, _code: str) -> str:
    return text


def _painted(text: str, code: str) -> str:
    return f"\x1b[{code}m{text}\x1b[0m"
