"""`tidewatch-adapter nodes` with a real API server and a real Prometheus, and the schedulers that ask it."""

from __future__ import annotations

import json
import os
import re
import ssl
import urllib.error
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import yaml

from demo.machine.processes import start
from tests.e2e.controlplane.nodes import PATH as NODES
from tests.e2e.controlplane.nodes import NodeSpec, extra_nodes
from tests.e2e.nodes.node_loads import NodeLoad, prometheus_with_loads
from tests.e2e.support.recommenders import POOL, service_account
from tests.helm.chart import CHART, render
from tests.support.serving import PROGRAM
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from demo.machine.certificates import Authority
    from demo.machine.processes import ManagedProcess
    from tests.e2e.controlplane.client import Document
    from tests.e2e.controlplane.cluster import Cluster

ACCOUNT: Final = "nodes"
REFRESH_SECONDS: Final = 15
"""The shortest interval in which a refresh may query CPU and memory."""
OTHERS: Final = NodeLoad(0.6)
"""The load of the nodes that the test did not make, which are neither hot nor cold."""
SHIPPED: Final = CHART / "files"
_LISTENING_SECONDS: Final = 30.0
_LOADS_SECONDS: Final = 60.0


def shipped(name: str) -> dict[str, Any]:
    """Return a file of the chart."""
    found: dict[str, Any] = yaml.safe_load((SHIPPED / name).read_text())
    return found


def rights() -> list[Document]:
    """Return the rules of the ClusterRole that the chart installs for the program."""
    roles = render({"nodes": {"enabled": True}}).all("ClusterRole")
    (role,) = [one for one in roles if one["metadata"]["labels"]["app.kubernetes.io/component"] == "nodes"]
    rules: list[Document] = role["rules"]
    return rules


def scheduler_configuration(url: str, name: str, *others: str) -> dict[str, Any]:
    """Return the configuration that the chart ships, with this name and with the program as the extender.

    `others` are more profiles of the same scheduler, with Kubernetes's defaults.
    """
    found = shipped("scheduler/default-scheduler.yaml")
    (profile,), (extender,) = found["profiles"], found["extenders"]
    profile["schedulerName"] = name
    extender |= {"urlPrefix": f"{url}/scheduler", "enableHTTPS": False}
    del extender["tlsConfig"]
    return {"profiles": [profile, *({"schedulerName": other} for other in others)], "extenders": [extender]}


@dataclass(frozen=True, slots=True)
class NodesProgram:
    """A running `tidewatch-adapter nodes`."""

    process: ManagedProcess
    url: str
    token: str = ""
    context: ssl.SSLContext | None = None
    """How its certificate is verified; None for plain HTTP."""

    def get(self, path: str) -> tuple[int, str]:
        """Return status and text of an answer."""
        try:
            headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
            asked = urllib.request.Request(f"{self.url}{path}", headers=headers)
            with urllib.request.urlopen(asked, timeout=5, context=self.context) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def document(self, path: str) -> dict[str, Any]:
        """Return an answer of status 200, and an empty document for any other status."""
        status, text = self.get(path)
        return dict(json.loads(text)) if status == 200 else {}

    def scores(self, policy: str, cpu: str) -> dict[str, float]:
        """Return a policy's score of each node for a pod with this request."""
        found = self.document(f"/scores?policy={policy}&cpu={cpu}")
        return {one["node"]: one["score"] for one in found.get("scores", [])}

    def hot(self) -> dict[str, list[str]]:
        """Return the reasons for which each hot node is hot."""
        return {one["node"]: one["reasons"] for one in self.document("/hotspots").get("hot", [])}

    def metric(self, series: str) -> float:
        """Return the value of a series, spelled as `/metrics` spells it; 0 if there is no such series."""
        found = re.search(rf"^{re.escape(series)} (\S+)$", self.get("/metrics")[1], re.MULTILINE)
        return float(found[1]) if found else 0.0

    def asked(self, verb: str) -> float:
        """Return how many requests of schedulers were answered with 200."""
        return self.metric(f'tidewatch_adapter_extender_requests_total{{code="200",verb="{verb}"}}')

    def mean_seconds(self, verb: str) -> float:
        """Return the mean time that the program needed for a request of a scheduler."""
        name = "tidewatch_adapter_extender_request_duration_seconds"
        total, count = (self.metric(f'{name}_{part}{{verb="{verb}"}}') for part in ("sum", "count"))
        return total / count


