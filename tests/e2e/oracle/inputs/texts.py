"""Parts that all inputs share: choices, repetitions, and characters that Go and Python read differently."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

_T = TypeVar("_T")

ODD: Final = (
    *("", " ", "\t", "\n", "\r", "\v", "\f", "\0", "\x1b", "\x7f", "\x85", "\xa0", "\xad", "'", '"', "`", "\\"),
    *(
        "é",
        "ß",
        "\u212a",
        "\u017f",
        "µ",
        "μ",
        "İ",
        "\u0661",
        "²",
        "Ⅷ",
        "中",
        "a\u0301",
        "\u200b",
        "\u2028",
        "\u3000",
        "\ufeff",
    ),
    *("\ufffd", "\ufffe", "\ue000", "\U0001f680", "\U0010ffff", "$", "%", "<<", ">>", "*/", "{", "}", "#", ":", "|"),
)
"""Characters, and short runs of them, that mean something in some language, or only look as if they did."""


def one_of(random: Random, *makers: Callable[[Random], _T]) -> _T:
    """Return the result of a randomly chosen maker."""
    return random.choice(makers)(random)


def some(random: Random, make: Callable[[Random], str], most: int, least: int = 0, between: str = "") -> str:
    """Return the joined results of some calls of a maker."""
    return between.join(make(random) for _ in range(random.randint(least, most)))


def piece(random: Random, *often: str) -> str:
    """Return one of these texts, and sometimes an odd one."""
    return random.choice(ODD) if random.random() < 0.08 else random.choice(often)


def damaged(random: Random, text: str) -> str:
    """Return the text with one defect: something is left out, doubled, swapped or inserted."""
    if not text:
        return random.choice(ODD)
    at, end = sorted((random.randrange(len(text)), random.randint(1, len(text))))
    cut = text[at:end]
    return random.choice(
        (text[:at] + text[end:], text[:end] + cut + text[end:], text[:at] + random.choice(ODD) + text[at:], cut + text)
    )


def mostly_sound(random: Random, make: Callable[[Random], str]) -> str:
    """Return the maker's result, damaged one time in six."""
    text = make(random)
    return damaged(random, text) if random.random() < 1 / 6 else text


def picked(random: Random, choices: Sequence[_T], most: int) -> list[_T]:
    """Return up to so many of the choices, none of them twice."""
    return random.sample(choices, random.randint(0, min(most, len(choices))))
