"""Turns a series' name into the name of a metric in the API: filters, the pattern and its expansion.

As in prometheus-adapter, filters and pattern are unanchored RE2, and the API name is only the expansion of `as` for the
first match, by the rules of Go's `Regexp.Expand`. Other parts of the series' name are dropped.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field

from adapter.foundation.objects.regex import Match, Pattern, compile_pattern

_MOST_DIGITS = 9
"""Longest number of a group; Go treats a longer run of digits as a name."""


class NamingError(ValueError):
    """`matches` and `as` do not result in a name; the message says why."""


@dataclass(frozen=True, slots=True)
class SeriesFilter:
    """One entry of `seriesFilters`: a pattern that a series' name must match, or must not."""

    pattern: Pattern
    wanted: bool
    """Whether names must match (`is`) or must not (`isNot`)."""

    def passes(self, name: str) -> bool:
        """Return whether a series of this name passes the filter."""
        return self.pattern.found_in(name) is self.wanted


@dataclass(frozen=True, slots=True)
class GroupReference:
    """A reference to a group of the pattern, such as `$1` or `${name}`."""

    name: str
    number: int | None
    """Number of the group; None for a named group."""


@dataclass(frozen=True, slots=True)
class Naming:
    """How a rule names its metrics."""

    pattern: Pattern
    template: str
    """The text of `as`, or its default."""
    parts: tuple[str | GroupReference, ...] = field(repr=False)
    """Texts and references of the template, in order."""

    def name_for(self, series: str) -> str | None:
        """Return the API name of a series; None if the pattern does not match it. The name may be empty."""
        match = self.pattern.search(series)
        return None if match is None else "".join(_texts(self.parts, match))

    @property
    def unknown_groups(self) -> tuple[str, ...]:
        """Groups that `as` refers to and the pattern lacks. They expand to nothing."""
        return tuple(part.name for part in self.parts if isinstance(part, GroupReference) and not self._has(part))

    @property
    def always_empty(self) -> bool:
        """Whether every name is empty."""
        return len(self.unknown_groups) == len(self.parts)

    @property
    def literal(self) -> str:
        """The text of `as` that every name contains."""
        return "".join(part for part in self.parts if isinstance(part, str))

    def _has(self, reference: GroupReference) -> bool:
        if reference.number is not None:
            return reference.number <= self.pattern.group_count
        return any(name == reference.name for name, _ in self.pattern.names)


def make_naming(matches: str = "", as_: str = "") -> Naming:
    """Return the naming of a rule's `name`; empty texts stand for the defaults.

    The default of `matches` matches any name. The default of `as` is the whole match if the pattern has no group, and
    its group if it has one. Raises BadPatternError, and NamingError if `as` is required.
    """
    pattern = compile_pattern(matches or ".*")
    if not as_ and pattern.group_count > 1:
        raise NamingError(f"`matches` has {pattern.group_count} groups and `as` is missing")
    template = as_ or ("$1" if pattern.group_count else "$0")
    return Naming(pattern, template, parse_expansion(template))


def parse_expansion(template: str) -> tuple[str | GroupReference, ...]:
    """Return the texts and group references of a template, by the rules of Go's `Regexp.Expand`.

    `$$` is a dollar sign, and so is a `$` that no name follows. A name without braces is the longest run of letters,
    digits and `_`: `$1_x` refers to the group "1_x".
    """
    parts: list[str | GroupReference] = []
    texts: list[str] = []
    at = 0
    while (dollar := template.find("$", at)) >= 0:
        texts.append(template[at:dollar])
        reference, at = _reference(template, dollar + 1)
        if isinstance(reference, str):
            texts.append(reference)
        else:
            text = "".join(texts)
            parts += [text, reference] if text else [reference]
            texts.clear()
    text = "".join((*texts, template[at:]))
    return (*parts, text) if text else tuple(parts)


def _reference(template: str, at: int) -> tuple[str | GroupReference, int]:
    """Return the reference or text after a `$`, starting at position `at`, and the position of its end."""
    if template.startswith("$", at):
        return "$", at + 1
    braced = template.startswith("{", at)
    end = _end_of_name(template, at + braced)
    name = template[at + braced : end]
    if not name or (braced and not template.startswith("}", end)):
        return "$", at
    return GroupReference(name, _number(name)), end + braced


def _end_of_name(text: str, start: int) -> int:
    for position in range(start, len(text)):
        category = unicodedata.category(text[position])
        if not (category.startswith("L") or category == "Nd" or text[position] == "_"):
            return position
    return len(text)


def _number(name: str) -> int | None:
    """Return the group's number; None for a name. `01` is a name, too."""
    if not (name.isascii() and name.isdigit()) or (name[0] == "0" and len(name) > 1):
        return None
    return int(name) if len(name) <= _MOST_DIGITS else None


def _texts(parts: tuple[str | GroupReference, ...], match: Match) -> Iterable[str]:
    for part in parts:
        if isinstance(part, str):
            yield part
        elif part.number is None:
            yield match.group(part.name) or ""
        elif part.number < len(match.groups):
            yield match.groups[part.number] or ""
