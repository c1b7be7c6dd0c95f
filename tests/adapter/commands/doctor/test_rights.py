"""The doctor looks at the rights of the adapter and of the HPA controller."""

from __future__ import annotations

import pytest

from adapter.foundation.reports.lines import CheckStatus
from tests.adapter.commands.doctor.installation import CONFIG_MAP, CONTROLLER, Installation
from tests.adapter.metrics.identity.certificates.keeping_harness import CUSTOM, SECRET


@pytest.mark.parametrize(
    ("verb", "plural", "line", "status", "lost"),
    [
        ("list", "pods", "permission/list pods", CheckStatus.ERROR, "HPAs on Pods metrics get 503"),
        ("watch", "pods", "permission/watch pods", CheckStatus.ERROR, "metrics of pods"),
        ("list", "nodes", "permission/list nodes", CheckStatus.WARNING, "metrics of nodes"),
        (
            "create",
            "subjectaccessreviews",
            "permission/create subjectaccessreviews.authorization.k8s.io",
            CheckStatus.WARNING,
            "direct callers",
        ),
        (
            "create",
            "tokenreviews",
            "permission/create tokenreviews.authentication.k8s.io",
            CheckStatus.WARNING,
            "bearer tokens",
        ),
        (
            "watch",
            "configmaps",
            f"permission/watch configmaps {CONFIG_MAP} in kube-system",
            CheckStatus.ERROR,
            "front proxy",
        ),
        (
            "patch",
            "secrets",
            f"permission/patch secrets {SECRET.name} in {SECRET.namespace}",
            CheckStatus.ERROR,
            "start",
        ),
        (
            "patch",
            "apiservices",
            f"permission/patch apiservices.apiregistration.k8s.io {CUSTOM}",
            CheckStatus.ERROR,
            "caBundle",
        ),
    ],
)
def test_a_missing_right_is_reported_with_its_consequence(
    installation: Installation, verb: str, plural: str, line: str, status: CheckStatus, lost: str
) -> None:
    installation.cluster.objects.deny(verb, plural)
    found = installation.lines(f"--serving-secret={SECRET}")[line]
    assert found.status is status
    assert f"may not {verb} {plural}" in found.message
    assert lost in found.message
    assert found.fix.startswith("grant ")


def test_the_rights_of_another_service_account_are_checked_by_its_name(installation: Installation) -> None:
    lines = installation.lines("--service-account=monitoring/tidewatch")
    assert lines["permission/list pods"].status is CheckStatus.ERROR
    assert "the service account monitoring/tidewatch may not list pods" in lines["permission/list pods"].message
    installation.cluster.reviews.allow("system:serviceaccounts:monitoring", "*", "*")
    assert installation.lines("--service-account=monitoring/tidewatch")["permission/list pods"].status is CheckStatus.OK


class TestTheHpaController:
    def test_rights_that_the_hpa_controller_lacks_are_reported(self, installation: Installation) -> None:
        installation.cluster.reviews.deny_all()
        installation.cluster.reviews.allow(CONTROLLER, "list", "*", "external.metrics.k8s.io")
        lines = installation.lines()
        assert lines["hpa-controller/external.metrics.k8s.io"].status is CheckStatus.OK
        line = lines["hpa-controller/custom.metrics.k8s.io"]
        assert line.status is CheckStatus.ERROR
        assert "the service account kube-system/horizontal-pod-autoscaler may not get pods" in line.message
        assert "grant get and list on all of custom.metrics.k8s.io" in line.fix

    def test_rights_of_the_hpa_controller_that_may_not_be_reviewed_are_unknown(
        self, installation: Installation
    ) -> None:
        installation.cluster.forbid("create", "subjectaccessreviews")
        line = installation.lines()["hpa-controller/custom.metrics.k8s.io"]
        assert line.status is CheckStatus.UNKNOWN
        assert "grant create on subjectaccessreviews" in line.fix
