"""Mappings of YAML with merge keys (`<<`), as Go's yaml.v2 reads them into structs and maps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeAlias

from adapter.foundation.documents.tree import (
    DocumentProblem,
    MappingEntry,
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    shorten,
)

Place: TypeAlias = tuple[str, int, int]
"""The file, line and column of a node."""


def make_mapping(place: Place, problems: tuple[DocumentProblem, ...], children: list[Node]) -> MappingNode:
    """Return the mapping with its merge keys resolved, and with the problems of its keys."""
    own: dict[str, MappingEntry] = {}
    merged: dict[str, _Slot] = {}
    wrong = list(problems)
    repeated: dict[DocumentProblem, None] = {}
    for key, value in zip(children[::2], children[1::2], strict=True):
        wrong.extend(key.problems)
        if not isinstance(key, ScalarNode):
            wrong.append(key.problem(f"expected a key, found {key.kind}", "write the key as a string"))
        elif key.plain and key.value == "<<":
            wrong.extend(_merge_all(merged, value, repeated))
        elif key.value in own:
            message = f"the key {shorten(key.value)!r} appears a second time; the first is in line {{}}"
            wrong.append(key.problem(message.format(own[key.value].key.line), "remove one of them"))
        else:
            own[key.value] = MappingEntry(key, value)
            _merge(merged, own[key.value], repeated)
    return MappingNode(*place, tuple(wrong), _finished_entries(merged), tuple(repeated))


class _Slot:
    """A key of a mapping that is being built; later merges may replace or extend its value."""

    def __init__(self, entry: MappingEntry) -> None:
        self._entry = entry
        # The fields below are used once a second mapping extends the first.
        self._fields: dict[str, _Slot] | None = None
        # Each problem is kept once, in order: thousands of aliases may repeat the same ones.
        self._problems: dict[DocumentProblem, None] = {}
        self._repeated: dict[DocumentProblem, None] = {}

    def fill_up(self, entry: MappingEntry) -> bool:
        """Add the entries of another mapping to the value. Returns False, without effect, unless both are mappings."""
        there = self._entry.value
        if not isinstance(there, MappingNode) or not isinstance(entry.value, MappingNode):
            return False
        if self._fields is None:
            self._fields = {old.name: _Slot(old) for old in there.entries}
            self._take_problems(there)
        self._take_problems(entry.value)
        for new in entry.value.entries:
            _merge(self._fields, new, self._repeated)
        self._entry = entry
        return True

    def merged_entry(self) -> MappingEntry:
        """Return the entry with everything that was merged into it."""
        value = self._entry.value
        if self._fields is None or not isinstance(value, MappingNode):
            return self._entry
        problems, repeated = tuple(self._problems), tuple(self._repeated)
        whole = replace(value, problems=problems, entries=_finished_entries(self._fields), repeated=repeated)
        return MappingEntry(self._entry.key, whole)

    def _take_problems(self, mapping: MappingNode) -> None:
        self._problems |= dict.fromkeys(mapping.problems)
        self._repeated |= dict.fromkeys(mapping.repeated)


def _finished_entries(slots: dict[str, _Slot]) -> tuple[MappingEntry, ...]:
    return tuple(slot.merged_entry() for slot in slots.values())


def _merge_all(into: dict[str, _Slot], value: Node, repeated: dict[DocumentProblem, None]) -> Iterator[DocumentProblem]:
    """Add the entries of a merge key's mapping, or of its list of mappings, in which earlier mappings win."""
    sources = reversed(value.items) if isinstance(value, SequenceNode) else (value,)
    for source in sources:
        if isinstance(source, MappingNode):
            yield from source.problems
            for entry in source.entries:
                _merge(into, entry, repeated)
        else:
            yield source.problem(f"{source.kind} cannot be merged by `<<`", "merge a mapping or a list of mappings")


def _merge(into: dict[str, _Slot], entry: MappingEntry, repeated: dict[DocumentProblem, None]) -> None:
    """Set an entry as Go's yaml.v2 does: later values win, and a mapping extends an existing mapping.

    The decoder writes each field of a struct in the order of the file, whether or not it comes from a merge key.
    YAML's own rule (explicit keys win, nothing nested is combined) would read the same file differently.
    """
    there = into.get(entry.name)
    if there:
        message = f"the key {shorten(entry.name)!r} is set both here and by a merge"
        repeated[entry.key.problem(message, "set it in one place")] = None
    if there is None or not there.fill_up(entry):
        into[entry.name] = _Slot(entry)
