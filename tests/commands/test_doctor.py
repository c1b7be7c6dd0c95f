"""The doctor against a stand-in for kube-apiserver: each line in its good and in its bad state."""

from __future__ import annotations

import base64
import json
import threading
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from adapter.commands.doctor.command import DOCTOR, doctor_settings, examined
from adapter.commands.doctor.rights import HPA_CONTROLLER
from adapter.identity.certificates.generations import bundle_pem, make_generation
from adapter.identity.certificates.issuing import certificate_pem
from adapter.identity.certificates.kept_file import write_kept
from adapter.reports.checks import Check, run_checks
from adapter.reports.lines import CheckStatus, Line
from adapter.service.flags.parsing import UsageError, parse_flags
from adapter.sources.kubernetes.access import from_kubeconfig
from adapter.sources.kubernetes.client import KubernetesClient, RequestDeadlines
from adapter.sources.kubernetes.writing import ObjectClient
from demo.machine.certificates import Authority, Validity
from tests.identity.certificates.keeping_world import CUSTOM, EXTERNAL, SECRET, SERVICE, WANTED, apiservice
from tests.support.apiserver_objects import APISERVICES, CONFIG_MAPS
from tests.support.fake_apiserver import TOKEN
from tests.support.object_apiserver import HPAS, SLICES, ObjectApiServer
from tests.support.serving import run
from tests.support.tls_door import tls_door
from tests.support.validity import of_yesterday

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from demo.machine.prometheus import PrometheusProcess
    from tests.support.apiserver_store import Json
    from tests.support.tls_door import Door

RESOURCE = "v1beta1.metrics.k8s.io"
CONFIG_MAP = "extension-apiserver-authentication"
AVAILABLE = {"conditions": [{"type": "Available", "status": "True", "reason": "Passed"}]}
CONTROLLER = f"system:serviceaccount:{HPA_CONTROLLER.namespace}:{HPA_CONTROLLER.name}"


@dataclass
class Installation:
    """A cluster in which all is well, the adapter's door, and somebody who looks."""

    cluster: ObjectApiServer
    folder: Path
    door: Door
    flags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        generation = make_generation(WANTED.names, datetime.now(tz=UTC), timedelta(days=90))
        write_kept(self.folder / "serving.pem", generation)
        self.door.show(self.folder / "serving.pem")
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

    def hpa(self, name: str, reason: str | None, message: str = "") -> None:
        condition = {
            "type": "ScalingActive",
            "status": "False" if reason else "True",
            "reason": reason or "ValidMetric",
        }
        document = {"status": {"conditions": [{**condition, "message": message}]}}
        self.cluster.objects.put(HPAS, "shop", name, document)

    def command(self, *more: str) -> list[str]:
        config = self.cluster.kubeconfig(self.folder / "config")
        return [f"--kubeconfig={config}", f"--service={SERVICE}", f"--endpoint={self.door.address}", *self.flags, *more]

    def lines(self, *more: str) -> dict[str, Line]:
        """Look at everything; returns the lines by their names."""
        config = self.cluster.kubeconfig(self.folder / "config")
        client = KubernetesClient(from_kubeconfig(str(config)), RequestDeadlines(connect=2.0, silence=2.0, total=4.0))
        settings = doctor_settings(parse_flags(DOCTOR, self.command(*more), {}))
        found = examined(ObjectClient(client, 2.0), settings)
        assert len({line.name for line in found}) == len(found)
        assert all(line.fix for line in found if line.status is not CheckStatus.OK)
        assert all(TOKEN not in f"{line}" for line in found)
        return {line.name: line for line in found}


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    with ObjectApiServer() as cluster, tls_door() as door:
        yield Installation(cluster, tmp_path, door)


def test_where_all_is_well_every_line_is_ok(installation: Installation, prometheus: PrometheusProcess) -> None:
    lines = installation.lines(f"--prometheus-url={prometheus.url}", f"--serving-secret={SECRET}")
    assert {name: line for name, line in lines.items() if line.status is not CheckStatus.OK} == {}
    assert "version v1.36.0" in lines["kube-apiserver"].message
    assert sum(name.startswith("permission/") for name in lines) == 16
    assert lines[f"owner/{RESOURCE}"].message == "it belongs to kube-system/metrics-server"
    assert {
        f"{what}/{name}" for what in ("apiservice", "certificate", "request") for name in (CUSTOM, EXTERNAL)
    } <= set(lines)


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
def test_a_right_that_is_missing_is_told_with_what_is_lost(
    installation: Installation, verb: str, plural: str, line: str, status: CheckStatus, lost: str
) -> None:
    installation.cluster.objects.deny(verb, plural)
    found = installation.lines(f"--serving-secret={SECRET}")[line]
    assert found.status is status
    assert f"may not {verb} {plural}" in found.message
    assert lost in found.message
    assert found.fix.startswith("grant ")


