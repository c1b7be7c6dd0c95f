"""Mappings of YAML with their merge keys (`<<`), as Go's yaml.v2 reads them into structs and maps."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from adapter.service.nodes import Entry, Mapping, Problem, Scalar, Sequence, shortened

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapter.service.nodes import Node

Place: TypeAlias = tuple[str, int, int]
"""File, line and column."""


def make_mapping(place: Place, problems: tuple[Problem, ...], children: list[Node]) -> Mapping:
    """Return the mapping, merge keys resolved, with what is wrong with its keys."""
    own: dict[str, Entry] = {}
    merged: dict[str, Entry] = {}
    wrong = list(problems)
    repeated: list[Problem] = []
    for key, value in zip(children[::2], children[1::2], strict=True):
        wrong.extend(key.problems)
        if not isinstance(key, Scalar):
            wrong.append(key.problem(f"{key.kind} stands where a key belongs", "write the key as a text"))
        elif key.plain and key.value == "<<":
            wrong.extend(_merge_all(merged, value, repeated))
        elif key.value in own:
            message = f"the key {shortened(key.value)!r} stands here for a second time, the first is in line {{}}"
            wrong.append(key.problem(message.format(own[key.value].key.line), "remove one of them"))
        else:
            own[key.value] = Entry(key, value)
            _merge(merged, own[key.value], repeated)
    return Mapping(*place, tuple(wrong), tuple(merged.values()), _each_once(*repeated))


def _merge_all(into: dict[str, Entry], value: Node, repeated: list[Problem]) -> Iterator[Problem]:
    """Take over the entries of a merge key's mapping, or of its list of mappings, of which earlier ones win."""
    sources = reversed(value.items) if isinstance(value, Sequence) else (value,)
    for source in sources:
        if isinstance(source, Mapping):
            yield from source.problems
            for entry in source.entries:
                _merge(into, entry, repeated)
        else:
            yield source.problem(f"{source.kind} is merged by `<<`", "merge a mapping or a list of mappings")


def _merge(into: dict[str, Entry], entry: Entry, repeated: list[Problem]) -> None:
    """Set an entry as Go's yaml.v2 does: what stands later wins, and a mapping fills up the one that is there.

    That decoder writes each field of a struct in place, whether it comes by a merge key or not, in the order of the
    file. YAML's own rule (explicit keys win, nothing nested is combined) would read the same file differently.
    """
    there = into.get(entry.name)
    if there:
        message = f"the key {shortened(entry.name)!r} is set here, and by a merge as well"
        repeated.append(entry.key.problem(message, "set it in one place"))
    if there and isinstance(there.value, Mapping) and isinstance(entry.value, Mapping):
        combined = {old.name: old for old in there.value.entries}
        within: list[Problem] = []
        for new in entry.value.entries:
            _merge(combined, new, within)
        value = replace(
            entry.value,
            problems=_each_once(*there.value.problems, *entry.value.problems),
            entries=tuple(combined.values()),
            repeated=_each_once(*there.value.repeated, *entry.value.repeated, *within),
        )
        into[entry.name] = Entry(entry.key, value)
    else:
        into[entry.name] = entry


def _each_once(*problems: Problem) -> tuple[Problem, ...]:
    """Return the problems without those of the same place: thousands of aliases may bring the same ones."""
    return tuple(dict.fromkeys(problems))
