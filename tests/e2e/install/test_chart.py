"""The objects of the chart fit together and ask for no more rights than they need, whatever the values.

These tests read what would be installed, as a reviewer does; other tests install the chart and show that it works.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from adapter.commands.serve.certificates import kept_certificate
from adapter.commands.table import COMMANDS
from adapter.foundation.service.server.addresses import Address
from adapter.foundation.service.server.server_settings import ServerOptions
from docs.generate.metric_rule_crd import metric_rule_crd
from tests.helm.cases import CASES, rendered
from tests.helm.chart import CHART, NAME, NAMESPACE, Object, Release, helm, selector_of
from tests.helm.fields import MODELS, check_fields

RESOURCE = "v1beta1.metrics.k8s.io"
BUILT_IN_ROLES = {"system:auth-delegator", "extension-apiserver-authentication-reader"}
CLUSTER_KINDS = {"APIService", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition"}
FOREIGN = {"cert-manager.io/v1", "monitoring.coreos.com/v1", "apiextensions.k8s.io/v1"}
"""API versions without a model; tests/e2e/metrics_apis/test_metric_rules.py installs the definition."""
OWN_GROUP = "tidewatch.io"
SELECTING = {"Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy", "PodMonitor"}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def release(case: str) -> Release:
    return rendered(case)


def names(release: Release, kind: str) -> set[str]:
    return {one["metadata"]["name"] for one in release.all(kind)}


def test_helm_lint_has_no_complaint() -> None:
    assert "0 chart(s) failed" in helm("lint", "--strict", str(CHART))


def test_kubernetes_accepts_every_object(release: Release) -> None:
    for one in release.objects:
        if one["kind"] in MODELS:
            check_fields(one)
    foreign = {one["apiVersion"] for one in release.objects if one["kind"] not in MODELS}
    assert foreign <= FOREIGN


def test_every_object_has_a_namespace_and_a_unique_name(release: Release) -> None:
    seen = [(one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]) for one in release.objects]
    assert len(seen) == len(set(seen))
    for kind, namespace, name in seen:
        elsewhere = "kube-system" if name.endswith("-auth-reader") else NAMESPACE
        assert namespace == (None if kind in CLUSTER_KINDS else elsewhere), (kind, name)


def test_all_selectors_match_the_pods_of_the_adapter(release: Release) -> None:
    labels = release.all("Deployment")[0]["spec"]["template"]["metadata"]["labels"]
    selecting = [one for one in release.objects if one["kind"] in SELECTING]
    assert len(selecting) >= 2
    for one in selecting:
        assert selector_of(one).items() <= labels.items(), one["kind"]
        assert len(selector_of(one)) == 3
    for constraint in release.pod["topologySpreadConstraints"]:
        assert constraint["labelSelector"]["matchLabels"].items() <= labels.items()


def test_ports_of_flags_probes_and_services_agree(release: Release) -> None:
    ports = {port["name"]: port["containerPort"] for port in release.container["ports"]}
    flags = release.flags
    plain = flags.address("plain-bind-address")
    assert plain
    assert ports == {"https": flags.integer("secure-port"), "metrics": plain.port}
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        get = release.container[probe]["httpGet"]
        assert (get["port"], get["scheme"]) == ("https", "HTTPS")
        assert get["path"] in {"/readyz", "/livez"}
    services = {one["metadata"]["name"]: one["spec"]["ports"] for one in release.all("Service")}
    assert all(port["targetPort"] in ports for found in services.values() for port in found)
    for registered in release.all("APIService"):
        service = registered["spec"]["service"]
        assert service["namespace"] == NAMESPACE
        assert service["port"] in [port["port"] for port in services[service["name"]] if port["targetPort"] == "https"]


def test_the_program_accepts_its_arguments_without_a_warning(release: Release) -> None:
    assert release.container["command"] == ["tidewatch-adapter"]
    assert "serve" in COMMANDS.commands
    assert release.flags.warnings == ()


def test_every_file_that_a_flag_names_is_mounted(release: Release) -> None:
    mounts = {mount["mountPath"]: mount["name"] for mount in release.container["volumeMounts"]}
    assert sorted(mounts.values()) == sorted(volume["name"] for volume in release.pod["volumes"])
    told = [value for argument in release.arguments if (value := argument.partition("=")[2]).startswith("/")]
    assert told
    assert [path for path in told if not any(Path(path).is_relative_to(mount) for mount in mounts)] == []
    assert ("/tmp" in mounts) == any(Path(path).is_relative_to("/tmp") for path in told)


def test_every_mounted_object_is_made_or_named_by_the_user(release: Release, case: str) -> None:
    theirs = {
        "everything": {"c"},
        "basic auth": {"c"},
        "a given certificate": {"mine"},
        "rules of one's own": {"my-rules"},
        "resource metrics, by rules of one's own": {"my-rules"},
    }
    made = names(release, "ConfigMap") | {one["spec"]["secretName"] for one in release.all("Certificate")}
    wanted = {volume["configMap"]["name"] for volume in release.pod["volumes"] if "configMap" in volume}
    wanted |= {volume["secret"]["secretName"] for volume in release.pod["volumes"] if "secret" in volume}
    assert wanted - made == theirs.get(case, set())


def test_the_pods_have_no_more_rights_on_the_node_than_they_need(release: Release, case: str) -> None:
    security = release.pod["securityContext"]
    assert (security["runAsNonRoot"], security["seccompProfile"]) == (True, {"type": "RuntimeDefault"})
    assert security.get("runAsUser") == (None if case == "the platform's user" else 10001)
    assert release.container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert "hostPID" not in release.pod
    assert release.pod.get("hostNetwork", False) == (case == "the node's network")
    assert "cpu" not in release.container["resources"]["limits"]


def test_the_program_has_time_to_end(release: Release) -> None:
    delay = release.flags.seconds("shutdown-delay")
    options = ServerOptions(
        program="",
        version="",
        metrics_prefix="",
        address=Address("", 0),
        tls=None,
        plain_address=None,
        shutdown_delay_seconds=delay,
    )
    assert options.end_seconds + 5 <= release.pod["terminationGracePeriodSeconds"] <= options.end_seconds + 10


def test_tls_is_verified(release: Release, case: str) -> None:
    assert all("insecureSkipTLSVerify" not in one["spec"] for one in release.all("APIService"))
    published = set(release.flags.texts("apiservice"))
    injected = {
        one["metadata"]["name"]
        for one in release.all("APIService")
        if "cert-manager.io/inject-ca-from" in one["metadata"].get("annotations", {})
    }
    stated = {one["metadata"]["name"] for one in release.all("APIService") if "caBundle" in one["spec"]}
    ways = {"a given certificate": stated}
    expected = ways.get(case, injected if case.startswith("cert-manager") else published)
    assert expected == names(release, "APIService") == published | injected | stated
    assert len(published) + len(injected) + len(stated) == len(expected)


def test_a_self_signed_certificate_is_kept_in_a_writable_folder(release: Release) -> None:
    kept = kept_certificate(release.flags)
    secrets = release.all("Secret")
    assert len(secrets) == (1 if kept else 0)
    if kept:
        secret = release.one("Secret", kept.wanted.secret.name)
        # An upgrade would put back whatever stood here.
        assert "data" not in secret
        assert "stringData" not in secret
        assert secret["metadata"]["annotations"] == {"tidewatch.io/serving-certificate": "self-made"}
        assert kept.wanted.secret.namespace == kept.wanted.service.namespace == NAMESPACE
        assert kept.wanted.service.name in names(release, "Service")


def test_every_right_is_limited(release: Release) -> None:
    rules = [(one, rule) for kind in ("Role", "ClusterRole") for one in release.all(kind) for rule in one["rules"]]
    for one, rule in rules:
        reader = one["metadata"]["name"].endswith("-hpa-reader")
        assert "*" not in rule["apiGroups"]
        assert "*" not in rule["verbs"]
        of_metrics = {"custom.metrics.k8s.io", "external.metrics.k8s.io"} & set(rule["apiGroups"])
        assert ("*" in rule["resources"]) == bool(reader and of_metrics)
        if OWN_GROUP in rule["apiGroups"]:
            # Statuses of objects of any name, by the adapter; objects of a namespace, by its editors.
            assert (
                set(rule["verbs"]) <= {"get", "list", "watch"}
                or rule["resources"] == ["metricrules/status"]
                or (grown_roles(one) == {"edit", "admin"})
            )
        elif set(rule["verbs"]) - {"get", "list", "watch"} or "secrets" in rule["resources"]:
            assert rule["resourceNames"], "a right to write, or to a Secret, is for named objects alone"
            assert set(rule["verbs"]) == {"get", "patch"}


def test_every_binding_binds_an_existing_role_to_the_adapter(release: Release) -> None:
    account = release.pod["serviceAccountName"]
    roles = {kind: names(release, kind) | BUILT_IN_ROLES for kind in ("Role", "ClusterRole")}
    bindings = [*release.all("RoleBinding"), *release.all("ClusterRoleBinding")]
    for binding in bindings:
        assert binding["roleRef"]["name"] in roles[binding["roleRef"]["kind"]]
        (subject,) = binding["subjects"]
        reader = binding["metadata"]["name"].endswith("-hpa-reader")
        expected = ("kube-system", "horizontal-pod-autoscaler") if reader else (NAMESPACE, account)
        assert (subject["kind"], subject["namespace"], subject["name"]) == ("ServiceAccount", *expected)
    bound = {binding["roleRef"]["name"] for binding in bindings}
    aggregated = {one["metadata"]["name"] for one in release.all("ClusterRole") if grown_roles(one)}
    assert (names(release, "Role") | names(release, "ClusterRole")) - aggregated <= bound
    assert not aggregated & bound


def grown_roles(role: Object) -> set[str]:
    """Return the roles of Kubernetes' own that a ClusterRole is aggregated into."""
    prefix = "rbac.authorization.k8s.io/aggregate-to-"
    return {key.removeprefix(prefix) for key, value in role["metadata"]["labels"].items() if key.startswith(prefix)}


