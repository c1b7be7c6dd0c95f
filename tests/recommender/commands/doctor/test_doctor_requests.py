"""The doctor names ProvisioningRequests that nobody answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from adapter.foundation.objects.resources import Resource
from adapter.foundation.reports.lines import CheckStatus
from tests.recommender.configuration.files import entry
from tests.recommender.running.polls.test_node_group_targets import SIZES

if TYPE_CHECKING:
    from tests.recommender.commands.doctor.installation import Installation

GROUP: Final = "autoscaling.x-k8s.io"
KIND: Final = Resource(GROUP, "v1", "provisioningrequests", "provisioningrequest", "ProvisioningRequest", True)  # noqa: FBT003 - a column
LINE: Final = "provisioningrequests"
PATH: Final = f"/apis/{GROUP}/v1/provisioningrequests"
CHECK: Final = f"check-capacity.{GROUP}"
ATOMIC: Final = f"best-effort-atomic-scale-up.{GROUP}"
WRITING: Final = entry("nodes", "outputs: [scale]", kind=SIZES)


def request(name: str, class_name: str = CHECK, **conditions: str) -> dict[str, Any]:
    stated = [{"type": kind, "status": status} for kind, status in conditions.items()]
    return {
        "metadata": {"namespace": "ml", "name": name},
        "spec": {"provisioningClassName": class_name},
        "status": {"conditions": stated},
    }


def serve(installation: Installation, *requests: dict[str, Any]) -> None:
    installation.server.resources.append(KIND)
    installation.server.answers[PATH] = (200, {"kind": "ProvisioningRequestList", "items": list(requests)})


@pytest.mark.parametrize(
    ("requests", "names"),
    [
        ([], ""),
        ([request("a")], "1 ProvisioningRequest waits (ml/a), and the recommender answers none"),
        ([request("a", ATOMIC, Accepted="True", Provisioned="False")], "(ml/a), and the recommender answers none"),
        ([request("a", Provisioned="True"), request("b", Failed="True"), request("c", "queued.gke.io")], ""),
        ([request(name) for name in "edcba"], "5 ProvisioningRequests wait"),
        ([request(name) for name in "edcba"], "wait (ml/a, ml/b, ml/c and 2 more), and the recommender"),
    ],
)
def test_requests_that_wait_are_named(installation: Installation, requests: list[dict[str, Any]], names: str) -> None:
    serve(installation, *requests)
    line = installation.lines(WRITING).get(LINE)
    assert (line is not None) is bool(names)
    if line is not None:
        assert line.status is CheckStatus.WARNING
        assert names in line.message
        assert "unless a Cluster Autoscaler of other node groups answers them" in line.fix


def test_requests_are_not_looked_at_if_no_node_groups_are_written(installation: Installation) -> None:
    serve(installation, request("a"))
    assert LINE not in installation.lines(entry("nodes", "outputs: [metric]", kind=SIZES))


def test_a_cluster_without_the_kind_has_no_line(installation: Installation) -> None:
    assert LINE not in installation.lines(WRITING)


def test_requests_that_may_not_be_listed_are_unknown(installation: Installation) -> None:
    serve(installation)
    installation.server.answers[PATH] = (403, {"kind": "Status", "code": 403, "message": "no", "reason": "Forbidden"})
    line = installation.line(LINE, WRITING)
    assert line.status is CheckStatus.UNKNOWN
    assert f"grant list on {LINE}.{GROUP}" in line.fix
