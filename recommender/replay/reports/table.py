"""The report of a replay as text: the verdict in a sentence first, then a line for each policy."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final

from adapter.foundation.reports.terminal_escaping import printable
from recommender.decisions.texts.columns import align_columns
from recommender.decisions.texts.times import rfc3339
from recommender.replay.reports.document import pending_quantiles

if TYPE_CHECKING:
    from recommender.replay.policy_outcome import PolicyOutcome
    from recommender.replay.reports.report import ReplayReport

_HEADER: Final = ("POLICY", "NODE-HOURS", "COST", "PENDING p50", "p99", "LONGEST", "TOTAL", "EVICTIONS", "CHANGES")
_WIDTH: Final = 80
"""Width of wrapped sentences; the table may be wider."""
_BOLD: Final = "\x1b[1m{}\x1b[0m"


def replay_text(report: ReplayReport, *, colour: bool = False) -> str:
    """Return the report as text."""
    bold = _BOLD if colour else "{}"
    days = (report.end - report.start) / 86_400
    recorded = (*_row(report.recorded)[:-2], "-", str(report.recorded.changes or "-"))
    rows = [_HEADER, recorded, *(_row(one) for one in report.policies)]
    lines = [
        *map(bold.format, _sentence_lines(report.verdict.reason)),
        "",
        *_sentence_lines(f"{report.source}: {days:.1f} days from {rfc3339(report.start)}"),
        "",
    ]
    for row, line in zip(rows, align_columns(rows), strict=True):
        lines.append(bold.format(line) if row[0] == report.verdict.use else line)
    lines.append("")
    keys = "PENDING: minutes that a pod waited for its node; TOTAL: of all pods. COST: hours of nodes by their price."
    for note in (keys, *report.notes):
        lines += _sentence_lines(note)
    return "\n".join(lines)


def _sentence_lines(sentence: str) -> list[str]:
    return textwrap.wrap(printable(sentence), _WIDTH, break_long_words=False, break_on_hyphens=False)


def _row(one: PolicyOutcome) -> tuple[str, ...]:
    return (
        one.name,
        f"{one.node_hours.sum():,.0f}",
        "-" if one.cost is None else f"{one.cost.sum():,.2f}",
        *(f"{minutes:.1f}" for minutes in pending_quantiles(one)),
        f"{one.pending_minutes.sum():,.0f}",
        f"{one.evictions.sum():,.0f}",
        str(one.changes),
    )