RESOURCE_CASES = {"resource metrics": True, "resource metrics, by rules of one's own": True}


def test_resource_metrics_are_registered_and_readable_only_if_enabled(release: Release, case: str) -> None:
    asked_for = RESOURCE_CASES.get(case, False)
    assert (RESOURCE in names(release, "APIService")) == asked_for
    roles = [one for one in release.all("ClusterRole") if OWN_GROUP not in one["rules"][-1]["apiGroups"]]
    readers = [one for one in roles if grown_roles(one)]
    assert [one["metadata"]["name"] for one in readers] == ([f"{NAME}-aggregated-metrics-reader"] if asked_for else [])
    for reader in readers:
        assert grown_roles(reader) == {"view", "edit", "admin"}
        assert reader["rules"] == [
            {"apiGroups": ["metrics.k8s.io"], "resources": ["pods", "nodes"], "verbs": ["get", "list"]}
        ]
    rules = [rule for one in roles for rule in one["rules"] if rule["apiGroups"] != [OWN_GROUP]]
    keepers = [rule for rule in rules if "patch" in rule["verbs"]]
    assert [set(rule["resourceNames"]) for rule in keepers] == ([names(release, "APIService")] if keepers else [])


def test_metric_rules_are_served_where_their_definition_is_installed(release: Release, case: str) -> None:
    is_wanted = case == "objects of teams"
    definitions = [
        one for one in release.all("CustomResourceDefinition") if one["spec"]["names"]["kind"] == "MetricRule"
    ]
    assert [one["spec"] for one in definitions] == ([metric_rule_crd()["spec"]] if is_wanted else [])
    assert [one["metadata"]["annotations"] for one in definitions] == (
        [{"helm.sh/resource-policy": "keep"}] if is_wanted else []
    )
    assert ("--metric-rules" in release.container["args"]) == is_wanted
    account = release.one("ClusterRole", NAME) if is_wanted else {"rules": []}
    rights = [rule for rule in account["rules"] if rule["apiGroups"] == [OWN_GROUP]]
    assert [(rule["resources"], rule["verbs"]) for rule in rights] == (
        [(["metricrules"], ["list", "watch"]), (["metricrules/status"], ["patch"])] if is_wanted else []
    )


