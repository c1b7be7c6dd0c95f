"""The recommender as the chart renders it: it gets the rights of its configuration and no others."""

from __future__ import annotations

import json
import tarfile
from typing import TYPE_CHECKING

import pytest
import yaml

from adapter.foundation.objects.resources import BUILT_IN, Resource, UnknownResourceError, find_resource
from adapter.foundation.service.flags.parsing import parse_flags
from adapter.foundation.service.server.addresses import Address
from recommender.commands.run.flags import RUN
from recommender.commands.run.run_settings import server_options
from recommender.configuration.objects.definition import definition
from recommender.configuration.reading import read_configuration
from recommender.configuration.rights import rights_of
from recommender.kinds.role_rules import RoleRule
from recommender.running.memory.store_protocol import NAME_PREFIX, memory_object_name
from tests.helm.chart import CHART, NAMESPACE, Object, Release, component_of, helm, render, selector_of
from tests.helm.fields import MODELS, check_fields
from tests.helm.recommenders import CONFIGURATIONS, LINEAR, PLURALS, RECOMMENDER_CASES, configuration
from tests.helm.recommenders import rendered_recommender as rendered

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from adapter.foundation.service.flags.table import FlagValues
    from recommender.configuration.recommender_configuration import Configuration

SELECTING = {"Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy", "PodMonitor", "ServiceMonitor"}
ROLES = {"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"}
NAME = "tidewatch-recommender"


