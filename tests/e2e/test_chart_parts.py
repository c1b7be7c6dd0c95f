"""What single values of the chart become."""

from __future__ import annotations

import base64
import re
from functools import partial
from pathlib import Path

import yaml

from adapter.commands.rule_files import load_configuration
from adapter.objects.resources import BUILT_IN, find_resource
from adapter.rulebook.parsing.parse import parse_rulebook
from adapter.timing.file_contents import read_files
from tests.helm.cases import CA, rendered, resource_rules
from tests.helm.chart import NAME, NAMESPACE, selector_of


def test_the_rules_come_to_the_adapter_as_they_were_given(tmp_path: Path) -> None:
    release = rendered("everything")
    (config,) = release.flags.paths("config")
    (mount,) = [mount for mount in release.container["volumeMounts"] if mount["mountPath"] == str(config)]
    (volume,) = [volume for volume in release.pod["volumes"] if volume["name"] == mount["name"]]
    for name, text in release.one("ConfigMap", volume["configMap"]["name"])["data"].items():
        (tmp_path / name).write_text(text)
    documents = load_configuration(read_files([tmp_path]))
    book = parse_rulebook(documents, partial(find_resource, BUILT_IN))
    assert (len(book.refused), len(book.rules)) == (0, 8)
    assert [Path(name).name for name in book.files] == ["10-default.yaml", "20-rules.yaml"]
    assert 'as: "yes"' in (tmp_path / "20-rules.yaml").read_text()


def test_without_rules_there_is_a_rule_file_all_the_same() -> None:
    (text,) = rendered("defaults").one("ConfigMap", f"{NAME}-rules")["data"].values()
    assert text.split("\n") == ["externalRules: []", "rules: []"]


def test_resource_rules_come_to_the_adapter_as_they_were_given() -> None:
    (text,) = rendered("resource metrics").one("ConfigMap", f"{NAME}-rules")["data"].values()
    assert yaml.safe_load(text) == {"externalRules": [], "rules": [], "resourceRules": resource_rules()}
    assert "resourceRules" not in rendered("everything").one("ConfigMap", f"{NAME}-rules")["data"]["20-rules.yaml"]


def test_the_hpa_controller_may_read_what_is_served() -> None:
    groups = {
        case: [rule["apiGroups"] for rule in rendered(case).one("ClusterRole", f"{NAME}-hpa-reader")["rules"]]
        for case in ("everything", "resource metrics")
    }
    custom = ["custom.metrics.k8s.io", "external.metrics.k8s.io"]
    assert groups == {"everything": [custom], "resource metrics": [custom, ["metrics.k8s.io"]]}


def test_prometheus_is_where_the_values_say() -> None:
    urls = {case: rendered(case).flags.text("prometheus-url") for case in ("defaults", "everything", "basic auth")}
    assert urls == {
        "defaults": "http://prometheus.default.svc:9090",
        "everything": "https://tidewatch-prom:9090/p",
        "basic auth": "http://prometheus.default.svc",
    }


def test_what_prometheus_asks_for_comes_from_the_secret() -> None:
    flags, folder = rendered("everything").flags, Path("/etc/tidewatch/prometheus")
    for name, key in (("ca-file", "ca.crt"), ("token-file", "token"), ("client-tls-cert-file", "tls.crt")):
        assert flags.path(f"prometheus-{name}") == folder / key
    assert flags.path("prometheus-client-tls-key-file") == folder / "tls.key"
    flags = rendered("basic auth").flags
    assert (flags.text("prometheus-username"), flags.path("prometheus-password-file")) == ("u", folder / "p")


def test_a_given_ca_is_what_the_api_server_verifies_by() -> None:
    bundles = [one["spec"]["caBundle"] for one in rendered("a given certificate").all("APIService")]
    assert [base64.b64decode(bundle).decode() for bundle in bundles] == [CA] * 3


def test_cert_manager_signs_the_name_that_the_api_server_verifies() -> None:
    release = rendered("cert-manager")
    serving = release.one("Certificate", f"{NAME}-serving")
    assert serving["spec"]["dnsNames"] == [f"{NAME}.{NAMESPACE}.svc"]
    assert "server auth" in serving["spec"]["usages"]
    authority = release.one("Certificate", f"{NAME}-serving-ca")
    issuer = release.one("Issuer", serving["spec"]["issuerRef"]["name"])
    assert issuer["spec"] == {"ca": {"secretName": authority["spec"]["secretName"]}}
    assert release.one("Issuer", authority["spec"]["issuerRef"]["name"])["spec"] == {"selfSigned": {}}
    notes = [one["metadata"]["annotations"] for one in release.all("APIService")]
    assert notes == [{"cert-manager.io/inject-ca-from": f"{NAMESPACE}/{NAME}-serving"}] * 3


def test_an_issuer_of_the_company_s_is_used_as_it_is() -> None:
    release = rendered("cert-manager, a company's issuer")
    assert release.all("Issuer") == []
    (serving,) = release.all("Certificate")
    assert serving["spec"]["issuerRef"] == {"kind": "ClusterIssuer", "name": "bank"}


def test_a_service_monitor_finds_the_metrics_and_not_the_api() -> None:
    release = rendered("everything")
    wanted = selector_of(release.one("ServiceMonitor", f"{NAME}-metrics")).items()
    found = [one for one in release.all("Service") if wanted <= one["metadata"]["labels"].items()]
    assert [one["metadata"]["name"] for one in found] == [f"{NAME}-metrics"]
    assert [port["name"] for port in found[0]["spec"]["ports"]] == ["metrics"]


def test_a_network_policy_leaves_the_api_open_and_metrics_to_pods() -> None:
    policy = rendered("everything").one("NetworkPolicy")["spec"]
    ports = {rule["ports"][0]["port"]: rule.get("from") for rule in policy["ingress"]}
    assert ports == {"https": None, "metrics": [{"namespaceSelector": {}}]}
    assert policy["policyTypes"] == ["Ingress"]


def test_a_budget_for_disruptions_is_for_more_than_one_replica() -> None:
    assert rendered("defaults").one("PodDisruptionBudget")["spec"]["maxUnavailable"] == 1
    assert rendered("one replica").all("PodDisruptionBudget") == []


def test_labels_of_the_pods_cannot_take_them_from_their_deployment() -> None:
    labels = rendered("everything").one("Deployment")["spec"]["template"]["metadata"]["labels"]
    assert (labels["team"], labels["app.kubernetes.io/name"]) == ("platform", "tidewatch")


def test_the_image_is_named_by_digest_or_by_the_version_of_the_chart() -> None:
    assert rendered("everything").container["image"] == f"tidewatch@sha256:{64 * 'a'}"
    assert re.fullmatch(r"tidewatch:\d+\.\d+\.\d+", rendered("defaults").container["image"])
