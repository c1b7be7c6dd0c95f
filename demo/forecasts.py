"""The recommender of the demo: its configuration, and its process.

It reads the connections of one fleet from Prometheus and publishes how many there will be when a pod that is asked for
now serves. Its model is named, since `auto` rightly stays with plain headroom on two minutes of history.
"""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from demo.machine.ports import answers
from demo.machine.processes import start
from demo.settings import PREDICTIVE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from demo.settings import Settings

MODEL = "polynomial"
MAX_GROWTH = 1.3
READY_SECONDS = 60.0
"""It imports its models before it answers, which takes long where other processes want the processors too."""


def configuration(prometheus_url: str, folder: Path, settings: Settings) -> Mapping[str, object]:
    """Return the recommender's configuration; JSON is YAML too."""
    _, target = settings.targets
    return {
        "apiVersion": "tidewatch.io/v1alpha1",
        "kind": "RecommenderConfiguration",
        "pollInterval": "1s",
        "prometheus": {"url": prometheus_url},
        "state": str(folder / "recommender"),
        "recommendations": [
            {
                "name": "gateway",
                "predictive": {
                    "load": f'sum(websocket_connections{{namespace="{PREDICTIVE}"}})',
                    "loadPerReplica": target.connections_per_pod,
                    "horizon": f"{settings.start_up_seconds:g}s",
                    "hpaSyncPeriod": f"{settings.sync_seconds:g}s",
                    "history": "10m",
                    "model": MODEL,
                    "maxGrowth": MAX_GROWTH,
                    "headroom": "0%",
                    "minReplicas": target.min_replicas,
                    "maxReplicas": target.max_replicas,
                    # The HPA has a window of its own, and the day is short.
                    "scaleDown": {"window": "3s"},
                    "connections": {
                        "limit": settings.connection_limit,
                        "reconnectDrop": "30%",
                        "reconnectHold": "10s",
                    },
                },
                "targets": [
                    {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": PREDICTIVE, "name": "gateway"}
                ],
            }
        ],
    }


@contextmanager
def running_recommender(folder: Path, prometheus_url: str, settings: Settings, plain_port: int) -> Iterator[str]:
    """Run the recommender and yield the URL of its plain port when it answers."""
    path = folder / "recommender.yaml"
    path.write_text(json.dumps(configuration(prometheus_url, folder, settings), indent=2))
    command = [
        str(Path(sys.executable).with_name("tidewatch-recommender")),
        "run",
        f"--config={path}",
        f"--objects={folder / 'objects'}",
        f"--plain-bind-address=127.0.0.1:{plain_port}",
        "--port=0",
        "--shutdown-delay=0s",
    ]
    url = f"http://127.0.0.1:{plain_port}"
    with start(command, log_path=folder / "recommender.log", name="recommender") as process:
        process.wait_until(lambda: answers(f"{url}/readyz"), READY_SECONDS)
        yield url