@pytest.fixture(params=RECOMMENDER_CASES)
def case(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def release(case: str) -> Release:
    return rendered(case)


def recommenders(release: Release, *kinds: str) -> list[Object]:
    return [one for one in release.objects if one["kind"] in kinds and component_of(one) == "recommender"]


def read(case: str) -> Configuration:
    found = read_configuration(yaml.safe_dump(CONFIGURATIONS[case]), "recommender.yaml")
    assert not found.refused
    return found


def resolve(group: str, name: str) -> Resource:
    """Return a resource as discovery does in a cluster with the kinds of the cases."""
    try:
        return find_resource(BUILT_IN, group, name)
    except UnknownResourceError:
        return Resource(group, "v1", PLURALS[name], name.lower(), name, namespaced=True)


def granted(release: Release) -> Iterator[tuple[object, ...]]:
    """Yield each single right that the recommender's roles grant."""
    for role in recommenders(release, "Role", "ClusterRole"):
        for rule in role["rules"]:
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    plural, _, subresource = resource.partition("/")
                    names = tuple(rule.get("resourceNames", ()))
                    place = role["metadata"].get("namespace", "")
                    yield from single(RoleRule(place, group, plural, subresource, tuple(rule["verbs"]), names))


def single(right: RoleRule) -> Iterator[tuple[object, ...]]:
    for verb in right.verbs:
        for name in right.names or ("*",):
            yield right.namespace, right.api_group, right.resource, right.subresource, verb, name


def test_the_rights_are_those_of_the_configuration_none_too_many_none_missing(release: Release, case: str) -> None:
    rights = rights_of(read(case), namespace=NAMESPACE, resolve=resolve, memory_name=memory_object_name)
    given = list(granted(release))
    assert sorted(given) == sorted(one for right in rights for one in single(right))
    assert len(given) == len(set(given))


def test_the_kind_of_objects_is_installed_and_writable_for_teams_only_if_enabled(release: Release, case: str) -> None:
    is_wanted = case == "objects of teams"
    kinds = [one for one in release.all("CustomResourceDefinition") if component_of(one) == "recommendations"]
    assert [one["metadata"]["name"] for one in kinds] == (["recommendations.tidewatch.io"] if is_wanted else [])
    for one in kinds:
        assert one["spec"] == definition()["spec"]
        assert one["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    roles = [one for one in release.all("ClusterRole") if component_of(one) == "recommendations"]
    assert len(roles) == (2 if is_wanted else 0)
    for role in roles:
        writes = {"create", "update", "patch", "delete"} & set(role["rules"][0]["verbs"])
        grown = {key for key in role["metadata"]["labels"] if "aggregate-to-view" in key}
        assert bool(writes) is not bool(grown)


def test_each_role_is_bound_to_the_recommender_alone(release: Release) -> None:
    account = {
        "kind": "ServiceAccount",
        "name": release.recommender["serviceAccountName"],
        "namespace": NAMESPACE,
    }
    bindings = recommenders(release, "RoleBinding", "ClusterRoleBinding")
    roles = recommenders(release, "Role", "ClusterRole")
    assert [binding["subjects"] for binding in bindings] == [[account]] * len(roles)
    bound = {(binding["metadata"].get("namespace"), binding["roleRef"]["name"]) for binding in bindings}
    assert bound == {(role["metadata"].get("namespace"), role["metadata"]["name"]) for role in roles}


def test_the_names_of_unusual_kinds_can_be_given() -> None:
    target = {"apiVersion": "example.com/v1", "kind": "Datum", "namespace": "default", "name": "a"}
    settings = {"config": configuration(LINEAR | {"targets": [target]}), "rbac": {"plurals": {"Datum": "data"}}}
    release = render({"recommender": {"enabled": True, **settings}})
    assert {resource for _, group, resource, *_ in granted(release) if group == "example.com"} == {"data"}


def test_rights_can_come_from_elsewhere() -> None:
    settings = {"config": configuration(LINEAR), "rbac": {"create": False}, "serviceAccount": {"create": False}}
    release = render({"recommender": {"enabled": True, **settings}})
    assert recommenders(release, *ROLES, "ServiceAccount") == []
    assert release.recommender["serviceAccountName"] == "default"


def test_kubernetes_accepts_every_object(release: Release) -> None:
    for one in release.objects:
        if one["kind"] in MODELS:
            check_fields(one)
    seen = [(one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]) for one in release.objects]
    assert len(seen) == len(set(seen))


def test_selectors_match_only_the_pods_of_their_own_component(release: Release) -> None:
    for component in {component_of(one) for one in release.all("Deployment")}:
        (deployment,) = [one for one in release.all("Deployment") if component_of(one) == component]
        labels = deployment["spec"]["template"]["metadata"]["labels"]
        selecting = [one for one in release.objects if one["kind"] in SELECTING and component_of(one) == component]
        for one in selecting:
            wanted = {key: value for key, value in selector_of(one).items() if key != "tidewatch.io/scrape"}
            assert wanted == {key: labels[key] for key in wanted}, one["kind"]
            assert wanted["app.kubernetes.io/component"] == component
        for constraint in deployment["spec"]["template"]["spec"]["topologySpreadConstraints"]:
            assert constraint["labelSelector"]["matchLabels"].items() <= labels.items()


def test_the_program_gets_the_file_unchanged(release: Release, case: str) -> None:
    (container,) = release.recommender["containers"]
    assert container["command"] == ["tidewatch-recommender"]
    assert container["args"][:2] == ["run", "--config=/etc/tidewatch/recommender/recommender.yaml"]
    (volume,) = [volume for volume in release.recommender["volumes"] if volume["name"] == "config"]
    if case.startswith("an existing"):
        assert volume["configMap"]["name"] == "mine"
    else:
        text = release.one("ConfigMap", volume["configMap"]["name"])["data"]["recommender.yaml"]
        assert read_configuration(text, "recommender.yaml").refused == ()
        assert yaml.safe_load(text) == CONFIGURATIONS[case]
        assert text.startswith("# With a comment.") == (case == "a text")


def test_the_history_and_all_other_files_have_their_volumes(release: Release, case: str) -> None:
    (container,) = release.recommender["containers"]
    mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    assert sorted(mounts.values()) == sorted(volume["name"] for volume in release.recommender["volumes"])
    folder = {"a text": "/var/lib/tidewatch/history", "everything": "/var/cache/history"}
    assert mounts[folder.get(case, "/var/lib/tidewatch/state")] == "state"
    assert ("prometheus" in mounts.values()) == (case == "everything")
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert release.recommender["securityContext"]["runAsUser"] == 10001


def flags_of(release: Release) -> FlagValues:
    """Return the arguments as the program reads them."""
    (container,) = release.recommender["containers"]
    return parse_flags(RUN, container["args"][1:], {})


def test_the_program_accepts_its_arguments_without_a_warning(release: Release) -> None:
    assert flags_of(release).warnings == ()


def test_the_program_has_time_to_end(release: Release, case: str) -> None:
    end_seconds = server_options(flags_of(release), read(case).listen).end_seconds
    assert end_seconds + 5 <= release.recommender["terminationGracePeriodSeconds"] <= end_seconds + 15


def test_the_page_is_local_unless_it_is_opened(release: Release, case: str) -> None:
    (container,) = release.recommender["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    is_open = case == "everything"
    assert ports == {"metrics": 8080} | ({"page": 8081} if is_open else {})
    assert f"--bind-address={'0.0.0.0' if is_open else '127.0.0.1'}" in container["args"]
    server = server_options(flags_of(release), read(case).listen)
    assert (server.address.port, server.plain_address) == (8081, Address("", 8080))
    probes = [container[probe]["httpGet"]["port"] for probe in ("startupProbe", "readinessProbe", "livenessProbe")]
    assert probes == ["metrics"] * 3


def test_each_component_has_its_monitors_policies_and_budgets() -> None:
    kinds = ("Service", "ServiceMonitor", "NetworkPolicy", "PodDisruptionBudget")
    release = rendered("everything")
    found = {(one["kind"], component_of(one)) for one in release.objects if one["kind"] in kinds}
    assert found == {(kind, component) for kind in kinds for component in ("adapter", "recommender")}
    policy = release.one("NetworkPolicy", NAME)["spec"]["ingress"]
    assert {rule["ports"][0]["port"]: rule["from"] for rule in policy} == {
        "metrics": [{"namespaceSelector": {}}],
        "page": [{"podSelector": {"matchLabels": {"app": "oauth-proxy"}}}],
    }
    service = release.one("Service", f"{NAME}-metrics")["spec"]
    assert [(port["port"], port["targetPort"]) for port in service["ports"]] == [(8080, "metrics")]
    assert recommenders(rendered("without a Lease"), "PodDisruptionBudget") == []
    assert len(recommenders(rendered("no recommendation yet"), "PodMonitor")) == 1


def test_the_recommender_can_be_installed_alone() -> None:
    release = rendered("metrics of nothing")
    assert {component_of(one) for one in release.objects} == {"recommender", "alerts"}
    assert release.all("APIService") == []


def test_alerts_and_dashboards_are_of_the_components_that_are_installed() -> None:
    shared, adapter, recommender = "tidewatch", "tidewatch-adapter", "tidewatch-recommender"
    for case, groups in {
        "metrics of nothing": [shared, recommender],
        "everything": [shared, adapter, recommender],
    }.items():
        release = rendered(case)
        (rules,) = release.all("PrometheusRule")
        assert rules["metadata"]["labels"]["release"] == "prom"
        assert [group["name"] for group in rules["spec"]["groups"]] == groups
    labelled = [
        one for one in rendered("everything").all("ConfigMap") if "grafana_dashboard" in one["metadata"]["labels"]
    ]
    assert {name for one in labelled for name in one["data"]} == {
        "tidewatch-adapter.json",
        "tidewatch-recommendations.json",
        "tidewatch-workload.json",
        "tidewatch-predictions.json",
    }
    assert [one["metadata"]["annotations"] for one in labelled] == [{"grafana_folder": "Autoscaling"}] * 4
    for one in labelled:
        for name, text in one["data"].items():
            assert json.loads(text)["uid"] == name.removesuffix(".json")


def test_dashboards_link_to_the_pages_that_the_chart_names() -> None:
    texts = {
        name: json.loads(text)
        for one in rendered("everything").all("ConfigMap")
        for name, text in one["data"].items()
        if name.endswith(".json")
    }
    addresses = {
        name: [one["query"] for one in model["templating"]["list"] if one["name"] == "page"]
        for name, model in texts.items()
    }
    page = ["https://tidewatch.example.com/page"]
    names = ("recommendations", "workload", "predictions")
    assert addresses == {"tidewatch-adapter.json": []} | {f"tidewatch-{name}.json": page for name in names}
    assert "localhost" not in json.dumps(texts)


def test_the_package_of_the_chart_has_the_dashboards_and_no_code(tmp_path: Path) -> None:
    helm("package", str(CHART), "--destination", str(tmp_path))
    (package,) = tmp_path.iterdir()
    with tarfile.open(package) as archive:
        names = archive.getnames()
    assert {"tidewatch/dashboards/adapter.json", "tidewatch/files/alerts/shared.yaml"} <= set(names)
    assert [name for name in names if name.endswith((".py", ".pyc"))] == []


def test_a_recommender_adds_to_the_adapter_its_rules_and_the_right_to_read_their_targets() -> None:
    beside = [one for one in rendered("one recommendation").objects if component_of(one) == "adapter"]
    shipped = {"rules": {"shipped": ["websocket", "recommendations"]}}
    assert beside == list(render(shipped).objects)


def test_the_selectors_of_deployments_never_change() -> None:
    common = {"app.kubernetes.io/name": "tidewatch", "app.kubernetes.io/instance": "tidewatch"}
    assert {one["metadata"]["name"]: selector_of(one) for one in rendered("one recommendation").all("Deployment")} == {
        f"tidewatch-{component}": common | {"app.kubernetes.io/component": component}
        for component in ("adapter", "recommender")
    }


def test_no_object_of_the_chart_can_take_the_name_of_a_memory(release: Release) -> None:
    names = {one["metadata"]["name"] for one in release.all("ConfigMap")}
    assert not [name for name in names if name.startswith(NAME_PREFIX)]