def test_the_rights_of_another_account_are_asked_for_by_its_name(installation: Installation) -> None:
    lines = installation.lines("--service-account=monitoring/tidewatch")
    assert lines["permission/list pods"].status is CheckStatus.ERROR
    assert "the service account monitoring/tidewatch may not list pods" in lines["permission/list pods"].message
    installation.cluster.reviews.allow("system:serviceaccounts:monitoring", "*", "*")
    assert installation.lines("--service-account=monitoring/tidewatch")["permission/list pods"].status is CheckStatus.OK


class TestApiServices:
    def test_one_that_is_somebody_elses(self, installation: Installation) -> None:
        installation.register(EXTERNAL, apiservice(EXTERNAL, replace(SERVICE, namespace="keda", name="keda-metrics")))
        lines = installation.lines()
        assert lines[f"apiservice/{EXTERNAL}"].status is CheckStatus.ERROR
        assert "it belongs to the service keda/keda-metrics, not to monitoring/tidewatch" in (
            lines[f"apiservice/{EXTERNAL}"].message
        )
        assert f"certificate/{EXTERNAL}" not in lines

    @pytest.mark.parametrize(
        ("reason", "repair"),
        [
            ("FailedDiscoveryCheck", "NetworkPolicy"),
            ("MissingEndpoints", "/readyz?verbose"),
            ("ServiceNotFound", "create the Service monitoring/tidewatch"),
            ("ServicePortError", "the port that the APIService names (443)"),
            ("EndpointsNotFound", "selector of the Service"),
            ("SomethingNew", "log of kube-apiserver"),
        ],
    )
    def test_one_that_is_not_available(self, installation: Installation, reason: str, repair: str) -> None:
        condition = {"type": "Available", "status": "False", "reason": reason, "message": "no answer from 10.0.0.1"}
        document = installation.cluster.objects.get_without_rights(APISERVICES, "", CUSTOM)
        installation.register(CUSTOM, document, {"conditions": [condition]})
        line = installation.lines()[f"apiservice/{CUSTOM}"]
        assert line.status is CheckStatus.ERROR
        assert f"not available: {reason}: no answer from 10.0.0.1" in line.message
        assert repair in line.fix

    def test_one_of_which_nothing_is_known_yet(self, installation: Installation) -> None:
        installation.register(CUSTOM, apiservice(CUSTOM), {"conditions": []})
        assert installation.lines()[f"apiservice/{CUSTOM}"].status is CheckStatus.WARNING

    def test_one_that_is_missing_is_an_error_if_it_was_asked_for(self, installation: Installation) -> None:
        installation.cluster.objects.remove(APISERVICES, "", EXTERNAL)
        assert installation.lines()[f"apiservice/{EXTERNAL}"].status is CheckStatus.WARNING
        named = installation.lines(f"--apiservice={CUSTOM}", f"--apiservice={EXTERNAL}")
        assert named[f"apiservice/{EXTERNAL}"].status is CheckStatus.ERROR

    def test_one_that_may_not_be_read(self, installation: Installation) -> None:
        installation.cluster.objects.deny("get", "apiservices")
        line = installation.lines()[f"apiservice/{CUSTOM}"]
        assert line.status is CheckStatus.UNKNOWN
        assert f"grant get on the apiservice {CUSTOM}" in line.fix

    def test_without_a_service_the_owner_is_shown(self, installation: Installation) -> None:
        line = installation.lines("--service=")[f"apiservice/{CUSTOM}"]
        assert (line.status, line.message) == (CheckStatus.OK, f"it is available at {SERVICE}")


