"""Zones of nodes, as kube-scheduler's SelectorSpread names them (`component-helpers/node/topology`, `GetZoneKey`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

NO_ZONE: Final = -1

_REGIONS: Final = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")
_ZONES: Final = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")


def zone_key(labels: Mapping[str, str]) -> str:
    """Return region and zone together, since zones of different regions may have one name; empty for neither.

    Of each, the older label wins where it is present, as in the scheduler.
    """
    region, zone = _first(labels, _REGIONS), _first(labels, _ZONES)
    return f"{region}:\x00:{zone}" if region or zone else ""


def zone_numbers(keys: Iterable[str]) -> NDArray[np.int32]:
    """Return the number of each key in the order in which keys first appear; `NO_ZONE` for the empty one."""
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) if key else NO_ZONE for key in keys], dtype=np.int32)


def _first(labels: Mapping[str, str], keys: tuple[str, ...]) -> str:
    return next((labels[key] for key in keys if key in labels), "")
