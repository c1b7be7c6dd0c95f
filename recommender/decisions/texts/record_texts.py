"""Values, numbers and outcomes of a record as text.

Tables, log lines, events, conditions, the page and `kubectl tidewatch why` all use the same texts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from adapter.foundation.reports.counts import count_of
from recommender.decisions.record import Record, TargetAction, TargetOutcome

ACTION_TEXTS: Final[Mapping[TargetAction, str]] = MappingProxyType(
    {
        TargetAction.NONE: "nothing changes",
        TargetAction.METRIC: "the value is published as a metric",
        TargetAction.SCALE: "the size is written",
        TargetAction.RESIZE: "the requests of containers are written",
        TargetAction.REFUSED: "refused",
    }
)
"""The consequence of a decision for a target."""
CALL_FAILED: Final = "the last scale call failed"
"""How the message of a target begins whose last scale call failed."""
_JOINT: Final = "; "
_MOST_NOTES: Final = 20
"""The maximum number of notes in a message; the details of the record contain all of them."""
_MOST_PROBLEMS: Final = 3
"""The maximum number of objects that a message names. If there are more, one fewer is named, so that `(and … more)`
stands for at least two."""
_DECIMALS_OF_MONEY: Final = 2
_SIGNIFICANT_DIGITS: Final = 4
_TOLERANCE: Final = 2e-6
"""A calculated lower bound may be below the exact bound by a relative error of up to 1e-6."""


def about_text(recommendation: str, text: str) -> str:
    """Return the text with the recommendation it is about, since several may name a target: `recommendation dns: …`."""
    return f"recommendation {recommendation}: {text}"


def change_text(recommendation: str, before: int | None, after: str, message: str) -> str:
    """Return the change and its reason: `recommendation dns: from 3 to 11 replicas: …`."""
    text = about_text(recommendation, size_change_text(before, after))
    return f"{text}: {message}" if message else text


def size_change_text(before: int | None, after: str) -> str:
    """Return a change of a size: `from 3 to 11 replicas`."""
    return f"from {'unknown' if before is None else before} to {after}"


def action_text(action: TargetAction, message: str) -> str:
    """Return the consequence of a decision for a target that has this message."""
    return "the size is not written yet" if message.startswith(CALL_FAILED) else ACTION_TEXTS[action]


def refusal_text(replicas: int | None, message: str) -> str:
    """Return why a target does not get its size: `not scaled to 11 replicas: …`.

    Without replicas, it does not get the requests of its containers: `not resized: …`.
    """
    what = "not resized" if replicas is None else f"not scaled to {count_of(replicas, 'replica')}"
    return f"{what}: {message}"


def message_with_notes(parts: Iterable[str], notes: Sequence[str]) -> str:
    """Return the message of a record: the decision, then the notes for the user."""
    return _JOINT.join(dict.fromkeys(part for part in (*parts, *notes[:_MOST_NOTES]) if part))


def some(problems: Sequence[str]) -> tuple[str, ...]:
    """Return the problems; if there are more than three, the first two and the number of the others."""
    if len(problems) <= _MOST_PROBLEMS:
        return tuple(problems)
    shown_ones = problems[: _MOST_PROBLEMS - 1]
    return (*shown_ones[:-1], f"{shown_ones[-1]} (and {len(problems) - len(shown_ones)} more)")


def message_without_notes(record: Record, notes: Sequence[str]) -> str:
    """Return the message without the notes at its end, for readers who see the notes in a separate list."""
    notes = notes[:_MOST_NOTES]
    return record.message.removesuffix(_JOINT.join(notes)).removesuffix(_JOINT) if notes else record.message


def event_text(record: Record, outcome: TargetOutcome) -> str:
    """Return the message of an event on a target: the action on it, and the reason."""
    if outcome.action is TargetAction.REFUSED:
        return about_text(record.name, refusal_text(outcome.recommended_replicas, outcome.message))
    return change_text(record.name, outcome.current_replicas, recommended_text(outcome), record.message)


def recommended_text(outcome: TargetOutcome) -> str:
    """Return the size of a target: `11 replicas`, or `no value`."""
    return "no value" if outcome.recommended_replicas is None else count_of(outcome.recommended_replicas, "replica")


def log_fields(record: Record, further: Mapping[str, object] = MappingProxyType({})) -> dict[str, object]:
    """Return the fields of the log line about a record; fields without a value are left out."""
    found = {
        "recommendation": record.name,
        "status": record.status.value,
        "replicas": record.replicas,
        **further,
        "binding": record.binding,
        "reason": record.message,
        "refused": "; ".join(each.message for each in record.targets if each.action is TargetAction.REFUSED),
    }
    return {key: value for key, value in found.items() if value not in {None, ""}}


def plain(value: float) -> int | float:
    """Return a whole number without its fraction, so that it is printed as `11` and not as `11.0`."""
    return int(value) if float(value).is_integer() else value


def money(value: float, *, is_lower_bound: bool = False) -> int | float:
    """Return an amount with two decimals, or with four significant digits if it is small.

    A lower bound is rounded down, unless only floating-point errors keep it from the next step.
    """
    if not math.isfinite(value) or value == 0:
        return plain(value)
    decimals = max(_DECIMALS_OF_MONEY, _SIGNIFICANT_DIGITS - 1 - math.floor(math.log10(abs(value))))
    if is_lower_bound:
        value = math.floor((value + _TOLERANCE * max(1.0, value)) * 10**decimals) / 10**decimals
    return plain(round(value, decimals))


def money_text(value: float, *, is_lower_bound: bool = False) -> str:
    """Return an amount as text: `0.57`, `0.01235`, `12`."""
    amount = money(value, is_lower_bound=is_lower_bound)
    if isinstance(amount, int):
        return str(amount)
    return f"{amount:.{_DECIMALS_OF_MONEY}f}" if round(amount, _DECIMALS_OF_MONEY) == amount else f"{amount:.12g}"


def figure_text(value: float) -> str:
    """Return the text of a number: a whole number in full, any other with six significant digits."""
    number = plain(value)
    return str(number) if isinstance(number, int) else f"{number:.6g}"