SERVED = """resourceRules:
  cpu:
    containerQuery: sum by (<<.GroupBy>>) (rate(container_cpu_usage_seconds_total{<<.LabelMatchers>>}[3m]))
    nodeQuery: sum by (<<.GroupBy>>) (rate(node_cpu_seconds_total{mode!="idle",<<.LabelMatchers>>}[3m]))
    resources: &labels {overrides: {node: {resource: node}, namespace: {resource: namespace}, pod: {resource: pod}}}
    containerLabel: container
  memory:
    containerQuery: sum by (<<.GroupBy>>) (container_memory_working_set_bytes{<<.LabelMatchers>>})
    nodeQuery: sum by (<<.GroupBy>>) (node_memory_used_bytes{<<.LabelMatchers>>})
    resources: *labels
    containerLabel: container
  window: 3m
"""
OTHERS = "externalRules: []\nrules: []\n"
NOBODY_ASKS = "an API has one server, so this adapter's resourceRules are without effect"


class TestResourceMetrics:
    def line(self, installation: Installation, rules: str | None, *more: str) -> Line:
        return self.lines(installation, rules, *more)[f"owner/{RESOURCE}"]

    def lines(self, installation: Installation, rules: str | None, *more: str) -> dict[str, Line]:
        folder = installation.folder / "rules"
        folder.mkdir(exist_ok=True)
        (folder / "20-rules.yaml").write_text(rules or "")
        return installation.lines(*([] if rules is None else [f"--config={folder}"]), *more)

    def make_ours(self, installation: Installation, status: Json | None = None) -> None:
        bundle = installation.cluster.objects.get_without_rights(APISERVICES, "", CUSTOM)["spec"]["caBundle"]
        installation.register(RESOURCE, apiservice(RESOURCE, caBundle=bundle), status)
        listed = {"kind": "APIResourceList", "resources": [{"name": "nodes"}, {"name": "pods"}]}
        installation.cluster.answers["/apis/metrics.k8s.io/v1beta1"] = (200, listed)

    @pytest.mark.parametrize(
        ("rules", "status", "said"),
        [
            (None, CheckStatus.OK, "it belongs to kube-system/metrics-server"),
            (OTHERS, CheckStatus.OK, "it belongs to kube-system/metrics-server"),
            (SERVED, CheckStatus.WARNING, f"it belongs to kube-system/metrics-server; {NOBODY_ASKS}"),
        ],
    )
    def test_of_metrics_server(
        self, installation: Installation, rules: str | None, status: CheckStatus, said: str
    ) -> None:
        lines = self.lines(installation, rules)
        line = lines[f"owner/{RESOURCE}"]
        assert (line.status, line.message) == (status, said)
        # Neither is its certificate looked at, nor a right to change it asked for.
        assert [name for name in lines if name.endswith(RESOURCE)] == [f"owner/{RESOURCE}"]

    def test_of_metrics_server_that_is_away(self, installation: Installation) -> None:
        condition = {"type": "Available", "status": "False", "reason": "MissingEndpoints"}
        document = installation.cluster.objects.get_without_rights(APISERVICES, "", RESOURCE)
        installation.register(RESOURCE, document, {"conditions": [condition]})
        away = "it belongs to kube-system/metrics-server, and is not available: MissingEndpoints"
        line = self.line(installation, OTHERS)
        assert (line.status, line.message) == (CheckStatus.WARNING, away)
        line = self.line(installation, SERVED)
        assert (line.status, line.message) == (CheckStatus.WARNING, f"{away}; {NOBODY_ASKS}")

    def test_of_metrics_server_is_an_error_where_it_was_to_be_ours(self, installation: Installation) -> None:
        line = self.line(installation, None, f"--apiservice={CUSTOM}", f"--apiservice={RESOURCE}")
        assert line.status is CheckStatus.ERROR
        assert NOBODY_ASKS in line.message
        assert "remove that server" in line.fix

    @pytest.mark.parametrize(
        ("rules", "status"), [(None, CheckStatus.WARNING), (OTHERS, CheckStatus.WARNING), (SERVED, CheckStatus.ERROR)]
    )
    def test_of_nobody(self, installation: Installation, rules: str | None, status: CheckStatus) -> None:
        installation.cluster.objects.remove(APISERVICES, "", RESOURCE)
        line = self.line(installation, rules)
        assert line.status is status
        assert "`kubectl top` and HPAs on CPU and memory get no values" in line.message

    @pytest.mark.parametrize("rules", [None, SERVED])
    @pytest.mark.parametrize("service", [f"--service={SERVICE}", "--service="])
    def test_of_ours(self, installation: Installation, rules: str | None, service: str) -> None:
        self.make_ours(installation)
        lines = self.lines(installation, rules, service, f"--serving-secret={SECRET}")
        line = lines[f"owner/{RESOURCE}"]
        assert (line.status, line.message) == (CheckStatus.OK, f"it is available at {SERVICE}")
        others = {f"certificate/{RESOURCE}", f"request/{RESOURCE}"}
        rights = {f"permission/{verb} apiservices.apiregistration.k8s.io {RESOURCE}" for verb in ("get", "patch")}
        assert {lines[name].status for name in others | rights} == {CheckStatus.OK}

    def test_of_ours_by_its_name_alone(self, installation: Installation) -> None:
        self.make_ours(installation)
        lines = self.lines(installation, SERVED, "--service=", f"--apiservice={RESOURCE}")
        assert lines[f"owner/{RESOURCE}"].status is lines[f"certificate/{RESOURCE}"].status is CheckStatus.OK

    def test_of_ours_that_is_away(self, installation: Installation) -> None:
        self.make_ours(installation, {"conditions": [{"type": "Available", "status": "False", "reason": "Strange"}]})
        known, unknown = self.line(installation, SERVED), self.line(installation, None)
        assert known.status is unknown.status is CheckStatus.ERROR
        assert "it is not available: Strange" in known.message
        assert unknown.message == known.message
        assert unknown.fix == f"{known.fix}; or its rules hold no resourceRules: set --config to check that"

    @pytest.mark.parametrize("rules", [OTHERS, SERVED.replace("<<.GroupBy>>", "<<.Nothing>>")])
    def test_of_ours_without_rules_that_can_be_served(self, installation: Installation, rules: str) -> None:
        self.make_ours(installation)
        line = self.line(installation, rules)
        assert line.status is CheckStatus.ERROR
        assert f"it points to {SERVICE}, whose rules hold no resourceRules that can be served" in line.message

    def test_an_apiservice_for_cpu_and_memory_that_may_not_be_read_is_unknown(self, installation: Installation) -> None:
        installation.cluster.objects.deny("get", "apiservices")
        line = self.line(installation, SERVED)
        assert line.status is CheckStatus.UNKNOWN
        assert f"grant get on the apiservice {RESOURCE}" in line.fix

    @pytest.mark.parametrize(("text", "said"), [(None, "cannot read the file"), ("rules: [", "rules.yaml")])
    def test_rule_files_that_cannot_be_read_are_a_mistake_of_the_flags(
        self, tmp_path: Path, text: str | None, said: str
    ) -> None:
        file = tmp_path / "rules.yaml"
        if text:
            file.write_text(text)
        with pytest.raises(UsageError, match=said):
            doctor_settings(parse_flags(DOCTOR, [f"--config={file}"], {}))


