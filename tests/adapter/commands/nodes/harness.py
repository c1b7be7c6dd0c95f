"""Three nodes with node_exporter's series in a real Prometheus, and the real `tidewatch-adapter nodes` before it."""

from __future__ import annotations

import gzip
import http.client
import json
import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from demo.machine.files import replace_file
from demo.machine.processes import ManagedProcess, start
from tests.support import forked
from tests.support.caller import PATIENCE_SECONDS, Answer
from tests.support.harnesses import moments, samples
from tests.support.serving import PROGRAM, eventually, listed

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

STEP_SECONDS = 15
PAST_SECONDS = 1200
FUTURE_SECONDS = 600
CPUS = 2

BUSY = {"10.0.0.1:9100": 0.25, "10.0.0.2:9100": 0.9, "node-3": 0.5}
"""How busy the CPUs of each instance are; `node-3` is a name, as in kube-prometheus."""
UNMAPPED = "10.9.9.9:9100"


def series_at(now: int) -> list[str]:
    """Return the samples of all series as lines of OpenMetrics."""
    lines: list[str] = []
    times = moments(now, STEP_SECONDS, PAST_SECONDS, FUTURE_SECONDS)
    first = times[0]
    for instance, busy in {**BUSY, UNMAPPED: 0.1}.items():
        courses: dict[str, Any] = {}
        for cpu in range(CPUS):
            for mode, share in (("idle", 1 - busy), ("user", busy)):
                name = f'node_cpu_seconds_total{{instance="{instance}",cpu="{cpu}",mode="{mode}"}}'
                courses[name] = lambda moment, share=share: round((moment - first) * share, 3)
        courses[f'node_memory_MemTotal_bytes{{instance="{instance}"}}'] = lambda _: 8 * 2**30
        courses[f'node_memory_MemAvailable_bytes{{instance="{instance}"}}'] = lambda _: 6 * 2**30
        lines += samples(courses, times)
    return lines


def node(name: str, address: str, zone: str, pool: str = "") -> dict[str, Any]:
    """Return a Node as the API server lists it."""
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": zone, "example.com/pool": pool}},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "addresses": [{"type": "InternalIP", "address": address}],
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


OBJECTS = listed(
    node("node-1", "10.0.0.1", "east", "web"),
    node("node-2", "10.0.0.2", "west"),
    node("node-3", "10.0.0.3", "west"),
)
POD = {
    "metadata": {"name": "new", "namespace": "shop", "uid": "1"},
    "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "200m", "memory": "256Mi"}}}]},
}


@dataclass(frozen=True, slots=True)
class NodesProcess:
    """A running `tidewatch-adapter nodes`."""

    process: ManagedProcess

    @property
    def log(self) -> str:
        return self.process.log_path.read_text()

    @property
    def port(self) -> int:
        return int(re.findall(r" serving address=https?://\S+:(\d+) ", self.log)[-1])

    @property
    def plain_port(self) -> int:
        return int(re.findall(r" metrics and health are served address=\S+:(\d+)", self.log)[-1])

    def ask(
        self,
        path: str,
        body: object = None,
        *,
        token: str = "",
        tls: ssl.SSLContext | None = None,
        packed: bool = False,
        port: int | None = None,
    ) -> Answer:
        """GET the path, or POST the body as JSON."""
        at = port or self.port
        connection = (
            http.client.HTTPConnection("127.0.0.1", at, timeout=PATIENCE_SECONDS)
            if tls is None
            else http.client.HTTPSConnection("localhost", at, timeout=PATIENCE_SECONDS, context=tls)
        )
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        headers |= {"Accept-Encoding": "gzip"} if packed else {}
        try:
            if body is None:
                connection.request("GET", path, headers=headers)
            else:
                connection.request("POST", path, json.dumps(body), headers)
            response = connection.getresponse()
            content = response.read()
            if response.getheader("Content-Encoding") == "gzip":
                content = gzip.decompress(content)
            return Answer(response.status, tuple(response.getheaders()), content)
        finally:
            connection.close()

    def prioritized(self, names: Sequence[str]) -> tuple[Answer, dict[str, int]]:
        """Return the answer to `/scheduler/prioritize`, and its scores."""
        answer = self.ask("/scheduler/prioritize", {"Pod": POD, "Nodes": None, "NodeNames": list(names)})
        assert answer.status == 200, answer.text
        listed_scores: list[dict[str, Any]] = json.loads(answer.body)
        return answer, {each["Host"]: each["Score"] for each in listed_scores}

    def watched(self, path: str = "/watcher") -> dict[str, Any]:
        """Return the map of nodes of a document, once there is one."""
        answer = eventually(lambda: found if (found := self.ask(path)).status == 200 else None)
        assert answer is not None
        nodes: dict[str, Any] = answer.document["data"]["NodeMetricsMap"]
        return nodes

    def values(self, name: str) -> dict[str, float]:
        """Return the values of a node by type and operator."""
        return {f"{one['type']} {one['operator']}": one["value"] for one in self.watched()[name]["metrics"]}


@contextmanager
def running_nodes(
    folder: Path,
    *flags: str,
    environment: Mapping[str, str] | None = None,
    objects: Mapping[str, Any] | None = None,
    as_installed: bool = False,
) -> Iterator[NodesProcess]:
    """Start the program on a free port, wait until it listens, and kill it in the end.

    With `as_installed` it is the installed program, which imports what it needs; else it is forked (`forked.start`).
    """
    folder.mkdir(parents=True, exist_ok=True)
    more = []
    if objects is not None:
        (folder / "objects").mkdir(exist_ok=True)
        replace_file(folder / "objects" / "all.json", json.dumps(objects))
        more.append(f"--objects={folder / 'objects'}")
    command = ["nodes", "--bind-address=127.0.0.1", "--port=0", "--shutdown-delay=0s", *more, *flags]
    log_path = folder / "nodes.log"
    with (
        start([PROGRAM, *command], log_path=log_path, name="nodes", environment=environment)
        if as_installed
        else forked.start(forked.ADAPTER, *command, log_path=log_path, name="nodes", environment=environment)
    ) as process:
        nodes = NodesProcess(process)
        before = nodes.log.count(" serving address=")
        process.wait_until(lambda: nodes.log.count(" serving address=") > before, PATIENCE_SECONDS)
        try:
            yield nodes
        finally:
            process.kill()
