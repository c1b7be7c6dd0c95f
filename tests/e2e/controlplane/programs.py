"""The pinned programs: which modules they come from, and where they are.

Each folder under `pinned/` is a Go module that only names main packages of others: go.mod pins the versions, and go.sum
the content of every file. Built programs are kept in the user's cache, so that a checkout never holds them and two
checkouts share them.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

PINNED: Final = Path(__file__).with_name("pinned")
CONTROL_PLANE: Final = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "etcd")
NEWEST: Final = "1.36"
"""Kubernetes's version if none is requested."""

_REQUIRED_FILES: Final = ("go.mod", "go.sum")


class ProgramsError(RuntimeError):
    """Programs are missing, or cannot be built; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Module:
    """A folder of `pinned/` and the programs that are built from it."""

    name: str
    """The name of the folder."""
    versioned: str
    """The module whose version counts as the programs' version."""
    packages: Mapping[str, str]
    """The main package of each program."""
    stamps: tuple[str, ...] = ()
    """Values for the linker's option -X: NAME=VALUE, where `{version}`, `{major}` and `{minor}` are filled in."""
    tags: str = ""
    """Build tags of Go."""
    release: tuple[str, str] = ("^", "")
    """How a module's version becomes its release if they differ: a regular expression, and its replacement."""
    built_by: str = "make e2e"
    """The command that builds the programs."""

    @property
    def folder(self) -> Path:
        return PINNED / self.name

    @property
    def version(self) -> str:
        """Return the version as go.mod has it, with its `v`."""
        text = (self.folder / "go.mod").read_text()
        if found := re.search(rf"^\s*(?:require )?{re.escape(self.versioned)} (v\S+)", text, re.MULTILINE):
            return found[1]
        raise ProgramsError(f"{self.folder / 'go.mod'} names no version of {self.versioned}")

    @property
    def linker_flags(self) -> str:
        version = re.sub(*self.release, self.version)
        major, minor = version.removeprefix("v").split(".")[:2]
        stamps = (stamp.format(version=version, major=major, minor=minor) for stamp in self.stamps)
        return " ".join(["-s -w", *(f"-X {stamp}" for stamp in stamps)])

    @property
    def key(self) -> str:
        """Return a key that differs whenever other programs would be built."""
        digest = hashlib.sha256(f"{self.linker_flags}\n{self.tags}\n{sorted(self.packages.items())}".encode())
        for name in _REQUIRED_FILES:
            digest.update((self.folder / name).read_bytes())
        return f"{self.name}-{self.version}-{digest.hexdigest()[:12]}"


_KUBERNETES_PACKAGES: Final = {
    **{name: f"k8s.io/kubernetes/cmd/{name}" for name in CONTROL_PLANE if name != "etcd"},
    "etcd": "go.etcd.io/etcd/server/v3",
}
# Without these the server calls itself v0.0.0, and clients refuse it.
_KUBERNETES_STAMPS: Final = tuple(
    f"k8s.io/{module}/version.{stamp}"
    for module in ("component-base", "client-go/pkg")
    for stamp in ("gitVersion={version}", "gitMajor={major}", "gitMinor={minor}")
)


def kubernetes(version: str = NEWEST) -> Module:
    """Return the control plane of this minor version, which must be one of `pinned/`; raises ProgramsError."""
    module = Module(f"kubernetes-{version}", "k8s.io/kubernetes", _KUBERNETES_PACKAGES, _KUBERNETES_STAMPS)
    if not module.folder.is_dir():
        known = ", ".join(sorted(path.name.partition("-")[2] for path in PINNED.glob("kubernetes-*")))
        raise ProgramsError(f"Kubernetes {version} is not among the pinned versions: take one of {known}")
    return module


PROMETHEUS: Final = Module(
    "prometheus-3",
    "github.com/prometheus/prometheus",
    {name: f"github.com/prometheus/prometheus/cmd/{name}" for name in ("prometheus", "promtool")},
    ("github.com/prometheus/common/version.Version={version}",),
    tags="netgo",
    # v0.315.0 is Prometheus 3.15.0.
    release=(r"^v0\.(\d)0?", r"\1."),
)

DESCHEDULER: Final = Module(
    "descheduler-0.36",
    "sigs.k8s.io/descheduler",
    {"descheduler": "sigs.k8s.io/descheduler/cmd/descheduler"},
    ("sigs.k8s.io/descheduler/pkg/version.version={version}",),
)

THANOS: Final = Module(
    "thanos-0.40",
    "github.com/thanos-io/thanos",
    {"thanos": "github.com/thanos-io/thanos/cmd/thanos"},
    # Its releases have this tag: Thanos takes labels to be slices.
    tags="slicelabels",
    built_by="make e2e thanos=1",
)


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return where built programs are kept."""
    return Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tidewatch" / "programs"


def built(module: Module, environ: Mapping[str, str] = os.environ) -> Path | None:
    """Return the folder of the module's programs, or None when they have not been built."""
    folder = cache_folder(environ) / module.key
    return folder if folder.is_dir() else None


def find(module: Module, environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of the module's programs, which must have been built; raises ProgramsError."""
    if folder := built(module, environ):
        return folder
    raise ProgramsError(f"{module.name} {module.version} has not been built: run `{module.built_by}`")


@dataclass(frozen=True, slots=True)
class Programs:
    """Where each program of the control plane is."""

    paths: Mapping[str, Path]

    def __getitem__(self, name: str) -> str:
        if path := self.paths.get(name):
            return str(path)
        raise ProgramsError(f"{name} is not among the programs: {', '.join(sorted(self.paths))}")


def control_plane(version: str = NEWEST, environ: Mapping[str, str] = os.environ) -> Programs:
    """Return a control plane's programs; those of KUBEBUILDER_ASSETS take precedence over those built here.

    That folder is maintained by others: it must hold kube-apiserver, etcd and kubectl, and may hold the rest.
    """
    assets = environ.get("KUBEBUILDER_ASSETS")
    own = built(kubernetes(version), environ) if assets else find(kubernetes(version), environ)
    folders = [Path(assets)] if assets else []
    paths = {name: path for name in CONTROL_PLANE if (path := _first(name, [*folders, *([own] if own else [])]))}
    if missing := [name for name in CONTROL_PLANE if name not in paths]:
        raise ProgramsError(
            f"KUBEBUILDER_ASSETS={assets} has no {', '.join(missing)}: unset it, or run `make e2e` once without it"
        )
    return Programs(paths)


def _first(name: str, folders: list[Path]) -> Path | None:
    found = (shutil.which(name, path=str(folder)) for folder in folders)
    return next((Path(path) for path in found if path), None)
