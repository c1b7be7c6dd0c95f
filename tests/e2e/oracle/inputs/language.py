"""Inputs of the rule language: patterns, `as`, texts to be quoted."""

from __future__ import annotations

from typing import TYPE_CHECKING
from unicodedata import category

from tests.e2e.oracle.inputs.texts import ODD, mostly_sound, one_of, piece, some

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from tests.e2e.oracle.asking import Question

_CLASSES = (
    *(".", "\\d", "\\D", "\\w", "\\W", "\\s", "\\S", "[[:alpha:]]", "[[:^digit:]_]", "[[:word:]]", "[[:nope:]]"),
    *("\\pL", "\\PN", "\\p{Greek}", "\\p{^Lu}", "\\p{Nope}", "[\\pL\\d]", "[^\\n]", "[^a]", "[]a]", "[a\\]]", "[a-]"),
    *("[-a]", "[z-a]", "[]", "[^]", "[a-\\d]", "[\\b]", "[\\Qab\\E]", "[a&&b]", "\\p{Latin}", "\\p{Any}", "\\p{L}"),
    *("\\p{Lu}", "\\p{ASCII}", "\\pC", "\\p{Cn}", "\\p{LC}", "[\\x00-\\x1f]", "[[:ascii:]]", "[[.a.]]", "[[=a=]]"),
)
_ESCAPES = (
    *("\\.", "\\-", "\\_", "\\/", "\\ ", "\\a", "\\f", "\\t", "\\n", "\\r", "\\v", "\\e", "\\h", "\\N", "\\R", "\\X"),
    *("\\0", "\\07", "\\012", "\\123", "\\1", "\\8", "\\x41", "\\x4", "\\x{41}", "\\x{110000}", "\\x{}", "\\u0041"),
    *("\\Qa.b\\E", "\\Q", "\\E", "\\Qa", "\\C", "\\\\C", "\\G", "\\K", "\\é", "\\\n", "\\cA", "\\x{10FFFF}", "\\k<a>"),
    *("\\x{d800}", "\\x{000041}", "\\<", "\\>", "\\'", '\\"', "\\%", "\\@"),
)
_ANCHORS = ("^", "$", "\\A", "\\z", "\\Z", "\\b", "\\B")
_REPETITIONS = (
    *("*", "+", "?", "*?", "+?", "??", "{2}", "{0}", "{1,2}", "{0,}", "{2,1}", "{,3}", "{1,2}?", "{1000}", "{1001}"),
    *("**", "*+", "++", "{a}", "{", "{1", "{1,", "{01}", "{2}{3}", "{1,2}*", "{ 1}", "{-1}", "{99999999999}"),
)
_OPENINGS = (
    *("(", "(", "(", "(?:", "(?:", "(?P<one>", "(?P<two>", "(?<three>", "(?i:", "(?s:", "(?-s:", "(?U:", "(?m:"),
    *("(?is-m:", "(?P<a b>", "(?P<>", "(?P<é>", "(?P<1>", "(?=", "(?!", "(?<=", "(?>", "(?#", "(?P=one", "(?i-:"),
    *("(?x:", "(?:(?i)", "(?'a'", "(?|", "(?P<_>", "(?P>one"),
)
_GROUPS = (
    *("0", "1", "2", "01", "10", "9", "one", "two", "three", "nope", "1_x", "_", "", "é", "1é", "one1", "²", "\u0661"),
    *("999999999", "9999999999", "99999999999999999999", "a b", "-1", "+1", "1-", "$", "{1}", "a\u0301", "Ⅷ"),
)
_FLAGS = ("(?i)", "(?s)", "(?m)", "(?U)", "(?-i)", "(?im)", "(?)", "(?-)", "(?x)", "(?i", "(?ii)", "(?i-i)", "(?is)")
_WORDS = ("http", "_", "total", "a", "b", "c", "0", "1", "requests", "seconds", ":", "container_", "A", "Total", "é")


def _word(random: Random) -> str:
    return piece(random, *_WORDS)


def _atom(random: Random, depth: int) -> str:
    kind = random.random()
    if kind < 0.4:
        return _word(random)
    if kind < 0.6:
        return random.choice(_CLASSES)
    if kind < 0.68:
        return random.choice(_ESCAPES)
    if kind < 0.75:
        return random.choice(_ANCHORS)
    if kind < 0.78:
        return random.choice(_FLAGS)
    return f"{random.choice(_OPENINGS)}{_alternatives(random, depth + 1)})" if depth < 3 else ""


def _atom_with_repetition(random: Random, depth: int) -> str:
    repetition = random.choice(_REPETITIONS[:9] if random.random() < 0.85 else _REPETITIONS)
    return _atom(random, depth) + (repetition if random.random() < 0.35 else "")


def _sequence(random: Random, depth: int) -> str:
    return some(random, lambda source: _atom_with_repetition(source, depth), 4)


def _alternatives(random: Random, depth: int) -> str:
    return some(random, lambda source: _sequence(source, depth), 2 if random.random() < 0.3 else 1, 1, "|")


def _pattern(random: Random) -> str:
    if random.random() < 0.1:
        return random.choice(("", ".*", "^(.*)_total$", "^container_(.+)_seconds_total$", "(.*)", "_total$", "(|a)+"))
    return mostly_sound(random, lambda source: _alternatives(source, 0))


def _subject(random: Random) -> str:
    return some(random, _word, 6)


def searches(random: Random, count: int) -> Iterator[Question]:
    """Yield patterns, each with texts to search."""
    for _ in range(count):
        yield {"pattern": _pattern(random), "texts": [_subject(random) for _ in range(4)]}


def _reference(random: Random) -> str:
    return random.choice(("${%s}", "$%s", "$%s", "${%s", "$ %s", "$$%s", "$$$%s")) % random.choice(_GROUPS)


def _template(random: Random) -> str:
    return some(random, lambda source: one_of(source, _reference, _reference, _word), 4)


def expansions(random: Random, count: int) -> Iterator[Question]:
    """Yield patterns with a template to expand and the text to match."""
    groups = (
        "(.*)_total",
        "^(?P<one>[a-z]+)_(?P<two>.*)$",
        "(a)|(b)",
        "(?P<one>a)?b",
        "(.)(.)(.)",
        "()",
        "a",
        "(?i)(A+)",
    )
    numerous = "(.)" * 10 + "(?P<_>.?)"
    for _ in range(count):
        pattern = random.choice((*groups, numerous)) if random.random() < 0.8 else _pattern(random)
        yield {"pattern": pattern, "template": _template(random), "text": _subject(random)}


def quotables(random: Random, count: int) -> Iterator[Question]:
    """Yield texts to be quoted: every character once, then mixtures."""
    characters = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    known = [character for character in characters if category(character) != "Cn"]
    unknown = [character for character in characters if category(character) == "Cn"]
    for kind in (known, unknown):
        yield from ({"text": "".join(kind[at : at + 64])} for at in range(0, len(kind), 64))
    for _ in range(count):
        yield {"text": some(random, lambda source: source.choice((*ODD, *_WORDS)), 12)}
