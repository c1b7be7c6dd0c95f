"""A cluster to test against: its objects, its programs, and waits for its states."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
import urllib3.exceptions

from demo.machine.processes import ManagedProcess, start
from tests.e2e.controlplane.audit import AuditEvent, AuditTail
from tests.e2e.controlplane.client import ApiClient, ApiError, Credentials, Document
from tests.e2e.controlplane.control_plane import ControlPlane
from tests.e2e.controlplane.kubelet.settings import Image, Settings
from tests.e2e.controlplane.network import API_SERVICE_ADDRESS
from tests.support.waiting import rounds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from demo.machine.certificates import Authority
    from tests.e2e.controlplane.control_plane import Scheduler
    from tests.e2e.controlplane.network import Network
    from tests.e2e.controlplane.processes import Options
    from tests.e2e.controlplane.programs import Programs

T = TypeVar("T")

PATIENCE_SECONDS: Final = 60.0
"""How long a wait may take if a test states no limit: a busy machine is slow, but no wait may be endless."""

_KUBECTL_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.1
_DEFAULT_ACCOUNT: Final = "/api/v1/namespaces/default/serviceaccounts/default"
# Endpoints must not be on the loopback; without namespaces nobody calls the node by its address.
_NOBODY: Final = "10.99.0.1"


class KubectlError(Exception):
    """kubectl ended with another code than 0; the message is its output."""


@dataclass(frozen=True, slots=True)
class User:
    """A user who calls the API server with a client certificate."""

    name: str
    kubeconfig: Path
    client: ApiClient


class Cluster:
    """A running control plane with one node."""

    def __init__(self, plane: ControlPlane, kubelet: ManagedProcess, programs: Programs) -> None:
        self.plane = plane
        self.client = plane.client
        """A client of a cluster administrator."""
        self.kubeconfig = plane.admin_kubeconfig
        self.url = plane.url
        self.ca_file = plane.authorities.serving.ca_file
        self._kubelet = kubelet
        self._programs = programs
        self._users = 0
        self._audit = AuditTail(plane.audit_log, from_the_start=True)
        self._events: list[AuditEvent] = []

    @property
    def network(self) -> Network:
        """Return where programs outside of pods listen, and whether pods can run as processes."""
        return self.plane.network

    def kubectl(self, *arguments: str, user: User | None = None, stdin: str | None = None) -> str:
        """Run kubectl, as an administrator or as another user, and return its output. Raises KubectlError."""
        kubeconfig = user.kubeconfig if user else self.kubeconfig
        cache = self.plane.folder / "kubectl-cache"
        command = [self._programs["kubectl"], f"--kubeconfig={kubeconfig}", f"--cache-dir={cache}", *arguments]
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=_KUBECTL_SECONDS, check=False
        )
        if done.returncode != 0:
            raise KubectlError(f"kubectl {' '.join(arguments)}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def apply(self, *documents: Document) -> None:
        """Apply objects of any kind, in their order, as an administrator."""
        together = {"apiVersion": "v1", "kind": "List", "items": list(documents)}
        self.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=json.dumps(together))

    def remove_definition(self, name: str) -> None:
        """Delete a CustomResourceDefinition, unless it is gone already, and wait until it is gone.

        One that is applied while it is being deleted is gone soon after.
        """
        self.kubectl("delete", f"crd/{name}", "--ignore-not-found", "--timeout=50s")

    def user(self, name: str, groups: Sequence[str] = ()) -> User:
        """Return a user with this name and these groups, and with only the rights that RBAC gives them."""
        self._users += 1
        authorities = self.plane.authorities
        pair = authorities.caller(name, groups)
        path = authorities.kubeconfig(self.plane.folder / f"user-{self._users}.kubeconfig", self.url, pair)
        return User(name, path, ApiClient(self.url, self.ca_file, Credentials(pair.certificate_file, pair.key_file)))

    def client_with_token(self, token: str | None) -> ApiClient:
        """Return a client with a bearer token, or with no credentials at all."""
        return ApiClient(self.url, self.ca_file, Credentials(token=token))

    def service_account_token(self, namespace: str, name: str, seconds: int = 3600) -> str:
        """Return a token of a service account, valid for these seconds (600 at least)."""
        answer = self.client.create(
            f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token",
            {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": seconds}},
        )
        token: str = answer["status"]["token"]
        return token

    def wait_for(
        self,
        what: str,
        condition: Callable[[], T | None],
        seconds: float = PATIENCE_SECONDS,
        *,
        why_not: Callable[[], object] | None = None,
    ) -> T:
        """Return the condition's first result that is true; the error contains `what` and `why_not()`.

        While the API server is down, or an object does not exist, the result counts as not yet true. Raises
        AssertionError when time is up, and at once when the node's program has ended by itself.
        """
        last: object = None
        for _ in rounds(_POLL_SECONDS, seconds):
            try:
                if result := condition():
                    return result
                last = result
            except (ApiError, urllib3.exceptions.HTTPError) as e:
                last = e
            assert self._kubelet.is_running, f"the stand-in for the kubelet has ended:\n{self._kubelet.log_tail()}"
        raise AssertionError(f"{what}: not within {seconds:g} s; last: {why_not() if why_not else last!r}")

    def wait_until_ready(self, namespace: str, deployment: str, seconds: float = PATIENCE_SECONDS) -> list[Document]:
        """Wait until a Deployment has all its pods, Ready and of its newest template; return them.

        Raises AssertionError with what the pods are waiting for.
        """
        path = f"/apis/apps/v1/namespaces/{namespace}/deployments/{deployment}"

        def ready() -> Document | None:
            found = self.client.get(path)
            status = found.get("status") or {}
            counts = {status.get(key, 0) for key in ("replicas", "updatedReplicas", "readyReplicas")}
            current = status.get("observedGeneration") == found["metadata"]["generation"]
            return found if current and counts == {found["spec"]["replicas"]} else None

        found = self.wait_for(
            f"deployment {namespace}/{deployment}", ready, seconds, why_not=lambda: self._states(namespace)
        )
        return self.pods(namespace, selector_of(found["spec"]["selector"]["matchLabels"]))

    def pods(self, namespace: str, selector: str = "") -> list[Document]:
        """Return the pods of a namespace that are not being deleted."""
        found = self.client.items(f"/api/v1/namespaces/{namespace}/pods", labelSelector=selector)
        return [pod for pod in found if not pod["metadata"].get("deletionTimestamp")]

    def pod_log(self, pod: Document, container: str | None = None) -> str:
        """Return the output of a container of a pod that runs as processes."""
        name = container or pod["spec"]["containers"][0]["name"]
        path = self.plane.pods_folder / pod["metadata"]["uid"] / name / "container.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def audit_events(self) -> list[AuditEvent]:
        """Return every request to a metrics API, and every request of a pod, since the cluster was started."""
        self._events += self._audit.read()
        return list(self._events)

    def restart_api_server(self) -> None:
        """Stop the API server and start it again; return when it is ready."""
        self.plane.stop_process("kube-apiserver")
        self.plane.start_api_server()

    def rotate_request_header_ca(self) -> Authority:
        """Let the aggregator present a certificate of a new authority, introduced as a careful operator does it.

        First the new authority is trusted beside the old one, and published to adapters; then the certificate changes.
        The API server reads each file within a minute. Returns the new authority.
        """
        authority = self.plane.authorities.trust_new_front_proxy()
        fresh = authority.ca_file.read_text().strip()
        path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
        self.wait_for(
            "the new request-header CA in extension-apiserver-authentication",
            lambda: fresh in self.client.get(path)["data"]["requestheader-client-ca-file"],
            seconds=2 * PATIENCE_SECONDS,
        )
        self.plane.authorities.use_newest_front_proxy()
        return authority

    @contextmanager
    def start_scheduler(self, configuration: Mapping[str, Any]) -> Iterator[Scheduler]:
        """Run a scheduler beside the cluster's own until the block ends; yield when it is ready.

        `configuration` is a KubeSchedulerConfiguration whose profiles have names of their own. The scheduler places the
        pods whose `schedulerName` is one of these, on all nodes that they fit, including the cluster's own large one.
        """
        scheduler = self.plane.start_scheduler_of(configuration)
        with scheduler.process, closing(scheduler.client):
            yield scheduler

    @contextmanager
    def without_kubelet(self) -> Iterator[None]:
        """Pause the stand-in for the kubelet for a block: pods without a node stay Pending, and no pod starts or ends.

        Pods that remain after the block get their nodes then.
        """
        self._kubelet.pause()
        try:
            yield
        finally:
            self._kubelet.resume()

    def wait_until_empty(self) -> None:
        """Wait until the pods and the nodes of earlier tests are gone, and only the suite's own node is left."""
        self.wait_for("the end of other tests' pods", lambda: not self.client.items("/api/v1/pods"))
        self.wait_for("the end of other tests' nodes", lambda: len(self.client.items("/api/v1/nodes")) == 1)

    def _states(self, namespace: str) -> dict[str, Any]:
        pods = self.client.items(f"/api/v1/namespaces/{namespace}/pods")
        return {
            pod["metadata"]["name"]: [
                {key: state[key] for key in ("ready", "restartCount", "state", "lastState") if key in state}
                for state in (pod.get("status") or {}).get("containerStatuses") or []
            ]
            for pod in pods
        }


