"""`python -m benchmarks.replay`: how long a replay takes, and what its policies cost."""

from __future__ import annotations

import resource
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from adapter.foundation.objects.selectors import parse_selector
from adapter.foundation.service.runtime.garbage_collector import rare_collections
from benchmarks.made_past import PastPlan, made_past
from benchmarks.options import command_line
from benchmarks.report import as_json, as_text, report
from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings, NodeGroupSources, StaticGroup
from recommender.replay.assumptions import Assumptions, outlook_of
from recommender.replay.cluster.events import events_of
from recommender.replay.cluster.replay_facts import scene_of
from recommender.replay.policies import FORECASTS, ReplayPolicy, policies_of
from recommender.replay.simulation.simulation import outcomes_of
from recommender.replay.spot import SpotMarket

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from benchmarks.report import Row
    from recommender.recording.recording import Recording
    from recommender.replay.cluster.events import Event
    from recommender.replay.cluster.replay_facts import Scene
    from recommender.replay.policy_outcome import PolicyOutcome

NAME: Final = "replay"
_KIB_A_MIB: Final = 2**10
_INTERRUPTIONS_AN_HOUR: Final = 0.02
_ABSENCE_SECONDS: Final = 1800.0
GROUPS: Final = (
    StaticGroup("small", 0, 2000, parse_selector("pool=small"), price=0.4),
    StaticGroup("large", 0, 2000, parse_selector("pool=large"), price=0.82),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Replay a generated past with each policy on one core; print a row for each."""
    parser = command_line(NAME, __doc__)
    parser.add_argument("--days", type=float, default=30.0)
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--policies", type=int, default=1, help="how many; 0 for all (default: the configured one)")
    parser.add_argument("--seed", type=int, default=0)
    values = parser.parse_args(arguments)
    past = made_past(PastPlan(values.days, values.nodes, values.seed))
    with rare_collections():  # as the command does
        rows = replay_rows(past, values.policies)
    found = report(NAME, rows)
    print(as_json(found) if values.output == "json" else as_text(found))
    return 0


def replay_rows(past: Recording, policies: int) -> list[Row]:
    """Return a row for each policy."""
    settings = ClusterSizeSettings(NodeGroupSources(static=GROUPS))
    scene = scene_of(past, settings)
    events = events_of(scene)
    wanted = policies_of(settings, len(GROUPS), has_prices=True)
    rows = _rows(past, outcomes_of(scene, wanted[: policies or len(wanted)], events))
    return rows if policies else [*rows, *_rows(past, _with_assumptions(scene, settings, events))]


def _with_assumptions(scene: Scene, settings: ClusterSizeSettings, events: Sequence[Event]) -> Iterator[PolicyOutcome]:
    """Yield the outcomes of the policies that assume more than a recording shows: forecasts, and spot machines.

    The time of the first policy includes that of its forecasts.
    """
    forecasts = outlook_of(scene, Assumptions()).forecasts
    yield from outcomes_of(scene, [ReplayPolicy(f"{FORECASTS}: pod counts", settings, forecasts)], events)
    market = SpotMarket({GROUPS[1].name: _INTERRUPTIONS_AN_HOUR}, _ABSENCE_SECONDS)
    spot = ReplayPolicy(f"spot: {GROUPS[1].name}", settings, market=market)
    none = replace(spot, name="spot: none", closed=frozenset(market.interruptions))
    yield from outcomes_of(scene, [spot, none], events)


def _rows(past: Recording, outcomes: Iterable[PolicyOutcome]) -> list[Row]:
    rows: list[Row] = []
    began, cpu = time.perf_counter(), time.process_time()
    for found in outcomes:
        rows.append(
            {
                "policy": found.name,
                "days": round(past.seconds / 86_400, 2),
                "nodes": len(past.nodes),
                "pods": len(past.pods),
                "seconds": round(time.perf_counter() - began, 2),
                "cpu_seconds": round(time.process_time() - cpu, 2),
                "node_hours": round(float(found.node_hours.sum())),
                "cost": None if found.cost is None else round(float(found.cost.sum())),
                "pending_pod_minutes": round(float(found.pending_minutes.sum())),
                "evictions": int(found.evictions.sum()),
                "rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // _KIB_A_MIB,
            }
        )
        began, cpu = time.perf_counter(), time.process_time()
    return rows


if __name__ == "__main__":
    raise SystemExit(main())
