"""What tenants read of their objects holds no words and no address of Prometheus; the log has both."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.recommender.commands.cluster_harness import cluster_server, put_nodes, running
from tests.recommender.commands.test_objects_in_a_cluster import RECOMMENDATIONS
from tests.support.raw_server import raw_server
from tests.support.tenant_objects import TenantObjects
from tests.support.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.raw_server import Peer
    from tests.support.recommenders import Recommender

KIND: Final = {"apiVersion": "apps/v1", "kind": "Deployment"}
SPECS: Final[dict[str, dict[str, Any]]] = {
    "by-query": {"proportional": {"drivers": {"query": {"expr": "sum(jobs)", "perReplica": 10}}}},
    "by-load": {"predictive": {"load": "sum(sessions)", "loadPerReplica": 10, "horizon": "120s"}},
}
SAID: Final = "no answer of store-0.bank.svc:10901"
PARTIAL: Final = {"status": "success", "data": {"resultType": "vector", "result": []}, "warnings": [SAID]}


def reasons(recommender: Recommender) -> dict[str, str]:
    return {name: item["message"] for name, item in recommender.items().items() if "no answer of" in item["message"]}


@pytest.mark.parametrize(("status", "body"), [("502 Bad Gateway", SAID), ("200 OK", json.dumps(PARTIAL))])
def test_messages_of_objects_hold_neither_words_nor_the_address_of_prometheus(
    tmp_path: Path, status: str, body: str
) -> None:
    def answer(peer: Peer) -> None:
        while peer.read() is not None:
            peer.answer(body.encode(), status)

    with raw_server(answer) as prometheus, cluster_server() as server:
        objects = TenantObjects(server, RECOMMENDATIONS, ())
        for name, spec in SPECS.items():
            objects.put("shop", name, {**spec, "targets": [{**KIND, "name": name}], "outputs": ["metric"]})
        put_nodes(server, 2)
        file = tmp_path / "recommender.yaml"
        file.write_text(
            f"apiVersion: tidewatch.io/v1alpha1\nkind: RecommenderConfiguration\npollInterval: 1s\n"
            f"state: {tmp_path}/state\nprometheus: {{url: '{prometheus.url}'}}\n"
            "recommendationObjects: {enabled: true}\nrecommendations: []\n"
        )
        kubeconfig = server.kubeconfig(tmp_path / "config")
        flags = (f"--config={file}", f"--kubeconfig={kubeconfig}", "--dry-run")
        with running("run", *flags, log_path=tmp_path / "log") as recommender:
            until(lambda: len(reasons(recommender)) == len(SPECS), 60.0)
            found = reasons(recommender)
            until(lambda: SAID in recommender.log, 10.0)
    assert found.keys() == {f"shop/{name}" for name in SPECS}
    for message in found.values():
        assert "no answer of … (all of it is in the log)" in message
        assert "bank" not in message
        assert "127.0.0.1" not in message
