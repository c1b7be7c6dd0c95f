"""Deployments without an HPA, scaled by `tidewatch-recommender run` on a forecast of their connections."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.e2e.controlplane.pod_metrics import shared
from tests.e2e.figures import state
from tests.e2e.recommenders import RBAC, Workload, rights
from tests.e2e.waves import Predicting, Wave, needed, predictive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.e2e.controlplane.audit import AuditEvent
    from tests.e2e.controlplane.cluster import Cluster
    from tests.e2e.controlplane.pod_metrics import PodMetrics
    from tests.support.prometheus import ScrapedPrometheus
    from tests.support.recommenders import Recommender

__all__ = ["state"]

pytestmark = pytest.mark.timeout(300)

PER_REPLICA: Final = 20.0
BASE: Final = 470.0
CREST: Final = 770.0
PER_SECOND: Final = 10.0
TOO_MANY: Final = 26
"""Two more than the base needs: at 5 % in 10 s it takes 16 s until the second of them is given up."""
KEPT_IN_TEN_SECONDS: Final = 0.95
REFUSALS: Final = 5


@dataclass(slots=True)
class Decisions:
    """What a recommender was seen to decide: the sizes by the times of the decisions."""

    program: Recommender
    seen: dict[float, dict[str, Any]] = field(default_factory=dict)

    def look(self) -> dict[str, Any]:
        """Take in the newest decision, and return it; empty before the first."""
        status, text, _ = self.program.get("/api/v1/recommendations")
        document = json.loads(text)
        if status != 200 or not document["items"]:
            return {}
        (item,) = document["items"]
        if item["replicas"] is not None:
            self.seen[seconds_of(document["time"])] = item
        return dict(item)

    def sizes(self) -> list[tuple[float, int]]:
        return sorted((when, item["replicas"]) for when, item in self.seen.items())


@pytest.fixture
def place(cluster: Cluster, namespace: str, prometheus: ScrapedPrometheus, tmp_path: Path) -> Iterator[Predicting]:
    found = Predicting(cluster, namespace, tmp_path, prometheus.url)
    with found.stack:
        yield found


def test_a_deployment_without_an_hpa_follows_its_connections_in_time(
    cluster: Cluster,
    namespace: str,
    pod_metrics: PodMetrics,
    place: Predicting,
    state: Callable[[str, str], None],
) -> None:
    wave = Wave(BASE)
    chat = Workload(cluster, namespace, "chat")
    chat.create(TOO_MANY)
    cluster.wait_until_ready(namespace, chat.name)
    place.export(pod_metrics, "open_connections", wave)
    pod_metrics.of_pods("connections", namespace, "app=chat", lambda pods: shared(wave())(pods))
    place.stack.callback(pod_metrics.forget_pods, "connections", namespace, "app=chat")
    place.configure(recommendation(chat))
    rules = rights(["chat"], ["chat"])
    program = place.start(rules)
    decisions = Decisions(program)

    # Down to what is open, by 5 % in 10 s and no further.
    open_now = needed(BASE, PER_REPLICA)
    cluster.wait_for("the first decision", decisions.look)
    first = chat.replicas
    cluster.wait_for("fewer", lambda: decisions.look()["replicas"] == open_now and chat.replicas == open_now)
    cluster.wait_for("five decisions more", later(decisions, 5))
    check_way_down([(0.0, TOO_MANY)] if first < TOO_MANY else decisions.sizes())
    assert len(chat.writes()) == chat.changes() == TOO_MANY - open_now

    # The API server refuses the calls while the wave comes.
    role = f"/apis/{RBAC}/v1/namespaces/{namespace}/roles/predictor"
    cluster.client.merge(role, {"rules": [each for each in rules if each["resources"] != ["deployments/scale"]] + [read_only(chat)]})
    begin = wave.rise(PER_SECOND, CREST)
    cluster.wait_for("refusals", lambda: refusals(chat) >= REFUSALS and decisions.look())
    before = len(chat.writes())
    cluster.client.merge(role, {"rules": rules})
    cluster.wait_for("the size that the crest does not need", lambda: decisions.look() and chat.replicas > needed(CREST, PER_REPLICA))
    reached = time.time() - begin
    written = chat.writes()[before]
    print("WR", written.start.timestamp() - begin, wave.at(written.start.timestamp()), reached, scaled(program), [r.end.timestamp() - begin for r in refused(chat)], sorted(decisions.sizes()))
    assert False


def recommendation(chat: Workload) -> str:
    of = f'{{namespace="{chat.namespace}"}}'
    settings = {
        "load": f"sum(open_connections{of})",
        "loadPerReplica": PER_REPLICA,
        "scaleDown": {"decay": "5%", "window": "0s"},
        "connections": {"limit": int(PER_REPLICA), "metric": f"sum by (pod) (connections{of})"},
    }
    return predictive("chat", settings, f"targets: [{chat.reference}]", "outputs: [scale]")


def seconds_of(time_text: str) -> float:
    from datetime import datetime
    return datetime.fromisoformat(time_text).timestamp()


def later(decisions: Decisions, count: int) -> Callable[[], bool]:
    """Return a condition: so many decisions more have been seen."""
    wanted = len(decisions.seen) + count
    return lambda: bool(decisions.look()) and len(decisions.seen) >= wanted


def check_way_down(sizes: list[tuple[float, int]]) -> None:
    ...
    print("SZ", sizes)


def refused(chat: Workload) -> list[AuditEvent]:
    uri = f"{chat.path}/scale"
    return [e for e in chat.cluster.audit_events() if e.uri.partition("?")[0] == uri and e.code == 403]


def refusals(chat: Workload) -> int:
    return len(refused(chat))


def read_only(chat: Workload) -> dict[str, Any]:
    return {"apiGroups": ["apps"], "resources": ["deployments/scale"], "verbs": ["get"], "resourceNames": [chat.name]}


def scaled(program: Recommender) -> list[Any]:
    return [l for l in program.log.splitlines() if "scaled" in l]
