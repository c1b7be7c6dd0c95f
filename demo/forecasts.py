"""The recommender of the demo: its configuration, its process, and its choice of a model.

It reads the connections of one fleet from Prometheus and publishes how many there will be when a pod that is requested
now begins to serve. `model: auto` chooses by the ten days before, whose season is a compressed day.
"""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import urllib3

from demo.history import DAYS, METRIC
from demo.machine.ports import answers, free_port
from demo.machine.processes import start
from demo.settings import HEADROOM_RATIO, PREDICTIVE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from demo.settings import Settings

READY_SECONDS = 60.0
"""The recommender imports its models before it answers, which takes long if other processes need the processors."""
_SHORTEST_HISTORY_SECONDS: Final = 600.0


@dataclass(frozen=True, slots=True)
class Choice:
    """The model that the recommender has chosen, and its cost as the recommender states it."""

    model: str
    reason: str
    headroom_ratio: float
    """The plain headroom that costs as much, as a share of the load."""
    is_made: bool
    """Whether models have been compared; if not, plain headroom is used."""


NO_CHOICE: Final = Choice("headroom", "the models have not been compared in time", HEADROOM_RATIO, is_made=False)


@dataclass(frozen=True, slots=True)
class RunningRecommender:
    """The running recommender, known by the address of its page."""

    page_url: str

    def choice(self) -> Choice:
        """Return the current choice of the recommender."""
        try:
            response = urllib3.request("GET", f"{self.page_url}/api/v1/recommendations", timeout=2.0, retries=False)
        except urllib3.exceptions.HTTPError:
            return NO_CHOICE
        return choice_of(response.json()) if response.status == 200 else NO_CHOICE


def choice_of(document: Mapping[str, Any]) -> Choice:
    """Return the choice in the recommender's list."""
    item: Mapping[str, Any] = next(iter(document["items"]), {})
    ratio = item.get("cost_as_headroom_ratio")
    if ratio is None or not item.get("shortage_versus_headroom"):
        return NO_CHOICE
    return Choice(item["model"], item["model_reason"], ratio, is_made=True)


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
                    "load": f'{METRIC}{{namespace="{PREDICTIVE}"}}',
                    "loadPerReplica": target.connections_per_pod,
                    "horizon": f"{settings.start_up_seconds:g}s",
                    "hpaSyncPeriod": f"{settings.sync_seconds:g}s",
                    "history": f"{max(_SHORTEST_HISTORY_SECONDS, (DAYS + 1) * settings.seconds):.0f}s",
                    "season": f"{settings.seconds:.0f}s",
                    "model": "auto",
                    "headroom": f"{100 * HEADROOM_RATIO:g}%",
                    "minReplicas": target.min_replicas,
                    "maxReplicas": target.max_replicas,
                    # As long as the HPA's own window, which the day has compressed.
                    "scaleDown": {"window": f"{target.scale_down_window_seconds:g}s"},
                },
                "targets": [
                    {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": PREDICTIVE, "name": "gateway"}
                ],
            }
        ],
    }


@contextmanager
def running_recommender(
    folder: Path, prometheus_url: str, settings: Settings, plain_port: int, sleep: Callable[[float], None]
) -> Iterator[RunningRecommender]:
    """Run the recommender and yield it when it answers."""
    path = folder / "recommender.yaml"
    path.write_text(json.dumps(configuration(prometheus_url, folder, settings), indent=2))
    page_port = free_port()
    command = [
        str(Path(sys.executable).with_name("tidewatch-recommender")),
        "run",
        f"--config={path}",
        f"--objects={folder / 'objects'}",
        f"--plain-bind-address=127.0.0.1:{plain_port}",
        f"--port={page_port}",
        "--shutdown-delay=0s",
    ]
    url = f"http://127.0.0.1:{plain_port}"
    with start(command, log_path=folder / "recommender.log", name="recommender") as process:
        process.wait_until(lambda: answers(f"{url}/readyz"), READY_SECONDS, sleep=sleep)
        yield RunningRecommender(f"http://127.0.0.1:{page_port}")
