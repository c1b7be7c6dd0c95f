"""The stand-in for the kubelet reads a pod as a kubelet would, and refuses what it cannot do."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.controlplane.kubelet.settings import Image, Settings, image_of
from tests.e2e.controlplane.kubelet.spec import Identity, RefusedError, read_pod

IMAGE = Image(entrypoint=("adapter",), arguments=("--help",), user=10001, group=10002)
SAFE = {"readOnlyRootFilesystem": True}


def pod(container: dict[str, Any] | None = None, **spec: object) -> dict[str, Any]:
    main = {"name": "main", "image": "tidewatch:1", "securityContext": SAFE, **(container or {})}
    return {"metadata": {"name": "p"}, "spec": {"containers": [main], **spec}}


def read(container: dict[str, Any] | None = None, **spec: object) -> Any:  # noqa: ANN401 - one container's fields
    (found,) = read_pod(pod(container, **spec), {"main": IMAGE}).containers
    return found


@pytest.mark.parametrize(
    ("container", "command"),
    [
        ({}, ("adapter", "--help")),
        ({"args": ["serve"]}, ("adapter", "serve")),
        ({"command": ["sh"]}, ("sh",)),
        ({"command": ["sh"], "args": ["-c"]}, ("sh", "-c")),
    ],
)
def test_command_and_arguments_take_the_place_of_the_images(container: dict[str, Any], command: tuple[str]) -> None:
    assert read(container).command == command


@pytest.mark.parametrize(
    ("of_pod", "of_container", "identity"),
    [
        ({}, {}, Identity(10001, 10002, ())),
        ({"runAsUser": 7, "fsGroup": 9}, {}, Identity(7, 10002, (9,))),
        ({"runAsUser": 7, "runAsGroup": 8}, {"runAsUser": 5}, Identity(5, 8, ())),
        ({"supplementalGroups": [3], "fsGroup": 9, "runAsNonRoot": True}, {}, Identity(10001, 10002, (3, 9))),
    ],
)
def test_the_containers_security_goes_before_the_pods(
    of_pod: dict[str, Any], of_container: dict[str, Any], identity: Identity
) -> None:
    assert read({"securityContext": {**SAFE, **of_container}}, securityContext=of_pod).identity == identity


def test_a_probe_has_kubernetes_defaults() -> None:
    probe = read({"livenessProbe": {"tcpSocket": {"port": 80}}}).liveness
    assert (probe.initial_delay, probe.period, probe.timeout, probe.successes, probe.failures) == (0, 10, 1, 1, 3)
    assert probe.scheme == "tcp"


def test_a_probe_finds_a_port_by_its_name() -> None:
    http = {"httpGet": {"path": "/readyz", "port": "https", "scheme": "HTTPS"}}
    found = read({"readinessProbe": http, "ports": [{"name": "https", "containerPort": 6443}]}).readiness
    assert (found.scheme, found.port, found.path) == ("https", 6443, "/readyz")


@pytest.mark.parametrize(
    ("container", "spec", "field"),
    [
        ({"stdin": True}, {}, "stdin"),
        ({"securityContext": {}}, {}, "readOnlyRootFilesystem"),
        ({"securityContext": {**SAFE, "privileged": True}}, {}, "privileged"),
        ({"securityContext": {**SAFE, "capabilities": {"add": ["NET_ADMIN"]}}}, {}, "capabilities"),
        ({"securityContext": {**SAFE, "runAsNonRoot": True, "runAsUser": 0}}, {}, "runAsNonRoot"),
        ({"volumeMounts": [{"name": "v", "mountPath": "/v", "subPath": "x"}]}, {}, "subPath"),
        ({"readinessProbe": {"exec": {"command": ["true"]}}}, {}, "exec"),
        ({"readinessProbe": {"tcpSocket": {"port": "nobody"}}}, {}, "nobody"),
        ({"lifecycle": {"preStop": {"exec": {"command": ["true"]}}}}, {}, "exec"),
        ({}, {"hostNetwork": True}, "hostNetwork"),
        ({}, {"initContainers": [{"name": "first"}]}, "initContainers"),
        ({}, {"restartPolicy": "Never"}, "restartPolicy"),
    ],
)
def test_unsupported_fields_are_refused_by_name(container: dict[str, Any], spec: dict[str, Any], field: str) -> None:
    with pytest.raises(RefusedError, match=field):
        read(container, **spec)


@pytest.mark.parametrize(
    ("reference", "known"),
    [
        ("tidewatch", True),
        ("tidewatch:0.1.0", True),
        ("registry.example:5000/team/tidewatch:0.1.0@sha256:00", True),
        ("registry.example/tidewatch-other:1", False),
    ],
)
def test_an_image_is_known_by_its_repository(reference: str, *, known: bool) -> None:
    settings = Settings(
        url="u",
        ca_file="f",
        certificate_file="f",
        key_file="f",
        folder="f",
        address="a",
        api_host="h",
        api_port=1,
        runs_pods=True,
        images={"tidewatch": IMAGE},
    )
    assert (image_of(settings, reference) is IMAGE) == known
