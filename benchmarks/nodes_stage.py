"""`tidewatch-adapter nodes` on a core of its own, with a scripted cluster and exporters whose loads are known."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from benchmarks.cluster_stage import CHECKOUT, HEARTBEATS_PER_SECOND, scripted_api_server
from benchmarks.cores import on
from benchmarks.node_answers import Asked
from benchmarks.scripted_pods import PODS_OF_AN_APP
from demo.machine.ports import answers, fetched, free_port
from demo.machine.processes import start

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.cores import Cores
    from demo.machine.processes import ManagedProcess

PRODUCT = Path(sys.executable).with_name("tidewatch-adapter")
PODS_OF_A_NODE = 10
START_SECONDS = 120.0
COMPILED_MODULES: Final = {"PYTHONDONTWRITEBYTECODE": ""}
"""The environment in which no process compiles modules: those of the image are compiled already."""
CONFIGURATION = """\
apiVersion: tidewatch.io/v1alpha1
kind: SchedulingConfiguration
policies:
  - {name: target-load-packing, weight: 5, args: {targetUtilization: 40}}
  - {name: load-variation-risk-balancing, weight: 3}
filter: {cpu: 80%, memory: 90%}
"""


@dataclass(frozen=True, slots=True)
class NodesStage:
    """The servers that the command needs, and the folder of its files."""

    folder: Path
    nodes: int
    cores: Cores
    kubeconfig: Path
    prometheus_url: str

    @property
    def state_file(self) -> Path:
        """The state file."""
        return self.folder / "nodes.state"

    def asked(self) -> Asked:
        """Return how often the stand-in for Prometheus was queried."""
        return msgspec.json.decode(fetched(f"{self.prometheus_url}/asked"), type=Asked)


@dataclass(frozen=True, slots=True)
class RunningNodes:
    """A process of the command, or of the floor."""

    process: ManagedProcess
    port: int
    began: float
    """When it was started, in monotonic seconds."""

    @property
    def url(self) -> str:
        """The address of its port."""
        return f"http://127.0.0.1:{self.port}"

    def wait_for(self, path: str, seconds: float = START_SECONDS) -> float:
        """Wait until a path answers with 200; return how long after the start that was. Raises ProcessFailedError."""
        self.process.wait_until(lambda: answers(f"{self.url}{path}"), seconds)
        return time.monotonic() - self.began


@contextmanager
def nodes_stage(folder: Path, nodes: int, cores: Cores) -> Iterator[NodesStage]:
    """Run the cluster and the stand-in for Prometheus."""
    pods = nodes * PODS_OF_A_NODE
    apps = -(-pods // PODS_OF_AN_APP)
    sizes = {"nodes": nodes, "pods": pods, "services": apps, "replicasets": apps}
    log = folder / "prometheus.log"
    with ExitStack() as stack:
        api_server = stack.enter_context(scripted_api_server(sizes, HEARTBEATS_PER_SECOND, folder, cores))
        command = [sys.executable, "-m", "benchmarks.node_answers", f"--nodes={nodes}"]
        with on(cores.others):
            process = stack.enter_context(start(command, name="prometheus", log_path=log, folder=CHECKOUT))
        process.wait_until(lambda: log.read_text().strip().isdigit(), START_SECONDS)
        url = f"http://127.0.0.1:{int(log.read_text())}"
        yield NodesStage(folder, nodes, cores, api_server.kubeconfig, url)


@contextmanager
def running_nodes(
    stage: NodesStage, name: str, *, port: int | None = None, state: bool = True, flags: Sequence[str] = ()
) -> Iterator[RunningNodes]:
    """Run the command; it may not answer yet."""
    configuration = stage.folder / "scheduling.yaml"
    configuration.write_text(CONFIGURATION)
    port = port or free_port()
    command = [
        str(PRODUCT),
        "nodes",
        f"--port={port}",
        "--bind-address=127.0.0.1",
        f"--prometheus-url={stage.prometheus_url}",
        f"--kubeconfig={stage.kubeconfig}",
        f"--scheduling-config={configuration}",
        "--shutdown-delay=0s",
        *([f"--state={stage.state_file}"] if state else []),
        *flags,
    ]
    began = time.monotonic()
    with on(stage.cores.measured):
        process = start(
            command,
            name=name,
            log_path=stage.folder / f"{name}.log",
            folder=CHECKOUT,
            environment=COMPILED_MODULES,
        )
    with process:
        yield RunningNodes(process, port, began)


@contextmanager
def running_floor(stage: NodesStage) -> Iterator[RunningNodes]:
    """Run `bare_server` in place of the command; yield when it answers."""
    port = free_port()
    command = [sys.executable, "-m", "benchmarks.bare_server", str(port)]
    with on(stage.cores.measured):
        process = start(
            command,
            name="floor",
            log_path=stage.folder / "floor.log",
            folder=CHECKOUT,
            environment=COMPILED_MODULES,
        )
    with process:
        running = RunningNodes(process, port, time.monotonic())
        running.wait_for("/empty")
        yield running