def test_the_rights_are_these_and_no_others() -> None:
    apis = ["v1beta1.custom.metrics.k8s.io", "v1beta1.external.metrics.k8s.io", "v1beta2.custom.metrics.k8s.io"]
    release = rendered("defaults")
    assert release.one("ClusterRole")["rules"] == [
        {"apiGroups": [""], "resources": ["pods", "nodes", "namespaces"], "verbs": ["list", "watch"]},
        {
            "apiGroups": ["apiregistration.k8s.io"],
            "resources": ["apiservices"],
            "resourceNames": apis,
            "verbs": ["get", "patch"],
        },
    ]
    secret = f"{NAME}-serving"
    assert release.one("Role", secret)["rules"] == [
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [secret], "verbs": ["get", "patch"]}
    ]
    assert len(release.all("ClusterRole")) == len(release.all("Role")) == 1


@pytest.mark.parametrize("case", ["cert-manager", "a given certificate", "nobody is sent here"])
def test_without_a_certificate_of_its_own_it_may_write_nothing(case: str) -> None:
    verbs = [verb for one in rendered(case).all("ClusterRole") for rule in one["rules"] for verb in rule["verbs"]]
    assert set(verbs) == {"list", "watch"}
    assert rendered(case).all("Role") == []


def test_apiservices_are_named_and_preferred_as_kubernetes_wants_it(release: Release) -> None:
    for one in release.all("APIService"):
        spec = one["spec"]
        assert one["metadata"]["name"] == f"{spec['version']}.{spec['group']}"
        assert spec["versionPriority"] == (200 if spec["version"] == "v1beta2" else 100)
