"""Reads the settings that a group overrides: the annotations `cluster.x-k8s.io/autoscaling-options-…`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from adapter.foundation.objects.durations import DurationError, parse_go_duration
from recommender.kinds.cluster_size.model.groups import GroupOptions
from recommender.kinds.cluster_size.node_groups.fields import named, texts
from recommender.kinds.cluster_size.node_groups.watched_kinds import CLUSTER_API_GROUP

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import JsonObject

_PREFIX: Final = f"{CLUSTER_API_GROUP}/autoscaling-options-"
_RATIOS: Final = {
    "scaledownutilizationthreshold": "utilization_threshold_ratio",
    "scaledowngpuutilizationthreshold": "gpu_utilization_threshold_ratio",
}
_DURATIONS: Final = {
    "scaledownunneededtime": "unneeded_seconds",
    "scaledownunreadytime": "unready_seconds",
    "maxnodeprovisiontime": "max_node_provision_seconds",
}
_SWITCHES: Final = {
    "zeroormaxnodescaling": "zero_or_max",
    "ignoredaemonsetsutilization": "ignore_daemon_sets_utilization",
}


def options_of(one: JsonObject) -> tuple[GroupOptions, tuple[str, ...]]:
    """Return the options of a group, and the problems of unreadable ones, for which the settings apply instead."""
    found: dict[str, float | bool] = {}
    problems = []
    for key, written in texts(one, "metadata", "annotations").items():
        if not key.startswith(_PREFIX):
            continue
        option = key.removeprefix(_PREFIX).lower()
        try:
            field, value = _read(option, written)
        except ValueError as error:
            problems.append(f"{named(one)}: the annotation {key} is not used: {error}")
        else:
            found[field] = value
    return _options(found), tuple(problems)


def _read(option: str, written: str) -> tuple[str, float | bool]:
    if option in _RATIOS:
        return _RATIOS[option], _ratio(written)
    if option in _DURATIONS:
        return _DURATIONS[option], _seconds(written)
    if option in _SWITCHES:
        if written not in {"true", "false"}:
            raise ValueError(f"{written!r} is neither true nor false")
        return _SWITCHES[option], written == "true"
    raise ValueError(
        f"the option {option!r} is not known: use one of {', '.join(sorted({*_RATIOS, *_DURATIONS, *_SWITCHES}))}"
    )


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


def _options(found: dict[str, float | bool]) -> GroupOptions:
    switch = found.get("ignore_daemon_sets_utilization")
    return GroupOptions(
        utilization_threshold_ratio=found.get("utilization_threshold_ratio"),
        gpu_utilization_threshold_ratio=found.get("gpu_utilization_threshold_ratio"),
        unneeded_seconds=found.get("unneeded_seconds"),
        unready_seconds=found.get("unready_seconds"),
        max_node_provision_seconds=found.get("max_node_provision_seconds"),
        zero_or_max=found.get("zero_or_max") is True,
        ignore_daemon_sets_utilization=None if switch is None else bool(switch),
    )
