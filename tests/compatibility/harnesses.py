"""Cases that share a Prometheus and an adapter, and the modes in which each is requested."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.compatibility.cases import (
    chart,
    external,
    foreign,
    kinds,
    naming,
    numbers,
    queries,
    resources,
    templates,
    walkthrough,
    wild,
)

if TYPE_CHECKING:
    from tests.compatibility.form import Case

CHART: Final = "chart"
ALL: Final = "all"
HARNESSES: Final[dict[str, tuple[Case, ...]]] = {
    CHART: (chart.CHART,),
    ALL: (
        walkthrough.WALKTHROUGH,
        *naming.CASES,
        *kinds.CASES,
        *templates.CASES,
        *queries.CASES,
        *external.CASES,
        *foreign.CASES,
        *numbers.CASES,
        resources.RESOURCES,
        *wild.CASES,
    ),
}
"""The chart's rules take every series, so they have a Prometheus of their own."""

OURS: Final = "ours"
AS_BEFORE: Final = "as-before"
CROWDED: Final = "crowded"
"""Many namespaces ask the same first, so that queries are widened to all namespaces where that is proven safe."""
MODES: Final[dict[str, tuple[str, ...]]] = {
    OURS: (),
    AS_BEFORE: ("--compatibility=prometheus-adapter",),
    CROWDED: (),
}
"""Flags of each mode."""
