r"""Regular expressions of RE2. Only this module imports the package.

Patterns of rule files have RE2's syntax and take linear time, so a pattern in a rule or in a caller's selector cannot
make the adapter hang. Python's `re` accepts other patterns (look-around, back-references) and interprets some common
ones differently (`$`, `\d`). By default, the package writes rejected patterns to stderr; that is disabled here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Protocol

import re2

_PIECES = re.compile(
    r"""\\Q.*?(?:\\E|\Z) | \\[xpP]\{[^}]*\} | \\(?P<escape>.) | \[\^?\]?(?:\[:\^?\w+:\]|\\.|[^]\\])*\]
    | \(\?P?<(?P<name>[^>]*)> | (?P<group>\()(?!\?) | \{(?P<least>0|[1-9][0-9]*)(?:,(?P<most>0|[1-9][0-9]*|))?\}""",
    re.DOTALL | re.VERBOSE,
)
"""Matches quoted texts, single escapes, classes, the opening of numbered groups, and repetitions."""
_GROUP_NAME = re.compile(r"[A-Za-z0-9_]+")
_MOST_REPETITIONS = 1000
_LONGEST_CHARACTERS = 1 << 16
"""Longest pattern. RE2 takes quadratic time to refuse some patterns: one second at this length."""
_SMALL_CHARACTERS = 8192
_SMALL_CLASSES = 20
_SMALL_BYTES = 1 << 18
"""Limits of a small pattern: characters, classes of Unicode, which take 0.2 ms each, and RE2's memory for it."""
FEWER_THINGS = "repeat fewer things, and use fewer classes of Unicode"
"""The advice for a pattern that is too large."""
_TOO_LARGE = f"it is too large: {FEWER_THINGS}"
_UNICODE_CLASS = re.compile(r"\\[pP]")
_META = frozenset(r"\.+*?()|[]{}^$")


class BadPatternError(ValueError):
    """A text is not a regular expression of RE2; the message is that of RE2."""


class LargePatternError(BadPatternError):
    """A pattern is not a small one."""


class _CompiledMatch(Protocol):
    def group(self, number: int, /) -> str | None: ...


class _Compiled(Protocol):
    groups: int
    programsize: int

    def search(self, text: str, /) -> _CompiledMatch | None: ...
    def fullmatch(self, text: str, /) -> _CompiledMatch | None: ...


@dataclass(frozen=True, slots=True)
class Match:
    """A match: the text of each group, or None for a group that did not participate."""

    groups: tuple[str | None, ...]
    """Texts of the groups; group 0 is the whole match."""
    names: tuple[tuple[str, int], ...]
    """Names and numbers of the named groups; several groups may have the same name, as in Go."""

    def group(self, name: str) -> str | None:
        """Return the text of the first participating group of this name; None if there is none."""
        texts = (self.groups[number] for known, number in self.names if known == name)
        return next((text for text in texts if text is not None), None)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled regular expression; two patterns are equal if their texts are equal."""

    text: str
    group_count: int
    """Number of groups, not counting group 0."""
    names: tuple[tuple[str, int], ...]
    _compiled: _Compiled = field(compare=False, repr=False)

    @property
    def size(self) -> int:
        """Number of steps of RE2's program: a few in a simple pattern. The memory for it grows with them."""
        return self._compiled.programsize

    def search(self, text: str) -> Match | None:
        """Return the leftmost match anywhere in the text."""
        found = self._compiled.search(text)
        if found is None:
            return None
        return Match(tuple(found.group(number) for number in range(self.group_count + 1)), self.names)

    def found_in(self, text: str) -> bool:
        """Return whether the pattern matches anywhere in the text."""
        return self._compiled.search(text) is not None

    def matches_all_of(self, text: str) -> bool:
        """Return whether the pattern matches the whole text; Prometheus anchors its matchers in the same way."""
        return self._compiled.fullmatch(text) is not None


def compile_pattern(text: str) -> Pattern:
    """Return the compiled pattern. Raises BadPatternError."""
    if len(text) > _LONGEST_CHARACTERS:
        raise BadPatternError(f"it has {len(text):,} characters, more than {_LONGEST_CHARACTERS:,}")
    return _pattern(text, _compile(text))


def _pattern(text: str, compiled: _Compiled) -> Pattern:
    # After RE2 has accepted the pattern, its brackets are closed, so each piece is found in constant time.
    pieces = list(_PIECES.finditer(text))
    _refuse_what_go_refuses(pieces)
    return Pattern(text, compiled.groups, _names(pieces), compiled)


def compile_small_pattern(text: str) -> Pattern:
    """Return the compiled pattern if that takes a few milliseconds at most, during which no other thread can run.

    For patterns of authors who must not hold up others: the largest ones take a second. It also takes little memory
    while it is used, where RE2 would otherwise keep up to 3 MiB for each pattern. Raises BadPatternError.
    """
    if len(text) > _SMALL_CHARACTERS or len(_UNICODE_CLASS.findall(text)) > _SMALL_CLASSES:
        raise LargePatternError(_TOO_LARGE)
    try:
        compiled = _compile(text, _SMALL_BYTES)
    except BadPatternError as e:
        raise LargePatternError(_TOO_LARGE) if "too large" in str(e) else e from None
    return _pattern(text, compiled)


def _compile(text: str, most_bytes: int | None = None) -> _Compiled:
    options = re2.Options()
    options.log_errors = False
    if most_bytes is not None:
        options.max_mem = most_bytes
    try:
        compiled: _Compiled = re2.compile(text, options)  # type: ignore[no-untyped-call]  # the package ships no types
    except re2.error as e:
        raise BadPatternError(_reason(e)) from e
    return compiled


def _refuse_what_go_refuses(pieces: list[re.Match[str]]) -> None:
    """Raise BadPatternError for patterns that RE2 accepts and Go's package regexp does not."""
    for piece in pieces:
        if piece["escape"] == "C":
            # It matches a single byte, so it can split a character.
            raise BadPatternError("invalid escape sequence: \\C")
        if piece["name"] is not None and not _GROUP_NAME.fullmatch(piece["name"]):
            raise BadPatternError(f"invalid capture group name: {piece['name']!r}")
        if any(len(count) > 4 or int(count) > _MOST_REPETITIONS for count in (piece["least"], piece["most"]) if count):
            # RE2 takes a repetition with many digits for plain text.
            raise BadPatternError(f"bad repetition operator: {piece[0]}")


def _names(pieces: list[re.Match[str]]) -> tuple[tuple[str, int], ...]:
    """Return each named group with its number; RE2 itself returns only the first group of each name."""
    groups = [piece["name"] for piece in pieces if piece["name"] is not None or piece["group"]]
    return tuple((name, number) for number, name in enumerate(groups, 1) if name)


def quote_pattern(text: str) -> str:
    """Return a pattern that matches exactly this text, escaped like Go's `regexp.QuoteMeta`."""
    return "".join(f"\\{character}" if character in _META else character for character in text)


def _reason(error: Exception) -> str:
    reason = error.args[0] if error.args else error
    return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