class TestTheCertificate:
    def line(self, installation: Installation) -> Line:
        return installation.lines()[f"certificate/{CUSTOM}"]

    def show(
        self, installation: Installation, authority: Authority, name: str, validity: Validity | None = None
    ) -> None:
        pair = authority.server([name], [], validity=validity)
        installation.door.show(pair.certificate_file, pair.key_file)
        bundle = base64.b64encode(authority.ca_file.read_bytes()).decode()
        installation.spec(CUSTOM, caBundle=bundle)

    def test_of_another_authority(self, installation: Installation) -> None:
        bundle = certificate_pem(Authority(installation.folder / "other").root)
        installation.spec(CUSTOM, caBundle=base64.b64encode(bundle).decode())
        line = self.line(installation)
        assert line.status is CheckStatus.ERROR
        assert "kube-apiserver refuses it: none of the CAs in the caBundle has signed it" in line.message
        assert "--serving-secret" in line.fix

    def test_of_nobody_because_the_bundle_is_empty(self, installation: Installation) -> None:
        installation.spec(CUSTOM, caBundle="")
        assert "the caBundle is empty" in self.line(installation).message

    def test_for_another_name(self, installation: Installation) -> None:
        self.show(installation, Authority(installation.folder / "ca"), "adapter.elsewhere.svc")
        line = self.line(installation)
        assert "Hostname mismatch" in line.message
        assert "issue the certificate for tidewatch.monitoring.svc; it is for adapter.elsewhere.svc" in line.fix

    def test_an_expired_certificate_is_reported(self, installation: Installation) -> None:
        name = "tidewatch.monitoring.svc"
        self.show(installation, Authority(installation.folder / "ca"), name, of_yesterday())
        line = self.line(installation)
        assert line.status is CheckStatus.ERROR
        assert "certificate has expired (it expired at " in line.message
        assert "renew" in line.fix

    def test_a_certificate_that_expires_soon_is_reported(self, installation: Installation) -> None:
        self.show(installation, Authority(installation.folder / "ca"), "tidewatch.monitoring.svc")
        assert self.line(installation).status is CheckStatus.WARNING

    def test_an_unverified_certificate_is_reported(self, installation: Installation) -> None:
        installation.spec(CUSTOM, caBundle="", insecureSkipTLSVerify=True)
        lines = installation.lines()
        assert lines[f"apiservice/{CUSTOM}"].status is CheckStatus.WARNING
        assert "not verified" in lines[f"certificate/{CUSTOM}"].message

    def test_of_an_adapter_that_is_not_reached(self, installation: Installation) -> None:
        installation.door.close()
        line = self.line(installation)
        assert line.status is CheckStatus.UNKNOWN
        assert "Connection refused" in line.message
        assert "--endpoint" in line.fix

    def test_of_something_that_speaks_no_tls(self, installation: Installation) -> None:
        host, _, port = installation.cluster.url.removeprefix("http://").partition(":")
        line = installation.lines(f"--endpoint={host}:{port}")[f"certificate/{CUSTOM}"]
        assert line.status is CheckStatus.UNKNOWN


