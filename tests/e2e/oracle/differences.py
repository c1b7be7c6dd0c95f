"""Where this project differs from Go by choice: what a difference may look like, and an example that shows it.

The reasons are in docs/differences-from-go.md, by the same names. A difference that no entry covers fails the
comparison.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from tests.e2e.oracle.asking import Answer, Question, Refused

Covers: TypeAlias = Callable[[Question, Answer, Answer], bool]
"""Decides from the question, the oracle's answer and ours whether a difference is covered."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One entry of the page, for one op."""

    name: str
    op: str
    covers: Covers
    example: Question | None
    """None if whether there is any difference depends on the current versions."""


def _refused_for(reason: str) -> Covers:
    """Cover texts that Go accepts and we refuse with a message that matches this pattern."""
    pattern = re.compile(reason)
    return lambda _, go, our: (
        not isinstance(go, Refused) and isinstance(our, Refused) and bool(pattern.search(our.reason))
    )


def _only_in(*fields: str) -> Callable[[Answer, Answer], bool]:
    """Return a function that tells whether two answers are equal except for these fields."""

    def same(go: Answer, our: Answer) -> bool:
        return all(go[name] == our[name] for name in our if name not in fields)

    return same


def _both_accept(go: Answer, our: Answer) -> bool:
    return not isinstance(go, Refused) and not isinstance(our, Refused)


def _complaint(_: Question, go: Answer, our: Answer) -> bool:
    refused = isinstance(our, Refused) and our.reason.startswith("printf: ")
    return refused and not isinstance(go, Refused) and bool(go["complaint"])


def _trailing_pipe(asked: Question, go: Answer, our: Answer) -> bool:
    refused = isinstance(our, Refused) and our.reason.endswith("lacks a value")
    return refused and not isinstance(go, Refused) and bool(re.search(r"\|\s*-?(>>|\))", asked["text"]))


def _stricter_path_segment(asked: Question, go: Answer, our: Answer) -> bool:
    text = asked["text"]
    unfit = not text or len(text) > 253 or any(character < " " or character == "\x7f" for character in text)
    return go["path_segment"] and not our["path_segment"] and unfit and _only_in("path_segment")(go, our)


def _newer_characters(_: Question, go: Answer, our: Answer) -> bool:
    gos, ours = _spellings(go["quoted"]), _spellings(our["quoted"])
    if [character for character, _ in gos] != [character for character, _ in ours]:
        return False
    differing = [mine for mine, other in zip(ours, gos, strict=True) if mine != other]
    return go["pattern"] == our["pattern"] and all(_unknown_to_one(*mine) for mine in differing)


def _spellings(quoted: str) -> list[tuple[str, bool]]:
    """Return each character of a quoted text, and whether it is written by its code."""
    found = re.findall(r"\\u([0-9a-f]{4})|\\U([0-9a-f]{8})|(\\.|.)", quoted, re.DOTALL)
    return [(plain or chr(int(short or long, 16)), not plain) for short, long, plain in found]


def _unknown_to_one(character: str, by_code: bool) -> bool:  # noqa: FBT001 - how our side spells it
    """Return whether the character is newer than the tables of the side that writes it by its code."""
    known = unicodedata if by_code else unicodedata.ucd_3_2_0
    return known.category(character) == "Cn"


def _unassigned_in_class(asked: Question, go: Answer, our: Answer) -> bool:
    return _both_accept(go, our) and bool(re.search(r"\\[pP]\{?\^?C", asked["pattern"]))


def _inside_character(asked: Question, go: Answer, our: Answer) -> bool:
    texts = asked.get("texts") or [asked["text"]]
    return _both_accept(go, our) and "\\B" in asked["pattern"] and not all(map(str.isascii, texts))


def _negative_milli(_: Question, go: Answer, our: Answer) -> bool:
    return _both_accept(go, our) and our["nanos"] < 0 and go["milli"] != our["milli"] and _same_amount(go, our)


def _same_amount(go: Answer, our: Answer) -> bool:
    return all(go[name] == our[name] for name in ("canonical", "format", "compared", "sum"))


def _without_suffix(_: Question, go: Answer, our: Answer) -> bool:
    """Return whether an exponent is 21 or more, for which Go has no suffix in this format and writes none."""
    return (
        _both_accept(go, our)
        and any(re.search(r"e(2[1-9]|[3-9][0-9])$", our[name]) for name in ("canonical", "sum"))
        and all(go[name] == our[name] for name in ("format", "compared"))
    )


def _null_spelling(asked: Question, go: Answer, our: Answer) -> bool:
    return _both_accept(go, our) and bool(re.search(r"namespaced: (&\w )?(Null|NULL)", asked["text"]))


def _null_key(asked: Question, go: Answer, our: Answer) -> bool:
    return _both_accept(go, our) and bool(re.search(r"^ *~: ", asked["text"], re.MULTILINE))


def _unchecked_tag(asked: Question, go: Answer, our: Answer) -> bool:
    tagged = re.search(r"!!(null|bool|int|float) ", asked["text"])
    return bool(tagged) and isinstance(go, Refused) and "cannot decode" in go.reason and not isinstance(our, Refused)


def _overridden_error(asked: Question, go: Answer, our: Answer) -> bool:
    refused = isinstance(go, Refused) and "cannot unmarshal" in go.reason and not isinstance(our, Refused)
    return refused and "<<:" in asked["text"]


def _second_document(asked: Question, go: Answer, our: Answer) -> bool:
    if isinstance(go, Refused) or not isinstance(our, Refused):
        return False
    found = re.search("a second document begins here|did not find expected <document start>", our.reason)
    return bool(found) or ("\n---\n" in asked["text"] and "this is not YAML" in our.reason)


