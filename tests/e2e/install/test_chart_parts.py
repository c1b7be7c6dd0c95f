"""The objects that single values of the chart become."""

from __future__ import annotations

import base64
import re
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from adapter.commands.rule_files import load_configuration
from adapter.foundation.files.file_contents import read_files
from adapter.foundation.objects.resources import BUILT_IN, find_resource
from adapter.metrics.rulebook.parsing.parse import parse_rulebook
from tests.helm.cases import CA, rendered, resource_rules
from tests.helm.chart import NAME, NAMESPACE, HelmError, render, selector_of
from tests.helm.fields import MODELS, check_fields
from tests.helm.recommenders import LINEAR, configuration

RECOMMENDER: Final[dict[str, Any]] = {"enabled": True, "config": configuration(LINEAR)}


def test_the_adapter_gets_the_rules_unchanged(tmp_path: Path) -> None:
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


def test_a_release_without_rules_of_its_own_serves_the_shipped_ones() -> None:
    files = {
        case: set(rendered(case).one("ConfigMap", f"{NAME}-rules")["data"])
        for case in ("defaults", "everything", "no rules", "all that ships")
    }
    assert files == {
        "defaults": {"15-websocket.yaml"},
        "everything": {"10-default.yaml", "20-rules.yaml"},
        "no rules": {"20-rules.yaml"},
        "all that ships": {"15-recommendations.yaml", "15-websocket.yaml"},
    }


def test_without_rules_there_is_a_rule_file_all_the_same() -> None:
    (text,) = rendered("no rules").one("ConfigMap", f"{NAME}-rules")["data"].values()
    assert text.split("\n") == ["externalRules: []", "rules: []"]


def test_the_adapter_gets_the_resource_rules_unchanged() -> None:
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


@pytest.mark.parametrize(
    ("prometheus", "url"),
    [
        ({}, "http://prometheus.default.svc:9090"),
        ({"port": 0}, "http://prometheus.default.svc"),
        ({"path": "/p"}, "http://prometheus.default.svc:9090/p"),
        ({"url": "http://prometheus.monitoring:9090"}, "http://prometheus.monitoring:9090"),
        ({"url": "http://prometheus.monitoring:9090/"}, "http://prometheus.monitoring:9090"),
        ({"url": "https://mimir.example/prometheus/"}, "https://mimir.example/prometheus/"),
        ({"url": "http://thanos:10902/prom"}, "http://thanos:10902/prom"),
        ({"url": "http://thanos:10902", "path": "/prom"}, "http://thanos:10902/prom"),
        ({"url": "http://[fd00::1]"}, "http://[fd00::1]:9090"),
        ({"url": "http://[fd00::1]:80"}, "http://[fd00::1]:80"),
        ({"url": "https://{{ .Release.Name }}-prom", "path": "/p"}, "https://tidewatch-prom:9090/p"),
        ({"url": "https://{{ .Release.Name }}-prom:443"}, "https://tidewatch-prom:443"),
    ],
)
def test_prometheus_is_where_the_values_say(prometheus: dict[str, object], url: str) -> None:
    assert render({"prometheus": prometheus}).flags.text("prometheus-url") == url


def test_credentials_for_prometheus_come_from_the_secret() -> None:
    flags, folder = rendered("everything").flags, Path("/etc/tidewatch/prometheus")
    for name, key in (("ca-file", "ca.crt"), ("token-file", "token"), ("client-tls-cert-file", "tls.crt")):
        assert flags.path(f"prometheus-{name}") == folder / key
    assert flags.path("prometheus-client-tls-key-file") == folder / "tls.key"
    flags = rendered("basic auth").flags
    assert (flags.text("prometheus-username"), flags.path("prometheus-password-file")) == ("u", folder / "p")


def test_matchers_reach_the_adapter_and_its_nodes() -> None:
    written = 'cluster="eu-1",region=~"a|b"'
    assert rendered("everything").flags.text("prometheus-matchers") == written
    nodes = render({"nodes": {"enabled": True}, "prometheus": {"matchers": written}}).nodes["containers"][0]
    assert f"--prometheus-matchers={written}" in nodes["args"]


@pytest.mark.parametrize(
    ("values", "matchers"),
    [
        ({}, f'namespace=~"|{NAMESPACE}"'),
        (
            {"recommender": RECOMMENDER, "metrics": {"serviceMonitor": {"enabled": True}}},
            f'namespace="{NAMESPACE}",service="tidewatch-recommender-metrics"',
        ),
        (
            {"recommender": RECOMMENDER, "metrics": {"podMonitor": {"enabled": True}}},
            f'namespace="{NAMESPACE}",job="{NAMESPACE}/tidewatch-recommender-metrics"',
        ),
        ({"rules": {"recommenderMatchers": 'namespace=~"a|b",x="it\'s"'}}, 'namespace=~"a|b",x="it\'s"'),
    ],
)
def test_recommendations_are_those_of_the_release_s_own_recommender(values: dict[str, Any], matchers: str) -> None:
    release = render(values | {"rules": {"shipped": ["recommendations"], **values.get("rules", {})}})
    text = release.one("ConfigMap", f"{NAME}-rules")["data"]["15-recommendations.yaml"]
    rules = yaml.safe_load(text)
    found = [*rules["rules"], *rules["externalRules"]]
    assert len(found) == 10
    assert all(f"{{{matchers}," in rule[key] for rule in found for key in ("seriesQuery", "metricsQuery"))
    assert all(rule["metricsQuery"].count("{") == 1 for rule in found)
    if values.get("recommender"):
        kind = "ServiceMonitor" if "serviceMonitor" in values["metrics"] else "PodMonitor"
        assert release.one(kind, "tidewatch-recommender-metrics")
        scraped = [one["metadata"]["name"] for one in release.all("Service")]
        assert ("tidewatch-recommender-metrics" in scraped) == (kind == "ServiceMonitor")


