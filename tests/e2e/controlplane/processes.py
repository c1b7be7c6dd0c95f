"""The command lines of a control plane's programs, without side effects, so that they can be read in one place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tests.e2e.controlplane.credentials import FRONT_PROXY_NAME
from tests.e2e.controlplane.network import SERVICE_NETWORK
from tests.e2e.controlplane.programs import NEWEST

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from demo.machine.certificates import KeyPair
    from tests.e2e.controlplane.credentials import Authorities

CONTROLLERS: Final = (
    "clusterrole-aggregation-controller",
    "deployment-controller",
    "disruption-controller",
    "endpoints-controller",
    "endpointslice-controller",
    "garbage-collector-controller",
    "horizontal-pod-autoscaler-controller",
    "job-controller",
    "namespace-controller",
    "replicaset-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "statefulset-controller",
)
"""The controllers that the suite's objects need."""

ISSUER: Final = "https://kubernetes.default.svc"


@dataclass(frozen=True, slots=True)
class Options:
    """The options in which clusters may differ."""

    kubernetes: str = NEWEST
    """A minor version, one of the pinned ones."""
    hpa_sync_seconds: float = 4.0
    """Seconds between syncs, so few that a test sees many of them; Kubernetes's default is 15."""
    feature_gates: tuple[str, ...] = ("HPAScaleToZero",)
    """Feature gates switched on in the API server and the controllers."""
    scheduler: bool = False
    """Whether kube-scheduler places pods; otherwise the stand-in for the kubelet takes all of them."""
    start_up_seconds: float = 1.0
    """How long an ordinary pod takes from its node to Ready."""
    controller_queries_per_second: int = 50
    """How many requests a second each controller may send; Kubernetes's default is 20."""


@dataclass(frozen=True, slots=True)
class Ports:
    """Where the programs listen."""

    api: int
    etcd: int
    etcd_peer: int


def etcd(program: str, folder: Path, ports: Ports) -> list[str]:
    """Return the command of etcd, whose data need not survive a power cut."""
    client, peer = f"http://127.0.0.1:{ports.etcd}", f"http://127.0.0.1:{ports.etcd_peer}"
    return [
        program,
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def api_server(
    program: str, authorities: Authorities, ports: Ports, audit: Path, options: Options, bind: Bind
) -> list[str]:
    """Return the command of the API server. `audit` is the folder of the policy and the log."""
    return [
        program,
        f"--bind-address={bind.address}",
        f"--advertise-address={bind.advertised}",
        f"--secure-port={ports.api}",
        f"--etcd-servers=http://127.0.0.1:{ports.etcd}",
        "--endpoint-reconciler-type=none",
        "--authorization-mode=RBAC",
        f"--service-cluster-ip-range={SERVICE_NETWORK}",
        f"--tls-cert-file={authorities.api_server.certificate_file}",
        f"--tls-private-key-file={authorities.api_server.key_file}",
        f"--client-ca-file={authorities.clients.ca_file}",
        f"--service-account-issuer={ISSUER}",
        f"--service-account-key-file={authorities.service_accounts.public_file}",
        f"--service-account-signing-key-file={authorities.service_accounts.private_file}",
        f"--requestheader-client-ca-file={authorities.front_proxy_ca_file}",
        f"--requestheader-allowed-names={FRONT_PROXY_NAME}",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={authorities.front_proxy_certificate_file}",
        f"--proxy-client-key-file={authorities.front_proxy_key_file}",
        f"--audit-policy-file={audit / 'policy.json'}",
        f"--audit-log-path={audit / 'audit.log'}",
        "--audit-log-maxsize=0",
        *(["--enable-aggregator-routing=true"] if bind.routes_to_endpoints else []),
        *_gates(options),
    ]


@dataclass(frozen=True, slots=True)
class Bind:
    """Where the API server listens, and how it finds the programs behind a Service."""

    address: str
    advertised: str
    routes_to_endpoints: bool
    """Whether it resolves endpoints itself; if so, it refuses Services of type ExternalName."""


def controller_manager(
    program: str, authorities: Authorities, kubeconfig: Path, port: int, options: Options
) -> list[str]:
    """Return the command of the controllers."""
    return [
        program,
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--controllers={','.join(CONTROLLERS)}",
        "--use-service-account-credentials=true",
        "--leader-elect=false",
        f"--service-account-private-key-file={authorities.service_accounts.private_file}",
        f"--root-ca-file={authorities.serving.ca_file}",
        f"--horizontal-pod-autoscaler-sync-period={options.hpa_sync_seconds:g}s",
        f"--kube-api-qps={options.controller_queries_per_second}",
        f"--kube-api-burst={2 * options.controller_queries_per_second}",
        *_gates(options),
    ]


def scheduler(
    program: str, kubeconfig: Path, port: int, serving: KeyPair, configuration: Path | None = None
) -> list[str]:
    """Return the command of a scheduler with defaults, or with a file that holds a KubeSchedulerConfiguration."""
    return [
        program,
        *([f"--config={configuration}"] if configuration else [f"--kubeconfig={kubeconfig}", "--leader-elect=false"]),
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--tls-cert-file={serving.certificate_file}",
        f"--tls-private-key-file={serving.key_file}",
    ]


def scheduler_configuration(given: Mapping[str, Any], kubeconfig: Path) -> dict[str, Any]:
    """Return a KubeSchedulerConfiguration for one process; raises ValueError for profiles that others serve."""
    names = [profile.get("schedulerName") for profile in given.get("profiles") or [{}]]
    if not all(names) or "default-scheduler" in names:
        raise ValueError(
            f"profiles {names}: name each, and not default-scheduler: its pods are placed by Options.scheduler, or by"
            " the stand-in for the kubelet"
        )
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        **given,
        "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 500, "burst": 1000},
        "leaderElection": {"leaderElect": False},
    }


def _gates(options: Options) -> list[str]:
    gates = ",".join(f"{gate}=true" for gate in options.feature_gates)
    return [f"--feature-gates={gates}"] if gates else []