def _inner_mark(asked: Question, go: Answer, our: Answer) -> bool:
    return "\ufeff" in asked["text"][1:] and isinstance(go, Refused) and not isinstance(our, Refused)


def _slash_escape(asked: Question, go: Answer, our: Answer) -> bool:
    return isinstance(go, Refused) and not isinstance(our, Refused) and "\\/" in asked["text"]


def _texts(pattern: str) -> Question:
    return {"pattern": pattern, "texts": ["a"]}


def _query(text: str, **data: str) -> Question:
    empty = {"Series": "s", "LabelMatchers": "", "LabelValuesByName": {}, "GroupBy": "", "GroupBySlice": []}
    return {"text": text, "data": {**empty, **data}}


_NEW_CLASSES: Final = _refused_for(r"invalid character class range: \\[pP]")
_OVERRIDDEN: Final = "rules:\n- seriesQuery: [x]\n  <<: {seriesQuery: y}\n"
_LARGE_PATTERN: Final = _refused_for("pattern too large")

DIFFERENCES: Final = (
    Difference("pattern-classes-of-newer-go", "regexp", _NEW_CLASSES, _texts("\\p{ASCII}")),
    Difference("pattern-classes-of-newer-go", "matcher", _NEW_CLASSES, _texts("\\p{Cn}")),
    Difference(
        "pattern-classes-of-newer-go", "expand", _NEW_CLASSES, {"pattern": "\\p{LC}", "template": "", "text": ""}
    ),
    Difference("large-patterns", "expand", _LARGE_PATTERN, {"pattern": "\\pL{1000}", "template": "", "text": ""}),
    Difference("unassigned-in-classes", "regexp", _unassigned_in_class, {"pattern": "\\pC", "texts": ["\ufffe"]}),
    Difference("unassigned-in-classes", "matcher", _unassigned_in_class, {"pattern": "\\pC", "texts": ["\ufffe"]}),
    Difference("large-patterns", "regexp", _LARGE_PATTERN, _texts("\\pL{1000}")),
    Difference("large-patterns", "matcher", _LARGE_PATTERN, _texts("\\pL{1000}")),
    Difference("boundaries-inside-characters", "regexp", _inside_character, {"pattern": "\\B", "texts": ["c\u017fA"]}),
    Difference(
        "boundaries-inside-characters",
        "expand",
        _inside_character,
        {"pattern": "\\B", "template": "", "text": "c\u017fA"},
    ),
    Difference("unicode-version", "quote", _newer_characters, None),
    Difference("printf-complaints", "template", _complaint, _query('<<printf "%d" .Series>>')),
    Difference(
        "printf-formats",
        "template",
        _refused_for(
            r"^printf: ('.*' is not supported|%[-+# 0]*\d*(\.\d*)?[bxX] cannot show a number"
            r"|%[-+# 0]*\d*\.\d*[doxXbcv] cannot show a whole number|.*[qc] cannot show a whole number)"
        ),
        _query('<<printf "%T" .Series>>'),
    ),
    Difference(
        "whole-data",
        "template",
        _refused_for("this prints all the data at once|cannot show all the data"),
        _query("<<.>>"),
    ),
    Difference(
        "cut-characters",
        "template",
        _refused_for("cut a character|do not make UTF-8"),
        _query("<<slice .Series 1>>", Series="é"),
    ),
    Difference(
        "unusual-numbers",
        "template",
        _refused_for(r"complex numbers such as|^[-+0-9.]+_[0-9_.]* is not a number|is too large for a whole number"),
        _query("<<1i>>"),
    ),
    Difference("trailing-pipes", "template", _trailing_pipe, _query("<<.Series |>>")),
    Difference("stricter-path-segments", "names", _stricter_path_segment, {"text": ""}),
    Difference(
        "quantity-without-digits",
        "quantity",
        _refused_for(r"^'[-+]?\.?([A-Za-z].*)?' is not a quantity"),
        {"text": "Ki", "other": "0"},
    ),
    Difference(
        "quantity-exponents",
        "quantity",
        _refused_for("is too large: write an exponent"),
        {"text": "1e1001", "other": "0"},
    ),
    Difference("negative-milli-value", "quantity", _negative_milli, {"text": "-.2Ti", "other": "0"}),
    Difference("quantity-beyond-exa", "quantity", _without_suffix, {"text": "1000E", "other": "0"}),
    Difference(
        "nul-in-selector",
        "selector",
        lambda asked, go, our: "\0" in asked["text"] and not isinstance(go, Refused) and isinstance(our, Refused),
        {"text": "a=b \0,c", "labels": []},
    ),
    Difference("yaml-slash-escape", "rules", _slash_escape, {"text": 'rules:\n- metricsQuery: "\\/"\n'}),
    Difference("yaml-second-document", "rules", _second_document, {"text": "rules: []\n---\nrules: []\n"}),
    Difference("yaml-unchecked-tags", "rules", _unchecked_tag, {"text": "rules:\n- metricsQuery: !!int x\n"}),
    Difference("yaml-tags", "rules", _refused_for("has no meaning here"), {"text": "rules:\n- metricsQuery: !foo x\n"}),
    Difference("yaml-byte-order-marks", "rules", _inner_mark, {"text": "rules:\n\ufeff- metricsQuery: x\n"}),
    Difference("yaml-null-spellings", "rules", _null_spelling, {"text": "rules:\n- resources: {namespaced: Null}\n"}),
    Difference("yaml-overridden-errors", "rules", _overridden_error, {"text": _OVERRIDDEN}),
    Difference("yaml-null-keys", "rules", _null_key, {"text": "rules:\n- resources:\n    overrides:\n      ~: {}\n"}),
)
