"""Sizes as a table for people: a line for CPU and one for memory of each container, with notes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.objects.amount_texts import amount_text
from adapter.foundation.reports.counts import count_of
from adapter.foundation.reports.terminal_escaping import printable
from recommender.decisions.texts.columns import columns, wrap_lines
from recommender.decisions.texts.times import rfc3339
from recommender.kinds.resources.histograms import DAY_SECONDS
from recommender.kinds.resources.size_record import ResourceSize, SizeRecord, SizeStatus
from recommender.kinds.resources.workloads import CPU, MEMORY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recommender.commands.sizes.size_reading import Sizes

_MOST_NOTES: Final = 20
_HEAD: Final = ("WORKLOAD", "CONTAINER", "", "NOW", "RECOMMENDED", "SAVES", "SURE")


def as_table(sizes: Sizes, width: int | None) -> str:
    """Return the table; with `width` None, lines may have any length."""
    return "\n".join(_lines(sizes, width))


def _lines(sizes: Sizes, width: int | None) -> Iterator[str]:
    yield from wrap_lines(_summary(sizes), width, "")
    yield ""
    shown = [record for record in sizes.records if record.cpu is not None and record.memory is not None]
    if shown:
        yield from (line.rstrip() for line in columns([_HEAD, *(row for each in shown for row in _rows(each))], width))
        yield ""
    notes = [record for record in sizes.records if record.message]
    for record in notes[:_MOST_NOTES]:
        yield from wrap_lines(printable(f"{record.workload} {record.container}: {record.message}"), width, "")
    if len(notes) > _MOST_NOTES:
        yield f"and {count_of(len(notes) - _MOST_NOTES, 'more note')}: -o json has all of them"
    for text in sizes.missing:
        yield from wrap_lines(printable(f"note: {text}"), width, "")


def _summary(sizes: Sizes) -> str:
    days = sizes.window.seconds / DAY_SECONDS
    containers = len(sizes.records)
    if not containers:
        return (
            f"No container has usage in the {days:.3g} days until {rfc3339(sizes.window.end)}: check that Prometheus "
            "scrapes cAdvisor, and which namespaces and workloads are requested."
        )
    sized = sum(record.status is SizeStatus.OK for record in sizes.records)
    settings = sizes.options.settings
    percentile = "auto" if settings.percentile is None else f"{settings.percentile * 100:g}"
    saved = ""
    if any(record.cpu is not None and record.cpu.saves is not None for record in sizes.records):
        cpu = sum((record.cpu and record.cpu.saves) or 0 for record in sizes.records)
        memory = sum((record.memory and record.memory.saves) or 0 for record in sizes.records)
        saved = f"; together they save {_amount(CPU, cpu)} of CPU and {_amount(MEMORY, memory)} of memory"
    return (
        f"{sized} of {count_of(containers, 'container')} sized from {days:.3g} days until {rfc3339(sizes.window.end)} "
        f"(percentile {percentile}, margin {settings.margin_ratio * 100:g}%){saved}."
    )


def _rows(record: SizeRecord) -> Iterator[tuple[str, ...]]:
    for resource, size in ((CPU, record.cpu), (MEMORY, record.memory)):
        if size is not None:
            first = resource == CPU
            yield (
                str(record.workload) if first else "",
                record.container if first else "",
                "cpu" if first else "mem",
                "-" if size.request is None else _amount(resource, size.request),
                "-".join(_amount(resource, amount) for amount in (size.lower, size.target, size.upper)),
                _saves(resource, size, record.status),
                _sure(size),
            )


def _saves(resource: str, size: ResourceSize, status: SizeStatus) -> str:
    if status is SizeStatus.HELD:
        return "held"
    return "-" if size.saves is None else _amount(resource, size.saves)


def _sure(size: ResourceSize) -> str:
    """Return the relative half-width of the target's 90% interval over resampled days, or `few days` if unknown."""
    if size.low is None or size.high is None:
        return "few days"
    down, up = size.target - size.low, size.high - size.target
    return f"±{max(down, up) / size.target * 100:.0f}%"


def _amount(resource: str, amount: int) -> str:
    return amount_text(resource, amount, rounds_up=True)
