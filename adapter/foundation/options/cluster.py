"""Flags that say which cluster a program talks to, and with which identity, and the settings made from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapter.foundation.files.file_contents import is_folder
from adapter.foundation.objects.names import ObjectName, is_namespace_name, is_object_name
from adapter.foundation.service.flags.parsing import UsageError
from adapter.foundation.service.flags.table import PATH, TEXT, Flag, FlagValues, in_group

if TYPE_CHECKING:
    from pathlib import Path


_CLUSTER = "Cluster"

CLUSTER_FLAGS: tuple[Flag, ...] = in_group(
    _CLUSTER,
    Flag("kubeconfig", PATH, "Kubeconfig of the cluster (default: in a pod, the cluster that the pod runs in)."),
    Flag("context", TEXT, "Context of the kubeconfig to use (default: its current context)."),
)


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """The cluster that a client talks to, and the identity that it uses."""

    kubeconfig: Path | None
    """Path of a kubeconfig; None for the cluster that the pod runs in."""
    context: str | None
    """Context of the kubeconfig; None for its current context."""

    @property
    def is_named(self) -> bool:
        """Whether a flag names the cluster: a command that can do without a cluster uses one only then."""
        return self.kubeconfig is not None or self.context is not None


def cluster_settings(values: FlagValues) -> ClusterSettings:
    """Return the cluster that the flags name."""
    return ClusterSettings(values.path("kubeconfig"), values.text("context") or None)


def objects_folder(values: FlagValues) -> Path | None:
    """Return the folder of `--objects`; None without the flag. Raises UsageError."""
    path = values.path("objects")
    if path is None or is_folder(path):
        return path
    problem = "is not a folder"
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        problem = f"cannot be read ({error.strerror})"
    raise UsageError(f"--objects: {path} {problem}: name one with the objects' *.json and *.yaml files")


def object_name(flag: str, text: str) -> ObjectName:
    """Return the object that a flag of the form NAMESPACE/NAME names; raises UsageError."""
    namespace, slash, name = text.partition("/")
    if not slash or not is_namespace_name(namespace) or not is_object_name(name):
        raise UsageError(f"--{flag}: {text!r} is not NAMESPACE/NAME: write one such as shop/web")
    return ObjectName(namespace, name)
