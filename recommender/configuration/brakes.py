"""The shapes of `paused`, `maxStep` and `maxChangesPerHour` of a recommendation."""

from __future__ import annotations

from typing import Final

from adapter.foundation.documents.scalars import Bounds, percentage, whole
from adapter.foundation.documents.sections import Key
from adapter.foundation.documents.shapes import Scalar, WrongValueError
from adapter.foundation.documents.tree import read_boolean
from recommender.decisions.pauses import read_pause
from recommender.decisions.policy_settings import Direction, MaxStep, Pause

_SHARE: Final = percentage(Bounds(0, above=True))
_REPLICAS: Final = whole(1, 2**63 - 1)


def _read_pause(text: str) -> Pause | None:
    try:
        return Pause(Direction.BOTH) if read_boolean(text) else None
    except ValueError:
        pass
    try:
        return read_pause(text)
    except ValueError as error:
        message, _, fix = str(error).partition(": ")
        raise WrongValueError(message, fix) from None


def _max_step(text: str) -> MaxStep:
    return MaxStep(ratio=_SHARE.parse(text)) if text.endswith("%") else MaxStep(replicas=_REPLICAS.parse(text))


_PAUSED: Final = Scalar(
    "a pause", "write true, false, up, down, or a time", _read_pause, {"type": ["boolean", "string"]}
)
_STEP: Final = Scalar(
    "a number of replicas or a percentage",
    "write 1 or more, or a percentage such as 10%",
    _max_step,
    {"type": ["integer", "string"], "minimum": 1, "pattern": "^[0-9]{1,19}$|^[0-9]{1,6}([.][0-9]{1,6})?%$"},
)
BRAKES: Final = (
    Key("paused", _PAUSED, "Stops changes: true, up, down, or the time until which both are stopped."),
    Key("maxStep", _STEP, "Largest change at once, in replicas or as a percentage."),
    Key(
        "maxChangesPerHour",
        whole(1, quoted=True, fix="write 1 or more; to stop all changes, write paused: true"),
        "Most changes in an hour.",
    ),
)
