"""The control plane's processes are started and stopped in order, and restarted singly where a test needs it."""

from __future__ import annotations

import itertools
import json
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import urllib3.exceptions

from demo.machine.ports import free_port
from demo.machine.processes import ManagedProcess, start
from tests.e2e.controlplane import processes
from tests.e2e.controlplane.audit import POLICY
from tests.e2e.controlplane.client import ApiClient, ApiError, Credentials
from tests.e2e.controlplane.credentials import Authorities
from tests.e2e.controlplane.network import API_SERVICE_ADDRESS, Network

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tests.e2e.controlplane.processes import Options, Ports
    from tests.e2e.controlplane.programs import Programs

READY_SECONDS: Final = 60.0
# The API server takes 17 s to end by itself: it waits for watches. Nothing of it is kept.
_STOP_SECONDS: Final = 3.0
_ADMIN: Final = ("e2e-admin", ("system:masters",))


@dataclass(frozen=True, slots=True)
class Scheduler:
    """A scheduler beside the cluster's own."""

    process: ManagedProcess
    client: ApiClient
    """An administrator's client of the scheduler itself, mainly for `/metrics`."""


class ControlPlane:
    """etcd, API server, controllers and, if requested, the scheduler, with all their files in `folder`."""

    def __init__(self, folder: Path, programs: Programs, network: Network, options: Options) -> None:
        self.folder = folder
        self.network = network
        self.options = options
        self._programs = programs
        self._ports = _ports(network)
        names = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
        folder.mkdir(parents=True, exist_ok=True)
        self.authorities = Authorities(folder / "pki", names, ("127.0.0.1", network.host, API_SERVICE_ADDRESS))
        self.url = f"https://{network.host}:{self._ports.api}"
        pair = self.authorities.caller(*_ADMIN)
        self.admin_kubeconfig = self.authorities.kubeconfig(folder / "admin.kubeconfig", self.url, pair)
        self.client = ApiClient(
            self.url, self.authorities.serving.ca_file, Credentials(pair.certificate_file, pair.key_file)
        )
        self._running: dict[str, ManagedProcess] = {}
        self._scheduler_numbers = itertools.count(1)

    @property
    def audit_log(self) -> Path:
        return self.folder / "audit" / "audit.log"

    @property
    def logs(self) -> list[Path]:
        """Return the logs of all programs and of all pods that run as processes, including those that have ended."""
        return [*sorted((self.folder / "logs").glob("*.log")), *sorted(self.pods_folder.glob("*/*/container.log"))]

    @property
    def node_folder(self) -> Path:
        """Return the folder of the node, with the volumes and logs of its pods."""
        return self.folder / "node"

    @property
    def pods_folder(self) -> Path:
        """Return the folder that has a folder for each pod that runs as processes, by its uid."""
        return self.node_folder / "pods"

    def start(self) -> None:
        """Start everything, and return when the API server is ready. Raises ProcessFailedError; call it once."""
        (self.folder / "logs").mkdir()
        (self.folder / "audit").mkdir()
        (self.folder / "audit" / "policy.json").write_text(json.dumps(POLICY))
        self._start("etcd", processes.etcd(self._programs["etcd"], self.folder, self._ports))
        self.start_api_server()
        self.start_controllers()
        if self.options.scheduler:
            self.start_scheduler()

    def start_api_server(self) -> None:
        """Start the API server, for the first time or again; return when it is ready."""
        bind = processes.Bind(
            "0.0.0.0" if self.network.has_pods else "127.0.0.1",
            self.network.host if self.network.has_pods else "127.0.0.1",
            routes_to_endpoints=self.network.has_pods,
        )
        audit = self.folder / "audit"
        program = self._programs["kube-apiserver"]
        command = processes.api_server(program, self.authorities, self._ports, audit, self.options, bind)
        self._start("kube-apiserver", command).wait_until(partial(_is_ready, self.client), READY_SECONDS)

    def start_controllers(self) -> None:
        """Start the controllers, for the first time or again."""
        name = "kube-controller-manager"
        program, kubeconfig = self._programs[name], self._kubeconfig(name)
        command = processes.controller_manager(program, self.authorities, kubeconfig, free_port(), self.options)
        self._start(name, command)

    def start_scheduler(self) -> None:
        """Start the default scheduler, for the first time or again."""
        name = "kube-scheduler"
        serving = self.authorities.serving.server()
        self._start(name, processes.scheduler(self._programs[name], self._kubeconfig(name), free_port(), serving))

    def start_scheduler_of(self, configuration: Mapping[str, Any]) -> Scheduler:
        """Start a scheduler with a KubeSchedulerConfiguration, a process of its own; return when it is ready.

        The suite sets its connection and leader election. Raises ValueError if a profile is the default scheduler's,
        and ProcessFailedError if the scheduler refuses the configuration.
        """
        program = "kube-scheduler"
        kubeconfig = self._kubeconfig(program)
        complete = processes.scheduler_configuration(configuration, kubeconfig)
        name = f"{program}-{next(self._scheduler_numbers)}"
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps(complete))
        port, serving = free_port(), self.authorities.serving.server()
        command = processes.scheduler(self._programs[program], kubeconfig, port, serving, path)
        pair = self.authorities.caller(*_ADMIN)
        credentials = Credentials(pair.certificate_file, pair.key_file)
        client = ApiClient(f"https://127.0.0.1:{port}", self.authorities.serving.ca_file, credentials)
        scheduler = Scheduler(self._start(name, command), client)
        scheduler.process.wait_until(partial(_is_ready, client), READY_SECONDS)
        return scheduler

    def process(self, name: str) -> ManagedProcess:
        """Return one of the programs, by its name."""
        return self._running[name]

    def stop_process(self, name: str) -> None:
        """Stop one of the programs, with a short time to end gracefully."""
        self._running[name].stop(_STOP_SECONDS)

    def stop(self) -> None:
        """Stop all processes, the last one first."""
        with ExitStack() as stack:
            stack.callback(self.client.close)
            for process in self._running.values():
                stack.callback(process.stop, _STOP_SECONDS)

    def _kubeconfig(self, name: str) -> Path:
        path = self.folder / f"{name}.kubeconfig"
        return self.authorities.kubeconfig(path, self.url, self.authorities.caller(f"system:{name}"))

    def _start(self, name: str, command: Sequence[str]) -> ManagedProcess:
        process = start(command, log_path=self.folder / "logs" / f"{name}.log", name=name)
        self._running[name] = process
        return process


def _is_ready(client: ApiClient) -> bool:
    try:
        return client.ask("GET", "/readyz").status == 200
    except (urllib3.exceptions.HTTPError, ApiError):
        return False


def _ports(network: Network) -> Ports:
    # In a network of its own the API server has the port that clusters publish it at.
    api = 443 if network.has_pods else free_port()
    return processes.Ports(api, free_port(), free_port())
