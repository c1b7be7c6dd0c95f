"""The doctor looks at the APIServices."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.reports.lines import CheckStatus
from tests.adapter.metrics.identity.certificates.keeping_harness import CUSTOM, EXTERNAL, SERVICE, apiservice
from tests.support.apiserver_kinds import APISERVICES

if TYPE_CHECKING:
    from tests.adapter.commands.doctor.installation import Installation

REFUSED = "failed to verify certificate: x509: certificate signed by unknown authority"
"""The words of kube-apiserver 1.36 about an APIService whose caBundle is empty."""


class TestApiServices:
    def test_an_apiservice_of_another_service_is_an_error(self, installation: Installation) -> None:
        installation.register(EXTERNAL, apiservice(EXTERNAL, replace(SERVICE, namespace="keda", name="keda-metrics")))
        lines = installation.lines()
        assert lines[f"apiservice/{EXTERNAL}"].status is CheckStatus.ERROR
        assert "it belongs to the service keda/keda-metrics, not to monitoring/tidewatch" in (
            lines[f"apiservice/{EXTERNAL}"].message
        )
        assert f"certificate/{EXTERNAL}" not in lines

    @pytest.mark.parametrize(
        ("reason", "message", "repair"),
        [
            ("FailedDiscoveryCheck", "no answer from 10.0.0.1", "NetworkPolicy"),
            (
                "FailedDiscoveryCheck",
                f"tls: {REFUSED}",
                "refuses its certificate: see the line about it",
            ),
            ("MissingEndpoints", "no endpoints", "/readyz?verbose"),
            ("ServiceNotFound", "no service", "create the Service monitoring/tidewatch"),
            ("ServicePortError", "no port", "the port that the APIService names (443)"),
            ("EndpointsNotFound", "no endpoints", "selector of the Service"),
            ("SomethingNew", "no reason", "log of kube-apiserver"),
        ],
    )
    def test_an_unavailable_apiservice_is_an_error_with_its_repair(
        self, installation: Installation, reason: str, message: str, repair: str
    ) -> None:
        condition = {"type": "Available", "status": "False", "reason": reason, "message": message}
        document = installation.cluster.objects.get_without_rights(APISERVICES, "", CUSTOM)
        installation.register(CUSTOM, document, {"conditions": [condition]})
        line = installation.lines()[f"apiservice/{CUSTOM}"]
        assert line.status is CheckStatus.ERROR
        assert f"not available: {reason}: {message}" in line.message
        assert repair in line.fix

    def test_an_apiservice_without_conditions_is_a_warning(self, installation: Installation) -> None:
        installation.register(CUSTOM, apiservice(CUSTOM), {"conditions": []})
        assert installation.lines()[f"apiservice/{CUSTOM}"].status is CheckStatus.WARNING

    def test_a_missing_apiservice_is_an_error_if_a_flag_names_it(self, installation: Installation) -> None:
        installation.cluster.objects.remove(APISERVICES, "", EXTERNAL)
        assert installation.lines()[f"apiservice/{EXTERNAL}"].status is CheckStatus.WARNING
        named = installation.lines(f"--apiservice={CUSTOM}", f"--apiservice={EXTERNAL}")
        assert named[f"apiservice/{EXTERNAL}"].status is CheckStatus.ERROR

    def test_an_apiservice_that_may_not_be_read_is_unknown(self, installation: Installation) -> None:
        installation.cluster.objects.deny("get", "apiservices")
        line = installation.lines()[f"apiservice/{CUSTOM}"]
        assert line.status is CheckStatus.UNKNOWN
        assert f"grant get on the apiservice {CUSTOM}" in line.fix

    def test_without_a_service_the_owner_of_an_apiservice_is_shown(self, installation: Installation) -> None:
        line = installation.lines("--service=")[f"apiservice/{CUSTOM}"]
        assert (line.status, line.message) == (CheckStatus.OK, f"it is available at {SERVICE}")

    def test_without_a_service_apiservices_of_two_adapters_are_a_warning(self, installation: Installation) -> None:
        assert "service" not in installation.lines("--service=")
        installation.register(EXTERNAL, apiservice(EXTERNAL, replace(SERVICE, namespace="keda", name="keda-metrics")))
        line = installation.lines("--service=")["service"]
        assert line.status is CheckStatus.WARNING
        assert (
            f"{CUSTOM} to {SERVICE}, {EXTERNAL} to keda/keda-metrics; the first one, {SERVICE}, is checked"
            in line.message
        )
        assert "service" not in installation.lines("--service=", f"--apiservice={CUSTOM}")
        assert "service" not in installation.lines()


def test_the_version_that_the_hpa_controller_prefers_is_checked_where_it_is_registered(
    installation: Installation,
) -> None:
    newer = "v1beta2.custom.metrics.k8s.io"
    names = {f"apiservice/{newer}", f"request/{newer}"}
    assert not names & installation.lines().keys()
    document = apiservice(newer)
    lost = {"type": "Available", "status": "False", "reason": "ServiceNotFound", "message": "no such service"}
    installation.register(newer, document, {"conditions": [lost]})
    installation.cluster.answers["/apis/custom.metrics.k8s.io/v1beta2"] = (503, {"message": "service unavailable"})
    assert {installation.lines()[name].status for name in names} == {CheckStatus.ERROR}
    assert not names & installation.lines(f"--apiservice={CUSTOM}").keys()


def test_a_version_that_need_not_exist_and_may_not_be_read_has_no_line(installation: Installation) -> None:
    """A role that names the registered APIServices does not even tell that another one does not exist."""
    newer = "v1beta2.custom.metrics.k8s.io"
    path = f"/apis/apiregistration.k8s.io/v1/apiservices/{newer}"
    installation.cluster.answers[path] = (403, {"message": f'apiservices "{newer}" is forbidden: User "x" cannot get'})
    assert f"apiservice/{newer}" not in installation.lines()
