"""The columns of measured and predicted loads, in the order of the nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from adapter.nodes.model.arrays import rearranged_rows, rows_in, rows_of
from adapter.nodes.model.loads import LoadResource, LoadSnapshot
from adapter.nodes.model.usage import USAGE_KINDS, UsageKind, UsageName
from adapter.nodes.model.week import FORECAST_VERDICTS, ForecastVerdict, HourForecast

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from adapter.nodes.model.arrays import Floats


def rows_in_loads(names: tuple[str, ...], loads: LoadSnapshot | None) -> NDArray[np.intp]:
    """Return the index of each node in `loads.nodes`; -1 for a node that is not there."""
    if loads is None:
        return np.full(len(names), -1, dtype=np.intp)
    if loads.nodes == names:
        return np.arange(len(names))
    return rows_in(loads.index, names) if loads.index else rows_of(names, loads.nodes)


def statistics(
    loads: LoadSnapshot | None, places: NDArray[np.intp], stat: int, *, are_measured: bool = False
) -> dict[LoadResource, Floats]:
    """Return one statistic of the first window for each resource; see `_column`."""
    return {
        resource: _column(loads, places, UsageKind(resource, 0, stat), are_measured=are_measured)
        for resource in LoadResource
    }


def usage_ratios(
    loads: LoadSnapshot | None, places: NDArray[np.intp], *, are_measured: bool = False
) -> dict[UsageName, Floats]:
    """Return the usage of all nodes by usage name; the usage of a window is at least that of each shorter window."""
    found: dict[UsageName, Floats] = {}
    largest: dict[LoadResource, Floats] = {}
    for name, kind in USAGE_KINDS.items():
        column = _column(loads, places, kind, are_measured=are_measured)
        found[name] = largest[kind.resource] = np.fmax(column, largest.get(kind.resource, np.nan))
    return found


def usage_sources(loads: LoadSnapshot | None, places: NDArray[np.intp]) -> dict[UsageName, NDArray[np.int8]]:
    """Return which usage each number of `usage_ratios` shows: its own if known, else that of the next shorter one."""
    found: dict[UsageName, NDArray[np.int8]] = {}
    longest: dict[LoadResource, NDArray[np.int8]] = {}
    for index, (name, kind) in enumerate(USAGE_KINDS.items()):
        shorter = longest.get(kind.resource, np.full(len(places), -1, dtype=np.int8))
        is_unknown = np.isnan(_column(loads, places, kind))
        found[name] = longest[kind.resource] = np.where(is_unknown, shorter, np.int8(index))
    return found


def forecast_column(loads: LoadSnapshot | None, places: NDArray[np.intp]) -> HourForecast | None:
    """Return the forecast in the order of the columns; a node that is not in the loads has the verdict NO_LOAD."""
    forecast = loads.forecast if loads else None
    if forecast is None or not len(forecast.ratio):
        return None
    nothing = np.int8(FORECAST_VERDICTS.index(ForecastVerdict.NO_LOAD))
    return HourForecast(
        rearranged_rows(forecast.ratio, places),
        np.where(places >= 0, forecast.verdicts[places], nothing),
    )


def _column(
    loads: LoadSnapshot | None, places: NDArray[np.intp], kind: UsageKind, *, are_measured: bool = False
) -> Floats:
    """Return a statistic of each node; NaN where it is not served or, with `are_measured`, where it is an estimate."""
    load = loads.resources.get(kind.resource) if loads else None
    if load is None or kind.window >= len(load.stats):
        return np.full(len(places), np.nan)
    numbers = load.measured_values(kind.window, kind.stat) if are_measured else load.stats[kind.window, kind.stat]
    return rearranged_rows(numbers, places)
