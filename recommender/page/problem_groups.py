"""Groups the lines of the page that have the same problem, so that a fault of many lines takes one row."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from recommender.decisions.record import Record, Status
from recommender.page.recommendation_list import PageLine

_WORD: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
_TIMES: Final = re.compile(
    r"\d{4}-\d\d-\d\dT?[0-9:.Z]*|\b\d+(?:\.\d+)? ?(?:ms|s|min|h|d|seconds?|minutes?|hours?|days?)\b"
)
_LINE_OF_FILE: Final = re.compile(r"(?<=\.yaml|\.json):\d+(?=: )|(?<=\.yml):\d+(?=: )")
_KEY_BYTES: Final = 8
_COMPARED: Final = 1000
"""How many characters of a reason are compared, so that the cost of a page does not depend on the length of reasons."""


@dataclass(frozen=True, slots=True)
class PageRow:
    """A line, or a group of lines of one kind that have the same problem."""

    lines: tuple[PageLine, ...]
    key: str = ""
    """The key of the group; empty for a single line."""

    @property
    def first(self) -> PageLine:
        """The single line, or the first line of the group."""
        return self.lines[0]


def rows_of(lines: Sequence[PageLine]) -> list[PageRow]:
    """Return a row for each group with the same problem, at the place of its first line, and for each other line."""
    keys = [problem_key(line) for line in lines]
    counts = Counter(keys)
    places: dict[str, list[PageLine]] = {}
    rows: list[list[PageLine] | PageLine] = []
    for line, key in zip(lines, keys, strict=True):
        if not key or counts[key] == 1:
            rows.append(line)
        elif key in places:
            places[key].append(line)
        else:
            rows.append(places.setdefault(key, [line]))
    return [PageRow((row,)) if isinstance(row, PageLine) else PageRow(tuple(row), problem_key(row[0])) for row in rows]


def problem_key(line: PageLine) -> str:
    """Return the key that lines with the same problem share; empty without a problem, and for several targets.

    Lines have the same problem if they have the same status and reason, apart from names, times and line numbers of
    files in the reason.
    """
    if len(line.records) > 1 or (line.status is Status.OK and not line.is_refused):
        return ""
    record = line.first
    own = {record.name, *record.name.split("/"), *_names(record)}
    reason = "\n".join((record.message, *(outcome.message for outcome in record.targets)))
    general = _WORD.sub(
        lambda word: "…" if word[0] in own else word[0], _LINE_OF_FILE.sub("", _TIMES.sub("…", reason[:_COMPARED]))
    )
    content = f"{record.type}\n{record.status}\n{line.is_refused}\n{general}"
    return hashlib.blake2s(content.encode(errors="replace"), digest_size=_KEY_BYTES).hexdigest()


def _names(record: Record) -> Iterable[str]:
    places = [outcome.target for outcome in record.targets]
    for place in places if record.each is None else [record.each, *places]:
        yield place.namespace
        yield place.name
