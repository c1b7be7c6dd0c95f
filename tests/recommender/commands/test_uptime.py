"""`run` on machines that have just started, or have run for a month."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.adapter.commands.nodes.harness import OBJECTS
from tests.recommender.configuration.files import entry, whole
from tests.support.recommenders import started
from tests.support.serving import pod
from tests.support.uptime import UPTIMES_SECONDS, environment_of_uptime
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from tests.support.prometheus import ScrapedPrometheus

TARGETS = "targets: [{apiVersion: apps/v1, kind: Deployment, namespace: shop, name: %s}]"
KINDS = {
    "by-nodes": "proportional: {linear: {nodesPerReplica: 2, min: 1, max: 10}}",
    "by-query": "proportional: {drivers: {query: {expr: sum(connections), perReplica: 10}}}",
    "predicted": "predictive: {load: sum(connections), loadPerReplica: 10, horizon: 2m, maxReplicas: 999}",
    "each": "predictive: {load: 'sum by (namespace, app) (connections)', loadPerReplica: 10, horizon: 2m, "
    "maxReplicas: 999, forEach: {namespace: namespace, name: app}}",
    "nodes": "clusterSize: {nodeGroups: {byLabel: {key: topology.kubernetes.io/zone}}}",
}


def all_ok(items: Mapping[str, Mapping[str, Any]]) -> bool:
    return set(items) >= set(KINDS) and {item["status"] for item in items.values()} == {"ok"}


@pytest.fixture(scope="module")
def prometheus(start_prometheus: Callable[..., ScrapedPrometheus]) -> ScrapedPrometheus:
    """Return the Prometheus of all uptimes, whose own one does not change."""
    prometheus = start_prometheus('connections{namespace="shop",app="web"} 40\n')
    prometheus.wait_for("connections")
    return prometheus


@pytest.mark.parametrize("uptime_seconds", UPTIMES_SECONDS)
def test_each_kind_has_a_value_whatever_the_uptime(
    prometheus: ScrapedPrometheus, tmp_path: Path, uptime_seconds: float
) -> None:
    entries = [
        entry(name, kind, *([TARGETS % name] if name.startswith(("by", "pred")) else []), "outputs: [metric]", kind="")
        for name, kind in KINDS.items()
    ]
    top = f"pollInterval: 1s\nstate: {tmp_path}/state\nprometheus: {{url: '{prometheus.url}'}}\n"
    (tmp_path / "recommender.yaml").write_text(whole(*entries, top=top))
    (tmp_path / "objects").mkdir()
    (tmp_path / "objects" / "all.json").write_text(json.dumps({**OBJECTS, "items": [*OBJECTS["items"], pod("web-0")]}))
    recommender = started(
        tmp_path / "run.log",
        "run",
        f"--config={tmp_path}/recommender.yaml",
        f"--objects={tmp_path}/objects",
        environment=environment_of_uptime(tmp_path / "site", uptime_seconds),
    )
    with recommender.process:
        items = until(lambda: found if all_ok(found := recommender.items()) else {}, 60.0)
        # It goes on: a later poll has decided again.
        assert until(lambda: recommender.items()["by-query"]["time"] > items["by-query"]["time"])
        assert not [line for line in recommender.log.splitlines() if "Traceback" in line or "internal error" in line]
