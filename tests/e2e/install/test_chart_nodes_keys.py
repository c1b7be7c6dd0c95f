"""The keys and certificates that the chart makes for callers of the loads of nodes."""

from __future__ import annotations

import base64
import re

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from tests.e2e.install.nodes_release import NAME, of_component, pods
from tests.helm.chart import NAMESPACE, Release, render
from tests.helm.nodes import rendered_nodes as rendered


def secrets(release: Release) -> dict[str, dict[str, bytes]]:
    """Return the data of the Secrets that the chart makes."""
    return {
        one["metadata"]["name"]: {key: base64.b64decode(value) for key, value in one["data"].items()}
        for one in of_component(release, "nodes", "Secret")
    }


def test_the_chart_makes_the_credentials_that_the_api_requires() -> None:
    made = secrets(rendered("loads"))
    token = made.pop(f"{NAME}-token")
    assert token["token"] == token["prometheusAuthToken"]
    assert re.fullmatch(rb"[a-zA-Z0-9]{48}", token["token"])
    for data in made.values():
        authority, certificate = (x509.load_pem_x509_certificate(data[key]) for key in ("ca.crt", "tls.crt"))
        certificate.verify_directly_issued_by(authority)
        assert certificate.public_key() == load_pem_private_key(data["tls.key"], None).public_key()
    serving = x509.load_pem_x509_certificate(made[f"{NAME}-serving"]["tls.crt"])
    names = serving.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert {f"{NAME}.{NAMESPACE}.svc", "localhost"} <= set(names.get_values_for_type(x509.DNSName))
    assert made.keys() == {f"{NAME}-serving", f"{NAME}-client"}


def test_a_static_pod_verifies_the_address_that_it_was_given() -> None:
    release = render({"nodes": {"enabled": True, "service": {"clusterIP": "10.96.0.20"}}})
    serving = x509.load_pem_x509_certificate(secrets(release)[f"{NAME}-serving"]["tls.crt"])
    names = serving.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert set(map(str, names.get_values_for_type(x509.IPAddress))) == {"127.0.0.1", "10.96.0.20"}


@pytest.mark.parametrize(
    ("case", "made"),
    [
        ("everything", set()),
        ("open", set()),
        ("a second scheduler that is open", set()),
        ("loads", {"serving", "client", "token"}),
    ],
)
def test_no_credentials_are_made_that_are_given_or_not_required(case: str, made: set[str]) -> None:
    assert secrets(rendered(case)).keys() == {f"{NAME}-{one}" for one in made}


def test_no_pod_gets_a_key_that_is_not_its_own() -> None:
    release = rendered("a second scheduler")
    volumes = {one["name"]: one.get("secret", {}) for pod in pods(release) for one in pod["volumes"]}
    assert volumes["client-ca"]["items"] == [{"key": "ca.crt", "path": "ca.crt"}]
    assert volumes["serving-ca"]["items"] == [{"key": "ca.crt", "path": "ca.crt"}]
    assert [one["key"] for one in volumes["client"]["items"]] == ["tls.crt", "tls.key"]
    assert volumes["client"]["secretName"] == volumes["client-ca"]["secretName"] == f"{NAME}-client"
