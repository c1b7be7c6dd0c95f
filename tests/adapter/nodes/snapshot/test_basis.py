"""Scores are based on metrics; without metrics there are none for five minutes, and then they are based on requests."""

from __future__ import annotations

import math

import numpy as np
import pytest

from adapter.nodes.model.loads import VERDICTS, LoadResource, LoadSnapshot, NodeVerdict, ResourceLoad
from adapter.nodes.model.nodes_snapshot import REQUESTS_AFTER_SECONDS, basis_at_start

NAN = math.nan


def snapshot(
    averages: dict[str, float], *, at: float = 1000.0, verdict: NodeVerdict = NodeVerdict.STALE, estimated: bool = False
) -> LoadSnapshot:
    """Return a snapshot of CPU alone; a node without an average has this verdict."""
    nodes, values = tuple(averages), np.array(list(averages.values()))
    unknown = np.isnan(values)
    numbers = np.where(unknown, VERDICTS.index(verdict), VERDICTS.index(NodeVerdict.FRESH)).astype(np.int8)
    load = ResourceLoad(
        resource=LoadResource.CPU,
        stats=np.broadcast_to(values, (3, 4, len(nodes))),
        taken_from=np.broadcast_to(np.where(unknown, -1, 0).astype(np.int8), (3, len(nodes))),
        verdicts=numbers,
        sampled_at=np.full(len(nodes), at),
        is_estimated=np.full(len(nodes), estimated),
        resolution_seconds=np.full(len(nodes), 15.0),
    )
    index = {name: row for row, name in enumerate(nodes)}
    return LoadSnapshot(nodes, {LoadResource.CPU: load}, at, at, index=index)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([(0.0, None)], "none"),
        ([(299.0, None)], "none"),
        ([(300.0, None)], "requests"),
        ([(0.0, snapshot({}))], "none"),
        ([(300.0, snapshot({"a": NAN}))], "requests"),
        ([(300.0, snapshot({"a": NAN, "b": 0.5}))], "metrics"),
        ([(300.0, None), (301.0, snapshot({"a": 0.5}))], "metrics"),
        ([(100.0, snapshot({"a": 0.5})), (400.0, None)], "none"),
        ([(100.0, snapshot({"a": 0.5})), (400.0, None), (699.0, None)], "none"),
        ([(100.0, snapshot({"a": 0.5})), (400.0, None), (700.0, None)], "requests"),
        ([(300.0, snapshot({"a": 0.5}, estimated=True))], "requests"),
    ],
)
def test_scores_are_based_on_requests_after_five_minutes_without_metrics(
    steps: list[tuple[float, LoadSnapshot | None]], expected: str
) -> None:
    state = basis_at_start(0.0)
    for now, loads in steps:
        state = state.after(loads, now)
    assert state.basis == expected
    assert REQUESTS_AFTER_SECONDS == 300.0


def test_scores_rest_on_nothing_while_neither_metrics_nor_requests_are_known() -> None:
    state = basis_at_start(0.0).after(None, 300.0, are_requests_known=False)
    assert state.basis == "none"
    assert state.after(snapshot({"a": 0.5}), 301.0, are_requests_known=False).basis == "metrics"
    assert state.after(None, 301.0).basis == "requests"
