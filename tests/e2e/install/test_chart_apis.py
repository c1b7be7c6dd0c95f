"""The chart does not take over an API that belongs to somebody else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.install.chart_values import RESOURCE
from tests.e2e.install.looked_up import cluster, of_release
from tests.helm.cases import RULE, resource_rules
from tests.helm.chart import NAME, NAMESPACE, HelmError, render

if TYPE_CHECKING:
    from pathlib import Path

EXTERNAL = "v1beta1.external.metrics.k8s.io"


def apiservice(
    service: dict[str, str] | None, annotations: dict[str, str] | None = None, name: str = EXTERNAL
) -> dict[str, Any]:
    version, _, group = name.partition(".")
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": {"group": group, "version": version, "service": service},
    }


KEDA = {"namespace": "keda", "name": "keda-operator-metrics-apiserver"}
FOREIGN = {
    "a service": (apiservice(KEDA), f"{EXTERNAL} belongs to the service keda/keda-operator-metrics-apiserver, and"),
    "a release": (
        apiservice(KEDA, of_release("keda", "scaling")),
        "keda-operator-metrics-apiserver, of the Helm release keda/scaling, and",
    ),
    "the API server": (apiservice(None), f"{EXTERNAL} belongs to kube-apiserver itself, and"),
}
OURS = {
    "our service": apiservice({"namespace": NAMESPACE, "name": NAME}),
    "an earlier name of this release": apiservice(KEDA, of_release(NAMESPACE, "tidewatch")),
}


@pytest.mark.parametrize(("registered", "message"), FOREIGN.values(), ids=FOREIGN)
def test_an_api_of_another_owner_is_not_registered(registered: dict[str, Any], message: str, tmp_path: Path) -> None:
    with cluster(tmp_path, registered) as config:
        with pytest.raises(HelmError) as refused:
            render({}, "--dry-run=server", kubeconfig=config)
        assert message in str(refused.value)
        assert "leave it there with --set apiServices.external.v1beta1=false" in str(refused.value)
        left = render({"apiServices": {"external": {"v1beta1": False}}}, "--dry-run=server", kubeconfig=config)
        taken = render({"apiServices": {"force": True}}, "--dry-run=server", kubeconfig=config)
    assert (len(left.all("APIService")), len(taken.all("APIService"))) == (2, 3)


@pytest.mark.parametrize("registered", OURS.values(), ids=OURS)
def test_an_api_of_this_release_stays_registered(registered: dict[str, Any], tmp_path: Path) -> None:
    with cluster(tmp_path, registered) as config:
        assert len(render({}, "--dry-run=server", kubeconfig=config).all("APIService")) == 3


METRICS_SERVER = {"namespace": "kube-system", "name": "metrics-server"}
TAKING = {
    "as it is": {},
    "by force": {"apiServices": {"force": True}},
    "without looking": {"apiServices": {"force": True, "resource": {"unchecked": True}}},
    "by rules of one's own": {
        "rules": {"existing": "mine", "resource": {}},
        "apiServices": {"resource": {"v1beta1": True}},
    },
}


OWNERS = [{}, of_release("kube-system", "ms"), of_release(NAMESPACE, "tidewatch")]
"""Annotations by which Helm would tell who owns the registration of another server."""


@pytest.mark.parametrize("annotations", OWNERS)
@pytest.mark.parametrize("values", TAKING.values(), ids=TAKING)
def test_resource_metrics_of_another_server_are_never_registered(
    values: dict[str, Any], annotations: dict[str, str], tmp_path: Path
) -> None:
    given = {"rules": {"resource": resource_rules()}} | values
    with (
        cluster(tmp_path, apiservice(METRICS_SERVER, annotations, RESOURCE)) as config,
        pytest.raises(HelmError) as refused,
    ):
        render(given, "--dry-run=server", kubeconfig=config)
    assert f"the APIService {RESOURCE} belongs to the service kube-system/metrics-server, " in str(refused.value)
    assert f"remove that server first (kubectl delete apiservice {RESOURCE}" in str(refused.value)
    assert "rules.resource={}" in str(refused.value)


LEAVING = {
    "no resource rules": {"rules": {"custom": [RULE]}},
    "no registration": {"rules": {"resource": resource_rules()}, "apiServices": {"resource": {"v1beta1": False}}},
}


@pytest.mark.parametrize("annotations", OWNERS)
@pytest.mark.parametrize("values", LEAVING.values(), ids=LEAVING)
def test_a_chart_that_does_not_claim_resource_metrics_installs_beside_another_server(
    values: dict[str, Any], annotations: dict[str, str], tmp_path: Path
) -> None:
    with cluster(tmp_path, apiservice(METRICS_SERVER, annotations, RESOURCE)) as config:
        assert len(render(values, "--dry-run=server", kubeconfig=config).all("APIService")) == 3


@pytest.mark.parametrize(
    "registered",
    [None, apiservice({"namespace": NAMESPACE, "name": NAME}, name=RESOURCE)],
    ids=["not registered", "registered by this release"],
)
def test_resource_metrics_without_another_owner_are_registered(
    registered: dict[str, Any] | None, tmp_path: Path
) -> None:
    values = {"rules": {"resource": resource_rules()}}
    with cluster(tmp_path, registered) as config:
        release = render(values, "--dry-run=server", kubeconfig=config)
    assert release.one("APIService", RESOURCE)["spec"]["service"]["name"] == NAME
    assert len(release.all("APIService")) == 4
