r"""RE2, imported here and nowhere else.

Rule files promise RE2's syntax and its linear time: a pattern in a rule, or one that an asker puts into a selector,
cannot make the adapter hang. Python's `re` would accept other patterns (look-around, back-references) and read some of
the shared ones differently (`$`, `\d`). The package writes rejected patterns to stderr unless it is told not to.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Protocol

import re2

_ESCAPES = re.compile(r"\\Q.*?(?:\\E|\Z)|\\.", re.DOTALL)
"""Quoted stretches, and single escapes."""
_META = frozenset(r"\.+*?()|[]{}^$")


class BadPatternError(ValueError):
    """A text is not a regular expression of RE2; the message is RE2's own."""


class _CompiledMatch(Protocol):
    def group(self, number: int, /) -> str | None: ...


class _Compiled(Protocol):
    groups: int
    groupindex: dict[str, int]

    def search(self, text: str, /) -> _CompiledMatch | None: ...
    def fullmatch(self, text: str, /) -> _CompiledMatch | None: ...


@dataclass(frozen=True, slots=True)
class Match:
    """What a pattern found: the text of each group, None for a group that took no part."""

    groups: tuple[str | None, ...]
    """Group 0 is the whole match."""
    names: tuple[tuple[str, int], ...]
    """Names of groups with their numbers."""

    def named(self, name: str) -> str | None:
        """Return the text of the group of this name; None where there is none, or it took no part."""
        return next((self.groups[number] for known, number in self.names if known == name), None)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled regular expression; two are equal if their text is."""

    text: str
    group_count: int
    """Without group 0."""
    names: tuple[tuple[str, int], ...]
    _compiled: _Compiled = field(compare=False, repr=False)

    def search(self, text: str) -> Match | None:
        """Return the leftmost match anywhere in the text."""
        found = self._compiled.search(text)
        if found is None:
            return None
        return Match(tuple(found.group(number) for number in range(self.group_count + 1)), self.names)

    def found_in(self, text: str) -> bool:
        """Return whether it matches anywhere in the text."""
        return self._compiled.search(text) is not None

    def matches_all_of(self, text: str) -> bool:
        """Return whether it matches the text from end to end, as Prometheus anchors its matchers."""
        return self._compiled.fullmatch(text) is not None


def compile_pattern(text: str) -> Pattern:
    """Return the pattern; raises BadPatternError."""
    if any(piece == "\\C" for piece in _ESCAPES.findall(text)):
        # Not in Go's RE2: it matches a single byte, and so can cut a character in two.
        raise BadPatternError("invalid escape sequence: \\C")
    options = re2.Options()
    options.log_errors = False
    try:
        compiled: _Compiled = re2.compile(text, options)  # type: ignore[no-untyped-call]  # the package ships no types
    except re2.error as e:
        raise BadPatternError(_reason(e)) from e
    return Pattern(text, compiled.groups, tuple(compiled.groupindex.items()), compiled)


def quote_pattern(text: str) -> str:
    """Return a pattern that matches exactly this text, escaped where Go's `regexp.QuoteMeta` escapes."""
    return "".join(f"\\{character}" if character in _META else character for character in text)


def _reason(error: Exception) -> str:
    reason = error.args[0] if error.args else error
    return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
