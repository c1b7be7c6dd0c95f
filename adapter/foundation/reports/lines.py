"""Lines of a doctor's report: printed for people in the style of a compiler, and as JSON for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from adapter.foundation.reports.documents import json_text
from adapter.foundation.reports.terminal_escaping import printable


class CheckStatus(StrEnum):
    """Result of a check."""

    OK = "ok"
    WARNING = "warning"
    """The checked part works, but something should be changed."""
    ERROR = "error"
    """Clients get no values, or will soon stop getting them."""
    UNKNOWN = "unknown"
    """The check could not be made."""


@dataclass(frozen=True, slots=True)
class Line:
    """The result of one check."""

    name: str
    """Name of the check, followed by a slash and the name of what was checked."""
    status: CheckStatus
    message: str
    fix: str = ""
    """What to do; empty if nothing has to be done."""


APISERVER: Final = "kube-apiserver"
"""Name of the check on which all checks of the cluster depend."""
SEE_APISERVER: Final = f"see the line about {APISERVER}"
"""The fix of a check that could not be made because kube-apiserver does not answer."""
_FOLDED_FROM: Final = 3


def ok(name: str, message: str) -> Line:
    """Return a line about something that is in order."""
    return Line(name, CheckStatus.OK, message)


def warning(name: str, message: str, fix: str) -> Line:
    """Return a line about something doubtful."""
    return Line(name, CheckStatus.WARNING, message, fix)


def error(name: str, message: str, fix: str) -> Line:
    """Return a line about something wrong."""
    return Line(name, CheckStatus.ERROR, message, fix)


def unknown(name: str, message: str, fix: str) -> Line:
    """Return a line about something that could not be checked."""
    return Line(name, CheckStatus.UNKNOWN, message, fix)


def count(lines: Iterable[Line], status: CheckStatus) -> int:
    """Return how many lines have this status."""
    return sum(line.status is status for line in lines)


def as_json(lines: Sequence[Line]) -> str:
    """Return the report as one JSON document, indented."""
    document = {
        "apiVersion": "tidewatch.io/v1alpha1",
        "kind": "DoctorReport",
        "errors": count(lines, CheckStatus.ERROR),
        "warnings": count(lines, CheckStatus.WARNING),
        "checks": [
            {"name": line.name, "status": line.status.value, "message": line.message, "fix": line.fix or None}
            for line in lines
        ],
    }
    return json_text(document)


def as_text(lines: Sequence[Line]) -> str:
    """Return the report for people. Checks that were not made because kube-apiserver does not answer share a line."""
    # `kubectl tidewatch doctor` puts the component and a slash before each name.
    down = any(line.name.rpartition("/")[2] == APISERVER and line.status is CheckStatus.ERROR for line in lines)
    missed = [line for line in lines if down and line.fix == SEE_APISERVER]
    shown = [line for line in lines if line not in missed] if len(missed) >= _FOLDED_FROM else lines
    if shown is not lines:
        message = f"they need {APISERVER}, which does not answer; -o json names each"
        shown = [*shown, unknown(f"{len(missed)} more checks", message, SEE_APISERVER)]
    return "\n".join([*(text for line in shown for text in _printed_lines(line)), "", _summary(lines)])


def _printed_lines(line: Line) -> Iterator[str]:
    # Messages quote conditions and metrics that anybody who may create an HPA has named.
    yield printable(f"{line.status.value}: {line.name}: {line.message}")
    if line.fix:
        yield printable(f"  fix: {line.fix}")


def _summary(lines: Sequence[Line]) -> str:
    words = {CheckStatus.ERROR: "error", CheckStatus.WARNING: "warning"}
    counted = [(count(lines, status), word) for status, word in words.items()]
    parts = [f"{number} {word}{'' if number == 1 else 's'}" for number, word in counted]
    parts += [f"{count(lines, status)} {status.value}" for status in (CheckStatus.UNKNOWN, CheckStatus.OK)]
    return ", ".join(parts)
