"""Reads how connections start and end from one line, such as `mean-session=10m,back-off=30s`."""

from __future__ import annotations

import math
from typing import Final

from adapter.foundation.documents.tree import did_you_mean, shorten
from adapter.foundation.objects.durations import parse_duration
from recommender.kinds.predictive.simulation.connections import SessionSettings

_MEAN, _BACKOFF, _LIMIT = "mean-session", "back-off", "limit"
_KEYS: Final = (_MEAN, _BACKOFF, _LIMIT)
_BACKOFF_DEFAULT: Final = "30s"


class SessionOptionError(ValueError):
    """The text does not describe how connections start and end; the message says what is wrong and what to write."""


def parse_sessions(text: str, load_per_replica: float) -> SessionSettings:
    """Return the settings; without `limit`, a pod takes as many connections as `load_per_replica`.

    Raises SessionOptionError.
    """
    written: dict[str, str] = {}
    for part in text.split(","):
        key, _, value = (piece.strip() for piece in part.partition("="))
        if key not in _KEYS:
            fix = did_you_mean(key, _KEYS, f"write one or more of {', '.join(_KEYS)}")
            raise SessionOptionError(f"unknown key {shorten(key)!r}: {fix}")
        if key in written:
            raise SessionOptionError(f"{key} is given twice: remove one of them")
        written[key] = value
    if _MEAN not in written:
        raise SessionOptionError(f"{_MEAN} is missing: write {_MEAN}=10m")
    return SessionSettings(
        mean_session_seconds=_seconds(_MEAN, written[_MEAN]),
        limit=_limit(written[_LIMIT]) if _LIMIT in written else load_per_replica,
        backoff_seconds=_seconds(_BACKOFF, written.get(_BACKOFF, _BACKOFF_DEFAULT)),
    )


def _seconds(key: str, text: str) -> float:
    try:
        seconds = parse_duration(text)
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise SessionOptionError(f"{key} is {shorten(text)!r}: write a duration above 0, such as 10m")
    return seconds


def _limit(text: str) -> float:
    try:
        limit = float(text)
    except ValueError:
        limit = math.nan
    if not 1 <= limit < math.inf:
        raise SessionOptionError(
            f"{_LIMIT} is {shorten(text)!r}: write how many connections a pod takes, such as 25000"
        )
    return limit
