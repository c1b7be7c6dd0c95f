"""The loads of nodes as the chart renders them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from adapter.commands.nodes.flags import NODES
from adapter.foundation.service.flags.parsing import parse_flags
from adapter.nodes.configuration.reading import read_scheduling
from tests.e2e.install.nodes_release import NAME, SCHEDULER, SHIPPED, of_component, pods
from tests.helm.chart import CHART, NAMESPACE, Release, component_of, render, selector_of
from tests.helm.fields import MODELS, check_fields
from tests.helm.nodes import CONFIGURATION, NODE_CASES
from tests.helm.nodes import rendered_nodes as rendered

SELECTING = {"Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy", "PodMonitor", "ServiceMonitor"}
READ = ("list", "watch")


@pytest.fixture(params=NODE_CASES)
def case(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def release(case: str) -> Release:
    return rendered(case)


def flags(release: Release) -> dict[str, str]:
    """Return the arguments of `tidewatch-adapter nodes`."""
    (container,) = release.nodes["containers"]
    command, *arguments = container["args"]
    assert (container["command"], command) == (["tidewatch-adapter"], "nodes")
    return {name: value for name, _, value in (argument.partition("=") for argument in arguments)}


def test_kubernetes_accepts_every_object(release: Release) -> None:
    for one in release.objects:
        if one["kind"] in MODELS:
            check_fields(one)
    seen = [(one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]) for one in release.objects]
    assert len(seen) == len(set(seen))


def test_no_object_of_it_exists_unless_it_is_enabled() -> None:
    assert {component_of(one) for one in render().objects} == {"adapter"}
    beside = [one for one in rendered("loads").objects if component_of(one) == "adapter"]
    assert beside == list(render().objects)
    assert {component_of(one) for one in rendered("loads alone").objects} == {"nodes"}


def test_selectors_match_only_the_pods_of_their_own_component(release: Release) -> None:
    for component in {component_of(one) for one in release.all("Deployment")}:
        (deployment,) = [one for one in release.all("Deployment") if component_of(one) == component]
        labels = deployment["spec"]["template"]["metadata"]["labels"]
        for one in of_component(release, component, *SELECTING):
            wanted = {key: value for key, value in selector_of(one).items() if key != "tidewatch.io/scrape"}
            assert wanted == {key: labels[key] for key in wanted}, one["kind"]
            assert wanted["app.kubernetes.io/component"] == component
        for constraint in deployment["spec"]["template"]["spec"]["topologySpreadConstraints"]:
            assert constraint["labelSelector"]["matchLabels"].items() <= labels.items()


def test_the_values_become_flags_of_the_program() -> None:
    plain = {
        "--port": "2020",
        "--plain-bind-address": ":9180",
        "--refresh-interval": "30s",
        "--node-metrics": "cpu,memory",
        "--state": "/state/nodes.bin",
        "--scheduling-config": "/etc/tidewatch/scheduling/scheduling.yaml",
        "--prometheus-url": "http://prometheus.default.svc:9090",
        "--log-format": "json",
        "--log-level": "info",
        "--shutdown-delay": "5s",
    }
    assert flags(rendered("open")) == plain
    made = plain | {
        "--tls-cert-file": "/etc/tidewatch/serving/tls.crt",
        "--tls-private-key-file": "/etc/tidewatch/serving/tls.key",
        "--tls-optional": "",
        "--client-ca-file": "/etc/tidewatch/client-ca/ca.crt",
        "--token-file": "/etc/tidewatch/token/token",
    }
    assert flags(rendered("loads")) == made
    assert flags(rendered("open to Trimaran")) == made | {"--open-watcher": ""}
    assert flags(rendered("everything")) == plain | {
        "--shutdown-delay": "40s",
        "--node-metrics": "cpu,gpu",
        "--prometheus-token-file": "/etc/tidewatch/prometheus/token",
        "--tls-cert-file": "/etc/tidewatch/serving/tls.crt",
        "--tls-private-key-file": "/etc/tidewatch/serving/tls.key",
        "--client-ca-file": "/etc/tidewatch/client-ca/ca.crt",
        "--token-file": "/etc/tidewatch/token/t",
        "--tls-min-version": "VersionTLS13",
    }


def test_the_program_accepts_its_arguments_without_a_warning_and_has_time_to_end(release: Release) -> None:
    (container,) = release.nodes["containers"]
    values = parse_flags(NODES, container["args"][1:], {})
    assert values.warnings == ()
    delay = values.seconds("shutdown-delay")
    assert delay + 10 <= release.nodes["terminationGracePeriodSeconds"] <= delay + 20


def test_the_program_accepts_the_configuration(case: str) -> None:
    for config in of_component(rendered(case), "nodes", "ConfigMap"):
        if "scheduling.yaml" in config["data"]:
            assert read_scheduling(config["data"]["scheduling.yaml"], case).policies


def test_every_file_that_a_flag_names_is_mounted(release: Release) -> None:
    for pod in pods(release):
        (container,) = pod["containers"]
        mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
        assert sorted(mounts.values()) == sorted(volume["name"] for volume in pod["volumes"])
        told = [value for argument in container["args"] if (value := argument.partition("=")[2]).startswith("/")]
        assert told
        assert [path for path in told if not any(Path(path).is_relative_to(mount) for mount in mounts)] == []
        assert "/tmp" not in mounts


def test_the_pods_have_no_more_rights_on_the_node_than_they_need(release: Release) -> None:
    for pod in pods(release):
        (container,) = pod["containers"]
        assert (pod["securityContext"]["runAsNonRoot"], pod["securityContext"]["runAsUser"]) == (True, 10001)
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert "cpu" not in container["resources"].get("limits", {})
        assert "hostNetwork" not in pod


def test_probes_use_the_port_without_tls_and_clients_the_other(release: Release) -> None:
    (container,) = release.nodes["containers"]
    assert {port["name"]: port["containerPort"] for port in container["ports"]} == {"api": 2020, "metrics": 9180}
    probes = [container[probe]["httpGet"] for probe in ("startupProbe", "readinessProbe", "livenessProbe")]
    assert [(probe["path"], probe["port"]) for probe in probes] == [
        ("/livez", "metrics"),
        ("/readyz", "metrics"),
        ("/livez", "metrics"),
    ]
    (service,) = [
        one for one in of_component(release, "nodes", "Service") if not one["metadata"]["name"].endswith("-metrics")
    ]
    assert [(port["port"], port["targetPort"]) for port in service["spec"]["ports"]] == [(2020, "api")]


def test_a_static_pod_can_be_given_an_address() -> None:
    services = {case: rendered(case).one("Service", NAME)["spec"] for case in ("loads", "everything")}
    assert "clusterIP" not in services["loads"]
    assert services["everything"]["clusterIP"] == "10.96.0.20"


def test_the_program_gets_the_shipped_configuration_or_that_of_the_values() -> None:
    def text(case: str) -> str:
        return str(rendered(case).one("ConfigMap", NAME)["data"]["scheduling.yaml"])

    assert text("loads").rstrip() == (SHIPPED / "scheduling.yaml").read_text().rstrip()
    assert yaml.safe_load(text("everything")) == yaml.safe_load(text("a text")) == CONFIGURATION
    assert text("a text").startswith("# With a comment.")
    existing = rendered("an existing ConfigMap")
    assert of_component(existing, "nodes", "ConfigMap") == []
    assert {"name": "scheduling", "configMap": {"name": "mine"}} in existing.nodes["volumes"]


def granted(release: Release, component: str) -> set[tuple[object, ...]]:
    """Return each single right that the component's own roles grant."""
    return {
        (role["metadata"].get("namespace", ""), group, resource, verb, name)
        for role in of_component(release, component, "Role", "ClusterRole")
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", ["*"])
    }


