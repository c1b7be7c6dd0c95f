"""Asks the person at a terminal for the parts of an entry that could not be deduced."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from adapter.foundation.objects.durations import parse_duration
from adapter.foundation.objects.quantities import parse_quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adapter.foundation.reports.questions import Ask
    from recommender.commands.init.drafts import Draft


def with_answers(draft: Draft, ask: Ask) -> Draft:
    """Return the draft with the answers; unanswered parts stay missing."""
    for fact in draft.missing:
        answer = ask(fact.question, _PROBLEMS[fact.key])
        if answer:
            draft = replace(
                draft,
                notes=(*draft.notes, f"{fact.key} was answered at the terminal."),
                lines=tuple(f"{line} {answer}" if line.strip() == f"{fact.key}:" else line for line in draft.lines),
                missing=tuple(each for each in draft.missing if each != fact),
            )
    return draft


def _no_load(text: str) -> str:
    try:
        is_load = parse_quantity(text).milli_value() > 0
    except ValueError:
        is_load = False
    return "" if is_load else f"{text!r} is not a load: write a number above 0, such as 25000, 25k or 500m"


def _no_horizon(text: str) -> str:
    try:
        is_horizon = 1 <= parse_duration(text) <= 86_400
    except ValueError:
        is_horizon = False
    return "" if is_horizon else f"{text!r} is not a duration from 1s to 1d: write one such as 90s"


_PROBLEMS: Final[Mapping[str, Callable[[str], str]]] = {"loadPerReplica": _no_load, "horizon": _no_horizon}
