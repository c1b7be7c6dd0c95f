"""A pod's specification, read strictly: every key is either honoured, known to mean nothing here, or refused.

A refused pod has a container that waits with reason `CreateContainerConfigError`, as on a real node whose kubelet
cannot make the container.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.e2e.controlplane.client import Document
    from tests.e2e.controlplane.kubelet.settings import Image

# Decided before the kubelet, or about resources that a process here shares with the machine.
_POD_WITHOUT_MEANING: Final = frozenset(
    {
        "affinity",
        "automountServiceAccountToken",
        "dnsPolicy",
        "imagePullSecrets",
        "nodeName",
        "nodeSelector",
        "preemptionPolicy",
        "priority",
        "priorityClassName",
        "restartPolicy",
        "schedulerName",
        "serviceAccount",
        "serviceAccountName",
        "tolerations",
        "topologySpreadConstraints",
    }
)
_POD_HONOURED: Final = frozenset(
    {
        "containers",
        "enableServiceLinks",
        "securityContext",
        "terminationGracePeriodSeconds",
        "volumes",
    }
)
_POD_SECURITY: Final = frozenset(
    {
        "fsGroup",
        "fsGroupChangePolicy",
        "runAsGroup",
        "runAsNonRoot",
        "runAsUser",
        "seccompProfile",
        "supplementalGroups",
    }
)
_CONTAINER_WITHOUT_MEANING: Final = frozenset(
    {
        "imagePullPolicy",
        "resources",
        "terminationMessagePath",
        "terminationMessagePolicy",
    }
)
_CONTAINER_HONOURED: Final = frozenset(
    {
        "args",
        "command",
        "env",
        "envFrom",
        "image",
        "lifecycle",
        "livenessProbe",
        "name",
        "ports",
        "readinessProbe",
        "securityContext",
        "startupProbe",
        "volumeMounts",
        "workingDir",
    }
)
_CONTAINER_SECURITY: Final = frozenset(
    {
        "allowPrivilegeEscalation",
        "capabilities",
        "privileged",
        "readOnlyRootFilesystem",
        "runAsGroup",
        "runAsNonRoot",
        "runAsUser",
        "seccompProfile",
    }
)


class RefusedError(Exception):
    """This stand-in cannot do what the pod asks for; the message names the field."""


@dataclass(frozen=True, slots=True)
class Probe:
    """How a container's state is probed; all times are in seconds."""

    scheme: str
    """The scheme: http, https or tcp."""
    port: int
    path: str
    headers: tuple[tuple[str, str], ...]
    initial_delay: float
    period: float
    timeout: float
    successes: int
    failures: int


@dataclass(frozen=True, slots=True)
class Mount:
    """A volume at its place in the container."""

    volume: str
    path: str
    read_only: bool


@dataclass(frozen=True, slots=True)
class Identity:
    """The user and groups that the container runs as."""

    user: int
    group: int
    groups: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Container:
    """One container, complete except for its environment."""

    name: str
    image: str
    command: tuple[str, ...]
    working_folder: str
    env: Sequence[Document]
    env_from: Sequence[Document]
    image_environment: Mapping[str, str]
    image_files: tuple[str, ...]
    mounts: tuple[Mount, ...]
    identity: Identity
    new_privileges: bool
    readiness: Probe | None
    liveness: Probe | None
    startup: Probe | None
    stop_delay: float
    """How long `preStop` sleeps before SIGTERM, in seconds."""


@dataclass(frozen=True, slots=True)
class Pod:
    """The part of a pod's specification that its node carries out."""

    containers: tuple[Container, ...]
    volumes: Sequence[Document]
    fs_group: int | None
    service_links: bool
    grace: float


def read_pod(pod: Document, images: Mapping[str, Image]) -> Pod:
    """Return the pod's specification; `images` has the stand-in for each container's image. Raises RefusedError."""
    spec = pod["spec"]
    _only(spec, _POD_HONOURED | _POD_WITHOUT_MEANING, "spec")
    security = spec.get("securityContext") or {}
    _only(security, _POD_SECURITY, "spec.securityContext")
    if spec.get("restartPolicy", "Always") != "Always":
        raise RefusedError("spec.restartPolicy: only Always is supported")
    return Pod(
        containers=tuple(_container(found, security, images[found["name"]]) for found in spec["containers"]),
        volumes=spec.get("volumes") or [],
        fs_group=security.get("fsGroup"),
        service_links=spec.get("enableServiceLinks", True),
        grace=spec.get("terminationGracePeriodSeconds", 30),
    )