@pytest.mark.parametrize(
    ("part", "kind", "key"),
    [
        ("recommender", "RecommenderConfiguration", "recommender.yaml"),
        ("nodes", "SchedulingConfiguration", "scheduling.yaml"),
    ],
)
def test_a_configuration_may_begin_with_an_indented_comment(part: str, kind: str, key: str) -> None:
    text = f"    # Ours.\napiVersion: tidewatch.io/v1alpha1\nkind: {kind}\nrecommendations: []\n"
    release = render({part: {"enabled": True, "config": text}})
    assert release.one("ConfigMap", f"tidewatch-{part}")["data"][key].rstrip() == text.rstrip()


def test_a_recommender_that_would_read_all_clusters_is_refused() -> None:
    connection = {"url": "http://prometheus:9090"}

    def values(prometheus: dict[str, str]) -> dict[str, Any]:
        config = {**RECOMMENDER["config"], "prometheus": prometheus}
        return {"prometheus": {"matchers": 'cluster="a"'}, "recommender": {"enabled": True, "config": config}}

    with pytest.raises(HelmError, match=r"prometheus of recommender\.config has no matchers"):
        render(values(connection))
    assert render(values({**connection, "matchers": 'cluster="a"'})).recommender


def test_the_api_server_verifies_by_the_given_ca() -> None:
    bundles = [one["spec"]["caBundle"] for one in rendered("a given certificate").all("APIService")]
    assert [base64.b64decode(bundle).decode() for bundle in bundles] == [CA] * 3


def test_cert_manager_signs_the_name_that_the_api_server_verifies() -> None:
    release = rendered("cert-manager")
    serving = release.one("Certificate", f"{NAME}-tls")
    assert serving["spec"]["dnsNames"] == [f"{NAME}.{NAMESPACE}.svc"]
    assert "server auth" in serving["spec"]["usages"]
    authority = release.one("Certificate", f"{NAME}-tls-ca")
    issuer = release.one("Issuer", serving["spec"]["issuerRef"]["name"])
    assert issuer["spec"] == {"ca": {"secretName": authority["spec"]["secretName"]}}
    assert release.one("Issuer", authority["spec"]["issuerRef"]["name"])["spec"] == {"selfSigned": {}}
    notes = [one["metadata"]["annotations"] for one in release.all("APIService")]
    assert notes == [{"cert-manager.io/inject-ca-from": f"{NAMESPACE}/{NAME}-tls"}] * 3


def test_the_users_own_issuer_is_used_unchanged() -> None:
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


def test_without_a_number_of_pods_an_hpa_keeps_the_one_that_it_has_set() -> None:
    release = render({"replicas": None, "nodes": {"enabled": True, "replicas": None}})
    assert [one for one in release.all("Deployment") if "replicas" in one["spec"]] == []
    assert len(release.all("PodDisruptionBudget")) == len(release.all("Deployment")) == 2


def test_names_that_look_like_numbers_are_names() -> None:
    values = {
        "prometheus": {"credentials": {"secret": "1234567", "token": "token"}},
        "rules": {"existing": "12345"},
        "serviceAccount": {"name": "0123"},
        "priorityClassName": "1000",
        "recommender": RECOMMENDER | {"priorityClassName": "true", "serviceAccount": {"name": "null"}},
        "nodes": {
            "enabled": True,
            "scheduler": {"enabled": True, "clientCertificateSecret": "3", "priorityClassName": "1000"},
            "tls": {"secret": "1", "clientCASecret": "2"},
            "token": {"key": "0123"},
        },
    }
    release = render(values, namespace="1000000")
    for one in release.objects:
        if one["kind"] in MODELS:
            check_fields(one)
    assert {one["metadata"]["namespace"] for one in release.all("Deployment")} == {"1000000"}
    mounted = {volume["secret"]["secretName"] for volume in release.nodes["volumes"] if "secret" in volume}
    assert {"1", "2", "1234567"} <= mounted
    assert release.pod["serviceAccountName"] == "0123"


def test_labels_of_pods_cannot_change_the_labels_of_the_selector() -> None:
    labels = rendered("everything").one("Deployment")["spec"]["template"]["metadata"]["labels"]
    assert (labels["team"], labels["app.kubernetes.io/name"]) == ("platform", "tidewatch")


def test_the_image_is_named_by_digest_or_by_the_version_of_the_chart() -> None:
    assert rendered("everything").container["image"] == f"tidewatch@sha256:{64 * 'a'}"
    assert re.fullmatch(r"tidewatch:\d+\.\d+\.\d+", rendered("defaults").container["image"])


def test_labels_for_finding_an_object_take_the_place_of_the_charts_own() -> None:
    labels = {"app.kubernetes.io/instance": "kube-prometheus", "role": "found"}
    values = {
        "recommender": RECOMMENDER,
        "nodes": {"enabled": True},
        "prometheusRule": {"enabled": True, "labels": labels},
        "dashboards": {"enabled": True, "labels": labels},
    }
    # A key that stands twice is refused when the output is read.
    for monitor in ("serviceMonitor", "podMonitor"):
        release = render(values | {"metrics": {monitor: {"enabled": True, "labels": labels}}})
        kinds = ("ServiceMonitor", "PodMonitor", "PrometheusRule")
        found = [one for kind in kinds for one in release.all(kind)]
        found += [one for one in release.all("ConfigMap") if "-dashboard-" in one["metadata"]["name"]]
        assert len(found) == 3 + 2 + 5
        for one in found:
            assert labels.items() <= one["metadata"]["labels"].items()
            assert one["metadata"]["labels"]["app.kubernetes.io/name"] == "tidewatch"
