"""The surroundings in which real servers start: a small cluster, Prometheus and node exporters, all scripted."""

from __future__ import annotations

import math
import sys
import urllib.request
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.cores import Cores
from benchmarks.nodes_stage import CONFIGURATION, nodes_stage
from benchmarks.scripted_prometheus import METRIC, Script, pod_name, scripted_prometheus
from demo.machine.certificates import Authority
from demo.machine.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from benchmarks.nodes_stage import NodesStage
    from demo.machine.certificates import KeyPair

NODES = 10
NAMESPACE, POD = "bank", pod_name(0)
FRONT_PROXY = "front-proxy-client"
_RULES = f"""
rules:
- seriesQuery: '{METRIC}{{namespace!="",pod!=""}}'
  resources: {{overrides: {{namespace: {{resource: namespace}}, pod: {{resource: pod}}}}}}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{{<<.LabelMatchers>>}})'
"""
_TARGETS = "targets: [{apiVersion: apps/v1, kind: Deployment, namespace: kube-system, name: coredns}]"
ENTRIES = {
    "proportional": f"proportional: {{linear: {{nodesPerReplica: 16}}}}\n  {_TARGETS}",
    "clusterSize": "clusterSize: {nodeGroups: {static: [{name: all, min: 1, max: 20, selector: {pool: all}}]}}",
    "predictive": "predictive: {model: linear, history: 1d, loadPerReplica: 100, horizon: 3m, maxReplicas: 50,"
    f" load: {METRIC}}}\n  {_TARGETS}",
}
"""An entry of each kind of recommendation whose start is measured."""


MOST_TRIES = 3
TAKEN = "another process listens on this address"
"""Part of a server's error if its port was taken between the check and the start; other ports are then tried."""


@dataclass(frozen=True, slots=True)
class StartStage:
    """The addresses and files that the servers need, and the credentials of `serve`."""

    nodes: NodesStage
    prometheus_url: str
    serving: KeyPair
    front_proxy: KeyPair

    @property
    def folder(self) -> Path:
        """The folder of configurations and logs."""
        return self.nodes.folder


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports of one server."""

    main: int
    plain: int

    @classmethod
    def unused(cls) -> Ports:
        """Return two ports on which no process listens."""
        return cls(free_port(), free_port())

    def are_ready(self) -> bool:
        """Return whether `/readyz` answers with 200."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.plain}/readyz", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


@contextmanager
def start_stage(folder: Path) -> Iterator[StartStage]:
    """Run the cluster and the stand-ins for Prometheus, and write the files that the servers read."""
    cores = Cores.of_this_machine()
    everywhere = Cores(cores.measured | cores.others, cores.measured | cores.others)
    serving = Authority(folder / "serving-ca", "serving-ca").server(["localhost"], ["127.0.0.1"])
    front_proxy = Authority(folder / "front-proxy-ca", "front-proxy-ca").client(FRONT_PROXY)
    with ExitStack() as stack:
        nodes = stack.enter_context(nodes_stage(folder, NODES, everywhere))
        url = stack.enter_context(scripted_prometheus(Script({NAMESPACE: 1}, load_at=_load_at)))
        (folder / "rules.yaml").write_text(_RULES)
        (folder / "scheduling.yaml").write_text(CONFIGURATION)
        for kind, entry in ENTRIES.items():
            (folder / f"{kind}.yaml").write_text(recommender_configuration(entry, folder / f"state-{kind}", url))
        yield StartStage(nodes, url, serving, front_proxy)


def recommender_configuration(entry: str, state: Path, prometheus_url: str) -> str:
    """Return a configuration with one recommendation."""
    return (
        f"apiVersion: tidewatch.io/v1alpha1\nkind: RecommenderConfiguration\nstate: {state}\n"
        f"prometheus: {{url: {prometheus_url}}}\nrecommendations:\n- name: one\n  {entry}\n"
    )


def _serve(stage: StartStage, ports: Ports) -> list[str]:
    return [
        *_program("adapter", "serve"),
        f"--secure-port={ports.main}",
        f"--tls-cert-file={stage.serving.certificate_file}",
        f"--tls-private-key-file={stage.serving.key_file}",
        f"--requestheader-client-ca-file={stage.front_proxy.ca_file}",
        f"--requestheader-allowed-names={FRONT_PROXY}",
        f"--config={stage.folder / 'rules.yaml'}",
        f"--prometheus-url={stage.prometheus_url}",
        f"--kubeconfig={stage.nodes.kubeconfig}",
        "--shutdown-delay=0s",
    ]


def _nodes(stage: StartStage, ports: Ports) -> list[str]:
    return [
        *_program("adapter", "nodes"),
        f"--port={ports.main}",
        f"--prometheus-url={stage.nodes.prometheus_url}",
        f"--kubeconfig={stage.nodes.kubeconfig}",
        f"--scheduling-config={stage.folder / 'scheduling.yaml'}",
        "--shutdown-delay=0s",
    ]


def _run(kind: str) -> Callable[[StartStage, Ports], list[str]]:
    def command(stage: StartStage, ports: Ports) -> list[str]:
        config = stage.folder / f"{kind}.yaml"
        kubeconfig = f"--kubeconfig={stage.nodes.kubeconfig}"
        return [*_program("recommender", "run"), f"--config={config}", kubeconfig, f"--port={ports.main}", "--dry-run"]

    return command


def _program(program: str, command: str) -> tuple[str, str, str]:
    return str(Path(sys.executable).with_name(f"tidewatch-{program}")), command, "--bind-address=127.0.0.1"


def _load_at(moment: float) -> float:
    return 1000.0 + 500.0 * math.sin(2 * math.pi * moment / 86_400)


SERVERS: Mapping[str, Callable[[StartStage, Ports], list[str]]] = {
    "serve": _serve,
    "nodes": _nodes,
    **{f"run, {kind}": _run(kind) for kind in ENTRIES},
}
"""The servers by name, with the functions that make their command lines; each also takes `--plain-bind-address`."""
