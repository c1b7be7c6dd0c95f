"""All known metrics, in the order in which they are searched for: the best measure of load comes first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.exporters.brokers import BROKERS
from adapter.foundation.exporters.gateways import GATEWAYS
from adapter.foundation.exporters.runtimes import RUNTIMES

if TYPE_CHECKING:
    from adapter.foundation.exporters.known_metrics import KnownMetric

KNOWN: Final[tuple[KnownMetric, ...]] = (*RUNTIMES, *GATEWAYS, *BROKERS)
