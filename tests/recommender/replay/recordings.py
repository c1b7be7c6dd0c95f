"""Recordings as the recorder of `run` writes them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from benchmarks.made_past import DAY_SECONDS
from recommender.recording.changes import Changes
from recommender.recording.event_log import EventLog

if TYPE_CHECKING:
    from pathlib import Path

    from recommender.recording.recording import Recording


def record(past: Recording, folder: Path, every: float = 120.0) -> Path:
    """Let the recorder observe a past as if it were the cluster; return the folder of its files."""
    log, changes, time = EventLog(folder, 30 * DAY_SECONDS), Changes(), past.start
    pods = [
        (one, replace(past.pod_kinds[one.kind], name=f"p{number}", uid=f"{number:036d}", node=one.node))
        for number, one in enumerate(past.pods)
    ]
    pods = [
        (one, replace(pod, facts=replace(pod.facts, created=one.created), bound_at=one.bound))
        for one, pod in pods
        if pod.facts
    ]
    while time <= past.end:
        if log.is_due(time):
            log.begin(time)
            changes = Changes()
            log.append([changes.first_line(time)])
        there = tuple(pod for one, pod in pods if one.created <= time and (one.gone is None or time < one.gone))
        nodes = tuple(one.node for one in past.nodes if one.is_there(time))
        log.append(changes.lines(nodes, there, time, time))
        time += every
    log.close()
    return folder
