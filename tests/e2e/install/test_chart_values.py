"""Values that cannot be intended are refused with what to do."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.e2e.install.chart_values import nodes, recommender
from tests.helm.cases import CA, RULE, resource_rules
from tests.helm.chart import CHART, HelmError, helm, render
from tests.helm.recommenders import configuration

if TYPE_CHECKING:
    from pathlib import Path

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a value that does not exist": ({"prometheus": {"uri": "http://x"}}, "additional properties 'uri' not allowed"),
    "one of prometheus-adapter's chart": ({"tls": {"enable": True}}, "additional properties 'tls' not allowed"),
    "a text for a number": ({"replicas": "two"}, "/replicas': got string, want null or integer"),
    "a certificate that is not verified": ({"certificates": {"mode": "none"}}, "/certificates/mode': value must be"),
    "a URL without a scheme": ({"prometheus": {"url": "prometheus:9090"}}, "/prometheus/url'"),
    "a URL with a query": ({"prometheus": {"url": "http://prometheus?x=1"}}, "/prometheus/url'"),
    "a URL that a template makes wrong": (
        {"prometheus": {"url": "{{ .Release.Name }}:9090"}},
        'prometheus.url: "tidewatch:9090" is not the address of a Prometheus',
    ),
    "a path beside a URL with one": (
        {"prometheus": {"url": "http://mimir/prometheus", "path": "/prometheus"}},
        "has a path already: leave one of them out",
    ),
    "a text of a rule that YAML took for something else": (
        {"rules": {"custom": [RULE | {"name": {"as": True}}]}},
        "/rules/custom/0/name/as': got boolean, want string",
    ),
    "an unknown key of a rule": ({"rules": {"custom": [RULE | {"metricQuery": ""}]}}, "'metricQuery' not allowed"),
    "a blank in the tag of an image": ({"image": {"tag": "0.2.0 "}}, "/image/tag': '0.2.0 ' does not match pattern"),
    "a blank in the name of an image": ({"image": {"repository": " a"}}, "/image/repository': ' a' does not match"),
    "a digest as the tag of the scheduler's image": (
        nodes(scheduler={"image": {"tag": "sha256:0"}}),
        "/nodes/scheduler/image/tag': 'sha256:0' does not match pattern",
    ),
    "an argument that is no flag": ({"extraArguments": ["v=4"]}, "/extraArguments/0'"),
    "a port that the Service does not know": (
        {"extraArguments": ["--secure-port=1"]},
        "extraArguments: the chart sets --secure-port itself: set listenPort instead",
    ),
    "a configuration that is not mounted": (
        recommender(configuration(), extraArguments=["--config=/x"]),
        "recommender.extraArguments: the chart sets --config itself: set recommender.config instead",
    ),
    "an end of the recommender that nobody waits for": (
        recommender(configuration(), extraArguments=["--shutdown-delay=30s"]),
        (
            "recommender.extraArguments: the chart sets --shutdown-delay itself: "
            "set recommender.shutdownDelaySeconds instead"
        ),
    ),
    "an end of the loads that nobody waits for": (
        {"nodes": {"enabled": True, "extraArguments": ["--shutdown-delay=30s"]}},
        "nodes.extraArguments: the chart sets --shutdown-delay itself: set nodes.shutdownDelaySeconds instead",
    ),
    "a section that is taken away": ({"rules": None}, "missing property 'rules'"),
    "an unknown key of the resource rules": ({"rules": {"resource": {"gpu": {}}}}, "'gpu' not allowed"),
    "resource metrics without rules": (
        {"apiServices": {"resource": {"v1beta1": True}}},
        "apiServices.resource.v1beta1 is true, but no rule defines CPU and memory",
    ),
    "resource metrics of which nobody knows whose they are": (
        {"rules": {"resource": resource_rules()}},
        "confirm it with --set apiServices.resource.unchecked=true",
    ),
    "resource rules beside existing ones": (
        {"rules": {"existing": "a", "resource": resource_rules()}},
        "rules.existing: the rules come",
    ),
    "rules beside existing ones": ({"rules": {"existing": "a", "custom": [RULE]}}, "rules.existing: the rules come"),
    "a given certificate without a Secret": (
        {"certificates": {"mode": "given", "given": {"caBundle": CA}}},
        "name the Secret (certificates.given.secret)",
    ),
    "a given certificate without a CA": (
        {"certificates": {"mode": "given", "given": {"secret": "mine"}}},
        "--set-file certificates.given.caBundle=ca.crt",
    ),
    "a CA that is no PEM": (
        {"certificates": {"mode": "given", "given": {"secret": "mine", "caBundle": "TUlJQg=="}}},
        "/certificates/given/caBundle'",
    ),
    "a given certificate that is not used": (
        {"certificates": {"given": {"secret": "mine"}}},
        "certificates.given has values, but certificates.mode is self",
    ),
    "credentials without a Secret": (
        {"prometheus": {"credentials": {"token": "token"}}},
        "name it in prometheus.credentials.secret",
    ),
    "a client certificate without its key": (
        {"prometheus": {"credentials": {"secret": "c", "certificate": "tls.crt"}}},
        "certificate and key belong together",
    ),
    "a password without a user": (
        {"prometheus": {"credentials": {"secret": "c", "password": "password"}}},
        "password is set without username",
    ),
    "two ways to log in to Prometheus": (
        {"prometheus": {"credentials": {"secret": "c", "token": "token", "username": "u", "password": "password"}}},
        "token and username are two ways to log in",
    ),
    "two monitors": (
        {"metrics": {"podMonitor": {"enabled": True}, "serviceMonitor": {"enabled": True}}},
        "enable only one",
    ),
    "no component": (
        {"adapter": {"enabled": False}},
        "adapter.enabled, recommender.enabled and nodes.enabled are all false",
    ),
    "rules that do not ship": ({"rules": {"shipped": ["nginx"]}}, "/rules/shipped/0': value must be one of"),
    "shipped rules beside existing ones": (
        {"rules": {"existing": "a", "shipped": ["websocket"]}},
        "rules.existing: the rules come",
    ),
    "a recommender without a configuration": ({"recommender": {"enabled": True}}, "there is no configuration"),
    "two configurations": (
        recommender(configuration(), existingConfig="mine"),
        "recommender.config would have no effect",
    ),
    "rights that are derived": (
        recommender(configuration(), rbac={"recommendations": ["a"]}),
        "are derived from recommender.config",
    ),
    "two recommenders that both act": (
        recommender(configuration(leaderElection={"enabled": False})),
        "set recommender.replicas=1, or turn leader election on",
    ),
    "a configuration of something else": (
        recommender({"kind": "SchedulingConfiguration"}),
        "begin it with apiVersion: tidewatch.io/v1alpha1",
    ),
    "a configuration with broken YAML": (recommender("a: ["), "recommender.config is not a YAML mapping"),
    "a configuration that is no mapping": (recommender("- a"), "recommender.config is not a YAML mapping"),
    "a configuration without recommendations": (
        recommender({key: value for key, value in configuration().items() if key != "recommendations"}),
        "`recommendations` is not a list",
    ),
    "a recommendation without a name": (recommender(configuration({})), "recommendations[0] has no name"),
    "a target without a namespace": (
        recommender(configuration({"name": "a", "targets": [{"apiVersion": "v1", "kind": "Pod", "name": "x"}]})),
        "recommendations[0] (a): a target needs apiVersion, kind, namespace and name",
    ),
    "an output that is no list": (
        recommender(configuration({"name": "a", "outputs": "scale"})),
        "recommendations[0] (a): `targets` and `outputs` are lists",
    ),
    "parameters that are no mapping": (
        recommender(configuration({"name": "a", "proportional": "linear"})),
        "recommendations[0] (a): `proportional`, its `drivers` and its `configMap` are mappings",
    ),
    "a cluster size that is no mapping": (
        recommender(configuration({"name": "a", "clusterSize": "large"})),
        "recommendations[0] (a): `clusterSize` is a mapping, and its `nodeGroups` are a list or a mapping",
    ),
    "node groups that are no mapping": (
        recommender(configuration({"name": "a", "clusterSize": {"nodeGroups": {"clusterAPI": "all"}}})),
        "recommendations[0] (a): `clusterAPI`, `priorities` and its `configMap` are mappings",
    ),
    "a CapacityBuffer without a name": (
        recommender(
            configuration({"name": "a", "clusterSize": {"nodeGroups": []}, "capacityBuffer": {"namespace": "default"}})
        ),
        "recommendations[0] (a): `capacityBuffer` needs namespace and name",
    ),
    "rights of cluster sizes that are derived": (
        recommender(configuration(), rbac={"clusterSizes": [{"scale": True}]}),
        "are derived from recommender.config",
    ),
    "addresses that the chart sets": (
        recommender(configuration(listen={"page": ":80"})),
        "use recommender.page and recommender.metricsPort",
    ),
    "one port for page and metrics": (
        recommender(configuration(), metricsPort=8081),
        "recommender.page.port and recommender.metricsPort are both 8081",
    ),
    "a second scheduler without an extender": (
        {"nodes": {"scheduler": {"enabled": True}}},
        "the extender that it asks is not installed: set nodes.enabled=true",
    ),
    "a second scheduler with the name of the first": (
        nodes(scheduler={"enabled": True, "name": "default-scheduler"}),
        "two schedulers would place the same pods",
    ),
    "two scheduling configurations": (
        nodes(existingConfig="mine", config={"kind": "SchedulingConfiguration"}),
        "nodes.config would have no effect",
    ),
    "a scheduling configuration that is something else": (
        nodes(config=configuration()),
        "nodes.config: begin it with apiVersion: tidewatch.io/v1alpha1 and kind: SchedulingConfiguration",
    ),
    "a scheduling configuration with broken YAML": (nodes(config="a: ["), "nodes.config is not a YAML mapping"),
    "one port for loads and metrics": (nodes(port=9180), "nodes.port and nodes.metricsPort are both 9180"),
    "client certificates without HTTPS": (
        nodes(closed=False, tls={"clientCASecret": "clients"}),
        "name the Secret of the serving certificate in nodes.tls.secret",
    ),
    "a scheduler without the certificate that is asked for": (
        nodes(tls={"secret": "serving", "clientCASecret": "clients"}, scheduler={"enabled": True}),
        "name its Secret in nodes.scheduler.clientCertificateSecret",
    ),
    "a client certificate over plain HTTP": (
        nodes(closed=False, scheduler={"enabled": True, "clientCertificateSecret": "client"}),
        "set nodes.tls.secret, or remove it",
    ),
    "a client certificate of another CA than the chart's": (
        nodes(scheduler={"enabled": True, "clientCertificateSecret": "client"}),
        "name the Secret of your CA in nodes.tls.clientCASecret, or remove it",
    ),
    "windows of an unknown resource": (nodes(nodeMetrics=["energy"]), "/nodes/nodeMetrics/0': value must be one of"),
    "an extender that counts for nothing": (nodes(scheduler={"weight": 0}), "/nodes/scheduler/weight': minimum"),
    "an API that an empty value would open": (nodes(closed=None), "at '/nodes': missing property 'closed'"),
    "a port that is null": ({"listenPort": None}, "at '': missing property 'listenPort'"),
    "an address that is a name": (nodes(service={"clusterIP": "tidewatch"}), "/nodes/service/clusterIP'"),
    "one port for two things": ({"listenPort": 9180}, "listenPort and metrics.port are both 9180"),
    "one service account that two components would create": (
        recommender(configuration(), serviceAccount={"name": "robot"}) | {"serviceAccount": {"name": "robot"}},
        "serviceAccount and recommender.serviceAccount would both create robot",
    ),
    "the service account of another component": (
        nodes(serviceAccount={"name": "tidewatch-adapter"}),
        "serviceAccount and nodes.serviceAccount would both create tidewatch-adapter",
    ),
    "all kinds of objects": (
        {"rbac": {"objectKinds": [{"apiGroups": ["apps"], "resources": ["*"]}]}},
        "rbac.objectKinds: the adapter must not read Secrets or all kinds",
    ),
    "a request under another name": ({"resources": {"request": {"cpu": 1}}}, "properties 'request' not allowed"),
    "Secrets": ({"rbac": {"objectKinds": [{"apiGroups": [""], "resources": ["secrets"]}]}}, "must not read Secrets"),
}


@pytest.mark.parametrize(("values", "message"), REFUSED.values(), ids=REFUSED)
def test_invalid_values_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(HelmError) as refused:
        render(values)
    assert message in str(refused.value)


COMPONENTS = {
    "adapter": "/resources",
    "recommender": "/recommender/resources",
    "nodes": "/nodes/resources",
    "scheduler": "/nodes/scheduler/resources",
}
"""The components by name, each with the place of its resources in the values."""
NO_QUANTITIES: tuple[tuple[str, object], ...] = (
    ("memory", "12Gb"),
    ("memory", "512MB"),
    ("memory", "1 Gi"),
    ("memory", "1,5Gi"),
    ("memory", "512m"),
    ("memory", "0.5"),
    ("memory", 0.5),
    ("memory", "-1Gi"),
    ("memory", -1),
    ("memory", "K"),
    ("memory", ""),
    ("memory", True),
    ("cpu", "500 m"),
    ("cpu", "0,5"),
    ("cpu", "500mi"),
    ("cpu", "one"),
    ("cpu", -0.5),
    ("ephemeral-storage", "1gb"),
    ("nvidia.com/gpu", 0.5),
)
QUANTITIES: dict[str, object] = {
    "cpu": "250m",
    "memory": "1.5Gi",
    "ephemeral-storage": "2G",
    "hugepages-2Mi": 4194304,
    "nvidia.com/gpu": "1",
}


def with_resources(component: str, section: str, quantities: dict[str, object]) -> dict[str, Any]:
    """Return values with these requests or limits of a component."""
    settings = {"resources": {section: quantities}}
    values = {
        "adapter": settings,
        "recommender": recommender(configuration(), **settings),
        "nodes": nodes(**settings),
        "scheduler": nodes(scheduler={"enabled": True, **settings}),
    }
    return values[component]


@pytest.mark.parametrize(("name", "written"), NO_QUANTITIES, ids=[f"{name}={each!r}" for name, each in NO_QUANTITIES])
def test_an_invalid_quantity_is_refused(name: str, written: object) -> None:
    with pytest.raises(HelmError, match=f"at '/resources/limits/{name.replace('/', '~1')}'"):
        render(with_resources("adapter", "limits", {name: written}))


@pytest.mark.parametrize("section", ["requests", "limits"])
@pytest.mark.parametrize("component", COMPONENTS)
def test_requests_and_limits_of_every_component_are_quantities(component: str, section: str) -> None:
    with pytest.raises(HelmError, match=f"at '{COMPONENTS[component]}/{section}/memory': '12Gb' does not match"):
        render(with_resources(component, section, {"memory": "12Gb"}))
    release = render(with_resources(component, section, QUANTITIES))
    (container,) = getattr(release, "pod" if component == "adapter" else component)["containers"]
    assert container["resources"][section].items() >= QUANTITIES.items()


@pytest.mark.parametrize("written", [2, 0.5, "0.75", ".5", "2.", "+1", "1e-1", "100u", "1k"])
def test_cores_may_be_written_in_every_form_of_a_quantity(written: object) -> None:
    limits = render(with_resources("adapter", "limits", {"cpu": written})).pod["containers"][0]["resources"]["limits"]
    # A quoted exponent may lose its quotes on the way, which Kubernetes reads as the same quantity.
    assert limits["cpu"] == (0.1 if written == "1e-1" else written)


def test_null_removes_a_limit() -> None:
    limits = render(with_resources("adapter", "limits", {"memory": None})).pod["containers"][0]["resources"]["limits"]
    assert limits == {}


def test_dots_in_the_name_of_a_release_are_not_in_names_of_services() -> None:
    text = helm("template", "my.release", str(CHART), "--set=nodes.enabled=true")
    services = [each["metadata"]["name"] for each in yaml.safe_load_all(text) if each and each["kind"] == "Service"]
    assert services
    assert not [name for name in services if "." in name]


def test_a_release_whose_services_could_not_exist_is_refused() -> None:
    with pytest.raises(HelmError, match="the release 12 would not: set fullnameOverride"):
        helm("template", "12", str(CHART))
    assert helm("template", "12", str(CHART), "--set=fullnameOverride=metrics")


def test_labels_of_null_are_ignored() -> None:
    assert render({"podLabels": None}).pod == render().pod


def test_an_address_and_plurals_of_null_are_ignored() -> None:
    assert "clusterIP" not in render(nodes(service={"clusterIP": None})).one("Service", "tidewatch-nodes")["spec"]
    values = recommender(configuration())
    unnamed = recommender(configuration(), rbac={"plurals": None})
    assert render(unnamed).all("Role") == render(values).all("Role")


def test_as_a_subchart_it_accepts_the_values_that_helm_adds() -> None:
    assert render({"global": {"imageRegistry": "x"}}).objects == render().objects


def test_a_parent_chart_may_turn_it_off_by_a_condition(tmp_path: Path) -> None:
    """With `condition: tidewatch.enabled` Helm hands in the key. Alone, the chart would not heed it."""
    (tmp_path / "charts").mkdir()
    shutil.copytree(CHART, tmp_path / "charts" / "tidewatch")
    about = yaml.safe_load((CHART / "Chart.yaml").read_text())
    part = {"name": about["name"], "version": about["version"], "repository": "", "condition": "tidewatch.enabled"}
    whole = {"apiVersion": "v2", "name": "platform", "version": "1.0.0", "dependencies": [part]}
    (tmp_path / "Chart.yaml").write_text(yaml.safe_dump(whole))

    def kinds(enabled: str) -> set[str]:
        printed = helm("template", "platform", str(tmp_path), f"--set=tidewatch.enabled={enabled}")
        return {one["kind"] for one in yaml.safe_load_all(printed) if one}

    assert "Deployment" in kinds("true")
    assert kinds("false") == set()
    with pytest.raises(HelmError, match="at '/enabled'"):
        render({"enabled": False})
