"""Reads the settings that a group overrides: the annotations `cluster.x-k8s.io/autoscaling-options-…`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from adapter.foundation.objects.durations import DurationError, parse_go_duration
from recommender.kinds.cluster_size.model.groups import GroupOptions
from recommender.kinds.cluster_size.node_groups.fields import object_text, texts
from recommender.kinds.cluster_size.node_groups.watched_kinds import CLUSTER_API_GROUP

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adapter.foundation.cluster.values.state import JsonObject

_PREFIX: Final = f"{CLUSTER_API_GROUP}/autoscaling-options-"


def options_of(one: JsonObject) -> tuple[GroupOptions, tuple[str, ...]]:
    """Return the options of a group, and the problems of unreadable ones, for which the settings apply instead."""
    found: dict[str, Any] = {}
    problems = []
    for key, written in texts(one, "metadata", "annotations").items():
        if not key.startswith(_PREFIX):
            continue
        option = key.removeprefix(_PREFIX).lower()
        try:
            field, value = _read(option, written)
        except ValueError as error:
            problems.append(f"{object_text(one)}: the annotation {key} is not used: {error}")
        else:
            found[field] = value
    return GroupOptions(**found), tuple(problems)


def _read(option: str, written: str) -> tuple[str, float | bool]:
    if option not in _OPTIONS:
        raise ValueError(f"the option {option!r} is not known: use one of {', '.join(sorted(_OPTIONS))}")
    field, read = _OPTIONS[option]
    return field, read(written)


def _ratio(written: str) -> float:
    try:
        value = float(written)
    except ValueError:
        value = math.nan
    if not 0.0 <= value < math.inf:
        raise ValueError(f"{written!r} is not a ratio: write a number such as 0.5")
    return value


def _seconds(written: str) -> float:
    try:
        value = parse_go_duration(written)
    except DurationError as error:
        raise ValueError(str(error)) from error
    if value < 0:
        raise ValueError(f"{written!r} is negative: write a duration such as 10m")
    return value


def _switch(written: str) -> bool:
    if written not in {"true", "false"}:
        raise ValueError(f"{written!r} is neither true nor false")
    return written == "true"


_OPTIONS: Final[Mapping[str, tuple[str, Callable[[str], float | bool]]]] = {
    "scaledownutilizationthreshold": ("utilization_threshold_ratio", _ratio),
    "scaledowngpuutilizationthreshold": ("gpu_utilization_threshold_ratio", _ratio),
    "scaledownunneededtime": ("unneeded_seconds", _seconds),
    "scaledownunreadytime": ("unready_seconds", _seconds),
    "maxnodeprovisiontime": ("max_node_provision_seconds", _seconds),
    "zeroormaxnodescaling": ("zero_or_max", _switch),
    "ignoredaemonsetsutilization": ("ignore_daemon_sets_utilization", _switch),
}
"""The field of each option, and how its value is read."""