def _container(found: Document, of_pod: Document, image: Image) -> Container:
    where = f"container {found['name']}"
    _only(found, _CONTAINER_HONOURED | _CONTAINER_WITHOUT_MEANING, where)
    security = found.get("securityContext") or {}
    _only(security, _CONTAINER_SECURITY, f"{where}: securityContext")
    if security.get("privileged"):
        raise RefusedError(f"{where}: securityContext.privileged is not supported")
    if added := (security.get("capabilities") or {}).get("add"):
        raise RefusedError(f"{where}: securityContext.capabilities.add {added} is not supported")
    if not security.get("readOnlyRootFilesystem"):
        raise RefusedError(f"{where}: without securityContext.readOnlyRootFilesystem it could write to this machine")
    return Container(
        name=found["name"],
        image=found["image"],
        command=_command(found, image),
        working_folder=found.get("workingDir") or image.working_folder,
        env=found.get("env") or [],
        env_from=found.get("envFrom") or [],
        image_environment=image.environment,
        image_files=image.files,
        mounts=tuple(_mount(mount, where) for mount in found.get("volumeMounts") or []),
        identity=_identity(security, of_pod, image, where),
        new_privileges=security.get("allowPrivilegeEscalation", True),
        readiness=_probe(found, "readinessProbe"),
        liveness=_probe(found, "livenessProbe"),
        startup=_probe(found, "startupProbe"),
        stop_delay=_stop_delay(found.get("lifecycle") or {}, where),
    )


def _command(found: Document, image: Image) -> tuple[str, ...]:
    # The rule of images: `command` stands for the entry point, and then the image's own arguments are not used.
    if command := found.get("command"):
        return (*command, *(found.get("args") or []))
    return (*image.entrypoint, *(found.get("args") or image.arguments))


def _mount(found: Document, where: str) -> Mount:
    _only(found, {"name", "mountPath", "readOnly", "recursiveReadOnly"}, f"{where}: volumeMounts {found['mountPath']}")
    return Mount(found["name"], found["mountPath"], found.get("readOnly", False))


def _identity(own: Document, of_pod: Document, image: Image, where: str) -> Identity:
    def chosen(key: str, otherwise: Any) -> Any:  # noqa: ANN401 - fields of several types
        return own.get(key, of_pod.get(key, otherwise))

    user = chosen("runAsUser", image.user)
    if chosen("runAsNonRoot", otherwise=False) and user == 0:
        raise RefusedError(f"{where}: container has runAsNonRoot and image will run as root")
    fs_group = of_pod.get("fsGroup")
    groups = [*(of_pod.get("supplementalGroups") or []), *([] if fs_group is None else [fs_group])]
    return Identity(user, chosen("runAsGroup", image.group), tuple(groups))


def _probe(container: Document, kind: str) -> Probe | None:
    found = container.get(kind)
    if not found:
        return None
    where = f"container {container['name']}: {kind}"
    times = {"initialDelaySeconds", "periodSeconds", "timeoutSeconds", "successThreshold", "failureThreshold"}
    _only(found, times | {"httpGet", "tcpSocket"}, where)
    http = found.get("httpGet")
    action = http or found.get("tcpSocket") or {}
    _only(action, {"path", "port", "scheme", "httpHeaders"}, where)
    return Probe(
        scheme=action.get("scheme", "HTTP").lower() if http else "tcp",
        port=_port(action["port"], container, where),
        path=action.get("path", "/"),
        headers=tuple((header["name"], header["value"]) for header in action.get("httpHeaders") or []),
        initial_delay=found.get("initialDelaySeconds", 0),
        period=found.get("periodSeconds", 10),
        timeout=found.get("timeoutSeconds", 1),
        successes=found.get("successThreshold", 1),
        failures=found.get("failureThreshold", 3),
    )


def _port(wanted: int | str, container: Document, where: str) -> int:
    if isinstance(wanted, int):
        return wanted
    for port in container.get("ports") or []:
        if port.get("name") == wanted:
            found: int = port["containerPort"]
            return found
    raise RefusedError(f"{where}: no port is called {wanted!r}")


def _stop_delay(lifecycle: Document, where: str) -> float:
    _only(lifecycle, {"preStop"}, f"{where}: lifecycle")
    hook = lifecycle.get("preStop") or {}
    _only(hook, {"sleep"}, f"{where}: lifecycle.preStop")
    return float((hook.get("sleep") or {}).get("seconds", 0))


def _only(found: Mapping[str, Any], known: frozenset[str] | set[str], where: str) -> None:
    if unknown := sorted(key for key, value in found.items() if key not in known and value not in (None, [], {})):
        raise RefusedError(f"{where}: not supported here: {', '.join(unknown)}")