def test_the_rights_are_these_and_no_others() -> None:
    kinds = [("", kind) for kind in ("nodes", "pods", "services", "replicationcontrollers")]
    kinds += [("apps", kind) for kind in ("replicasets", "statefulsets", "daemonsets")]
    everywhere = {("", group, kind, verb, "*") for group, kind in kinds for verb in READ}
    release = rendered("a second scheduler")
    assert granted(release, "nodes") == everywhere
    leases = (NAMESPACE, "coordination.k8s.io", "leases")
    assert granted(release, "scheduler") == {
        (*leases, "create", "*"),
        (*leases, "get", SCHEDULER),
        (*leases, "update", SCHEDULER),
    }


def bound(release: Release, component: str) -> set[tuple[str, str]]:
    """Return kind and name of each role that is bound to the component's account alone."""
    account = {"nodes": release.nodes, "scheduler": release.scheduler}[component]["serviceAccountName"]
    bindings = of_component(release, component, "RoleBinding", "ClusterRoleBinding")
    subject = {"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}
    assert [binding["subjects"] for binding in bindings] == [[subject]] * len(bindings)
    return {(binding["roleRef"]["kind"], binding["roleRef"]["name"]) for binding in bindings}


def test_each_role_is_bound_to_its_own_account() -> None:
    release = rendered("everything")
    assert (release.nodes["serviceAccountName"], release.scheduler["serviceAccountName"]) == ("robot", SCHEDULER)
    assert bound(release, "nodes") == {("ClusterRole", NAME)}
    assert bound(release, "scheduler") == {
        ("ClusterRole", "system:kube-scheduler"),
        ("ClusterRole", "system:volume-scheduler"),
        ("Role", "extension-apiserver-authentication-reader"),
        ("Role", SCHEDULER),
    }


def test_rights_can_come_from_elsewhere() -> None:
    release = rendered("rights from elsewhere")
    roles = ("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding", "ServiceAccount")
    assert of_component(release, "nodes", *roles) == of_component(release, "scheduler", *roles) == []
    assert {pod["serviceAccountName"] for pod in pods(release)} == {"default"}


def test_monitors_policies_and_budgets_are_of_each_component() -> None:
    release = rendered("everything")
    kinds = ("ServiceMonitor", "NetworkPolicy", "PodDisruptionBudget")
    found = {(one["kind"], component_of(one)) for one in release.objects if one["kind"] in kinds}
    assert found == {(kind, component) for kind in kinds for component in ("adapter", "nodes")} | {
        (kind, "scheduler") for kind in ("NetworkPolicy", "PodDisruptionBudget")
    }
    assert of_component(rendered("an existing ConfigMap"), "nodes", "PodDisruptionBudget") == []
    assert len(of_component(rendered("some may ask"), "nodes", "PodMonitor")) == 1


def test_the_pods_of_nodes_have_a_network_policy_unless_it_is_turned_off() -> None:
    policies = {case: of_component(rendered(case), "nodes", "NetworkPolicy") for case in ("loads", "open")}
    assert policies["open"] == []
    (policy,) = policies["loads"]
    assert [component_of(one) for one in rendered("loads").all("NetworkPolicy")] == ["nodes"]
    (api,) = [rule["from"] for rule in policy["spec"]["ingress"] if rule["ports"][0]["port"] == "api"]
    system = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}}
    assert api == [{"podSelector": {}}, system]