class TestRequestsThroughTheApiServer:
    @pytest.mark.parametrize(
        ("answer", "status", "said"),
        [
            ((503, {"message": "service unavailable", "code": 503}), CheckStatus.ERROR, "service unavailable"),
            ((404, {"message": "not found", "code": 404}), CheckStatus.ERROR, "404"),
            ((403, {"message": "forbidden", "code": 403}), CheckStatus.ERROR, "403"),
            ((200, {"kind": "APIResourceList", "resources": []}), CheckStatus.WARNING, "the list of metrics is empty"),
            ((200, {"kind": "CheckStatus"}), CheckStatus.ERROR, "not a list of resources"),
        ],
    )
    def test_an_answer_that_is_not_right(
        self, installation: Installation, answer: tuple[int, Json], status: CheckStatus, said: str
    ) -> None:
        installation.cluster.answers["/apis/custom.metrics.k8s.io/v1beta1"] = answer
        line = installation.lines()[f"request/{CUSTOM}"]
        assert line.status is status
        assert said in line.message

    def test_an_answer_that_does_not_come_holds_up_nothing_else(self, installation: Installation) -> None:
        installation.cluster.slow["/apis/custom.metrics.k8s.io/v1beta1"] = 60.0
        lines = installation.lines()
        assert lines[f"request/{CUSTOM}"].status is CheckStatus.ERROR
        assert "no answer in time" in lines[f"request/{CUSTOM}"].message
        assert lines[f"request/{EXTERNAL}"].status is CheckStatus.OK


class TestTheFrontProxy:
    def test_no_config_map(self, installation: Installation) -> None:
        installation.cluster.objects.remove(CONFIG_MAPS, "kube-system", CONFIG_MAP)
        assert installation.lines()["front-proxy"].status is CheckStatus.UNKNOWN

    def test_one_that_may_not_be_read(self, installation: Installation) -> None:
        installation.cluster.objects.deny("get", "configmaps")
        assert "extension-apiserver-authentication-reader" in installation.lines()["front-proxy"].fix

    @pytest.mark.parametrize("broken", ["", "no certificate"])
    def test_no_authority_in_it(self, installation: Installation, broken: str) -> None:
        installation.publish_front_proxy(broken, "", [])
        line = installation.lines()["front-proxy"]
        assert line.status is CheckStatus.ERROR
        assert "no front proxy is known" in line.message

    def test_one_authority_for_both_is_dangerous_only_where_every_name_is_allowed(
        self, installation: Installation
    ) -> None:
        both = installation.authority("both")
        installation.publish_front_proxy(both, both, [])
        line = installation.lines()["front-proxy"]
        assert line.status is CheckStatus.WARNING
        assert "can act as any user" in line.message
        installation.publish_front_proxy(both, both, ["front-proxy-client"])
        assert installation.lines()["front-proxy"].status is CheckStatus.OK

    def test_an_authority_that_has_ended(self, installation: Installation) -> None:
        ended = make_generation(["a"], datetime.now(tz=UTC) - timedelta(days=9), timedelta(days=2)).authority
        old = certificate_pem(ended).decode()
        installation.publish_front_proxy(old, "", ["a"])
        assert installation.lines()["front-proxy"].status is CheckStatus.ERROR
        installation.publish_front_proxy(old + installation.authority("new"), "", ["a"])
        assert installation.lines()["front-proxy"].status is CheckStatus.WARNING


