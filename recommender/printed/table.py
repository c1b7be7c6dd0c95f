"""Records as text for people: a table of all recommendations, then the steps and the targets of each one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from adapter.foundation.reports.counts import count_of
from adapter.foundation.reports.terminal_escaping import printable
from recommender.decisions.loads.prediction import forecast_of
from recommender.decisions.record import Record, Status, TargetAction
from recommender.decisions.summary import WORST_FIRST, summary_of, worst_first
from recommender.decisions.texts.columns import GAP, columns, wrap_lines
from recommender.decisions.texts.record_texts import figure_text
from recommender.kinds.table import kind_named

_COLOURS: Final = {Status.OK: "32", Status.HELD: "33", Status.STALE: "31", Status.ERROR: "31"}
_BOLD: Final = "1"
_MOST_TARGETS: Final = 50
"""The most targets that the table of a recommendation with `forEach` shows."""


def as_text(records: Sequence[Record], *, width: int | None = None, colour: bool = False, explain: bool = False) -> str:
    """Return the text; `width` is the terminal's width, or None for lines of any length. `explain` adds details."""
    if not records:
        return "There are no recommendations."
    paint = _paint if colour else _plain
    groups = _group_records(records)
    lines = [*_summary(groups, width, paint)]
    for group in groups:
        lines += ["", paint(printable(group[0].name) or "(no name)", _BOLD)]
        lines += _targets(group, width, paint) if group[0].each is not None else _details(group[0], width, paint)
        if explain:
            lines += [line for record in group for line in _explained_lines(record, width, paint)]
    return "\n".join(line.rstrip() for line in lines)


def _group_records(records: Sequence[Record]) -> list[list[Record]]:
    """Group the records of the targets of one recommendation; each other record is a group of its own."""
    found: list[list[Record]] = []
    places: dict[str, int] = {}
    for record in records:
        if record.each is not None and record.name in places:
            found[places[record.name]].append(record)
            continue
        if record.each is not None:
            places[record.name] = len(found)
        found.append([record])
    return found


def _summary(groups: Sequence[list[Record]], width: int | None, paint: Callable[[str, str], str]) -> Iterator[str]:
    rows = [("RECOMMENDATION", "STATUS", "VALUE", "DECIDED BY"), *map(_summary_row, groups)]
    colours = {place: _COLOURS[summary_of(group).worst] for place, group in enumerate(groups, 1)}
    return columns(rows, width, lambda place, column, text: _status(place, column, text, colours, paint))


def _summary_row(group: Sequence[Record]) -> tuple[str, str, str, str]:
    first, summary = group[0], summary_of(group)
    if first.each is None:
        return first.name, first.status.value, value_text(first), first.binding or "-"
    value = _value_of_targets(group) if summary.replicas is None else count_of(summary.replicas, "replica")
    counts = ", ".join(
        f"{summary.counts[status]} {status.value}" for status in WORST_FIRST if summary.counts.get(status)
    )
    return first.name, summary.worst.value, value, f"{count_of(len(group), 'target')}: {counts}"


def _value_of_targets(group: Sequence[Record]) -> str:
    """Return how many targets have sizes, for a recommendation whose value is not a number of replicas."""
    valued = sum(record.has_value for record in group)
    return f"sizes of {valued} target{'' if valued == 1 else 's'}" if valued else "no value"


def _targets(group: Sequence[Record], width: int | None, paint: Callable[[str, str], str]) -> Iterator[str]:
    """Yield a table of the targets of a recommendation, the worst first, or all details if there is only one."""
    if len(group) == 1:
        yield from _details(group[0], width, paint)
        return
    worst = worst_first(group, _MOST_TARGETS)
    kind = kind_named(group[0].type)
    own = None if kind is None else kind.lines_of_targets(worst, width)
    yield from _rows_of_targets(worst, width, paint) if own is None else own
    if len(group) > len(worst):
        yield f"{GAP}and {len(group) - len(worst)} more: -o json has all of them"


