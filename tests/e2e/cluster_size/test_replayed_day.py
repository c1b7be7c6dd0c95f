"""A replay predicts what really happens: a compressed day with the real scheduler, then the replay of its recording.

`PLAYED_SECONDS=300 PLAYED_WAVES=6 make e2e suite=tests/e2e/cluster_size/test_replayed_day.py` runs a longer day;
`PLAYED_SEED` sets another plan.
"""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any, Final

import pytest

from benchmarks.made_past import DAY_SECONDS
from tests.e2e.cluster_size.machine_groups import MachineGroups, define, undefine
from tests.e2e.cluster_size.played_day import MOST_NODES, SCHEDULER, PlayedDay, planned_day
from tests.e2e.support.figures import state
from tests.recommender.configuration.files import entry, whole
from tests.recommender.replay.recordings import record
from tests.support.recommenders import PROGRAM

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.e2e.controlplane.client import Document
    from tests.e2e.controlplane.cluster import Cluster

__all__ = ["state"]

SECONDS: Final = float(os.environ.get("PLAYED_SECONDS", "60"))
WAVES: Final = int(os.environ.get("PLAYED_WAVES", "2"))
SEED: Final = int(os.environ.get("PLAYED_SEED", "2"))
_WAVE_PODS: Final = 24
_STARTUP_SECONDS: Final = 6.0
_UNNEEDED_SECONDS: Final = 2.0
_DELAY_SECONDS: Final = 1.0
_LARGEST_DIFFERENCE: Final = 0.2
_LOOK_SECONDS: Final = 60.0
"""The interval of the recorder, in the day's time."""

pytestmark = pytest.mark.timeout(180 + int(SECONDS))


@pytest.fixture
def groups(cluster: Cluster, namespace: str, tmp_path: Path) -> Iterator[MachineGroups]:
    """Yield a namespace for one group of nodes, whose pods the scheduler of this test places."""
    cluster.wait_until_empty()
    define(cluster)
    found = MachineGroups(cluster, namespace, tmp_path)
    # Pods whose first attempt fails are tried again as soon as possible: a second of the day is short.
    scheduler = {
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 1,
        "profiles": [{"schedulerName": SCHEDULER}],
    }
    try:
        with cluster.without_kubelet(), found.stack, cluster.start_scheduler(scheduler):
            yield found
            for pod in cluster.client.items(f"/api/v1/namespaces/{namespace}/pods"):
                path = f"/api/v1/namespaces/{namespace}/pods/{pod['metadata']['name']}"
                cluster.client.delete(path, {"gracePeriodSeconds": 0})
    finally:
        undefine(cluster)


def scale_down(stretch: float) -> dict[str, Any]:
    """Return the settings of removals for time that runs faster by this factor."""
    unneeded, delay = f"{_UNNEEDED_SECONDS * stretch:g}s", f"{_DELAY_SECONDS * stretch:g}s"
    return {"unneededTime": unneeded, "delayAfterAdd": delay, "delayAfterDelete": "0s"}


def replayed(day: PlayedDay, folder: Path) -> Document:
    """Return what `replay` reports for a day, with the settings that the group had."""
    recording = record(day.recording(), folder / "recording", _LOOK_SECONDS)
    group = {"name": "workers", "min": 1, "max": MOST_NODES, "price": 1, "selector": {"pool": day.groups.namespace}}
    settings = {"nodeGroups": [group], "scaleDown": scale_down(DAY_SECONDS / day.seconds)}
    configuration = folder / "replayed.yaml"
    configuration.write_text(whole(entry("nodes", kind=f"clusterSize: {json.dumps(settings)}")))
    command = [PROGRAM, "replay", f"--config={configuration}", f"--recording={recording}", "--output=json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: Document = json.loads(done.stdout)
    return found


def test_replay_says_how_long_pods_are_pending(
    groups: MachineGroups, tmp_path: Path, state: Callable[[str, str], None]
) -> None:
    day = PlayedDay(groups, SECONDS, _STARTUP_SECONDS)
    day.begin()
    settings = {
        "nodeGroups": {"clusterAPI": {"namespace": groups.namespace, "markMachines": True}},
        "scaleDown": scale_down(1.0),
    }
    groups.configure(settings, "outputs: [metric, scale]")
    groups.start()
    day.play(planned_day(SEED, SECONDS, WAVES, _WAVE_PODS))
    report = replayed(day, tmp_path)
    live, configured = report["recorded"], report["policies"][0]
    minutes, said = (one["pending_pod_minutes"]["total"] for one in (live, configured))
    state(
        "a compressed day before kube-scheduler, and its replay",
        f"{minutes:,.0f} and {said:,.0f} pod-minutes Pending, {day.node_hours():.0f} and "
        f"{configured['node_hours']:.0f} node-hours, {day.evictions} and {configured['evictions']} evictions",
    )
    assert said == pytest.approx(minutes, rel=_LARGEST_DIFFERENCE)
    assert configured["node_hours"] == pytest.approx(day.node_hours(), rel=_LARGEST_DIFFERENCE)