@dataclass(frozen=True, slots=True)
class LoadedCluster:
    """A cluster whose nodes have known loads."""

    cluster: Cluster
    namespace: str
    """The namespace of the program's service account."""
    folder: Path
    host: str
    """The address on which programs listen that pods can reach."""
    prometheus_url: str
    kubeconfig: Path
    """The kubeconfig of the program, which has only the chart's rights."""

    @contextmanager
    def running(
        self, configuration: Mapping[str, Any], *, port: int = 0, token: str = "", authority: Authority | None = None
    ) -> Iterator[NodesProgram]:
        """Run the program with a SchedulingConfiguration; yield when it knows the load of each node with known load.

        With an authority it speaks TLS, and answers only schedulers that have a certificate of the authority.
        """
        path = self.folder / "scheduling.yaml"
        path.write_text(yaml.safe_dump(dict(configuration)))
        log = self.folder / f"nodes-{len(list(self.folder.glob('nodes-*.log')))}.log"
        command = [
            PROGRAM,
            "nodes",
            f"--kubeconfig={self.kubeconfig}",
            f"--prometheus-url={self.prometheus_url}",
            f"--scheduling-config={path}",
            f"--refresh-interval={REFRESH_SECONDS}s",
            f"--bind-address={self.host}",
            f"--port={port}",
            "--shutdown-delay=0s",
        ]
        if token:
            (self.folder / "token").write_text(token)
            command.append(f"--token-file={self.folder / 'token'}")
        context = None
        if authority is not None:
            own = authority.server(ips=(self.host,))
            command += [f"--tls-cert-file={own.certificate_file}", f"--tls-private-key-file={own.key_file}"]
            command.append(f"--client-ca-file={authority.ca_file}")
            context = ssl.create_default_context(cafile=str(authority.ca_file))
        with start(command, log_path=log, name="nodes", folder=self.folder) as process:

            def address() -> str:
                assert process.is_running, f"it has ended:\n{process.log_tail()}"
                return "".join(re.findall(r" serving address=(https?://\S+)", log.read_text())[-1:])

            program = NodesProgram(process, until(address, _LISTENING_SECONDS), token, context)
            until(lambda: program.document("/watcher"), _LOADS_SECONDS)
            yield program

    def refused_requests(self) -> set[str]:
        """Return the program's requests that the API server refused for lack of rights."""
        user = f"system:serviceaccount:{self.namespace}:{ACCOUNT}"
        found = [event for event in self.cluster.audit_events() if event.user == user and event.code == 403]
        return {f"{event.verb} {event.uri}" for event in found}

    def asked_requests(self) -> set[str]:
        """Return verb and resource of the program's requests to the API server."""
        user = f"system:serviceaccount:{self.namespace}:{ACCOUNT}"
        return {f"{event.verb} {event.resource}" for event in self.cluster.audit_events() if event.user == user}


@contextmanager
def loaded_cluster(
    cluster: Cluster,
    folder: Path,
    name: str,
    pools: Mapping[str, Sequence[NodeLoad]],
    extended: Mapping[str, Mapping[str, str]] | None = None,
) -> Iterator[LoadedCluster]:
    """Make nodes, named POOL-NUMBER and labelled with their pool, and a Prometheus with the load of each node.

    The program's namespace begins with `name`; `extended` are extended resources that single nodes have besides CPU,
    memory and pods.
    """
    namespace = f"{name}-{os.urandom(3).hex()}"
    loads = {f"{pool}-{number}": load for pool, found in pools.items() for number, load in enumerate(found)}
    specs = [
        NodeSpec(
            node,
            capacity={**NodeSpec("").capacity, **(extended or {}).get(node, {})},
            labels={POOL: node.rpartition("-")[0]},
            address=address,
        )
        for node, address in zip(loads, addresses(), strict=False)
    ]
    by_address = {spec.address: loads[spec.name] for spec in specs}
    for node in cluster.client.items(NODES):
        by_address[address_of(node)] = OTHERS
    host = cluster.network.host
    cluster.client.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    try:
        with (
            extra_nodes(cluster.client, *specs),
            prometheus_with_loads(folder / "prometheus", host, by_address) as prometheus,
            service_account(cluster, namespace, ACCOUNT, folder, here=[], everywhere=rights()) as kubeconfig,
        ):
            yield LoadedCluster(cluster, namespace, folder, host, prometheus.url, kubeconfig)
    finally:
        cluster.client.delete(f"/api/v1/namespaces/{namespace}")


def addresses() -> Iterator[str]:
    """Yield addresses at which nobody listens."""
    yield from (f"10.97.{high}.{low}" for high in range(16, 32) for low in range(1, 255))


def address_of(node: Document) -> str:
    """Return the InternalIP of a node."""
    (found,) = [one["address"] for one in node["status"]["addresses"] if one["type"] == "InternalIP"]
    return str(found)


def pod(name: str, pool: str, scheduler: str, cpu: str, **spec: object) -> Document:
    """Return a pod without an owner, so that the scheduler's own defaults do not spread it."""
    container = {"name": "main", "image": "shop/web:1", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"schedulerName": scheduler, "nodeSelector": {POOL: pool}, "containers": [container], **spec},
    }