def _rows_of_targets(worst: Sequence[Record], width: int | None, paint: Callable[[str, str], str]) -> Iterator[str]:
    rows = [("TARGET", "STATUS", "NOW", "VALUE", "LOAD", "EXPECTED", "MODEL", "DECIDED BY"), *map(_target_row, worst)]
    colours = {place: _COLOURS[record.status] for place, record in enumerate(worst, 1)}
    yield from columns(
        rows, width, lambda place, column, text: _status(place, column, text, colours, paint), indent=GAP
    )


def _target_row(record: Record) -> tuple[str, ...]:
    forecast = forecast_of(record)
    load = None if forecast is None else forecast.load
    current = record.targets[0].current_replicas if record.targets else None
    return (
        "" if record.each is None else f"{record.each.namespace}/{record.each.name}",
        record.status.value,
        "unknown" if current is None else str(current),
        "-" if record.replicas is None else str(record.replicas),
        "-" if load is None else figure_text(load.now),
        "-" if load is None or load.predicted is None else figure_text(load.predicted),
        "-" if forecast is None else forecast.model,
        _decided_by(record),
    )


def _decided_by(record: Record) -> str:
    """Return the step that decided, with the reason if a target is refused; the message if no step decided."""
    refused = "; ".join(outcome.message for outcome in record.targets if outcome.action is TargetAction.REFUSED)
    if refused:
        return f"{record.binding or '-'}, refused: {refused}"
    return record.binding or record.message or "-"


def _status(place: int, column: int, text: str, colours: dict[int, str], paint: Callable[[str, str], str]) -> str:
    return paint(text, colours[place]) if column == 1 and place in colours else text


def _details(record: Record, width: int | None, paint: Callable[[str, str], str]) -> Iterator[str]:
    kind = kind_named(record.type)
    message = f"{record.message if kind is None else kind.headline(record)};"
    for outcome in record.targets:
        # It is shown beside the target below.
        message = message.replace(f"; {outcome.message};", ";") if outcome.message else message
    if message := message.removesuffix(";"):
        yield from wrap_lines(printable(message), width, GAP)
    if record.inputs and not (kind is not None and kind.has_own_inputs):
        inputs = ", ".join(f"{name} {figure_text(value)}" for name, value in record.inputs.items())
        yield from wrap_lines(printable(f"inputs: {inputs}"), width, GAP)
    if kind is not None:
        yield from kind.head_lines(record, width, paint)
    if record.steps and not (kind is not None and kind.has_own_steps):
        rows = [("STEP", "VALUE", "DETAIL")]
        rows += [(step.step, figure_text(step.value), step.detail) for step in record.steps]
        binding = {place for place, step in enumerate(record.steps, 1) if step.step == record.binding}
        yield from columns(
            rows,
            width,
            lambda place, column, text: paint(text, _BOLD) if column == 0 and place in binding else text,
            indent=GAP,
        )
    if record.targets:
        rows_of_targets = [("TARGET", "NOW", "VALUE", "ACTION", "NOTE")]
        for outcome in record.targets:
            current = "unknown" if outcome.current_replicas is None else str(outcome.current_replicas)
            value = "-" if outcome.recommended_replicas is None else str(outcome.recommended_replicas)
            rows_of_targets.append((str(outcome.target), current, value, outcome.action.value, outcome.message))
        yield from columns(rows_of_targets, width, lambda _place, _column, text: text, indent=GAP)
    if kind is not None:
        yield from kind.tail_lines(record, width, paint)


def _explained_lines(record: Record, width: int | None, paint: Callable[[str, str], str]) -> Iterator[str]:
    kind = kind_named(record.type)
    if kind is not None:
        yield from kind.explained_lines(record, width, paint)


def value_text(record: Record) -> str:
    """Return the value: `11 replicas`, `sizes of 2 containers`, or `no value`."""
    if record.replicas is not None:
        return count_of(record.replicas, "replica")
    kind = kind_named(record.type)
    return (kind.value_text(record) if kind is not None else "") or "no value"


def _plain(text: str, _code: str) -> str:
    return text


def _paint(text: str, code: str) -> str:
    return f"\x1b[{code}m{text}\x1b[0m"
