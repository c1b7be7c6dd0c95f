"""Values, numbers and outcomes of a record as text: for tables, log lines, and events of Kubernetes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from recommender.decisions.record import TargetAction
from recommender.decisions.times import rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from recommender.cluster_size.model.answer import ClusterSizeAnswer
    from recommender.decisions.record import Prediction, Record, TargetOutcome

_JOINT: Final = "; "
_MOST_NOTES: Final = 20
"""In a message; the answer has all of them."""
_DECIMALS_OF_MONEY: Final = 2
_SIGNIFICANT_DIGITS: Final = 4
_TOLERANCE: Final = 2e-6
"""A calculated lower bound is less than the exact one by up to 1e-6 of it."""


def value_text(record: Record) -> str:
    """Return the value: `11 replicas`, `sizes of 2 containers`, or `no value`."""
    if record.replicas is not None:
        return replicas_text(record.replicas)
    if record.resources is not None:
        return f"sizes of {len(record.resources)} container{'' if len(record.resources) == 1 else 's'}"
    if record.size is not None:
        return sizes_text(record.size)
    return "no value"


def sizes_text(answer: ClusterSizeAnswer) -> str:
    """Return how many nodes the groups should have together, after removals: `8 nodes in 3 groups`."""
    groups = [group for group in answer.groups if not group.is_left_out]
    nodes = sum(group.after_removals for group in groups)
    return f"{nodes} node{'' if nodes == 1 else 's'} in {len(groups)} group{'' if len(groups) == 1 else 's'}"


def replicas_text(replicas: int) -> str:
    """Return `11 replicas`."""
    return f"{replicas} replica{'' if replicas == 1 else 's'}"


def change_text(recommendation: str, before: int | None, after: str, message: str) -> str:
    """Return what changes and why: `recommendation dns: from 3 to 11 replicas: …`."""
    text = f"recommendation {recommendation}: from {'unknown' if before is None else before} to {after}"
    return f"{text}: {message}" if message else text


def message_with_notes(parts: Iterable[str], notes: Sequence[str]) -> str:
    """Return the message of a record: what is decided, then what else the user should know."""
    return _JOINT.join(dict.fromkeys(part for part in (*parts, *notes[:_MOST_NOTES]) if part))


def message_without_notes(record: Record) -> str:
    """Return the message without the notes of its answer, for readers who see them in a list of their own."""
    notes = () if record.size is None else record.size.notes[:_MOST_NOTES]
    return record.message.removesuffix(_JOINT.join(notes)).removesuffix(_JOINT) if notes else record.message


def event_text(record: Record, outcome: TargetOutcome) -> str:
    """Return the message of an event on a target: what happens to it, and why."""
    if outcome.action is TargetAction.REFUSED:
        return f"recommendation {record.name}: not scaled to {value_text(record)}: {outcome.message}"
    return change_text(record.name, outcome.current_replicas, value_text(record), record.message)


def prediction_rows(prediction: Prediction | None) -> Iterator[tuple[str, str]]:
    """Yield the forecast, the model with its reason and the record of all models; nothing without a forecast."""
    if prediction is None:
        return
    load = prediction.load
    text = f"{shown(load.now)} now"
    if load.predicted is not None and load.at is not None:
        band = ", ".join(
            f"{'median' if quantile == '0.5' else f'quantile {quantile}'} {shown(value)}"
            for quantile, value in load.quantiles.items()
        )
        text += f", {shown(load.predicted)} expected at {rfc3339(load.at)}" + (f" ({band})" if band else "")
    yield "load", text
    yield "model", f"{prediction.model}: {prediction.model_reason}" if prediction.model_reason else prediction.model
    if prediction.shortage_versus_headroom:
        ratios = ", ".join(
            f"{model} {'none' if ratio is None else f'{ratio:.2f}'}"
            for model, ratio in prediction.shortage_versus_headroom.items()
        )
        yield "shortage", f"{ratios} (plain headroom at the same cost is 1; less is better)"
    if prediction.last_day:
        yield "last day", prediction.last_day


def log_fields(record: Record) -> dict[str, object]:
    """Return the fields of the log line about a record; what has no value is left out."""
    found = {
        "recommendation": record.name,
        "status": record.status.value,
        "replicas": record.replicas,
        "nodes": None if record.size is None else sizes_text(record.size),
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

    A lower bound is rounded down, except where only the arithmetic of floats keeps it from the next step.
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


def shown(value: float) -> str:
    """Return the text of a number: whole ones in full, others with six significant digits."""
    number = plain(value)
    return str(number) if isinstance(number, int) else f"{number:.6g}"