class TestTheHpaController:
    def test_rights_that_it_lacks(self, installation: Installation) -> None:
        installation.cluster.reviews.deny_all()
        installation.cluster.reviews.allow(CONTROLLER, "list", "*", "external.metrics.k8s.io")
        lines = installation.lines()
        assert lines["hpa-controller/external.metrics.k8s.io"].status is CheckStatus.OK
        line = lines["hpa-controller/custom.metrics.k8s.io"]
        assert line.status is CheckStatus.ERROR
        assert "the service account kube-system/horizontal-pod-autoscaler may not get pods" in line.message
        assert "grant get and list on all of custom.metrics.k8s.io" in line.fix

    def test_rights_that_may_not_be_asked_for(self, installation: Installation) -> None:
        installation.cluster.forbid("create", "subjectaccessreviews")
        line = installation.lines()["hpa-controller/custom.metrics.k8s.io"]
        assert line.status is CheckStatus.UNKNOWN
        assert "grant create on subjectaccessreviews" in line.fix


class TestHpas:
    def test_those_that_miss_a_metric_of_ours_are_shown_with_the_cause(self, installation: Installation) -> None:
        installation.hpa("web", "FailedGetPodsMetric", "unable to get metric open_connections: no metrics returned")
        installation.hpa("cpu", "FailedGetResourceMetric", "no metrics from resource metrics API")
        installation.hpa("well", None)
        lines = installation.lines()
        assert lines["hpas"].message == "1 of 3 HPAs lack a metric"
        assert "FailedGetPodsMetric: unable to get metric open_connections" in lines["hpa/shop/web"].message
        assert "explain METRIC --namespace shop" in lines["hpa/shop/web"].fix
        assert "hpa/shop/cpu" not in lines

    def test_many_are_counted(self, installation: Installation) -> None:
        for number in range(620):
            installation.hpa(f"web-{number:03d}", "FailedGetExternalMetric" if number < 8 else None)
        lines = installation.lines()
        assert lines["hpas"].message == "8 of 620 HPAs lack a metric, 3 of them not shown"
        assert sum(name.startswith("hpa/") for name in lines) == 5

    def test_hpas_that_may_not_be_listed_are_unknown(self, installation: Installation) -> None:
        installation.cluster.objects.deny("list", "horizontalpodautoscalers")
        assert installation.lines()["hpas"].status is CheckStatus.UNKNOWN


@pytest.mark.parametrize(
    ("ready", "waiting", "status", "said"),
    [
        (("10.0.0.1",), ("10.0.0.2",), CheckStatus.WARNING, "only one pod is ready"),
        ((), ("10.0.0.1", "10.0.0.2"), CheckStatus.ERROR, "no pod behind the service monitoring/tidewatch"),
        (("10.0.0.1", "10.0.0.2", "10.0.0.3"), (), CheckStatus.OK, "3 pods are ready"),
    ],
)
def test_replicas_that_are_ready_are_counted(
    installation: Installation, ready: tuple[str, ...], waiting: tuple[str, ...], status: CheckStatus, said: str
) -> None:
    installation.ready(*ready, waiting=waiting)
    line = installation.lines()["replicas"]
    assert line.status is status
    assert said in line.message


@pytest.mark.parametrize(
    ("error_seconds", "status", "said"),
    [
        (0.0, CheckStatus.OK, "agree"),
        (20.0, CheckStatus.WARNING, "s ahead of this machine's"),
        (-20.0, CheckStatus.WARNING, "s behind this machine's"),
        (3600.0, CheckStatus.ERROR, "s ahead of this machine's"),
    ],
)
def test_the_clock_of_the_api_server_is_compared(
    installation: Installation, error_seconds: float, status: CheckStatus, said: str
) -> None:
    installation.cluster.clock_error = error_seconds
    line = installation.lines()["clock/kube-apiserver"]
    assert line.status is status
    assert said in line.message


