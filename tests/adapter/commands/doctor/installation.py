"""A cluster in which all is well, with a stand-in for kube-apiserver, for the doctor to look at."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from adapter.commands.doctor.command import DOCTOR, doctor_settings, run_all_checks
from adapter.commands.doctor.rights import HPA_CONTROLLER
from adapter.foundation.reports.lines import CheckStatus, Line
from adapter.foundation.service.flags.parsing import parse_flags
from adapter.foundation.sources.kubernetes.client import KubernetesClient, RequestDeadlines
from adapter.foundation.sources.kubernetes.credentials.access import from_kubeconfig
from adapter.foundation.sources.kubernetes.writing import ObjectClient
from adapter.metrics.identity.certificates.certificate_file import write_kept
from adapter.metrics.identity.certificates.generations import bundle_pem, make_generation
from demo.machine.certificates import Authority
from tests.adapter.metrics.identity.certificates.keeping_harness import CUSTOM, EXTERNAL, SERVICE, WANTED, apiservice
from tests.support.apiserver_kinds import APISERVICES, CONFIG_MAPS
from tests.support.fake_apiserver import TOKEN
from tests.support.object_apiserver import HPAS, SLICES, ObjectApiServer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tests.support.apiserver_store import Json
    from tests.support.tls_endpoint import TlsEndpoint

RESOURCE = "v1beta1.metrics.k8s.io"
CONFIG_MAP = "extension-apiserver-authentication"
AVAILABLE = {"conditions": [{"type": "Available", "status": "True", "reason": "Passed"}]}
CONTROLLER = f"system:serviceaccount:{HPA_CONTROLLER.namespace}:{HPA_CONTROLLER.name}"


@dataclass
class Installation:
    """A cluster in which all is well, the adapter's port, and a doctor that looks at both."""

    cluster: ObjectApiServer
    folder: Path
    endpoint: TlsEndpoint
    flags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        generation = make_generation(WANTED.names, datetime.now(tz=UTC), timedelta(days=90))
        write_kept(self.folder / "serving.pem", generation)
        self.endpoint.show(self.folder / "serving.pem")
        bundle = base64.b64encode(bundle_pem([generation.authority])).decode()
        for name in (CUSTOM, EXTERNAL):
            self.register(name, apiservice(name, caBundle=bundle))
            listed = {"kind": "APIResourceList", "resources": [{"name": "pods/open_connections"}]}
            version, _, group = name.partition(".")
            self.cluster.answers[f"/apis/{group}/{version}"] = (200, listed)
        self.register(RESOURCE, apiservice(RESOURCE, replace(SERVICE, namespace="kube-system", name="metrics-server")))
        self.publish_front_proxy(self.authority("front"), self.authority("clients"), ["front-proxy-client"])
        self.ready("10.0.0.1", "10.0.0.2")
        self.cluster.reviews.allow(CONTROLLER, "*", "*")

    def register(self, name: str, document: Json, status: Json | None = None) -> None:
        self.cluster.objects.put(APISERVICES, "", name, {**document, "status": status or AVAILABLE})

    def spec(self, name: str, **changes: Any) -> None:  # noqa: ANN401 - JSON
        self.cluster.objects.change(APISERVICES, "", name, lambda one: one["spec"].update(changes))

    def authority(self, name: str) -> str:
        return Authority(self.folder / name, name).ca_file.read_text()

    def publish_front_proxy(self, front: str, clients: str, names: list[str]) -> None:
        data = {
            "requestheader-client-ca-file": front,
            "client-ca-file": clients,
            "requestheader-allowed-names": json.dumps(names),
        }
        self.cluster.objects.put(CONFIG_MAPS, "kube-system", CONFIG_MAP, {"data": data})

    def ready(self, *addresses: str, waiting: tuple[str, ...] = ()) -> None:
        endpoints = [{"addresses": [one], "conditions": {"ready": True}} for one in addresses]
        endpoints += [{"addresses": [one], "conditions": {"ready": False}} for one in waiting]
        metadata = {"labels": {"kubernetes.io/service-name": SERVICE.name}}
        self.cluster.objects.put(SLICES, SERVICE.namespace, "slice", {"metadata": metadata, "endpoints": endpoints})

    def hpa(
        self,
        name: str,
        reason: str | None,
        message: str = "",
        *,
        condition: str = "ScalingActive",
        metrics: Sequence[Mapping[str, object]] = (),
        current: Sequence[Mapping[str, object]] = (),
    ) -> None:
        first = {
            "type": condition,
            "status": "False" if reason else "True",
            "reason": reason or "ValidMetric",
            "message": message,
        }
        status = {"conditions": [first], "currentMetrics": list(current)}
        document = {"spec": {"metrics": list(metrics)}, "status": status}
        self.cluster.objects.put(HPAS, "shop", name, document)

    def command(self, *more: str) -> list[str]:
        config = self.cluster.kubeconfig(self.folder / "config")
        return [
            f"--kubeconfig={config}",
            f"--service={SERVICE}",
            f"--endpoint={self.endpoint.address}",
            *self.flags,
            *more,
        ]

    def lines(self, *more: str) -> dict[str, Line]:
        """Look at everything and return the lines by their names."""
        config = self.cluster.kubeconfig(self.folder / "config")
        client = KubernetesClient(from_kubeconfig(str(config)), RequestDeadlines(connect=2.0, silence=2.0, total=4.0))
        settings = doctor_settings(parse_flags(DOCTOR, self.command(*more), {}))
        found = run_all_checks(ObjectClient(client, 2.0), settings)
        assert len({line.name for line in found}) == len(found)
        assert all(line.fix for line in found if line.status is not CheckStatus.OK)
        assert all(TOKEN not in f"{line}" for line in found)
        return {line.name: line for line in found}
