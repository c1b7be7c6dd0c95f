"""The second scheduler of the chart, and the configuration that the real kube-scheduler accepts."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.e2e.install.nodes_release import NAME, SCHEDULER, SHIPPED, of_component
from tests.helm.chart import NAMESPACE, HelmError, render
from tests.helm.nodes import NODE_CASES
from tests.helm.nodes import rendered_nodes as rendered
from tests.support.serving import Trust

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


NO_CLUSTER = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "none", "cluster": {"server": "http://127.0.0.1:9"}}],
    "users": [{"name": "none", "user": {}}],
    "contexts": [{"name": "none", "context": {"cluster": "none", "user": "none"}}],
    "current-context": "none",
}


def scheduler_configuration(case: str) -> dict[str, Any]:
    """Return the KubeSchedulerConfiguration of the second scheduler."""
    release = rendered(case)
    (container,) = release.scheduler["containers"]
    (volume,) = [one for one in release.scheduler["volumes"] if one["name"] == "config"]
    text = release.one("ConfigMap", volume["configMap"]["name"])["data"]["scheduler.yaml"]
    assert container["args"][0] == "--config=/etc/tidewatch/scheduler/scheduler.yaml"
    found: dict[str, Any] = yaml.safe_load(text)
    return found


def default_configuration() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((SHIPPED / "default-scheduler.yaml").read_text())
    return found


def test_a_changed_configuration_of_the_scheduler_replaces_its_pods() -> None:
    cases = ("everything", "a second scheduler", "a second scheduler over TLS")
    deployments = [of_component(rendered(case), "scheduler", "Deployment")[0] for case in cases]
    sums = {one["spec"]["template"]["metadata"]["annotations"]["checksum/config"] for one in deployments}
    assert len(sums) == 3


def test_the_second_scheduler_has_the_documented_configuration_with_names_and_address_of_its_own() -> None:
    expected = default_configuration()
    del expected["clientConnection"]
    lease = {"resourceNamespace": NAMESPACE, "resourceName": SCHEDULER}
    expected["leaderElection"] |= lease
    expected["profiles"][0]["schedulerName"] = "tidewatch"
    (extender,) = expected["extenders"]
    extender |= {
        "urlPrefix": f"https://{NAME}.{NAMESPACE}.svc:2020/scheduler",
        "tlsConfig": {
            "caFile": "/etc/tidewatch/serving-ca/ca.crt",
            "certFile": "/etc/tidewatch/client/tls.crt",
            "keyFile": "/etc/tidewatch/client/tls.key",
        },
    }
    assert scheduler_configuration("a second scheduler") == expected
    expected["profiles"][0]["schedulerName"] = "by-load"
    extender |= {"weight": 20, "httpTimeout": "1s"}
    assert scheduler_configuration("everything") == expected
    (bare,) = scheduler_configuration("a second scheduler that is open")["extenders"]
    assert (bare["urlPrefix"], bare["enableHTTPS"]) == (f"http://{NAME}.{NAMESPACE}.svc:2020/scheduler", False)
    assert "tlsConfig" not in bare


def test_the_scheduler_gets_the_ca_of_the_extender_and_not_its_key() -> None:
    (volume,) = [one for one in rendered("everything").scheduler["volumes"] if one["name"] == "serving-ca"]
    assert volume["secret"] == {"secretName": "serving", "items": [{"key": "ca.crt", "path": "ca.crt"}]}


def test_the_second_scheduler_has_the_version_of_the_cluster_unless_a_tag_is_set() -> None:
    images = {case: rendered(case).scheduler["containers"][0]["image"] for case in ("everything", "a second scheduler")}
    assert images["everything"] == "registry.k8s.io/kube-scheduler:v1.36.3"
    provider = render(NODE_CASES["a second scheduler"], "--kube-version", "v1.31.4-gke.1372000")
    assert provider.scheduler["containers"][0]["image"] == "registry.k8s.io/kube-scheduler:v1.31.4"


def test_a_cluster_version_without_a_patch_version_is_not_used_as_a_tag() -> None:
    """Argo CD may tell Helm such a version. An image without a tag would only fail in the pods."""
    with pytest.raises(
        HelmError, match=r"nodes\.scheduler\.image\.tag: Helm was told the cluster's version as v1\.31,"
    ):
        render(NODE_CASES["a second scheduler"], "--kube-version", "1.31")
    tagged = {"nodes": {"enabled": True, "scheduler": {"enabled": True, "image": {"tag": "v1.31.4"}}}}
    assert render(tagged, "--kube-version", "1.31").scheduler["containers"][0]["image"].endswith(":v1.31.4")


@pytest.mark.parametrize("case", [None, "a second scheduler", "a second scheduler that is open"])
def test_the_real_scheduler_accepts_the_configuration(
    case: str | None, kubernetes_programs: Mapping[str, Path], tmp_path: Path
) -> None:
    configuration = scheduler_configuration(case) if case else default_configuration()
    kubeconfig, given, taken = (tmp_path / name for name in ("kubeconfig", "given.yaml", "taken.yaml"))
    kubeconfig.write_text(yaml.safe_dump(NO_CLUSTER))
    configuration["clientConnection"] = {"kubeconfig": str(kubeconfig)}
    if case != "a second scheduler that is open":
        trust = Trust.made_in(tmp_path / "trust")
        caller = trust.front_proxy
        files = {"caFile": trust.serving.ca_file, "certFile": caller.certificate_file, "keyFile": caller.key_file}
        configuration["extenders"][0]["tlsConfig"] = {key: str(path) for key, path in files.items()}
    given.write_text(yaml.safe_dump(configuration))
    # It reads strictly, fills in what is not given, writes the result, and ends.
    command = [str(kubernetes_programs["kube-scheduler"]), f"--config={given}", f"--write-config-to={taken}"]
    done = subprocess.run([*command, "--secure-port=0"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    (profile,) = yaml.safe_load(taken.read_text())["profiles"]
    disabled = {plugin["name"] for plugin in profile["plugins"]["score"]["disabled"]}
    assert disabled == {"NodeResourcesBalancedAllocation", "NodeResourcesFit"}
    assert {"NodeResourcesFit"} <= {plugin["name"] for plugin in profile["plugins"]["multiPoint"]["enabled"]}
