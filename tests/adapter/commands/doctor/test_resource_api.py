"""The doctor looks at the owner of `metrics.k8s.io`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adapter.commands.doctor.command import DOCTOR, doctor_settings
from adapter.foundation.reports.lines import CheckStatus, Line
from adapter.foundation.service.flags.parsing import UsageError, parse_flags
from tests.adapter.commands.doctor.installation import RESOURCE, Installation
from tests.adapter.metrics.identity.certificates.keeping_harness import CUSTOM, SECRET, SERVICE, apiservice
from tests.support.apiserver_kinds import APISERVICES

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.apiserver_store import Json

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
NO_EFFECT = "an API has one server, so this adapter's resourceRules have no effect"


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
        ("rules", "status", "words"),
        [
            (None, CheckStatus.OK, "it belongs to kube-system/metrics-server"),
            (OTHERS, CheckStatus.OK, "it belongs to kube-system/metrics-server"),
            (SERVED, CheckStatus.WARNING, f"it belongs to kube-system/metrics-server; {NO_EFFECT}"),
        ],
    )
    def test_metrics_server_as_owner_is_a_warning_only_if_the_rules_serve_resource_metrics(
        self, installation: Installation, rules: str | None, status: CheckStatus, words: str
    ) -> None:
        lines = self.lines(installation, rules)
        line = lines[f"owner/{RESOURCE}"]
        assert (line.status, line.message) == (status, words)
        # Neither its certificate nor a right to change it is checked.
        assert [name for name in lines if name.endswith(RESOURCE)] == [f"owner/{RESOURCE}"]

    def test_an_unavailable_metrics_server_is_a_warning(self, installation: Installation) -> None:
        condition = {"type": "Available", "status": "False", "reason": "MissingEndpoints"}
        document = installation.cluster.objects.get_without_rights(APISERVICES, "", RESOURCE)
        installation.register(RESOURCE, document, {"conditions": [condition]})
        away = "it belongs to kube-system/metrics-server, and is not available: MissingEndpoints"
        line = self.line(installation, OTHERS)
        assert (line.status, line.message) == (CheckStatus.WARNING, away)
        line = self.line(installation, SERVED)
        assert (line.status, line.message) == (CheckStatus.WARNING, f"{away}; {NO_EFFECT}")

    def test_metrics_server_as_owner_is_an_error_if_a_flag_names_the_apiservice(
        self, installation: Installation
    ) -> None:
        line = self.line(installation, None, f"--apiservice={CUSTOM}", f"--apiservice={RESOURCE}")
        assert line.status is CheckStatus.ERROR
        assert NO_EFFECT in line.message
        assert "remove that server" in line.fix

    @pytest.mark.parametrize(
        ("rules", "status"), [(None, CheckStatus.WARNING), (OTHERS, CheckStatus.WARNING), (SERVED, CheckStatus.ERROR)]
    )
    def test_an_api_without_an_owner_is_an_error_only_if_the_rules_serve_resource_metrics(
        self, installation: Installation, rules: str | None, status: CheckStatus
    ) -> None:
        installation.cluster.objects.remove(APISERVICES, "", RESOURCE)
        line = self.line(installation, rules)
        assert line.status is status
        assert "`kubectl top` and HPAs on CPU and memory get no values" in line.message

    @pytest.mark.parametrize("rules", [None, SERVED])
    @pytest.mark.parametrize("service", [f"--service={SERVICE}", "--service="])
    def test_our_own_apiservice_is_checked_like_the_others(
        self, installation: Installation, rules: str | None, service: str
    ) -> None:
        self.make_ours(installation)
        lines = self.lines(installation, rules, service, f"--serving-secret={SECRET}")
        line = lines[f"owner/{RESOURCE}"]
        assert (line.status, line.message) == (CheckStatus.OK, f"it is available at {SERVICE}")
        others = {f"certificate/{RESOURCE}", f"request/{RESOURCE}"}
        rights = {f"permission/{verb} apiservices.apiregistration.k8s.io {RESOURCE}" for verb in ("get", "patch")}
        assert {lines[name].status for name in others | rights} == {CheckStatus.OK}

    def test_our_own_apiservice_is_found_by_name_without_a_service(self, installation: Installation) -> None:
        self.make_ours(installation)
        lines = self.lines(installation, SERVED, "--service=", f"--apiservice={RESOURCE}")
        assert lines[f"owner/{RESOURCE}"].status is lines[f"certificate/{RESOURCE}"].status is CheckStatus.OK

    def test_hpas_that_lack_cpu_or_memory_are_shown_only_if_the_adapter_serves_them(
        self, installation: Installation
    ) -> None:
        both = [
            {"type": "ContainerResource", "containerResource": {"name": "memory", "container": "app"}},
            {"type": "Resource", "resource": {"name": "cpu"}},
        ]
        installation.hpa("cpu", "FailedGetResourceMetric", "no metrics returned from resource metrics API")
        installation.hpa("one", None, metrics=both, current=[{"type": ""}, {"type": "Resource"}])
        installation.hpa("request", "FailedGetResourceMetric", "missing request for cpu in container app of Pod web-0")
        checked = ", and none that uses one fails to scale its target"
        line = self.lines(installation, None)["hpas"]
        assert line.message == f"no HPA lacks a custom or external metric{checked}; HPAs: 3"
        self.make_ours(installation)
        lines = self.lines(installation, SERVED)
        assert lines["hpas"].message == "HPAs that lack a metric: 3 of 3"
        assert "no metrics returned from resource metrics API" in lines["hpa/shop/cpu"].message
        assert "it could not use ContainerResource metric memory" in lines["hpa/shop/one"].message
        assert "set the request" in lines["hpa/shop/request"].fix

    def test_our_own_unavailable_apiservice_is_an_error(self, installation: Installation) -> None:
        self.make_ours(installation, {"conditions": [{"type": "Available", "status": "False", "reason": "Strange"}]})
        known, unknown = self.line(installation, SERVED), self.line(installation, None)
        assert known.status is unknown.status is CheckStatus.ERROR
        assert "it is not available: Strange" in known.message
        assert unknown.message == known.message
        assert unknown.fix == f"{known.fix}; or its rules hold no resourceRules: set --config to check that"

    @pytest.mark.parametrize("rules", [OTHERS, SERVED.replace("<<.GroupBy>>", "<<.Nothing>>")])
    def test_our_own_apiservice_without_valid_rules_is_an_error(self, installation: Installation, rules: str) -> None:
        self.make_ours(installation)
        line = self.line(installation, rules)
        assert line.status is CheckStatus.ERROR
        assert f"it points to {SERVICE}, whose rules hold no resourceRules that can be served" in line.message

    def test_an_apiservice_for_cpu_and_memory_that_may_not_be_read_is_unknown(self, installation: Installation) -> None:
        installation.cluster.objects.deny("get", "apiservices")
        line = self.line(installation, SERVED)
        assert line.status is CheckStatus.UNKNOWN
        assert f"grant get on the apiservice {RESOURCE}" in line.fix

    @pytest.mark.parametrize(("text", "words"), [(None, "cannot read the file"), ("rules: [", "rules.yaml")])
    def test_unreadable_rule_files_are_a_usage_error(self, tmp_path: Path, text: str | None, words: str) -> None:
        file = tmp_path / "rules.yaml"
        if text:
            file.write_text(text)
        with pytest.raises(UsageError, match=words):
            doctor_settings(parse_flags(DOCTOR, [f"--config={file}"], {}))