def selector_of(labels: Mapping[str, str]) -> str:
    """Return the selector text for these labels."""
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def process_of(pod: Document, container: int = 0) -> int:
    """Return the process id of a container of a pod that runs as processes."""
    identifier: str = pod["status"]["containerStatuses"][container]["containerID"]
    return int(identifier.removeprefix("process://"))


@contextmanager
def running_cluster(
    folder: Path, programs: Programs, network: Network, options: Options, images: Mapping[str, Image]
) -> Iterator[Cluster]:
    """Run a cluster and yield it when its API server, its controllers and its node work; call it in the main thread.

    `images`, by repository, are run as processes; pods of all other images are only reported as running.
    """
    plane = ControlPlane(folder, programs, network, options)
    with ExitStack() as stack:
        stack.callback(plane.stop)
        plane.start()
        kubelet = stack.enter_context(start_kubelet(plane, images))
        cluster = Cluster(plane, kubelet, programs)
        cluster.wait_for("the default service account", lambda: cluster.client.find(_DEFAULT_ACCOUNT))
        cluster.wait_for("the node", lambda: cluster.client.items("/api/v1/nodes"))
        yield cluster


def start_kubelet(plane: ControlPlane, images: Mapping[str, Image]) -> ManagedProcess:
    """Start the stand-in for the kubelet as a process; it ends when the calling thread does."""
    network = plane.network
    pair = plane.authorities.caller("e2e-node", ("system:masters",))
    port = int(plane.url.rpartition(":")[2])
    settings = Settings(
        url=plane.url,
        ca_file=str(plane.authorities.serving.ca_file),
        certificate_file=str(pair.certificate_file),
        key_file=str(pair.key_file),
        folder=str(plane.node_folder),
        address=network.host if network.has_pods else _NOBODY,
        api_host=API_SERVICE_ADDRESS if network.has_pods else network.host,
        api_port=port,
        runs_pods=network.has_pods,
        images=dict(images),
        takes_unscheduled_pods=not plane.options.scheduler,
        start_up_seconds=plane.options.start_up_seconds,
    )
    path = plane.folder / "kubelet.json"
    path.write_bytes(msgspec.json.encode(settings))
    command = [sys.executable, "-m", "tests.e2e.controlplane.kubelet", str(path)]
    return start(command, log_path=plane.folder / "logs" / "kubelet.log", name="kubelet")
