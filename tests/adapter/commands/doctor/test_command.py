"""The doctor as a whole: an installation in which all is well, an API server that is down, and the program."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

import pytest

from adapter.commands.doctor.command import DOCTOR, doctor_settings
from adapter.foundation.reports.checks import Check, run_checks
from adapter.foundation.reports.lines import CheckStatus, Line
from adapter.foundation.service.flags.parsing import UsageError, parse_flags
from tests.adapter.commands.doctor.installation import RESOURCE, Installation
from tests.adapter.metrics.identity.certificates.keeping_harness import CUSTOM, EXTERNAL, SECRET, SERVICE
from tests.support.fake_apiserver import TOKEN
from tests.support.forked import run
from tests.support.object_apiserver import SLICES

if TYPE_CHECKING:
    from demo.machine.prometheus import PrometheusProcess
    from tests.support.apiserver_store import Json


def test_every_line_is_ok_if_there_is_no_problem(installation: Installation, prometheus: PrometheusProcess) -> None:
    lines = installation.lines(f"--prometheus-url={prometheus.url}", f"--serving-secret={SECRET}")
    assert {name: line for name, line in lines.items() if line.status is not CheckStatus.OK} == {}
    assert "version v1.36.0" in lines["kube-apiserver"].message
    assert sum(name.startswith("permission/") for name in lines) == 16
    assert lines[f"owner/{RESOURCE}"].message == "it belongs to kube-system/metrics-server"
    assert {
        f"{what}/{name}" for what in ("apiservice", "certificate", "request") for name in (CUSTOM, EXTERNAL)
    } <= set(lines)


class TestMetricRules:
    GROUP = "/apis/tidewatch.io/v1alpha1"
    SERVED = (200, {"resources": [{"name": "metricrules"}, {"name": "metricrules/status"}]})
    NAME_OF_KIND = "metricrules.tidewatch.io"
    NAME = f"definition/{NAME_OF_KIND}"

    def test_metric_rules_are_checked_only_with_the_flag_metric_rules(self, installation: Installation) -> None:
        assert not any("metricrules" in name for name in installation.lines())

    def test_a_missing_definition_is_an_error_with_the_repair(self, installation: Installation) -> None:
        lines = installation.lines("--metric-rules")
        assert lines[self.NAME].status is CheckStatus.ERROR
        assert "crds.yaml" in lines[self.NAME].fix
        rights = {name.partition("permission/")[2] for name in lines if name.startswith("permission/")}
        wanted = {f"{verb} metricrules.tidewatch.io" for verb in ("list", "watch")}
        assert wanted | {"patch metricrules.tidewatch.io/status"} <= rights

    def test_a_definition_that_cannot_be_read_is_ok_if_its_api_is_served(self, installation: Installation) -> None:
        installation.cluster.answers[self.GROUP] = self.SERVED
        assert installation.lines("--metric-rules")[self.NAME].status is CheckStatus.OK

    def test_a_definition_of_an_earlier_version_is_a_warning(self, installation: Installation) -> None:
        installation.cluster.answers[self.GROUP] = self.SERVED
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{self.NAME_OF_KIND}"
        installation.cluster.answers[path] = (200, {"metadata": {"name": self.NAME_OF_KIND}, "spec": {"versions": []}})
        line = installation.lines("--metric-rules")[self.NAME]
        assert (line.status, "spec.api" in line.message) == (CheckStatus.WARNING, True)

    def test_the_definition_is_unknown_if_the_api_server_fails(self, installation: Installation) -> None:
        installation.cluster.answers[self.GROUP] = (500, {"message": "out of order", "code": 500})
        assert installation.lines("--metric-rules")[self.NAME].status is CheckStatus.UNKNOWN


class TestRequestsThroughTheApiServer:
    @pytest.mark.parametrize(
        ("answer", "status", "words"),
        [
            ((503, {"message": "service unavailable", "code": 503}), CheckStatus.ERROR, "service unavailable"),
            ((404, {"message": "not found", "code": 404}), CheckStatus.ERROR, "404"),
            ((403, {"message": "forbidden", "code": 403}), CheckStatus.ERROR, "403"),
            ((200, {"kind": "APIResourceList", "resources": []}), CheckStatus.WARNING, "the list of metrics is empty"),
            ((200, {"kind": "CheckStatus"}), CheckStatus.ERROR, "not a list of resources"),
        ],
    )
    def test_a_wrong_answer_through_the_api_server_is_reported(
        self, installation: Installation, answer: tuple[int, Json], status: CheckStatus, words: str
    ) -> None:
        installation.cluster.answers["/apis/custom.metrics.k8s.io/v1beta1"] = answer
        line = installation.lines()[f"request/{CUSTOM}"]
        assert line.status is status
        assert words in line.message

    def test_a_request_that_times_out_is_an_error_and_does_not_delay_other_checks(
        self, installation: Installation
    ) -> None:
        installation.cluster.slow["/apis/custom.metrics.k8s.io/v1beta1"] = 60.0
        lines = installation.lines()
        assert lines[f"request/{CUSTOM}"].status is CheckStatus.ERROR
        assert "no answer in time" in lines[f"request/{CUSTOM}"].message
        assert lines[f"request/{EXTERNAL}"].status is CheckStatus.OK


@pytest.mark.parametrize(
    ("ready", "waiting", "status", "words"),
    [
        (("10.0.0.1",), ("10.0.0.2",), CheckStatus.WARNING, "only one pod is ready"),
        ((), ("10.0.0.1", "10.0.0.2"), CheckStatus.ERROR, "no pod behind the service monitoring/tidewatch"),
        (("10.0.0.1", "10.0.0.2", "10.0.0.3"), (), CheckStatus.OK, "3 pods are ready"),
    ],
)
def test_ready_replicas_are_counted(
    installation: Installation, ready: tuple[str, ...], waiting: tuple[str, ...], status: CheckStatus, words: str
) -> None:
    installation.ready(*ready, waiting=waiting)
    line = installation.lines()["replicas"]
    assert line.status is status
    assert words in line.message


def test_a_pod_with_two_addresses_is_one_replica(installation: Installation) -> None:
    labels = {"kubernetes.io/service-name": SERVICE.name}
    pod = {"kind": "Pod", "namespace": SERVICE.namespace, "name": "tidewatch-0"}
    for name, address in (("slice", "10.0.0.1"), ("slice-v6", "fd00::1")):
        endpoints = [{"addresses": [address], "conditions": {"ready": True}, "targetRef": pod}]
        document = {"metadata": {"labels": labels}, "endpoints": endpoints}
        installation.cluster.objects.put(SLICES, SERVICE.namespace, name, document)
    assert installation.lines()["replicas"].message.startswith("only one pod is ready")


@pytest.mark.parametrize(
    ("error_seconds", "status", "words"),
    [
        (0.0, CheckStatus.OK, "agree"),
        (20.0, CheckStatus.WARNING, "s ahead of this machine's"),
        (-20.0, CheckStatus.WARNING, "s behind this machine's"),
        (3600.0, CheckStatus.ERROR, "s ahead of this machine's"),
    ],
)
def test_the_clock_of_the_api_server_is_compared_with_the_local_one(
    installation: Installation, error_seconds: float, status: CheckStatus, words: str
) -> None:
    installation.cluster.clock_error = error_seconds
    line = installation.lines()["clock/kube-apiserver"]
    assert line.status is status
    assert words in line.message


def test_an_unreachable_api_server_is_one_error_and_the_rest_is_unknown(installation: Installation) -> None:
    installation.cluster.stop()
    lines = installation.lines()
    assert lines["kube-apiserver"].status is CheckStatus.ERROR
    assert "cannot connect" in lines["kube-apiserver"].message
    assert {line.status for name, line in lines.items() if name not in {"kube-apiserver", "prometheus"}} == {
        CheckStatus.UNKNOWN
    }


class TestChecks:
    def test_a_check_that_raises_is_unknown_and_does_not_affect_others(self) -> None:
        def breaks() -> list[Line]:
            raise RuntimeError("averysecrettoken")

        broken, fine = run_checks([Check("a", breaks), Check("b", lambda: [Line("b", CheckStatus.OK, "well")])])
        assert (broken.name, broken.status) == ("a", CheckStatus.UNKNOWN)
        assert "secret" not in broken.message
        assert fine.status is CheckStatus.OK

    def test_a_check_that_hangs_is_unknown_after_the_time_limit(self) -> None:
        end = threading.Event()

        def hangs() -> list[Line]:
            end.wait(30.0)
            return []

        hung, fine = run_checks(
            [Check("a", hangs), Check("b", lambda: [Line("b", CheckStatus.OK, "well")])], seconds=1.0
        )
        end.set()
        assert (hung.name, hung.status) == ("a", CheckStatus.UNKNOWN)
        assert "no answer within 1 s" in hung.message
        assert fine.status is CheckStatus.OK


class TestTheProgram:
    def test_the_report_can_be_json(self, installation: Installation, prometheus: PrometheusProcess) -> None:
        ended = run("doctor", *installation.command(f"--prometheus-url={prometheus.url}", "-o", "json"))
        document = json.loads(ended.out)
        assert (ended.code, document["apiVersion"], document["kind"]) == (0, "tidewatch.io/v1alpha1", "DoctorReport")
        assert (document["errors"], document["warnings"]) == (0, 0)
        assert all(check.keys() == {"name", "status", "message", "fix"} for check in document["checks"])
        assert {check["fix"] for check in document["checks"]} == {None}

    def test_an_error_is_shown_with_its_repair_and_the_exit_status_is_1(self, installation: Installation) -> None:
        installation.ready()
        ended = run("doctor", *installation.command())
        assert ended.code == 1
        assert "error: replicas: no pod behind the service monitoring/tidewatch is ready\n  fix: look at " in ended.out
        assert ended.out.rstrip().splitlines()[-1].startswith("1 error, 0 warnings, 1 unknown, ")
        assert TOKEN not in ended.out + ended.error

    @pytest.mark.parametrize("flag", ["--service=name", "--apiservice=x", "--nonsense", "--kubeconfig=/missing"])
    def test_wrong_usage_is_exit_2(self, flag: str) -> None:
        ended = run("doctor", flag)
        assert (ended.code, ended.error.count("\n")) == (2, 1)

    def test_an_invalid_flag_is_named_in_the_error(self) -> None:
        with pytest.raises(UsageError, match="--serving-secret"):
            doctor_settings(parse_flags(DOCTOR, ["--serving-secret=x"], {}))
