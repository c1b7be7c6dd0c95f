"""The chart, installed by the real Helm into a real API server, run as rendered, upgraded, and uninstalled."""

from __future__ import annotations

import json
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.helm.cases import CASES, RULE
from tests.helm.chart import CHART, NAME, HelmError, helm, render
from tests.helm.fields import MODELS
from tests.helm.nodes import NODE_CASES
from tests.helm.recommenders import RECOMMENDER_CASES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.controlplane.cluster import Cluster

REGISTERED = "/apis/apiregistration.k8s.io/v1/apiservices"
CERT_MANAGER = "cert-manager.io"
APIS = ("v1beta1.custom.metrics.k8s.io", "v1beta1.external.metrics.k8s.io", "v1beta2.custom.metrics.k8s.io")

ALL_CASES = (
    CASES
    | {f"recommender: {case}": values for case, values in RECOMMENDER_CASES.items()}
    | {f"nodes: {case}": values for case, values in NODE_CASES.items()}
)


@pytest.mark.parametrize("values", ALL_CASES.values(), ids=ALL_CASES)
def test_the_api_server_accepts_every_object_without_a_warning(
    cluster: Cluster, namespace: str, values: dict[str, Any]
) -> None:
    release = render(values, namespace=namespace)
    items = [one for one in release.objects if one["kind"] in MODELS]
    # A label with a date or a version must stay a text, an unknown field must not be dropped.
    together = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    printed = cluster.kubectl("create", "--dry-run=server", "--validate=strict", "-f", "-", stdin=together)
    assert len(printed.splitlines()) == len(items)


def upgrade(cluster: Cluster, namespace: str, values: dict[str, Any] | None = None) -> None:
    options = ("--install", "--namespace", namespace)
    helm("upgrade", "tidewatch", str(CHART), *options, values=values, kubeconfig=cluster.kubeconfig)


@contextmanager
def installed(cluster: Cluster, namespace: str) -> Iterator[None]:
    """Install the chart with its defaults, and uninstall it afterwards."""
    upgrade(cluster, namespace)
    try:
        yield
    finally:
        helm("uninstall", "tidewatch", "--namespace", namespace, kubeconfig=cluster.kubeconfig)


def answers(cluster: Cluster) -> bool:
    """Return whether each API answers through the aggregator, which, unlike `Available`, verifies the certificate."""
    for name in APIS:
        version, _, group = name.partition(".")
        cluster.client.get(f"/apis/{group}/{version}")
    return True


@pytest.mark.needs_pods
def test_with_its_defaults_it_answers_over_verified_tls_and_an_upgrade_changes_no_certificate(
    cluster: Cluster, namespace: str
) -> None:
    with installed(cluster, namespace):
        cluster.wait_until_ready(namespace, NAME)
        cluster.wait_for("answers of all three APIs", lambda: answers(cluster))
        secret_path = f"/api/v1/namespaces/{namespace}/secrets/{NAME}-serving"
        secret = cluster.client.get(secret_path)["data"]
        bundles = [cluster.client.get(f"{REGISTERED}/{name}")["spec"]["caBundle"] for name in APIS]
        assert bundles == [secret["ca.crt"]] * 3
        upgrade(cluster, namespace, {"rules": {"custom": [RULE]}, "podAnnotations": {"changed": "yes"}})
        cluster.wait_until_ready(namespace, NAME)
        assert cluster.client.get(secret_path)["data"] == secret
        assert [cluster.client.get(f"{REGISTERED}/{name}")["spec"]["caBundle"] for name in APIS] == bundles
        assert answers(cluster)
        account = f"system:serviceaccount:{namespace}:{NAME}"
        asked = [event for event in cluster.audit_events() if event.user == account]
        assert asked
        assert [event for event in asked if event.code == 403] == []
    assert [name for name in APIS if cluster.client.find(f"{REGISTERED}/{name}")] == []


def test_an_api_of_another_release_is_refused_with_its_name(cluster: Cluster, namespace: str) -> None:
    with installed(cluster, namespace):
        options = ("--namespace", "default", "--set", "fullnameOverride=other")
        with pytest.raises(HelmError) as refused:
            helm("install", "second", str(CHART), *options, kubeconfig=cluster.kubeconfig)
        owner = f"the service {namespace}/{NAME}, of the Helm release {namespace}/tidewatch"
        assert f"v1beta1.custom.metrics.k8s.io belongs to {owner}" in str(refused.value)


def definition(kind: str) -> dict[str, Any]:
    """Return a definition of a kind of cert-manager that takes every field."""
    plural = f"{kind.lower()}s"
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{CERT_MANAGER}"},
        "spec": {
            "group": CERT_MANAGER,
            "scope": "Namespaced",
            "names": names,
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


@contextmanager
def kinds_of_cert_manager(cluster: Cluster, namespace: str) -> Iterator[None]:
    """Install the kinds of cert-manager, without the program, and remove them after the block."""
    definitions = [definition("Certificate"), definition("Issuer")]
    cluster.apply(*definitions)
    try:
        for one in definitions:
            path = f"/apis/{CERT_MANAGER}/v1/namespaces/{namespace}/{one['spec']['names']['plural']}"
            cluster.wait_for(f"the kind {one['spec']['names']['kind']}", partial(cluster.client.find, path))
        yield
    finally:
        for one in definitions:
            cluster.remove_definition(one["metadata"]["name"])


def test_a_release_can_go_back_from_cert_manager_to_its_own_certificate(cluster: Cluster, namespace: str) -> None:
    secrets = f"/api/v1/namespaces/{namespace}/secrets"
    with kinds_of_cert_manager(cluster, namespace), installed(cluster, namespace):
        upgrade(cluster, namespace, {"certificates": {"mode": "certManager"}})
        path = f"/apis/{CERT_MANAGER}/v1/namespaces/{namespace}/certificates"
        for certificate in cluster.client.get(path)["items"]:
            # As cert-manager makes it. It keeps the Secret of a Certificate that is deleted.
            name = certificate["spec"]["secretName"]
            cluster.apply(
                {
                    "apiVersion": "v1",
                    "kind": "Secret",
                    "metadata": {"name": name, "namespace": namespace},
                    "type": "kubernetes.io/tls",
                    "data": {"ca.crt": "", "tls.crt": "", "tls.key": ""},
                }
            )
        helm("rollback", "tidewatch", "1", "--namespace", namespace, kubeconfig=cluster.kubeconfig)
        note = {"tidewatch.io/serving-certificate": "self-made"}
        assert cluster.client.get(f"{secrets}/{NAME}-serving")["metadata"]["annotations"].items() >= note.items()
        upgrade(cluster, namespace, {"certificates": {"mode": "certManager"}})
        upgrade(cluster, namespace)
