"""`doctor --remove` deletes only what a release of the chart has left behind."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.adapter.commands.doctor.installation import RESOURCE
from tests.adapter.metrics.identity.certificates.keeping_harness import CUSTOM, EXTERNAL, SERVICE, apiservice
from tests.support.apiserver_kinds import APISERVICES
from tests.support.fake_apiserver import TOKEN
from tests.support.forked import run

if TYPE_CHECKING:
    from adapter.foundation.objects.names import ObjectName
    from tests.adapter.commands.doctor.installation import Installation
    from tests.support.forked import Ended

NEWER = "v1beta2.custom.metrics.k8s.io"
SERVICES = ("", "services")


def register(
    installation: Installation, name: str, service: ObjectName | None = SERVICE, chart: str = "tidewatch-0.1.0"
) -> None:
    document = apiservice(name, service)
    labels = {"helm.sh/chart": chart} if chart else {}
    installation.register(name, {**document, "metadata": {"name": name, "uid": f"uid-of-{name}", "labels": labels}})


def with_service(installation: Installation) -> None:
    path = f"/api/v1/namespaces/{SERVICE.namespace}/services/{SERVICE.name}"
    installation.cluster.answers[path] = (200, {"kind": "Service", "metadata": {"name": SERVICE.name}})


def removed(installation: Installation, *more: str) -> Ended:
    config = installation.cluster.kubeconfig(installation.folder / "config")
    return run("doctor", "--remove", f"--kubeconfig={config}", *more)


def left(installation: Installation) -> set[str]:
    names = (CUSTOM, EXTERNAL, NEWER, RESOURCE)
    return {name for name in names if installation.cluster.objects.find(APISERVICES, "", name)}


def ours(installation: Installation) -> None:
    for name in (CUSTOM, EXTERNAL, NEWER):
        register(installation, name)


def test_apiservices_without_a_service_are_removed_and_that_of_metrics_server_is_kept(
    installation: Installation,
) -> None:
    ours(installation)
    ended = removed(installation)
    assert (ended.code, ended.error) == (0, "")
    assert left(installation) == {RESOURCE}
    assert ended.out.count("removed: no pod is ready behind the service monitoring/tidewatch") == 3
    assert f"ok: apiservice/{RESOURCE}: kept: it does not belong to a release of this chart" in ended.out
    again = removed(installation)
    assert (again.code, again.out.count("it does not exist")) == (0, 3)


def test_apiservices_whose_service_has_no_ready_pod_are_removed(installation: Installation) -> None:
    ours(installation)
    with_service(installation)
    installation.ready(waiting=("10.0.0.1",))
    assert removed(installation).code == 0
    assert left(installation) == {RESOURCE}


def test_working_apiservices_are_kept(installation: Installation) -> None:
    ours(installation)
    with_service(installation)
    ended = removed(installation)
    assert ended.code == 0
    assert left(installation) == {CUSTOM, EXTERNAL, NEWER, RESOURCE}
    assert "kept: 2 pods are ready behind the service monitoring/tidewatch" in ended.out


@pytest.mark.parametrize("chart", ["", "prometheus-adapter-5.2.0", "tidewatcher-1.0.0"])
def test_an_apiservice_of_another_chart_is_kept(installation: Installation, chart: str) -> None:
    register(installation, CUSTOM, replace(SERVICE, name="gone"), chart)
    assert removed(installation, f"--apiservice={CUSTOM}").code == 0
    assert CUSTOM in left(installation)


def test_an_apiservice_that_kube_apiserver_serves_itself_is_kept(installation: Installation) -> None:
    register(installation, CUSTOM, None)
    assert "kept: kube-apiserver itself serves it" in removed(installation, f"--apiservice={CUSTOM}").out
    assert CUSTOM in left(installation)


def test_only_named_apiservices_are_removed(installation: Installation) -> None:
    ours(installation)
    assert removed(installation, f"--apiservice={NEWER}").code == 0
    assert left(installation) == {CUSTOM, EXTERNAL, RESOURCE}


def test_a_missing_right_is_an_error_and_nothing_is_removed(installation: Installation) -> None:
    ours(installation)
    installation.cluster.objects.deny("delete", "apiservices")
    ended = removed(installation)
    assert ended.code == 1
    assert left(installation) == {CUSTOM, EXTERNAL, NEWER, RESOURCE}
    assert f"fix: grant get and delete on the apiservice {CUSTOM}" in ended.out
    assert TOKEN not in ended.out + ended.error


def test_a_service_that_cannot_be_read_does_not_count_as_missing(installation: Installation) -> None:
    ours(installation)
    path = f"/api/v1/namespaces/{SERVICE.namespace}/services/{SERVICE.name}"
    installation.cluster.answers[path] = (500, {"message": "etcd is away", "code": 500})
    assert removed(installation).code == 1
    assert left(installation) == {CUSTOM, EXTERNAL, NEWER, RESOURCE}
