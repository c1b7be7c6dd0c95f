"""The extender as kube-scheduler reaches it, with a real gunicorn and connections that stay open."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import select
import sys
from typing import TYPE_CHECKING, Any

import pytest

from demo.machine.processes import start
from tests.support.checkout import CHECKOUT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

POD = {"metadata": {"name": "web-1"}, "spec": {"containers": [{"name": "web"}]}}


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[http.client.HTTPConnection]:
    """Yield a connection to an extender that knows `node-1` to `node-5000`."""
    log = tmp_path_factory.mktemp("extender") / "server.log"
    command = [sys.executable, "-m", "tests.adapter.nodes.extender.extender_server"]
    with start(command, log_path=log, name="extender-server", folder=CHECKOUT) as server:
        server.wait_until(lambda: _port(log) is not None, 30)
        connection = http.client.HTTPConnection("127.0.0.1", _port(log), timeout=20)
        with contextlib.closing(connection):
            yield connection


def _port(log: Path) -> int | None:
    found = re.search(r" serving address=http://127\.0\.0\.1:(\d+)", log.read_text())
    return int(found[1]) if found else None


def post(connection: http.client.HTTPConnection, path: str, body: bytes) -> tuple[int, str, Any]:
    """Return the status, the basis of the scores, and the document."""
    connection.request("POST", path, body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    return response.status, response.getheader("Tidewatch-Basis", ""), json.loads(response.read())


@pytest.mark.parametrize("count", [500, 5000])
def test_all_names_of_a_request_are_filtered_and_scored(scheduler: http.client.HTTPConnection, count: int) -> None:
    names = [f"node-{number + 1}" for number in range(count)]
    body = json.dumps({"Pod": POD, "Nodes": None, "NodeNames": names}).encode()
    status, _, filtered = post(scheduler, "/scheduler/filter", body)
    assert (status, filtered["Error"]) == (200, "")
    assert {*filtered["NodeNames"], *filtered["FailedNodes"]} == set(names)
    status, basis, scores = post(scheduler, "/scheduler/prioritize", body)
    assert (status, basis) == (200, "metrics")
    assert [each["Host"] for each in scores] == names
    assert len({each["Score"] for each in scores}) > 1


def test_a_pod_that_cannot_be_read_is_refused_with_the_field(scheduler: http.client.HTTPConnection) -> None:
    pod = {
        "metadata": {"name": "web-1"},
        "spec": {"containers": [{"name": "web", "resources": {"requests": {"cpu": "lots"}}}]},
    }
    status, _, answer = post(scheduler, "/scheduler/filter", json.dumps({"Pod": pod, "NodeNames": ["node-1"]}).encode())
    assert (status, "spec.containers[web].resources.requests" in answer["message"]) == (400, True)


def test_a_request_for_an_unknown_policy_does_not_affect_later_ones(scheduler: http.client.HTTPConnection) -> None:
    """Most clients send the body after the head: a route that did not read it would end the connection."""
    body = json.dumps({"Pod": POD, "NodeNames": ["node-1"]}).encode()
    scheduler.putrequest("POST", "/scheduler/gpu-clustering/prioritize")
    scheduler.putheader("Content-Length", str(len(body)))
    scheduler.endheaders()
    assert scheduler.sock is not None
    readable, _, _ = select.select([scheduler.sock], [], [], 0.2)
    assert not readable, "answered before the body was read"
    scheduler.send(body)
    response = scheduler.getresponse()
    assert (response.status, bool(response.read())) == (404, True)
    assert post(scheduler, "/scheduler/prioritize", body)[0] == 200


def test_bodies_of_whole_nodes_are_accepted_up_to_64_mib(scheduler: http.client.HTTPConnection) -> None:
    """A scheduler without `nodeCacheCapable` sends 1,000 nodes of 12.5 KB."""
    nodes = [{"metadata": {"name": f"node-{number + 1}", "annotations": {"a": "x" * 12_500}}} for number in range(1000)]
    body = json.dumps({"Pod": POD, "Nodes": {"metadata": {}, "items": nodes}, "NodeNames": None}).encode()
    status, _, scores = post(scheduler, "/scheduler/prioritize", body)
    assert (status, len(scores)) == (200, 1000)
    scheduler.putrequest("POST", "/scheduler/prioritize")
    scheduler.putheader("Content-Length", str((64 << 20) + 1))
    scheduler.endheaders()
    response = scheduler.getresponse()
    assert (response.status, b"67108864 bytes" in response.read()) == (413, True)
    scheduler.close()
