"""Targets of recommendations and their owners, as the recommender's doctor finds them in a scripted cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.recommender.commands.cluster_harness import cluster_server, deploy, put_hpa
from tests.recommender.commands.doctor.installation import COREDNS, ERROR, OK, TARGETS, UNKNOWN, WARNING, Installation
from tests.recommender.configuration.files import entry

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from adapter.foundation.reports.lines import CheckStatus


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    """Yield an installation whose Prometheus does not answer, since no test here needs it."""
    with cluster_server() as server:
        yield Installation(server, tmp_path, "http://127.0.0.1:9")


def test_a_target_that_does_not_exist_is_an_error(installation: Installation) -> None:
    found = installation.line(f"target/web/{COREDNS}x", entry("web", TARGETS.replace("coredns", "corednsx")))
    assert (found.status, found.message) == (ERROR, "it does not exist")


def test_a_kind_that_the_cluster_does_not_serve_is_an_error(installation: Installation) -> None:
    targets = TARGETS.replace("apps/v1", "example.com/v1").replace("Deployment", "Rocket")
    found = installation.line("target/web/Rocket kube-system/coredns", entry("web", targets))
    assert found.status is ERROR
    assert "Rocket" in found.message


def test_a_version_that_the_cluster_does_not_serve_is_not_a_missing_object(installation: Installation) -> None:
    path = "/apis/cluster.x-k8s.io/v1alpha9/namespaces/kube-system/machinedeployments/coredns"
    unserved = {"kind": "Status", "code": 404, "message": "the server could not find the requested resource"}
    installation.server.answers |= {path: (404, unserved), f"{path}/scale": (404, unserved)}
    targets = TARGETS.replace("apps/v1", "cluster.x-k8s.io/v1alpha9").replace("Deployment", "MachineDeployment")
    found = installation.line("target/web/MachineDeployment kube-system/coredns", entry("web", targets))
    assert found.status is ERROR
    assert found.message.startswith("the cluster does not serve it: ")


def test_a_kind_without_scale_is_an_error(installation: Installation) -> None:
    path = "/apis/apps/v1/namespaces/kube-system/deployments/coredns/scale"
    installation.server.answers[path] = (404, {"kind": "Status", "code": 404, "reason": "NotFound", "message": "none"})
    found = installation.line(f"target/coredns/{COREDNS}")
    assert (found.status, found.message) == (ERROR, "it exists, and its kind has no scale subresource")


def test_a_target_whose_requests_are_sized_needs_no_scale(installation: Installation) -> None:
    sizes = entry(
        "sizes", "targets: [{apiVersion: apps/v1, kind: DaemonSet, namespace: shop, name: agent}]",
        kind="resources: {fromUsage: {}}",
    )  # fmt: skip
    path = "/apis/apps/v1/namespaces/shop/daemonsets/agent"
    name = "target/sizes/DaemonSet shop/agent"
    absent = {"kind": "Status", "code": 404, "reason": "NotFound", "message": "none"}
    installation.server.answers |= {path: (404, absent), f"{path}/scale": (404, absent)}
    assert installation.line(name, sizes).message == "it does not exist"
    installation.server.answers[path] = (200, {"kind": "DaemonSet", "metadata": {"name": "agent"}})
    found = installation.line(name, sizes)
    assert (found.status, found.message) == (OK, "it exists")


def test_a_target_whose_scale_is_forbidden_is_unknown(installation: Installation) -> None:
    installation.server.objects.deny("get", "deployments/scale")
    assert installation.line(f"target/coredns/{COREDNS}").status is UNKNOWN


def test_an_hpa_on_the_target_owns_it(installation: Installation) -> None:
    put_hpa(installation.server, "dns")
    found = installation.line(f"owner/coredns/{COREDNS}")
    assert found.status is ERROR
    assert "HorizontalPodAutoscaler kube-system/dns scales it" in found.message


def test_two_recommendations_that_scale_one_target_name_each_other(installation: Installation) -> None:
    entries = (entry("coredns", TARGETS, "outputs: [scale]"), entry("other", TARGETS, "outputs: [scale]"))
    assert "recommendation other" in installation.line(f"owner/coredns/{COREDNS}", *entries).message


def test_hpas_that_may_not_be_listed_leave_the_owner_unknown(installation: Installation) -> None:
    installation.server.forbid("list", "horizontalpodautoscalers")
    assert installation.line(f"owner/coredns/{COREDNS}").status is UNKNOWN


FOLLOWING = [
    {
        "type": "External",
        "external": {
            "metric": {"name": "recommended_replicas"},
            "target": {"type": "AverageValue", "averageValue": "1"},
        },
    }
]


@pytest.mark.parametrize(
    ("replicas", "behavior", "status", "message"),
    [
        (9, {}, OK, "follows a change of one replica"),
        (25, {}, WARNING, "ignores recommendations from 23 to 27"),
        (25, {"scaleUp": {"tolerance": "0"}}, WARNING, "ignores recommendations from 23 to 25"),
        (25, {"scaleUp": {"tolerance": "0"}, "scaleDown": {"tolerance": "0"}}, OK, "follows"),
    ],
)
def test_an_hpa_tolerance_that_hides_a_change_is_shown(
    installation: Installation, replicas: int, behavior: dict[str, Any], status: CheckStatus, message: str
) -> None:
    deploy(installation.server, "coredns", replicas)
    put_hpa(installation.server, "dns", metrics=FOLLOWING, behavior=behavior)
    found = installation.line("tolerance/kube-system/dns", entry("coredns", TARGETS))
    assert found.status is status
    assert message in found.message
