"""Deployments without an HPA, scaled by `tidewatch-recommender run` on forecasts of their loads."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pytest

from recommender.decisions.texts.times import parse_rfc3339, rfc3339
from tests.e2e.controlplane.pod_metrics import shared
from tests.e2e.recommender.waves import Wave, needed, predicting
from tests.e2e.support.figures import state
from tests.e2e.support.recommenders import Workload, autoscaler

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tests.e2e.recommender.waves import Predicting
    from tests.support.recommenders import Recommender

__all__ = ["predicting", "state"]

pytestmark = pytest.mark.timeout(300)

PER_REPLICA: Final = 10.0
BASE: Final = 465.0
CREST: Final = 765.0
PER_SECOND: Final = 10.0
TOO_MANY: Final = needed(BASE, PER_REPLICA) + 2
"""At 5% in 10 s it takes 8 s until the second surplus replica is removed."""
KEPT_IN_TEN_SECONDS: Final = 0.95
REFUSALS: Final = 5


@dataclass(slots=True)
class Watched:
    """A recommender, and the decisions that were observed."""

    program: Recommender
    decisions: dict[float, dict[str, Any]] = field(default_factory=dict)
    """Items with a size, by their times in Unix seconds."""

    def look(self) -> dict[str, Any]:
        """Return the one present item; empty if it has no size of its own."""
        (item,) = self.program.items().values() or ({},)
        if item.get("replicas") is None or item["load"] is None:
            return {}
        self.decisions[parse_rfc3339(item["time"])] = item
        return item

    def decides_more(self, count: int) -> Callable[[], bool]:
        """Return the condition that this many further decisions have been observed."""
        wanted = len(self.decisions) + count
        return lambda: bool(self.look()) and len(self.decisions) >= wanted


def test_a_deployment_without_an_hpa_is_scaled_before_the_wave(
    predicting: Predicting, state: Callable[[str, str], None]
) -> None:
    wave, cluster = Wave(BASE), predicting.cluster
    chat = predicting.workload("chat", TOO_MANY)
    cluster.wait_until_ready(chat.namespace, chat.name)
    predicting.export("open_connections", wave)
    pods = ("connections", chat.namespace, "app=chat")
    predicting.pod_metrics.of_pods(*pods, partial(_share, wave))
    predicting.stack.callback(predicting.pod_metrics.forget_pods, *pods)
    configure_connections(predicting, chat)
    begin = time.time()
    watched = Watched(predicting.start())

    least = needed(BASE, PER_REPLICA)
    cluster.wait_for("what is open", lambda: watched.look() and chat.replicas == least, why_not=watched.look)
    cluster.wait_for("further decisions", watched.decides_more(4))
    assert scale_downs_too_fast(watched, begin) == {}
    assert len(chat.writes_of_all_changes()) == chat.changes() == TOO_MANY - least

    # The API server refuses to scale while the wave comes.
    rules = predicting.rules(chat.namespace)
    without = [{**rule, "verbs": ["get"]} if "deployments/scale" in rule["resources"] else rule for rule in rules]
    cluster.client.merge(predicting.role, {"rules": without})
    begin = wave.rise(PER_SECOND, CREST)
    cluster.wait_for("refusals", lambda: watched.look() and len(refusals(predicting, chat)) >= REFUSALS)
    before = len(chat.writes())
    cluster.client.merge(predicting.role, {"rules": rules})
    most = needed(CREST, PER_REPLICA)
    cluster.wait_for("more than the crest needs", lambda: watched.look() and chat.replicas > most)

    assert superseded(watched.program) > 0
    ahead = f"{(most * PER_REPLICA - BASE) / PER_SECOND - (time.time() - begin):.1f} s"

    watched.program.process.kill()
    open_now = {when: needed(item["load"]["now"], PER_REPLICA) for when, item in watched.decisions.items()}
    assert {when for when, item in watched.decisions.items() if item["replicas"] < open_now[when]} == set()
    # The call that was under way is in the audit log once the API server has answered it.
    writes = [event.start.timestamp() for event in chat.writes_of_all_changes()]
    assert len(writes) == chat.changes()
    times = ", ".join(f"{moment - begin:.1f} s" for moment in [*refusals(predicting, chat), writes[before]])
    state(
        "a Deployment before a wave",
        f"{ahead} before the load needed {most + 1}; calls after {times}, all but the last refused;"
        f" forecast {watched.decisions[max(watched.decisions)]['steps'][0]['detail']}",
    )


def _share(wave: Wave, pods: Sequence[str]) -> Mapping[str, float]:
    return shared(wave())(pods)


def configure_connections(predicting: Predicting, chat: Workload) -> None:
    """Configure scaling by connections, with scale-downs of 5% in 10 s."""
    of = f'{{namespace="{chat.namespace}"}}'
    settings = {
        "load": f"sum(open_connections{of})",
        "loadPerReplica": PER_REPLICA,
        "maxReplicas": 100,
        "scaleDown": {"decay": "5%", "window": "0s"},
        "connections": {"limit": int(PER_REPLICA), "metric": f"sum by (pod) (connections{of})"},
    }
    predicting.configure("chat", settings, f"targets: [{chat.reference}]", "outputs: [scale]")


def scale_downs_too_fast(watched: Watched, begin: float) -> dict[float, int]:
    """Return the sizes below the lowest that the rate allows since `begin`, by time in whole seconds."""
    return {
        when: item["replicas"]
        for when, item in watched.decisions.items()
        if item["replicas"] < TOO_MANY * KEPT_IN_TEN_SECONDS ** ((when + 1.0 - begin) / 10.0)
    }


def superseded(program: Recommender) -> float:
    """Return how many decisions were not applied because of a newer one."""
    return float(program.metric('tidewatch_scale_calls_total{recommendation="chat",result="superseded"}') or 0)


def refusals(predicting: Predicting, workload: Workload) -> list[float]:
    """Return the times at which scale calls were refused."""
    found = predicting.requests(403, f"{workload.path}/scale")
    return [event.start.timestamp() for event in found]


def test_each_series_scales_its_own_deployment(predicting: Predicting) -> None:
    cluster, namespace = predicting.cluster, predicting.namespace
    web, chat, scaled = (predicting.workload(name) for name in ("web", "chat", "scaled"))
    path = f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers"
    cluster.client.create(path, autoscaler(scaled.name))
    loads = {"web": 300.0, "chat": 500.0, "scaled": 400.0, "ghost": 200.0, "is-true": 1.0}
    for name in loads:
        predicting.export("load", partial(loads.__getitem__, name), deployment=name)
    configure_each(predicting)
    program = predicting.start()
    web.wait_for(3)
    chat.wait_for(5)
    found = {name: item["targets"][0] for name, item in items(program).items()}
    assert (found["scaled"]["action"], found["scaled"]["owner"]) == (
        "refused",
        f"HorizontalPodAutoscaler {namespace}/scaled",
    )
    assert (found["ghost"]["action"], found["ghost"]["current_replicas"]) == ("metric", None)
    assert "does not exist" in found["ghost"]["message"]

    loads["is-true"] = 0.0
    cluster.wait_for("a hold", lambda: items(program)["web"]["status"] == "held")
    loads["web"] = 700.0
    cluster.wait_for("the load", lambda: (items(program)["web"]["load"] or {}).get("now") == loads["web"])
    assert items(program)["web"]["replicas"] == web.replicas == 3
    loads["is-true"] = 1.0
    web.wait_for(7)
    configure_each(predicting, override={"replicas": 4, "until": rfc3339(time.time() + 3600)})
    web.wait_for(4)
    chat.wait_for(4)

    assert [len(one.writes_of_all_changes()) for one in (web, chat)] == [one.changes() for one in (web, chat)] == [3, 2]
    assert [Workload(cluster, namespace, name).writes() for name in ("scaled", "ghost")] == [[], []]
    assert predicting.requests(403) == []


def configure_each(predicting: Predicting, **more: object) -> None:
    """Scale each Deployment that a series names by the series' current load, while the gate is open."""
    of = f'namespace="{predicting.namespace}"'
    settings = {
        "load": f'sum by (namespace, deployment) (load{{{of},deployment!="is-true"}})',
        "loadPerReplica": 100,
        "maxReplicas": 100,
        "model": "reactive",
        "forEach": {"namespace": "namespace", "name": "deployment"},
        "freezeUnless": f'max(load{{{of},deployment="is-true"}})',
        **more,
    }
    predicting.configure("each", settings, "outputs: [metric, scale]")


def items(program: Recommender) -> dict[str, dict[str, Any]]:
    """Return the items by their targets' names."""
    text = program.get("/api/v1/recommendations")[1]
    return {item["targets"][0]["name"]: item for item in json.loads(text)["items"]}