def test_an_api_server_that_is_away_is_one_error_and_the_rest_is_unknown(installation: Installation) -> None:
    installation.cluster.stop()
    lines = installation.lines()
    assert lines["kube-apiserver"].status is CheckStatus.ERROR
    assert "cannot connect" in lines["kube-apiserver"].message
    assert {line.status for name, line in lines.items() if name not in {"kube-apiserver", "prometheus"}} == {
        CheckStatus.UNKNOWN
    }


class TestPrometheus:
    def test_one_that_is_away(self, installation: Installation) -> None:
        line = installation.lines("--prometheus-url=http://127.0.0.1:9")["prometheus"]
        assert line.status is CheckStatus.ERROR
        assert "http://127.0.0.1:9 does not answer queries" in line.message
        assert "--prometheus-url" in line.fix

    def test_one_that_is_something_else(self, installation: Installation) -> None:
        line = installation.lines(f"--prometheus-url={installation.cluster.url}")["prometheus"]
        assert line.status is CheckStatus.ERROR

    def test_credentials_that_it_refuses(self, installation: Installation) -> None:
        token = installation.folder / "token"
        token.write_text("averysecrettoken")
        flags = (f"--prometheus-url={installation.cluster.url}/apis", f"--prometheus-token-file={token}")
        line = installation.lines(*flags)["prometheus"]
        assert line.status is CheckStatus.ERROR
        assert "--prometheus-token-file" in line.fix
        assert "averysecrettoken" not in f"{line}"

    def test_none_that_is_named(self, installation: Installation) -> None:
        assert installation.lines()["prometheus"].status is CheckStatus.UNKNOWN


class TestChecks:
    def test_one_that_breaks_harms_itself_alone(self) -> None:
        def breaks() -> list[Line]:
            raise RuntimeError("averysecrettoken")

        broken, fine = run_checks([Check("a", breaks), Check("b", lambda: [Line("b", CheckStatus.OK, "well")])])
        assert (broken.name, broken.status) == ("a", CheckStatus.UNKNOWN)
        assert "secret" not in broken.message
        assert fine.status is CheckStatus.OK

    def test_one_that_hangs_is_left_behind(self) -> None:
        end = threading.Event()

        def hangs() -> list[Line]:
            end.wait(30.0)
            return []

        hung, fine = run_checks(
            [Check("a", hangs), Check("b", lambda: [Line("b", CheckStatus.OK, "well")])], seconds=0.2
        )
        end.set()
        assert (hung.name, hung.status) == ("a", CheckStatus.UNKNOWN)
        assert "no answer within 0.2 s" in hung.message
        assert fine.status is CheckStatus.OK


class TestTheProgram:
    def test_as_json(self, installation: Installation, prometheus: PrometheusProcess) -> None:
        ended = run("doctor", *installation.command(f"--prometheus-url={prometheus.url}", "-o", "json"))
        document = json.loads(ended.out)
        assert (ended.code, document["apiVersion"], document["kind"]) == (0, "tidewatch.io/v1alpha1", "DoctorReport")
        assert (document["errors"], document["warnings"]) == (0, 0)
        assert all(check.keys() == {"name", "status", "message", "fix"} for check in document["checks"])
        assert {check["fix"] for check in document["checks"]} == {None}

    def test_what_is_wrong_comes_with_its_repair_and_makes_the_exit_status(self, installation: Installation) -> None:
        installation.ready()
        ended = run("doctor", *installation.command())
        assert ended.code == 1
        assert "error: replicas: no pod behind the service monitoring/tidewatch is ready\n  fix: look at " in ended.out
        assert ended.out.rstrip().splitlines()[-1].startswith("1 error, 0 warnings, 1 unknown, ")
        assert TOKEN not in ended.out + ended.error

    @pytest.mark.parametrize("flag", ["--service=name", "--apiservice=x", "--nonsense", "--kubeconfig=/missing"])
    def test_wrong_usage(self, flag: str) -> None:
        ended = run("doctor", flag)
        assert (ended.code, ended.error.count("\n")) == (2, 1)

    def test_flags_that_do_not_fit_are_named(self) -> None:
        with pytest.raises(UsageError, match="--serving-secret"):
            doctor_settings(parse_flags(DOCTOR, ["--serving-secret=x"], {}))