def test_schedulers_on_the_host_network_may_ask_unless_peers_are_named() -> None:
    peers = {
        case: {
            rule["ports"][0]["port"]: rule.get("from")
            for rule in rendered(case).one("NetworkPolicy", NAME)["spec"]["ingress"]
        }
        for case in ("open to Trimaran", "some may ask")
    }
    metrics: list[dict[str, Any]] = [{"namespaceSelector": {}}]
    assert peers["open to Trimaran"] == {"api": None, "metrics": metrics}
    assert peers["some may ask"] == {"api": [{"ipBlock": {"cidr": "10.0.0.0/24"}}], "metrics": metrics}


def test_alerts_and_dashboard_come_with_it() -> None:
    release = rendered("everything")
    groups = {
        one["metadata"]["name"]: [group["name"] for group in one["spec"]["groups"]]
        for one in release.all("PrometheusRule")
    }
    assert groups["tidewatch"] == ["tidewatch", "tidewatch-adapter", "tidewatch-nodes"]
    dashboards = of_component(release, "nodes", "ConfigMap")
    assert {name for one in dashboards for name in one["data"]} == {"scheduling.yaml", "tidewatch-nodes.json"}


def test_the_alert_on_its_certificate_comes_without_the_adapter_too() -> None:
    alone = NODE_CASES["loads alone"] | {"prometheusRule": {"enabled": True}}
    rules = [
        rule["alert"]
        for one in render(alone).all("PrometheusRule")
        for group in one["spec"]["groups"]
        for rule in group["rules"]
        if "alert" in rule
    ]
    assert "TidewatchCertificateNearItsEnd" in rules


def test_recording_rules_come_with_it_unless_they_are_turned_off() -> None:
    expected = [
        group["name"]
        for file in sorted((CHART / "files" / "recording").glob("*.yaml"))
        for group in yaml.safe_load(file.read_text())["groups"]
    ]
    name = f"{NAME}-recording"
    found = [one for one in rendered("everything").all("PrometheusRule") if one["metadata"]["name"] == name]
    assert [group["name"] for one in found for group in one["spec"]["groups"]] == expected
    without = NODE_CASES["everything"] | {"nodes": NODE_CASES["everything"]["nodes"] | {"recordingRules": False}}
    assert name not in {one["metadata"]["name"] for one in render(without).all("PrometheusRule")}
